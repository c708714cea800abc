"""The papers' experiments: their models stand, and the command knows them."""

from __future__ import annotations

import subprocess
import sys
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


def test_the_command_lists_every_experiment() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.papers", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == len(set(names)) and {"coldq-tracking", "datacenter", "gradual-variation"} <= set(names)


def test_the_benchmark_of_speed_tells_its_rows() -> None:
    command = [sys.executable, "benchmarks/speed/run.py"]
    told = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--repeats" in told and "fleet" in told and "growth" in told
    wrong = subprocess.run([*command, "flet"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "flet" in wrong.stderr and not wrong.stdout


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
