"""`double-queues` beside its listing with CVXPY, its inequality on hostile sequences, and violations that do not grow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, plan_of, solve, trajectory
from test_baselines import CASES, Case

import oco

SETTINGS: dict[str, str | float] = {"weight": 0.7, "rate": 0.4, "G": 2, "D": 3, "gamma": 1.5, "eta": 0.1}


def listing(case: Case, rounds: Sequence[Round]) -> list[Array]:
    """The rule as its module writes it, each step solved by CVXPY."""
    w, rho, D, gamma, eta = 0.7, 0.4, 3.0, 1.5, 0.1
    x, found, S = case.start, [case.start], (1e-6 * 2.0) ** 2
    Z = np.zeros(len(case.g(rounds[0], x)))
    Q = np.full(len(Z), gamma)
    for d in rounds:
        g = case.g(d, x)
        Z, Q = Z + np.maximum(g, 0), np.maximum((1 - eta) * Q + np.maximum(g, 0), gamma)
        slope = case.gradient(d, x) + w * (np.exp(rho * Z) * (g > 0)) @ case.rows(d, x)
        S += slope @ slope
        a, v = math.sqrt(S / 2) / D, cp.Variable(len(x))
        penalty = sum(q * cp.pos(h) for q, h in zip(Q, case.constraints(d, v)))
        solve((slope @ (v - x) + penalty) / a + cp.sum_squares(v - x), case.domain(v))
        x = np.asarray(v.value)
        found.append(x)
    return found


@pytest.mark.parametrize("case", ["box", "ball", "simplex", "curved"])
def test_trajectories_equal_the_listing(case: str) -> None:
    problem, rng = CASES[case], np.random.default_rng(3)
    rounds = [problem.draw(rng) for _ in range(12)]
    ours = trajectory(plan_of(problem.text, "double-queues", SETTINGS), rounds)
    theirs = listing(problem, rounds)
    worst = max(np.linalg.norm(np.ravel(a) - b) for (a,), b in zip(ours, theirs, strict=True))
    assert worst <= 1e-6 * problem.diameter


GAME = """
model game
horizon T = {T}
decision x[3] in box(-1, 1)
stream c[3] in [-1, 1]
stream a[3] in [-1, 1]
minimize c @ x
subject to
    cut: a @ x <= 0.1 each round
"""


def attack(name: str, t: int, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Loss and constraint of a round: drawn, against the decision, turning, or a constraint that appears late."""
    if name == "drawn":
        return rng.choice([-1.0, 1.0], 3), rng.uniform(-1, 1, 3)
    if name == "against":
        return np.where(x >= 0, 1.0, -1.0), np.where(x >= 0, 1.0, -1.0) * (t % 2)
    if name == "turning":
        return np.where(np.arange(3) == t // 7 % 3, -1.0, 1.0), np.roll([1.0, -1.0, 0.5], t // 11)
    return -np.ones(3), np.ones(3) * (t > 150)


@pytest.mark.parametrize("name", ["drawn", "against", "turning", "late"])
def test_the_inequality_of_the_proof_holds_in_every_round(name: str) -> None:
    """Regret to x = 0, which satisfies every round, and the potential, with the sum of squares that was observed."""
    T, rng = 300, np.random.default_rng(5)
    plan: Any = oco.compile(oco.parse(GAME.format(T=T)), algorithm="double-queues", settings="paper")
    learner, value = plan.learner(backend="c"), {n: float(s.value) for n, s in plan.settings.items() if s.value}
    regret = violation = 0.0
    for t in range(T):
        x = learner.decide()
        c, a = attack(name, t, x, rng)
        regret += learner.observe(c=c, a=a).loss
        violation += max(a @ x - 0.1, 0.0)
        state = learner.values
        grown = math.exp(value["rate"] * float(state["Z"][0]))
        potential = value["weight"] / value["rate"] * (grown - 1)
        assert state["Z"][0] == pytest.approx(violation, abs=1e-9 * (1 + T * value["L"] * value["D"]))
        assert regret + potential <= math.sqrt(2) * value["D"] * grown * math.sqrt(float(state["S"])) * (1 + 1e-9)
    assert regret <= plan.guarantee.regret(T) and violation <= plan.guarantee.violation(T)


def test_the_violation_of_constraints_that_stand_still_does_not_grow() -> None:
    """The second bound is one number for all T; the first grows as sqrt(T) log T and counts where constraints jump."""
    text = GAME.replace("a @ x", "sum(x)")
    fixed = [
        oco.compile(oco.parse(text.format(T=T)), algorithm="double-queues", settings="paper") for T in (10**3, 10**6)
    ]
    first, second = (float(p.guarantee.violation() or 0.0) for p in fixed)
    assert second <= first * 1.01
    moving = [
        oco.compile(oco.parse(GAME.format(T=T)), algorithm="double-queues", settings="paper") for T in (10**4, 10**6)
    ]
    first, second = (float(p.guarantee.violation() or 0.0) for p in moving)
    assert 10 < second / first < 16


def test_settings_beyond_the_theorem_are_named_and_run() -> None:
    """kappa above 1 is OCO707; e^(rate Z) is never formed, so that a rate of 500 gives finite decisions."""
    settings = {"rate": 500, "units": "user"}
    plan: Any = oco.compile(oco.parse(GAME.format(T=50)), algorithm="double-queues", settings=settings)
    assert any(w.code == "OCO707" and "kappa" in w.message for w in plan.warnings)
    rng = np.random.default_rng(1)
    trace = plan.run({"c": -np.ones((50, 3)), "a": rng.uniform(0.5, 1, (50, 3))})
    assert np.isfinite(trace.decisions).all() and np.abs(trace.decisions).max() <= 1 + 1e-9
