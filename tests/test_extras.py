"""Packages of extras: what works without them, and the errors that name them."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oco.dsl.extras import EXTRAS, LARGE, require_package

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODEL = """model m
horizon T = 60
decision x[2] in box(0, 1)
stream c[2] ~ uniform(-1, 1)
minimize c @ x
subject to
    cap: sum(x) <= 1 each round
"""
WORKING = (
    ("check", "m.oco"),
    ("explain", "m.oco"),
    ("compile", "m.oco"),
    ("run", "m.oco"),
    ("fmt", "--check", "m.oco"),
    ("algorithms",),
    ("new", "--list"),
)
MISSING = {
    ("run", "m.oco", "--out", "o"): "plots",
    ("run", "m.oco", "--seeds", "2", "--engine", "here"): "traces",
    ("run", "--replay", "trace.nc"): "traces",
    ("run", "m.oco", "--backend", "jax"): "jax",
    ("tune", "m.oco", "--gradient"): "jax",
}
"""Commands that want an extra, and its name."""
WITHOUT = f"""
import contextlib, io, json, sys
for name in {sorted({*EXTRAS, "lark", "pyarrow", "zarr", "IPython", "polars"})!r}:
    sys.modules[name] = None
from oco.cli import main
for words in {[*WORKING, *MISSING]!r}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""

Results = dict[tuple[str, ...], tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and an empty file of a trace."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "m.oco").write_text(MODEL)
    (folder / "trace.nc").write_text("")
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """Status, output and errors of each command, in a process that has no package of an extra."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=folder, timeout=120)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(WORKING) + len(MISSING), done.stderr
    return {words: (status, out, err) for words, (status, out, err) in zip([*WORKING, *MISSING], lines)}


def names_of(requirements: list[str]) -> set[str]:
    return {text.split(">")[0].split("[")[0] for text in requirements}


@pytest.mark.parametrize("words", WORKING, ids=" ".join)
def test_commands_need_no_extra(results: Results, words: tuple[str, ...]) -> None:
    status, _, err = results[words]
    assert status == 0, err


@pytest.mark.parametrize(("words", "extra"), MISSING.items(), ids=map(" ".join, MISSING))
def test_a_missing_extra_is_named_before_the_first_round(
    results: Results, folder: Path, words: tuple[str, ...], extra: str
) -> None:
    status, out, err = results[words]
    assert status == 1 and not out and not (folder / "o").exists()
    assert "OCO911" in err and f"ocolang[{extra}]" in err and "Traceback" not in err


def test_extras_of_the_project_hold_the_packages() -> None:
    optional = PROJECT["optional-dependencies"]
    core = names_of(PROJECT["dependencies"])
    for package, extra in EXTRAS.items():
        assert package not in core
        assert package in names_of(optional[extra]) or package == "pandas"  # xarray brings pandas
    every = set(optional["all"][0].removeprefix("ocolang[").removesuffix("]").split(","))
    assert every >= {*EXTRAS.values()} - LARGE and not every & LARGE


def test_packages_that_are_there_are_no_error() -> None:
    for package in ("matplotlib", "xarray"):
        require_package(package, "a plot")
