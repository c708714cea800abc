"""The checker's linear program over a box, against HiGHS and by its own bounds from both sides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility import solver
from oco.compiler.prover.feasibility.linear import least_maximum
from oco.compiler.prover.feasibility.scenario import robust

SIZES = [(1, 1), (1, 7), (9, 1), (12, 12), (40, 5), (5, 40), (60, 30)]


@pytest.mark.parametrize("rows, columns", SIZES)
@pytest.mark.parametrize("kind", ["plain", "integer", "large", "small", "repeated", "fixed entries"])
def test_value_weights_and_point(rows: int, columns: int, kind: str) -> None:
    """The value is that of HiGHS, the point reaches it within the box, and the weights bound it from below; all to rounding."""
    rng = np.random.default_rng([rows, columns])
    A, b = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    lower = rng.uniform(-2, 0, columns)
    upper = lower + rng.uniform(0.1, 3, columns)
    if kind == "integer":
        A, b = np.round(A), np.round(b)
    elif kind in ("large", "small"):
        A, b = A * (factor := 1e5 if kind == "large" else 1e-5), b * factor
    elif kind == "repeated":
        A, b = np.vstack([A, A]), np.append(b, b)
    elif kind == "fixed entries":
        upper = np.where(rng.random(columns) < 0.5, lower, upper)
    result = least_maximum(A, b, lower, upper)
    assert result is not None
    program = np.column_stack([A, -np.ones(len(b))]), -b, [*zip(lower, upper), (None, None)]
    expected = linprog(np.append(np.zeros(columns), 1), program[0], program[1], bounds=program[2]).fun
    size = max(float(np.abs(A).max(initial=0)), float(np.abs(b).max()))
    assert (lower <= result.x).all() and (result.x <= upper).all()
    assert result.value == float((A @ result.x + b).max())
    assert abs(result.value - expected) <= 1e-9 * size
    slope = A.T @ result.weights
    floor = float(b @ result.weights + np.minimum(slope * lower, slope * upper).sum())
    assert (result.weights >= 0).all() and result.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.value - floor <= 1e-8 * size


def test_functions_that_do_not_change() -> None:
    result = least_maximum(np.zeros((3, 2)), np.array([1.0, 4.0, 2.0]), np.zeros(2), np.ones(2))
    assert result is not None and result.value == 4.0 and result.weights.tolist() == [0.0, 1.0, 0.0]


def test_no_answer_to_coefficients_without_end() -> None:
    assert least_maximum(np.array([[np.inf]]), np.zeros(1), np.zeros(1), np.ones(1)) is None


TEXT = """model m
horizon T = 100
decision x[4] in box(0, 12)
stream need in [15, 45]
stream room[4] in [3, 12]
stream c[4] in [-1, 1]
minimize c @ x
subject to
    delivered: sum(x) >= need each round
    standing: x <= room each round
    priced: need + sum(x) <= 80 each round
"""


def test_one_program_in_two_ways() -> None:
    """Rows of the worst case and CVXPY's form of it have the same value, multipliers and decision."""
    scenario = robust(ProofContext(canonical(oco.parse(TEXT))))
    parts = [g for c in scenario.setting.canonical.inequalities for g in scenario.spelled_out(c.expr) or ()]
    linear, convex = solver._linear_program(scenario, parts), solver._convex_program(scenario, parts)
    assert linear is not None and convex is not None
    assert linear.value == pytest.approx(convex.value, abs=1e-6) and linear.value == pytest.approx(6.6, abs=1e-12)
    assert linear.x["x"] == pytest.approx(convex.x["x"], abs=1e-6)
    assert linear.weights == pytest.approx(convex.weights, abs=1e-6)
