"""Packages of extras: what works without them, and the errors that name them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oco.dsl.extras import EXTRAS, require_package

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODEL = """model m
horizon T = 12
decision x[2] in box(0, 1)
stream c[2] ~ uniform(-1, 1)
minimize c @ x
subject to
    cap: sum(x) <= 1 each round
"""
WITHOUT = f"""
import sys
for name in {sorted({*EXTRAS, "lark", "pyarrow", "zarr", "IPython", "polars"})!r}:
    sys.modules[name] = None
from oco.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Command in a process that has no package of an extra."""
    command = [sys.executable, "-c", WITHOUT, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)


def names_of(requirements: list[str]) -> set[str]:
    return {text.split(">")[0].split("[")[0] for text in requirements}


@pytest.mark.parametrize(
    "words",
    [
        ("check", "m.oco"),
        ("explain", "m.oco"),
        ("compile", "m.oco"),
        ("run", "m.oco"),
        ("fmt", "--check", "m.oco"),
        ("algorithms",),
        ("new", "--list"),
    ],
)
def test_commands_need_no_extra(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "m.oco").write_text(MODEL)
    done = run(tmp_path, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("run", "m.oco", "--out", "o"), "plots"),
        (("run", "m.oco", "--seeds", "2", "--engine", "here"), "traces"),
        (("run", "--replay", "trace.nc"), "traces"),
    ],
)
def test_a_missing_extra_is_named_before_the_first_round(tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    (tmp_path / "m.oco").write_text(MODEL)
    (tmp_path / "trace.nc").write_text("")
    done = run(tmp_path, *words)
    assert done.returncode == 1 and not done.stdout and not (tmp_path / "o").exists()
    assert "OCO911" in done.stderr and f"ocolang[{extra}]" in done.stderr and "Traceback" not in done.stderr


def test_extras_of_the_project_hold_the_packages() -> None:
    optional = PROJECT["optional-dependencies"]
    core = names_of(PROJECT["dependencies"])
    for package, extra in EXTRAS.items():
        assert package not in core
        assert package in names_of(optional[extra]) or package == "pandas"  # xarray brings pandas
    assert {"plots", "traces"} <= set(optional["all"][0].removeprefix("ocolang[").removesuffix("]").split(","))


def test_packages_that_are_there_are_no_error() -> None:
    for package in ("matplotlib", "xarray"):
        require_package(package, "a plot")
