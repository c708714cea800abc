"""What a person sees for each of many mistakes. `bad/NAME.oco` holds one mistake, `bad/NAME.txt` what is said about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from oco.compiler.prover.check import check
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.load import parse

BAD = Path(__file__).parent / "bad"
MODELS = sorted(BAD.glob("*.oco"))


def diagnose(path: Path) -> list[Diagnostic]:
    """The errors that parsing and then checking a model finds."""
    try:
        check(parse(path.read_text(encoding="utf-8"), name=path.name, folder=path.parent))
    except OcoError as error:
        return list(error.diagnostics)
    return []


def shown(diagnostic: Diagnostic) -> str:
    """As a person sees it, but for the numbers of a witness, in which rounding may differ between machines."""
    rows = [
        re.sub(r"-?\d[\d.e-]*", "#", row) if row.startswith("  note:") else row
        for row in diagnostic.render().split("\n")
    ]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_one_mistake_gives_one_error_that_reads_as_expected(path: Path, golden: Callable[..., None]) -> None:
    found = diagnose(path)
    assert len(found) == 1, [d.message for d in found]
    golden(shown(found[0]), path.with_suffix(".txt"))


def test_every_expected_text_has_its_model() -> None:
    assert {p.stem for p in BAD.glob("*.txt")} == {p.stem for p in MODELS}


def test_the_corpus_is_broad() -> None:
    codes = {p.read_text(encoding="utf-8").split("error OCO")[1][:3] for p in BAD.glob("*.txt")}
    assert len(MODELS) >= 90
    assert len(codes) >= 60
