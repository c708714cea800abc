"""Quadratic models of the values that came: a literal reference, Bayes' rule, what they find, and when they lead."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.algorithms import response_surface as rs

TEXT = """
model surface
horizon T = {T}
decision {domain}
stream a[3] in [-1, 1]
minimize sum_squares(x) + a @ x
feedback bandit
"""
BOX, BALL = "x[3] in box([-1, -2, 0], [1, 2, 1])", "x[3] in ball(2)"
PRICES = """
model prices
horizon T = 600
decision p[2] in box(1, 25)
stream base[2] in [0, 60]
stream slope[2] in [0.5, 2]
maximize sum(p * (base - slope * p))
feedback bandit
"""


@cache
def plan_of(domain: str, T: int) -> oco.Plan:
    return oco.compile(oco.parse(TEXT.format(T=T, domain=domain)), algorithm="response-surface")


class Literal:
    """The rule as the module's text has it, model by model."""

    def __init__(self, centre: np.ndarray, unit: np.ndarray, room: float) -> None:
        self.centre, self.unit = centre, unit
        self.d, self.delta = len(centre), rs.LARGEST * room
        self.widest, self.y, self.n = self.delta, centre.copy(), 0
        m = self.d + 2
        self.models = [
            {
                "theta": np.zeros(m),
                "P": np.diag([rs.LEVEL**2, *[steep**2] * self.d, rs.CURVATURE**2]),
                "Q": np.diag([level**2, *[own**2] * (m - 1)]),
                "own": own,
                "variance": 0.0,
                "l": 0.0,
            }
            for level, own, steep in rs.MODELS
        ]

    def decide(self, normal: np.ndarray) -> np.ndarray:
        return self.y + self.delta * self.unit * normal / np.linalg.norm(normal)

    def observe(self, x: np.ndarray, value: float, into) -> None:
        self.n += 1
        z = (x - self.centre) / self.unit
        phi = np.array([1.0, *z, z @ z])
        for k in self.models:
            if self.n == 1:
                k["theta"][0] = value
            R = k["P"] + k["Q"]
            V = 1 + phi @ R @ phi
            e = value - k["theta"] @ phi
            k["theta"] = k["theta"] + R @ phi * e / V
            k["P"] = R - np.outer(R @ phi, R @ phi) / V
            likely = -(np.log(k["variance"] * V) + e**2 / (k["variance"] * V)) / 2 if self.n > rs.JUDGED else 0.0
            k["l"] = rs.KEPT * k["l"] + likely
            k["variance"] += (e**2 / V - k["variance"]) / min(max(self.n - 1, 1), rs.MEMORY)
        w = np.exp(np.array([k["l"] for k in self.models]) - max(k["l"] for k in self.models))
        w /= w.sum()
        theta = sum(v * k["theta"] for v, k in zip(w, self.models))
        noise = sum(v * np.sqrt(k["variance"]) for v, k in zip(w, self.models))
        least = sum(v * np.sqrt(k["variance"]) * min(1.0, np.sqrt(k["P"][-1, -1])) for v, k in zip(w, self.models))
        h = max(2 * theta[-1], least, 1e-290)
        slope = theta[1:-1]
        cost = h + 2 * np.linalg.norm(slope + h * (self.y - self.centre) / self.unit) / np.sqrt(self.d)
        counted = 1 / max(1 / self.n, sum(v * k["own"] for v, k in zip(w, self.models)))
        best = np.sqrt(noise * self.d / (2 * cost * np.sqrt(counted)))
        self.delta = min(best, self.widest) if noise > 0 else self.widest
        self.y = into(self.centre - self.unit * slope / h, self.delta)


def in_box(v: np.ndarray, delta: float) -> np.ndarray:
    half = np.array([1.0, 2.0, 0.5])
    return np.clip(v, [0, 0, 0.5] - (1 - delta) * half, [0, 0, 0.5] + (1 - delta) * half)


def in_ball(v: np.ndarray, delta: float) -> np.ndarray:
    """The ball of radius 2, with room for delta times the unit 2 / sqrt(3)."""
    return v * min(1.0, (2 - delta * 2 / np.sqrt(3)) / max(np.linalg.norm(v), 1e-300))


@pytest.mark.parametrize(
    ("domain", "centre", "unit", "into"),
    [(BOX, [0, 0, 0.5], [1, 2, 0.5], in_box), (BALL, [0, 0, 0], [2 / np.sqrt(3)] * 3, in_ball)],
    ids=["box", "ball"],
)
def test_decisions_are_those_of_the_models_one_by_one(domain, centre, unit, into) -> None:
    """In units of the user: as in the problem without units, whose decisions are the same up to rounding."""
    T, rng = 60, np.random.default_rng(3)
    a, normals = rng.uniform(-1, 1, (T, 3)), rng.normal(size=(T, 3))
    trace = plan_of(domain, T).run({"a": a}, draws={"u": normals})
    own = Literal(np.array(centre, dtype=float), np.array(unit, dtype=float), 1.0)
    for t in range(T):
        x = own.decide(normals[t])
        np.testing.assert_allclose(trace.decisions[t], x, atol=1e-7, err_msg=f"round {t + 1}")
        own.observe(x, float(x @ x + a[t] @ x), into)


def test_the_model_without_drift_is_bayes_rule_for_all_values_at_once() -> None:
    """Kalman's filter, value by value, against the normal equations of the ridge regression that it is."""
    rng, d, n = np.random.default_rng(0), 2, 30
    own = Literal(np.zeros(d), np.ones(d), 1.0)
    z, values = rng.uniform(-1, 1, (n, d)), rng.normal(size=n)
    for row, value in zip(z, values):
        own.observe(row, value, lambda v, delta: np.zeros(d))
    phi = np.column_stack([np.ones(n), z, (z * z).sum(axis=1)])
    prior = np.diag(1 / np.array([rs.LEVEL**2, *[rs.MODELS[1][2] ** 2] * d, rs.CURVATURE**2]))
    first = np.array([values[0], 0, 0, 0])
    precision = prior + phi.T @ phi
    np.testing.assert_allclose(
        own.models[1]["theta"], np.linalg.solve(precision, prior @ first + phi.T @ values), atol=1e-9
    )
    np.testing.assert_allclose(own.models[1]["P"], np.linalg.inv(precision), atol=1e-9)


def prices(kind: str, seed: int, T: int = 600) -> dict[str, np.ndarray]:
    """Demand whose best prices are away from the middle; it jumps in the middle of the rounds, or goes with the week."""
    rng, t = np.random.default_rng(seed), np.arange(T)
    slope = np.array([1.2, 0.9])
    best = np.tile([17.0, 8.0], (T, 1))
    best[(t >= T // 2) & (kind == "jump")] = [9.0, 16.0]
    base = 2 * slope * best + rng.normal(0, 2, (T, 2))
    base[:, 0] += 3 * np.sin(2 * np.pi * t / 7) * (kind == "week")
    return {"base": np.clip(base, 0, 60), "slope": slope + rng.normal(0, 0.05, (T, 2))}


@cache
def by_prices(algorithm: str | None) -> Any:
    return oco.compile(oco.parse(PRICES), algorithm)


@pytest.mark.parametrize("kind", ["still", "jump", "week"])
def test_prices_earn_more_than_holding_one_and_than_single_estimates(kind: str) -> None:
    """More than the middle price in every of three runs, after the first tenth too, and half of what the best price has more."""
    plan, single = by_prices(None), by_prices("bgd")
    assert plan.algorithm == "response-surface" and plan.guarantee is None
    for seed in range(3):
        data = prices(kind, seed)
        held = -(13 * (data["base"] - data["slope"] * 13)).sum(axis=1)
        trace = plan.run(data, seed=100 + seed)  # draws that are not those of the data
        best = trace.loss.sum() - trace.regret("static")[-1]
        assert trace.loss[60:].sum() < held[60:].sum()
        assert trace.loss.sum() < held.sum() - 0.5 * (held.sum() - best)
        assert trace.loss.sum() < single.run(data, seed=100 + seed).loss.sum()


def test_decisions_have_no_units() -> None:
    """Values in other units, and about another level, change no decision."""
    data = {"a": np.random.default_rng(1).uniform(-1, 1, (80, 3))}
    text = TEXT.format(T=80, domain=BOX) + "using response-surface\n"
    own = oco.compile(oco.parse(text)).run(data, seed=2).decisions
    other = oco.compile(oco.parse(text.replace("minimize ", "minimize 500 + 1000 * (").replace("@ x\n", "@ x)\n")))
    np.testing.assert_allclose(other.run(data, seed=2).decisions, own, atol=1e-6)


def test_a_constant_loss_and_a_point_are_no_trouble() -> None:
    text = "model m\nhorizon T = 40\ndecision x[2] in {}\nstream a[2] in [0, 1]\nminimize {}\nfeedback bandit\nusing response-surface\n"
    data = {"a": np.full((40, 2), 0.5)}
    for domain, loss in (("box(0, 1)", "0 * sum(a * x)"), ("box([0, 1], [2, 1])", "a @ x"), ("simplex", "a @ x")):
        plan = oco.compile(oco.parse(text.format(domain, loss)))
        decisions = plan.run(data, seed=1).decisions
        assert np.isfinite(decisions).all()
        assert all(plan.canonical.blocks[0].domain.contains(x) for x in decisions)


def test_more_feedback_or_constraints_keep_it_out() -> None:
    for more in ("feedback two_point", "feedback gradient", "feedback full"):
        plan = oco.compile(oco.parse(TEXT.format(T=50, domain=BALL).replace("feedback bandit", more)))
        assert plan.algorithm != "response-surface"
    bounded = TEXT.format(T=50, domain=BALL) + "subject to\n    cap: sum(x) <= 1 each round\n"
    assert oco.compile(oco.parse(bounded)).algorithm in ("bfw-tvc", "scbfw-tvc")
