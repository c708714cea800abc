"""The papers' experiments: their models stand, and the command knows them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import oco
from benchmarks.papers.fixed_matrix import best_fixed
from oco.compiler.problem.canonical import canonical
from oco.dsl.load import load
from oco.dsl.text.formatter import format_text
from oco.evaluation.data import load_data

ROOT = Path(__file__).parent.parent
MODELS = sorted((ROOT / "benchmarks" / "papers").glob("*.oco"))


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_models_are_well_formed(path: Path) -> None:
    problem = canonical(load(path))
    assert problem.inequalities and format_text(path.read_text()) == path.read_text()


def status(run: Callable[[], object]) -> int:
    """Exit status of a script that ends by SystemExit."""
    with pytest.raises(SystemExit) as ended:
        run()
    return int(ended.value.code or 0)


def test_the_command_lists_every_experiment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks.papers", "--list"])
    assert status(lambda: runpy.run_module("benchmarks.papers", run_name="__main__")) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert len(names) == len(set(names)) and {"coldq-tracking", "datacenter", "gradual-variation"} <= set(names)


def test_the_benchmark_of_speed_tells_its_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(word: str) -> int:
        monkeypatch.setattr(sys, "argv", ["run.py", word])
        return status(lambda: runpy.run_path(str(speed / "run.py"), run_name="__main__"))

    speed = ROOT / "benchmarks" / "speed"
    monkeypatch.syspath_prepend(str(speed))
    assert of("--help") == 0
    told = capsys.readouterr().out
    assert "--repeats" in told and "fleet" in told and "growth" in told
    assert of("flet") == 2
    wrong = capsys.readouterr()
    assert "flet" in wrong.err and not wrong.out


COMPLETION = """model m
horizon T = 12
decision X[6, 7] in nuclear_ball(10)
stream user in 0..5
stream item in 0..6
stream rating in [1, 5]
stream P[6, 7] in [-1, 1]
minimize 0.5 * (X[user, item] - rating) ** 2
subject to
    side: sum(P * X) <= 0 each round
"""


@pytest.mark.parametrize("radius", [40.0, 9.0])
def test_the_best_fixed_matrix_is_certified(radius: float) -> None:
    """Against CVXPY: its value lies in the interval, and the upper end belongs to a matrix that keeps within every constraint."""
    rng = np.random.default_rng(3)
    data = {
        "user": rng.integers(0, 6, 12),
        "item": rng.integers(0, 7, 12),
        "rating": rng.integers(1, 6, 12).astype(float),
        "P": rng.uniform(-1, 1, (12, 6, 7)),
    }
    found = best_fixed(load_data(canonical(oco.parse(COMPLETION)), data), (6, 7), radius, 30.0)
    X = cp.Variable((6, 7))
    lost = cp.sum_squares(cp.hstack([X[i, j] for i, j in zip(data["user"], data["item"])]) - data["rating"]) / 2
    held = [cp.normNuc(X) <= radius, *(cp.sum(cp.multiply(P, X)) <= 0 for P in data["P"])]
    least = cp.Problem(cp.Minimize(lost), held).solve(solver="CLARABEL")
    assert found.upper is not None
    assert found.lower - 1e-6 <= least <= found.upper + 1e-6
    if radius > 30:
        assert found.upper - found.lower <= 1e-9
    else:
        assert found.lower > 0.5 * least
