"""Second-order steps of `hedged` in regressions: literal steps, their theorem on hostile sequences, what they lose beside usual rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, MetricStep, Run, plan_of, solve
from test_c99 import has_compiler
from thorough import thorough

import oco
from oco.compiler.algorithms.curvature_steps import FORGETTING, RIDGE, curved_through_data
from oco.compiler.algorithms.experts import GRADIENTS, UNLIKELY
from oco.compiler.problem.canonical import canonical
from oco.dsl.load import parse
from oco.evaluation.baselines.base import Game, Played, play
from oco.evaluation.baselines.regressions import RecursiveLeastSquares, is_regression
from oco.evaluation.baselines.rules import cheap_rules, rules
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data

N = 3
COUNT = len(FORGETTING)
MODEL = """
model regression
horizon T = {rounds}
decision x[3] in {domain}
stream a[3] in [-2, 2]
stream b in [-20, 20]
minimize {loss}
"""
SQUARE, LOGISTIC, EXPONENTIAL = "(b - a @ x)**2", "logistic(-b * (a @ x))", "exp(a @ x) - b * (a @ x)"
SETS: dict[str, Callable[[Any], list[Any]]] = {
    "box(-40, 40)": lambda v: [v >= -40, v <= 40],
    "box(-0.5, 1)": lambda v: [v >= -0.5, v <= 1],
    "ball(1)": lambda v: [cp.norm(v) <= 1],
}


def text(loss: str = SQUARE, domain: str = "box(-40, 40)", rounds: int = 60) -> str:
    return MODEL.format(loss=loss, domain=domain, rounds=rounds)


def drifting(rounds: int, seed: int = 0) -> list[dict[str, Array]]:
    """Rounds of a regression whose weights drift, with noise of size 0.3."""
    rng = np.random.default_rng(seed)
    weights = np.array([2.0, -1.0, 0.5]) + np.cumsum(rng.normal(0, 0.03, (rounds, N)), axis=0)
    a = rng.uniform(-2, 2, (rounds, N)) * np.array([1.0, 0.1, 1.0])
    b = (a * weights).sum(axis=1) + rng.normal(0, 0.3, rounds)
    return [{"a": own, "b": np.asarray(y)} for own, y in zip(a, b)]


class LeastSquares:
    """Recursive least squares from normal equations, whose ridge comes with the curvature and is about the point of its round."""

    def __init__(self, rho: float, start: float = 0.0) -> None:
        self.rho, self.x, self.A, self.E = rho, np.full(N, start), np.zeros((N, N)), np.zeros(N)

    def play(self, a: Array, b: Array) -> None:
        self.A = self.rho * self.A + 2 * np.outer(a, a)
        self.E = np.maximum(self.rho * self.E, 2 * a * a)
        M = self.A + RIDGE * np.diag(self.E)
        self.x = self.x - np.linalg.lstsq(M, 2 * (a @ self.x - b) * a, rcond=None)[0]


@pytest.mark.parametrize("domain", SETS)
def test_squares_take_the_steps_of_recursive_least_squares(domain: str) -> None:
    """Points within the domain by the literal recursion; at its border the step in the norm of M, which CVXPY finds."""
    run = Run(plan_of(text(domain=domain), "hedged"))
    literal = [LeastSquares(rho, run.decisions[0][0]) for rho in FORGETTING]
    step = None if domain == "box(-40, 40)" else MetricStep(N, SETS[domain])
    for data in drifting(60 if step is None else 12):
        np.testing.assert_allclose(run.value("x")[-COUNT:], run.value("y"), atol=0)
        run.play(data)
        for y, own in zip(run.value("y"), literal, strict=True):
            before = own.x
            own.play(data["a"], data["b"])
            if step is not None:
                root = np.linalg.cholesky(own.A + RIDGE * np.diag(own.E)).T
                own.x = step(before, 2 * (data["a"] @ before - data["b"]) * data["a"], root)
            np.testing.assert_allclose(y, own.x, atol=1e-9 if step is None else 2e-5)


def test_all_rounds_and_no_forgetting_minimise_the_ridge_regression_of_a_library() -> None:
    """With features of one size the ridge never grows: the point with rho = 1 is that of `lstsq` on all rounds."""
    rng, run = np.random.default_rng(1), Run(plan_of(text(), "hedged"))
    a, b = np.where(rng.random((40, N)) < 0.5, -1.0, 1.0), rng.normal(0, 3, 40)
    for own, y in zip(a, b):
        run.play({"a": own, "b": y})
    rows = np.vstack([np.sqrt(2) * a, math.sqrt(2 * RIDGE) * np.eye(N)])
    best = np.linalg.lstsq(rows, np.append(np.sqrt(2) * b, np.zeros(N)), rcond=None)[0]
    np.testing.assert_allclose(run.value("y")[0], best, atol=1e-10)


def loss_of(name: str) -> tuple[Callable[[float, float], float], ...]:
    """Loss l(z) for the number b, its slope and its second derivative, z = a @ x."""
    if name == EXPONENTIAL:
        return lambda z, b: math.exp(z) - b * z, lambda z, b: math.exp(z) - b, lambda z, b: math.exp(z)

    def share(z: float, b: float) -> float:
        return 1 / (1 + math.exp(min(b * z, 700.0)))

    return (
        lambda z, b: float(np.logaddexp(0, -b * z)),
        lambda z, b: -b * share(z, b),
        lambda z, b: b * b * share(z, b) * (1 - share(z, b)),
    )


@pytest.mark.parametrize("loss", [LOGISTIC, EXPONENTIAL])
def test_other_losses_take_newton_steps_that_stay_below_their_bound(loss: str) -> None:
    """Literal steps with the least c; rounds far from the minimum ask for some c > 0."""
    value, slope, second = loss_of(loss)
    D, raised, far = 80 * math.sqrt(N), 0, [{"a": np.array([1.0, 0.5, 0.1]), "b": np.asarray(20.0)}]
    rounds = [{**r, "b": np.abs(r["b"])} for r in (*far, *drifting(25, seed=3))]
    run, points = Run(plan_of(text(loss), "hedged")), [LeastSquares(rho) for rho in FORGETTING]
    for data in rounds:
        run.play(data)
        a, b = data["a"], float(data["b"])
        for y, own in zip(run.value("y"), points, strict=True):
            z = float(a @ own.x)
            g, here = slope(z, b) * a, value(z, b)
            for k in range(40):
                c = 0.0 if not k else 4.0 ** (k - 1) / (D * float(np.linalg.norm(g)))
                B = second(z, b) * np.outer(a, a) + c * np.outer(g, g)
                A, E = own.rho * own.A + B, np.maximum(own.rho * own.E, np.diag(B))
                x = own.x - np.linalg.solve(A + RIDGE * np.diag(E), g)
                s = x - own.x
                if np.abs(x).max() <= 40 and value(float(a @ x), b) <= here + g @ s + s @ B @ s / 2 + 1e-12 * abs(here):
                    break
            raised += c > 0
            own.x, own.A, own.E = x, A, E
            np.testing.assert_allclose(y, x, rtol=1e-6, atol=1e-8)
    assert raised


def hostile(kind: str, domain: float) -> Callable[[Array, int], tuple[Array, float]]:
    """Rounds (a, b) that see the point: noise, targets as far from its prediction as can be, and features of new directions and sizes."""
    rng = np.random.default_rng(11)
    if kind == "noise":
        return lambda x, t: (rng.uniform(-2, 2, N), rng.uniform(-20, 20))
    if kind == "farthest":
        return lambda x, t: (a := np.roll([2.0, -1.0, 0.3], t), -20.0 if a @ x > 0 else 20.0)
    return lambda x, t: (
        a := np.eye(N)[t % N] * min(2.0, 1e-3 * 1.1**t) + 1e-3,
        float(np.clip(-np.sign(a @ x + 0.1) * 20, -20, 20)),
    )


@pytest.mark.parametrize("kind", ["noise", "farthest", "growing"])
@pytest.mark.parametrize("domain", ["box(-40, 40)", "box(-0.5, 1)"])
def test_the_theorem_holds_on_hostile_sequences(kind: str, domain: str) -> None:
    """Both inequalities for the point with rho = 1, for the best decision in hindsight and others of the domain."""
    rounds = 120
    run, respond = Run(plan_of(text(domain=domain, rounds=rounds), "hedged")), hostile(kind, 1.0)
    A, E, first, x, played, spent, r = np.zeros((N, N)), np.zeros(N), np.zeros(N), [], [], 0.0, 0.0
    for t in range(rounds):
        x.append(run.value("y")[0])
        a, b = respond(x[-1], t)
        played.append((a, b))
        run.play({"a": a, "b": np.asarray(b)})
        missed = float(a @ x[-1] - b)
        A, E, r = A + 2 * np.outer(a, a), np.maximum(E, 2 * a * a), max(r, abs(missed))
        first = np.where(first == 0, 2 * a * a, first)
        g = 2 * missed * a
        spent += float(g @ np.linalg.lstsq(A + RIDGE * np.diag(E), g, rcond=None)[0]) / 2
    rows, targets = np.array([a for a, _ in played]), np.array([b for _, b in played])
    assert spent <= r * r * (N * math.log(1 + rounds / RIDGE) + np.log(E / first).sum()) + 1e-6
    v = cp.Variable(N)
    solve(cp.sum_squares(rows @ v - targets), SETS[domain](v))
    lost = sum(float(a @ own - b) ** 2 for (a, b), own in zip(played, x))
    for u in (np.asarray(v.value), np.full(N, -0.5), np.full(N, 1.0), np.zeros(N)):
        farthest = np.abs(np.array(x) - u).max(axis=0)
        bound = RIDGE / 2 * float(E @ farthest**2) + spent
        assert lost - float(((rows @ u - targets) ** 2).sum()) <= bound * (1 + 1e-9) + 1e-6


def test_steps_of_the_theorem_pay_about_what_it_says() -> None:
    """The bound is no empty one: on noise the regret is more than a hundredth of it, and the gap to the best is logarithmic."""
    rng, run, lost = np.random.default_rng(2), Run(plan_of(text(rounds=400), "hedged")), list[float]()
    a, b = rng.uniform(-2, 2, (400, N)), rng.normal(0, 1, 400)
    for own, y in zip(a, b):
        lost.append(float(own @ run.value("y")[0] - y) ** 2)
        run.play({"a": own, "b": np.asarray(y)})
    best = [float(np.linalg.lstsq(a[:t], b[:t], rcond=None)[1][0]) for t in (100, 400)]
    early, late = sum(lost[:100]) - best[0], sum(lost) - best[1]
    assert late - early <= 3 * N * math.log(4)
    assert late >= 0.01 * max(abs(b)) ** 2 * N * math.log(1 + 400 / RIDGE)


class Weights:
    """AdaHedge on all losses and on those of which a hundredth is forgotten, with unequal first weights, and AdaHedge on the two."""

    def __init__(self, count: int) -> None:
        self.first = np.concatenate(
            [np.full(count - COUNT, UNLIKELY), np.full(COUNT, (1 - UNLIKELY * (count - COUNT)) / COUNT)]
        )
        self.L, self.gap, self.L_of, self.gap_of, self.spread = np.zeros((2, count)), np.zeros(2), np.zeros(2), 0.0, 0.0

    def made(self) -> tuple[list[Array], Array, list[float]]:
        least = max(1e-4 * math.sqrt(self.spread), 1e-290)
        etas = [-math.log(UNLIKELY) / max(gap, least) for gap in self.gap] + [math.log(2) / max(self.gap_of, least)]
        return [soft(self.first, L, eta) for L, eta in zip(self.L, etas)], soft(np.ones(2), self.L_of, etas[2]), etas

    @property
    def combined(self) -> Array:
        each, among, _ = self.made()
        return np.asarray(among @ np.array(each))

    def play(self, losses: Array) -> None:
        each, among, etas = self.made()
        own = np.array([w @ losses for w in each])
        kept = np.array([1.0, 0.99])
        self.gap = kept * self.gap + [lost(losses, w, eta) for w, eta in zip(each, etas)]
        self.gap_of += lost(own, among, etas[2])
        likely = losses[-COUNT:]
        self.spread += (np.ptp(likely) + 1e-2 * abs(likely).max()) ** 2
        self.L, self.L_of = kept[:, None] * self.L + losses, self.L_of + own


def soft(first: Array, L: Array, eta: float) -> Array:
    w = first * np.exp(-eta * (L - L.min()))
    return np.asarray(w / w.sum())


def lost(losses: Array, w: Array, eta: float) -> float:
    least = losses[w > 0].min()
    return max(float(w @ losses - least + math.log(w @ np.exp(-eta * np.maximum(losses - least, 0))) / eta), 0.0)


def test_weights_begin_with_the_second_order_steps() -> None:
    """Decisions are the means of the listing; gradient experts, which go to the ends of the domain first, hardly move them."""
    run = Run(plan_of(text(), "hedged"))
    weights = Weights(len(GRADIENTS) + COUNT)
    for t, data in enumerate(drifting(30, seed=4)):
        x = run.value("x")
        assert len(x) == len(GRADIENTS) + COUNT
        np.testing.assert_allclose(run.decisions[0], weights.combined @ x, atol=1e-8)
        if t == 1:
            assert (
                np.abs(x[: len(GRADIENTS)]).max() > 10 > 1e4 * np.abs(run.decisions[0] - x[-COUNT:].mean(axis=0)).max()
            )
        weights.play((x @ data["a"] - data["b"]) ** 2)
        run.play(data)
        np.testing.assert_allclose(run.value("L"), weights.L, rtol=1e-9)


LIMIT = "subject to\n    cap: a @ x <= 1 each round\n"


@pytest.mark.parametrize(
    "loss, more, found",
    [
        (SQUARE, "", True),
        (LOGISTIC, "", True),
        (EXPONENTIAL, "", True),
        ("log(1 + exp(-b * (a @ x)))", "", True),
        ("huber(b - a @ x) + 0.1 * sum_squares(x)", "", True),
        ("2 + 0.5 * abs(b) * square(b * x[0] - a[1])", "", True),
        ("sum_squares(x - a)", "", False),
        ("abs(b) * sum_squares(x - a)", "", False),
        ("abs(b - a @ x)", "", False),
        ("a @ x + sum_squares(x)", "", False),
        ("-square(b - a @ x)", "", False),
        (SQUARE, LIMIT, False),
    ],
)
def test_steps_are_of_losses_that_are_curved_through_data(loss: str, more: str, found: bool) -> None:
    assert curved_through_data(canonical(parse(text(loss) + more))) == found


WITHIN: dict[str, Callable[[Any], Any]] = {"norm2(x)": cp.norm, "sum(x)": cp.sum}


@pytest.mark.parametrize("limit", WITHIN)
def test_steps_go_to_the_nearest_points_that_fixed_constraints_allow(limit: str) -> None:
    """Fixed constraints leave the loss alone to be learned; those with data do not."""
    run = Run(plan_of(text() + LIMIT.replace("a @ x", limit), "hedged"))
    for data in drifting(6):
        run.play(data)
        nearest = []
        for own in run.value("y"):
            v = cp.Variable(N)
            solve(cp.sum_squares(v - own), [WITHIN[limit](v) <= 1, v >= -40, v <= 40])
            nearest.append(np.asarray(v.value))
        (x,) = run.decisions
        np.testing.assert_allclose(run.value("x")[-COUNT:], nearest, atol=1e-5)
        assert WITHIN[limit](x).value <= 1 + 1e-6
    assert "y" not in Run(plan_of(text() + LIMIT, "hedged")).names


def regression(rounds: int) -> tuple[dict[str, Array], Array]:
    """Load from five features whose weights drift and jump: data, and what noise alone costs."""
    rng, t = np.random.default_rng(21), np.arange(rounds)
    hours = 2 * np.pi * t / 24
    a = np.stack([np.ones(rounds), np.sin(hours), np.cos(hours), 15 + rng.normal(0, 4, rounds), t % 168 >= 120], axis=1)
    weights = np.tile([50.0, 10.0, -4.0, -0.8, -6.0], (rounds, 1))
    weights[:, 0] += 0.005 * t + np.where(t > 0.6 * rounds, 8.0, 0.0)
    noise = rng.normal(0, 3, rounds)
    return {"a": a, "b": (a * weights).sum(axis=1) + noise}, noise


LOAD = """
model load
horizon T = 1000
decision x[5] in box(-{width}, {width})
{kind} a[5] in [-60, 60]
stream b in [-50, 150]
minimize (b - a @ x)**2
"""


def lost_by(plan: Any, data: dict[str, Array]) -> Array:
    return np.asarray(plan.run(data, backend="c" if has_compiler() else "numpy").loss)


def test_a_regression_loses_no_more_than_recursive_least_squares_whatever_the_bounds() -> None:
    """In all rounds and in the first tenth, without contexts and with them; ten times wider bounds change it by at most 5 %."""
    data, _ = regression(1000)
    problem = canonical(parse(LOAD.format(width=100, kind="stream")))
    usual = play(RecursiveLeastSquares(), problem, data_of(problem, data), Trade.at_price(problem, 1.0))
    assert isinstance(usual, Played)
    losses = {
        (width, kind): lost_by(oco.compile(parse(LOAD.format(width=width, kind=kind)), "hedged"), data)
        for width, kind in ((100, "stream"), (1000, "stream"), (100, "context"))
    }
    for own in losses.values():
        assert own.sum() <= 1.05 * usual.loss.sum() and own[:100].sum() <= 1.05 * usual.loss[:100].sum()
    narrow, wide, known = (own.sum() for own in losses.values())
    assert abs(wide - narrow) <= 0.05 * narrow and known <= 1.01 * narrow


def test_clicks_cost_no_more_than_with_the_best_tuned_gradients_and_a_kalman_filter() -> None:
    """Logistic regression with drifting weights: AdaGrad with the best of five steps in hindsight, and an extended Kalman filter
    whose drift is the true one.
    """
    rng, rounds = np.random.default_rng(5), 1500
    a = rng.uniform(-2, 2, (rounds, N))
    weights = np.array([1.5, -1.0, 0.5]) + np.cumsum(rng.normal(0, 0.03, (rounds, N)), axis=0)
    b = np.where(rng.random(rounds) < 1 / (1 + np.exp(-(a * weights).sum(axis=1))), 1.0, -1.0)
    tuned = min(adagrad(a, b, eta) for eta in (0.03, 0.1, 0.3, 1.0, 3.0))
    model = text(LOGISTIC, rounds=rounds)
    own = lost_by(oco.compile(parse(model), "hedged"), {"a": a, "b": b}).sum()
    assert own <= 1.02 * tuned and own <= 1.05 * kalman(a, b, 0.03**2)


def adagrad(a: Array, b: Array, eta: float) -> float:
    x, squares, total = np.zeros(N), np.zeros(N), 0.0
    for own, y in zip(a, b):
        z = y * (own @ x)
        total += np.logaddexp(0, -z)
        g = -y * own / (1 + math.exp(z))
        squares += g * g
        x = x - eta * g / np.sqrt(squares)
    return total


def kalman(a: Array, b: Array, drift: float) -> float:
    x, P, total = np.zeros(N), np.eye(N), 0.0
    for own, y in zip(a, b):
        total += np.logaddexp(0, -y * (own @ x))
        P = P + drift * np.eye(N)
        p = 1 / (1 + math.exp(-(own @ x)))
        gain = P @ own / (1 + p * (1 - p) * (own @ P @ own))
        x, P = x + gain * ((y + 1) / 2 - p), P - p * (1 - p) * np.outer(gain, P @ own)
    return total


MATRIX = """
model outputs
horizon T = 300
decision W[2, 3] in box(-50, 50)
decision c in box(-50, 50)
stream a[3] in [-10, 10]
stream y[2] in [-100, 100]
minimize sum_squares(y - W @ a - c) + 0.01 * sum_squares(W)
"""


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("model", [MATRIX, thorough(text(SQUARE, "ball(1)")), text(LOGISTIC)])
def test_c_and_fleets_decide_as_numpy_does(model: str) -> None:
    plan = oco.compile(parse(model), "hedged")
    fleet = plan.fleet(2, backend="c")
    alone = [plan.learner(seed=k, backend=b) for k in range(2) for b in ("numpy", "c")]
    rng = np.random.default_rng(3)
    for _ in range(12):
        decided, single = list(flat(fleet.decide(), 2)), [flat(one.decide(), 1)[0] for one in alone]
        for k in range(2):
            np.testing.assert_allclose(single[2 * k], single[2 * k + 1], atol=1e-7)
            np.testing.assert_allclose(decided[k], single[2 * k + 1], atol=1e-7)
        rounds = {s.name: rng.uniform(-2, 2, (2, *s.shape)) for s in plan.canonical.streams}
        fleet.observe(**rounds)
        for k, one in enumerate(alone):
            one.observe(**{n: v[k // 2] for n, v in rounds.items()})


def flat(decided: Any, rows: int) -> Array:
    parts = decided.values() if isinstance(decided, dict) else [decided]
    return np.concatenate([np.asarray(p).reshape(rows, -1) for p in parts], axis=1)


def test_several_outputs_and_a_ridge_in_the_loss_are_solved_as_cvxpy_does() -> None:
    """Two decisions, one a matrix: the point with rho = 1 is the minimizer of all losses and of the ridge that came with them."""
    run, rng = Run(plan_of(MATRIX, "hedged")), np.random.default_rng(6)
    signs = np.where(rng.random((25, 3)) < 0.5, -1.0, 1.0)
    targets = rng.normal(0, 2, (25, 2))
    for a, y in zip(signs, targets):
        run.play({"a": a, "y": y})
    W, c = cp.Variable((2, 3)), cp.Variable()
    losses = [cp.sum_squares(y - W @ a - c) + 0.01 * cp.sum_squares(W) for a, y in zip(signs, targets)]
    ridge = RIDGE / 2 * (2.02 * cp.sum_squares(W) + 4 * cp.square(c))
    solve(cp.sum(losses) + ridge, [])
    names = [n for n in run.names if n.startswith("y")]
    np.testing.assert_allclose(run.value(names[0])[0], W.value, atol=1e-6)
    np.testing.assert_allclose(run.value(names[1])[0], c.value, atol=1e-6)


def data_of(problem: Any, given: dict[str, Array]) -> Data:
    return Data(problem, len(next(iter(given.values()))), MappingProxyType(given))


@pytest.mark.parametrize("forgetting", [0.98, 1.0])
def test_the_rule_of_practice_minimises_the_weighted_losses(forgetting: float) -> None:
    """Against CVXPY over the rounds so far; it is played beside regressions, and beside nothing else."""
    problem = canonical(parse(text(rounds=20)))
    rounds = drifting(20, seed=8)
    data = {"a": np.array([r["a"] for r in rounds]), "b": np.array([r["b"] for r in rounds])}
    rule = RecursiveLeastSquares(forgetting)
    x = rule.decide(Game.of(problem, data_of(problem, data), Trade.at_price(problem, 1.0)))
    assert not x[0].any()
    for t in (1, 7, 19):
        v = cp.Variable(N)
        kept = forgetting ** np.arange(t - 1, -1, -1.0)
        ridge = forgetting**t * 1e-3 * 2 * float(data["a"][0] @ data["a"][0]) / N / 2
        solve(cp.sum(cp.multiply(kept, cp.square(data["a"][:t] @ v - data["b"][:t]))) + ridge * cp.sum_squares(v), [])
        np.testing.assert_allclose(x[t], v.value, atol=1e-5)
    assert is_regression(problem) and rule in rules(problem) and rule in cheap_rules(problem)
    for other in (LOGISTIC, "sum_squares(x - a)"):
        assert not is_regression(canonical(parse(text(other))))
