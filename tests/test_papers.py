"""The papers' experiments: their models stand, and the command knows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oco.compiler.canonical import canonical
from oco.dsl.load import load
from oco.dsl.text.formatter import format_text

ROOT = Path(__file__).parent.parent
MODELS = sorted((ROOT / "benchmarks" / "papers").glob("*.oco"))


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_models_are_well_formed(path: Path) -> None:
    problem = canonical(load(path))
    assert problem.inequalities and format_text(path.read_text()) == path.read_text()


def test_the_command_lists_every_experiment() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.papers", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == len(set(names)) and {"coldq-tracking", "datacenter", "gradual-variation"} <= set(names)
