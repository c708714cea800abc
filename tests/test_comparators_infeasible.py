"""Constraints with kinks that cannot hold: proved, and broken by as little as CVXPY says, from the model as it is written."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from comparator_cases import drawn, problem

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.evaluation.comparators import ComparatorStatus
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data

HEAD = "decision x[3] in ball(1.5)\nstream a[3] in [-1, 1]\nstream s in [-1, 1]\nminimize {}\nsubject to\n"
BODIES = {
    "a maximum": (HEAD.format("sum_squares(x - a)") + "    c: max(abs(x - a)) <= 0.757884    on average\n", 14),
    "a sum beside a kink in the loss": (
        HEAD.format("pos(s - a @ x) + sum_squares(x)") + "    c: sum(abs(x - a)) <= 1.463396    on average\n",
        13,
    ),
    "two norms": (
        HEAD.format("logistic(a @ x)")
        + "    c: norm1(x - a) <= 1.595076    on average\n    d: norm2(x - a) <= 1.595076    on average\n",
        5,
    ),
}


def violations(p: Canonical, data: Data, rounds: int, x: Any) -> list[Any]:
    """The mean of each constraint over the first rounds."""
    return [
        sum(
            to_cvxpy(c.expr, {"x": x}, {s.name: data.array(s.name)[t] for s in p.streams}, t + 1) for t in range(rounds)
        )
        / rounds
        for c in p.inequalities
    ]


def scales(data: Data, rounds: int) -> Any:
    """How much |x - a|_1 and |x - a|_2 can change over the ball, by the largest slope of their means at its centre."""
    a = data.array("a")[:rounds]
    slopes = np.sign(a), a / np.linalg.norm(a, axis=1, keepdims=True)
    return np.array([3.0 * np.abs(each.mean(axis=0)).max() for each in slopes])


@pytest.mark.parametrize("body, rounds", BODIES.values(), ids=BODIES.keys())
def test_means_with_kinks_are_broken_least(body: str, rounds: int) -> None:
    p = problem(body, rounds)
    data = drawn(p, rounds)
    scale = scales(data, rounds)[: len(p.inequalities)]
    x, v = cp.Variable(3), cp.Variable()
    limits = [g <= v * size for g, size in zip(violations(p, data, rounds, x), scale)]
    cp.Problem(cp.Minimize(v), [*limits, cp.norm2(x) <= 1.5]).solve(solver="CLARABEL")
    assert v.value > 1e-4
    found = compare(p, data, "static")
    assert found.status is ComparatorStatus.LEAST_VIOLATING and "means cannot hold together" in found.words
    assert max(found.violation / scale) == pytest.approx(v.value, abs=1e-5)
    best = cp.Problem(
        cp.Minimize(
            sum(
                to_cvxpy(p.objective, {"x": x}, {s.name: data.array(s.name)[t] for s in p.streams}, t + 1)
                for t in range(rounds)
            )
        ),
        [*(g <= (v.value + 1e-5) * size for g, size in zip(violations(p, data, rounds, x), scale)), cp.norm2(x) <= 1.5],
    )
    best.solve(solver="CLARABEL")
    assert found.value == pytest.approx(best.value, rel=1e-2)


def test_prefixes_that_kinks_make_impossible_stand_beside_the_others() -> None:
    body, rounds = BODIES["a maximum"]
    p, ends = problem(body, rounds), np.array([1, 9])
    data = drawn(p, rounds)
    found = compare_prefixes(p, data, ends)
    x = cp.Variable(3)
    for k, end in enumerate(ends):
        least = cp.Problem(cp.Minimize(violations(p, data, int(end), x)[0]), [cp.norm2(x) <= 1.5])
        least.solve(solver="CLARABEL")
        assert (found.status[k] is ComparatorStatus.LEAST_VIOLATING) == (least.value > 0)
        if least.value > 0:
            at = violations(p, data, int(end), cp.Constant(found.decision["x"][k]))[0].value
            assert at == pytest.approx(least.value, abs=1e-5)
