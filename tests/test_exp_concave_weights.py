"""Weights and points of `hedged` for exp-concave losses over a simplex: a listing, the price of weights on hostile markets, C, fleets."""

from __future__ import annotations

import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, MetricStep, Run, plan_of, solved
from test_c99 import has_compiler
from thorough import thorough

import oco
from oco.compiler.algorithms.experts import GRADIENTS, solving
from oco.compiler.algorithms.loss_steps import QUANTILES, RATES, SHARE
from oco.dsl.load import parse

N = 4
MARKET = """
model market
horizon T = {rounds}
decision w[4] in simplex
stream r[4] in [0.25, 4]
minimize -log(r @ w)
"""
SECTOR = "subject to\n    sector: sum(r[0:2] * w[0:2]) <= 0.4 * (r @ w)  each round, penalty 0.5\n"
EXPERTS = len(GRADIENTS) + 2 + len(RATES)


def market(limit: str = "", rounds: int = 60) -> str:
    return MARKET.format(rounds=rounds) + limit


def relatives(rounds: int, seed: int = 0) -> Array:
    return np.exp(np.random.default_rng(seed).normal(0, 0.2, (rounds, N))).clip(0.26, 3.9)


class Points:
    """Start, Newton steps and exponentiated gradient, one after the other."""

    def __init__(self) -> None:
        self.y = [np.full(N, 1 / N) for _ in range(2 + len(RATES))]
        self.A, self.b = np.eye(N), np.zeros(N)
        self.nearest = MetricStep(N, lambda v: [v >= 0, cp.sum(v) == 1])

    def play(self, r: Array) -> None:
        g = r / (r @ self.y[1])
        self.A += np.outer(g, g)
        self.b += 2 * g
        target, root = SHARE * np.linalg.solve(self.A, self.b), np.linalg.cholesky(self.A).T
        self.y[1] = self.nearest(target, np.zeros(N), root)
        for k, eta in enumerate(RATES, 2):
            grown = self.y[k] * np.exp(eta * r / (r @ self.y[k]))
            self.y[k] = grown / grown.sum()


class Weights:
    """AdaHedge on what was paid, weights with the rate 1, and AdaHedge on the two, with gaps of what their means paid."""

    def __init__(self, count: int) -> None:
        self.L, self.gap, self.L_of, self.gap_of, self.spread = np.zeros(count), [0.0, 0.0], np.zeros(2), 0.0, 0.0

    def made(self) -> tuple[list[Array], Array, list[float]]:
        least, K = max(1e-4 * math.sqrt(self.spread), 1e-290), len(self.L)
        etas = [math.log(K) / max(self.gap[0], least), min(1.0, math.log(K) / max(self.gap[1], least))]
        etas.append(math.log(2) / max(self.gap_of, least))
        return [soft(self.L, eta) for eta in etas[:2]], soft(self.L_of, etas[2]), etas

    def mean(self, x: Array) -> Array:
        each, among, _ = self.made()
        return np.asarray(among @ np.array(each) @ x)

    def play(self, x: Array, losses: Array, paid: Callable[[Array], float]) -> None:
        each, among, etas = self.made()
        means = np.array([paid(w @ x) for w in each])
        self.gap_of += lost(means, among, etas[2], paid(self.mean(x)))
        self.gap = [g + lost(losses, w, eta, m) for g, w, eta, m in zip(self.gap, each, etas, means)]
        self.spread += (np.ptp(losses) + 1e-2 * abs(losses).max()) ** 2
        self.L, self.L_of = self.L + losses, self.L_of + means


def loss_of(r: Array) -> Callable[[Array], float]:
    return lambda x: -math.log(x @ r)


def soft(L: Array, eta: float) -> Array:
    w = np.exp(-eta * (L - L.min()))
    return np.asarray(w / w.sum())


def lost(losses: Array, w: Array, eta: float, paid: float) -> float:
    least = losses[w > 0].min()
    return max(float(paid - least + math.log(w @ np.exp(-eta * np.maximum(losses - least, 0))) / eta), 0.0)


def test_decisions_equal_the_listing() -> None:
    run, points, weights = Run(plan_of(market(), "hedged")), Points(), Weights(EXPERTS)
    for r in relatives(60):
        x = run.value("x")
        np.testing.assert_allclose(x[len(GRADIENTS) :], points.y, atol=1e-6)
        np.testing.assert_allclose(run.decisions[0], weights.mean(x), atol=1e-6)
        weights.play(x, -np.log(x @ r), loss_of(r))
        points.play(r)
        run.play({"r": r})
        np.testing.assert_allclose(run.value("L")[0], weights.L, atol=1e-6)
        np.testing.assert_allclose(run.value("L_of"), weights.L_of, atol=1e-5)


def test_experts_beside_the_points_are_the_nearest_within_the_constraints_as_predicted() -> None:
    run = Run(plan_of(market(SECTOR), "hedged"))
    v, near, a, margin = cp.Variable(N), cp.Parameter(N), cp.Parameter(N), cp.Parameter()
    nearest = cp.Problem(cp.Minimize(cp.sum_squares(v - near)), [v >= 0, cp.sum(v) == 1, a @ v + margin <= 0])
    for r in relatives(6, seed=2):
        run.play({"r": r})
        row, count = run.value("predicted")[2], len(QUANTILES) * (2 + len(RATES))
        margins = run.value("margin")[-count:]
        for k, x in enumerate(run.value("x")[-count:]):
            near.value, margin.value = run.value("y")[k // len(QUANTILES)], margins[k].item()
            a.value = row * np.array([0.6, 0.6, -0.4, -0.4])
            solved(nearest)
            np.testing.assert_allclose(x, v.value, atol=1e-5)


def hostile(kind: str) -> Callable[[Array, int], Array]:
    """Relatives that see the decision: random, one stock that leads and changes, a market that punishes what is held most."""
    rng = np.random.default_rng(7)
    if kind == "random":
        return lambda x, t: np.exp(rng.normal(0, 0.5, N)).clip(0.26, 3.9)
    if kind == "changing":
        return lambda x, t: np.where(np.arange(N) == (t // 37) % N, 2.0, 0.7)
    return lambda x, t: np.where(x >= x.max() - 1e-9, 0.3, 3.0)


@pytest.mark.parametrize("kind", ["random", "changing", "punishing"])
def test_weights_cost_their_logarithm(kind: str) -> None:
    """Weights with the rate 1: ln K at most beside the best expert, gap 0. Between the weightings: 2 (ln 2 + M)."""
    plan = plan_of(market(rounds=300), "hedged")
    run, respond, played, most = Run(plan), hostile(kind), 0.0, 0.0
    for t in range(300):
        (x,), before = run.decisions, run.value("L")[0]
        r = respond(x, t)
        played -= math.log(r @ x)
        run.play({"r": r})
        most = max(most, np.ptp(run.value("L")[0] - before))
    best, (_, gap), gap_of = run.value("L")[0].min(), run.value("gap"), float(run.value("gap_of"))
    assert gap <= 1e-9 and run.value("L_of")[1] - best <= math.log(EXPERTS) + 1e-9
    assert gap_of <= math.log(2) + most + 1e-9
    assert run.value("gap")[0] <= math.log(EXPERTS) + most + 1e-9
    assert played - best <= math.log(EXPERTS) + 2 * math.log(2) + 2 * most
    guarantee = plan.guarantee
    assert guarantee is not None
    slopes = math.sqrt(2) * 2 * 16 * math.sqrt(2 * 300)
    assert (guarantee.regret(300) or 0) <= slopes + math.log(EXPERTS) + 2 * math.log(2) + 2 * math.log(16) + 1e-6


def test_only_points_and_gradients_where_nothing_predicts_the_data() -> None:
    """With a season all experts are there; rates follow the exponent of a loss that is exp-concave alone."""
    problem = plan_of(market(), "hedged").choice.situation.canonical
    assert len(solving(problem, 1, True)) == 2 + len(RATES) < len(solving(problem, 5, True))
    linear = market().replace("-log(r @ w)", "r @ w")
    assert "theta" not in plan_of(linear, "hedged").settings
    plan = plan_of(market(), "hedged", {"theta": 2})
    assert any("theta must be at most loss.exp_concavity" in str(w) for w in plan.choice.warnings)


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("limit", [thorough(""), SECTOR])
def test_c_and_fleets_decide_as_numpy_does(limit: str) -> None:
    plan = oco.compile(parse(market(limit)), "hedged")
    fleet = plan.fleet(3, backend="c")
    alone = [plan.learner(seed=k, backend=b) for k in range(3) for b in ("numpy", "c")]
    for t in range(12):
        decided, single = np.asarray(fleet.decide()), [np.asarray(a.decide()) for a in alone]
        for k in range(3):
            np.testing.assert_allclose(single[2 * k], single[2 * k + 1], atol=1e-8)
            np.testing.assert_allclose(decided[k], single[2 * k + 1], atol=1e-8)
        rounds = relatives(3, seed=t)
        fleet.observe(r=rounds)
        for k, a in enumerate(alone):
            a.observe(r=rounds[k // 2])
