"""`clasp` and `distance-penalty` beside their listings with CVXPY, and the inequalities of their proofs on hostile sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, plan_of, solve, trajectory
from test_baselines import CASES, Case
from test_double_queues import GAME, attack

import oco

PULLED: dict[str, str | float] = {"L": 3, "D": 2}


def nearest(case: Case, d: Round, y: Array) -> Array:
    """The point of the domain that satisfies the round's constraints and is nearest to y."""
    v = cp.Variable(len(y))
    solve(cp.sum_squares(v - y), [*case.domain(v), *(h <= 0 for h in case.constraints(d, v))])
    return np.asarray(v.value)


def clasp(case: Case, rounds: Sequence[Round]) -> list[Array]:
    x, found = case.start, [case.start]
    for t, d in enumerate(rounds, start=1):
        x = nearest(case, d, x - 0.3 / math.sqrt(t) * case.gradient(d, x))
        found.append(x)
    return found


def distance_penalty(case: Case, rounds: Sequence[Round]) -> list[Array]:
    x, found, S = case.start, [case.start], 0.0
    for d in rounds:
        slope = case.gradient(d, x)
        if case.g(d, x).max() > 0:
            away = x - nearest(case, d, x)
            slope = slope + 3 * away / np.linalg.norm(away)
        S += slope @ slope
        x = case.project(x - 2 / math.sqrt(2 * S) * slope)
        found.append(x)
    return found


@pytest.mark.parametrize("case", ["box", "ball", "simplex"])  # some rounds of "curved" have no decision
@pytest.mark.parametrize(
    ("name", "listing", "settings"),
    [("clasp", clasp, {"eta": "0.3 / sqrt(t)"}), ("distance-penalty", distance_penalty, PULLED)],
)
def test_trajectories_equal_the_listings(
    case: str, name: str, listing: Callable[[Case, Sequence[Round]], list[Array]], settings: dict[str, str | float]
) -> None:
    problem, rng = CASES[case], np.random.default_rng(3)
    rounds = [problem.draw(rng) for _ in range(10)]
    theirs = listing(problem, rounds)
    ours = trajectory(plan_of(problem.text, name, settings), rounds)
    worst = max(np.linalg.norm(np.ravel(a) - b) for (a,), b in zip(ours, theirs, strict=True))
    assert worst <= 2e-6 * problem.diameter


def played(plan: Any, T: int, name: str) -> tuple[Array, Array, Array]:
    """Decisions (T, 3), losses and constraints of a run against an attack."""
    learner, rng, rows = plan.learner(backend="c"), np.random.default_rng(5), []
    for t in range(T):
        x = learner.decide()
        c, a = attack(name, t, x, rng)
        rows.append((x, c, a))
        learner.observe(c=c, a=a)
    x, c, a = (np.array(column) for column in zip(*rows))
    return x, c, a


@pytest.mark.parametrize("name", ["drawn", "against", "turning", "late"])
def test_moves_and_squared_violations_are_bounded(name: str) -> None:
    """sum |x_{t+1} - x_t|^2 <= D^2 + 2 G D sum eta_t, and the squares of violations by G_n^2 times that."""
    T = 300
    plan: Any = oco.compile(oco.parse(GAME.format(T=T)), algorithm="clasp", settings="paper")
    x, c, a = played(plan, T, name)
    D, G, slope = math.sqrt(12), math.sqrt(3), math.sqrt(3)
    most = D**2 + 2 * G * D * (D / G / np.sqrt(np.arange(1, T + 1))).sum()
    broken = np.maximum((a * x).sum(axis=1) - 0.1, 0)
    assert (np.diff(x, axis=0) ** 2).sum() <= most
    assert (broken**2).sum() <= slope**2 * most and broken.sum() <= plan.guarantee.violation(T)
    assert (c * x).sum() <= plan.guarantee.regret(T)  # against x = 0


MOVING = """
model moving
horizon T = {T}
decision x[2] in box(-1, 1)
stream b[2] in [-1, 1]
minimize norm1(x - 2 * b)
measure dynamic regret
subject to
    low: x <= b each round
    high: x >= b - 0.2 each round
assume path_length <= {path}
"""


@pytest.mark.parametrize("path", [4, 40])
def test_dynamic_regret_and_violation_without_a_common_decision(path: int) -> None:
    """The sets of the rounds have no point in common; both bounds grow with the root of T and of the path."""
    T, flips = 600, int(path / 2.7)
    turns = np.where(np.arange(T) * (flips + 1) // T % 2, -0.9, 0.9)
    b = np.stack([turns, -turns], axis=1)
    plan: Any = oco.compile(oco.parse(MOVING.format(T=T, path=path)), algorithm="distance-penalty")
    trace = plan.run({"b": b})
    x = trace.decisions
    best = np.where(b > 0, b, -1.0)  # of |x - 2 b| within [b - 0.2, b] and the box
    assert np.linalg.norm(np.diff(best, axis=0), axis=1).sum() <= path and np.ptp(b, axis=0).min() > 1
    regret = np.abs(x - 2 * b).sum() - np.abs(best - 2 * b).sum()
    broken = np.maximum(x - b, 0).sum() + np.maximum(b - 0.2 - x, 0).sum()
    assert 0 < regret <= plan.guarantee.regret(T) and 0 < broken <= plan.guarantee.violation(T)
    longer = oco.compile(oco.parse(MOVING.format(T=4 * T, path=path)), algorithm="distance-penalty").guarantee
    assert longer is not None and longer.regret() == pytest.approx(2 * plan.guarantee.regret(T), rel=0.02)


def test_a_price_that_does_not_exceed_the_slope_is_named() -> None:
    text = MOVING.format(T=20, path=4) + "using distance-penalty with L = 0.5\n"
    plan: Any = oco.compile(oco.parse(text))
    assert any(w.code == "OCO707" and "must exceed" in w.message for w in plan.warnings)
