"""`hedged` against a listing with NumPy and CVXPY, AdaHedge's inequalities and the theorem on hostile sequences, and its prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, Run, plan_of, situation, solve, trajectory
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.hedged import EXPERTS, FORGETTING, GRADIENTS, MARGIN_RATE, SOLVED
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.load import parse

T = 10
PRICES = np.array([2.0, 5.0])


@dataclass(frozen=True)
class Case:
    """A model in words and in NumPy: loss, its slope, constraints (for CVXPY too) and their Jacobian at (x, data)."""

    head: str
    constraint: str
    price: Array
    draw: Callable[[np.random.Generator], Round]
    loss: Callable[[Array, Round], float]
    slope: Callable[[Array, Round], Array]
    limits: Callable[[Any, Round, Any], Any]
    jacobian: Callable[[Array, Round], Array]
    domain: Callable[[Any], list[Any]]
    project: Callable[[Array], Array]
    diameter: float
    start: float

    def text(self, penalty: str = "", rounds: int = T) -> str:
        return f"model m\nhorizon T = {rounds}\n{self.head}\nsubject to\n    limit: {self.constraint} each round{penalty}\n"


CASES = {
    "affine, data times decisions": Case(
        "decision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nstream A[2, 3] in [0, 1]\nstream b[2] in [0.2, 1.5]\nminimize c @ x",
        "A @ x <= b",
        PRICES,
        lambda rng: {"c": rng.uniform(-1, 1, 3), "A": rng.uniform(0, 1, (2, 3)), "b": rng.uniform(0.2, 1.5, 2)},
        lambda x, d: float(d["c"] @ x),
        lambda x, d: d["c"],
        lambda v, d, np_: d["A"] @ v - d["b"],
        lambda x, d: d["A"],
        lambda v: [v >= 0, v <= 1],
        lambda v: np.clip(v, 0, 1),
        math.sqrt(3),
        0.5,
    ),
    "separable, integers": Case(
        "decision x[3] in box(0, 1)\nstream a[3] in [-1, 1]\nstream k in 1..4\nminimize sum_squares(x - a)",
        "0.8 * k - 2 * sum(log(1 + 4 * x)) <= 0",
        np.array([3.0]),
        lambda rng: {"a": rng.uniform(-1, 1, 3), "k": rng.integers(1, 5)},
        lambda x, d: float(np.sum((x - d["a"]) ** 2)),
        lambda x, d: 2 * (x - d["a"]),
        lambda v, d, lib: lib.reshape(0.8 * d["k"] - 2 * lib.sum(lib.log(1 + 4 * v)), (1,), order="C"),
        lambda x, d: (-8 / (1 + 4 * x))[None],
        lambda v: [v >= 0, v <= 1],
        lambda v: np.clip(v, 0, 1),
        math.sqrt(3),
        0.5,
    ),
}


def drawn(case: Case, rounds: int = T, seed: int = 3) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [case.draw(rng) for _ in range(rounds)]


class Listing:
    """Experts one after the other, each step by CVXPY; `Q` is the cap of the plan."""

    def __init__(self, case: Case, price: Array, Q: float) -> None:
        self.case, self.price, self.Q, self.t = case, price, Q, 0
        self.x = [np.full(3, case.start) for _ in range(EXPERTS)]
        self.L, self.S, self.gap = np.zeros(EXPERTS), np.zeros(EXPERTS), 0.0
        self.margin, self.error = (np.zeros((len(SOLVED), len(price))) for _ in range(2))
        self.average: list[Round] = []

    def weights(self) -> Array:
        if self.gap == 0:
            w = (self.L.min() == self.L).astype(float)
        else:
            w = np.exp(-math.log(EXPERTS) / self.gap * (self.L - self.L.min()))
        return np.asarray(w / w.sum())

    def decision(self) -> Array:
        return np.asarray(sum(w * x for w, x in zip(self.weights(), self.x)))

    def play(self, d: Round) -> None:
        self.t += 1
        w, D = self.weights(), self.case.diameter
        values = [self.case.limits(x, d, np) for x in self.x]
        losses = np.array([self.case.loss(x, d) + self.price @ np.maximum(g, 0) for x, g in zip(self.x, values)])
        for k, (c, r) in enumerate(GRADIENTS):
            x, g = self.x[k], values[k]
            slope = self.case.slope(x, d) + r * (self.price * (g > 0)) @ self.case.jacobian(x, d)
            self.S[k] += slope @ slope
            self.x[k] = self.case.project(x - c * D / math.sqrt(2 * self.S[k]) * slope)
        was = self.average or [d] * len(FORGETTING)
        rates = [max(rate, 1 / self.t) for rate in FORGETTING]
        self.average = [{n: s[n] + rate * (d[n] - s[n]) for n in d} for rate, s in zip(rates, was)]
        for k, (place, c, q) in enumerate(SOLVED):
            self.solve_again(k, c, q, was[place], self.average[place], values)
        self.follow(w, losses)

    def solve_again(self, k: int, c: float, q: float, was: Round, now: Round, values: Sequence[Array]) -> None:
        j, D = k + len(GRADIENTS), self.case.diameter
        x, e = self.x[j], values[j] - self.case.limits(self.x[j], was, np)
        self.error[k] = np.maximum(self.error[k], abs(e))
        if q == 1:
            self.margin[k] = np.maximum(self.margin[k], e)
        else:
            quick = max(MARGIN_RATE, 1 / math.sqrt(self.t))
            self.margin[k] += quick * self.error[k] * ((e > self.margin[k]) - (1 - q))
        slope = self.case.slope(x, now)
        self.S[j] += slope @ slope
        v, alpha = cp.Variable(3), math.sqrt(2 * self.S[j]) / (2 * c * D)
        broken = self.case.limits(v, now, cp) + self.margin[k]
        nearest = slope @ v + alpha * cp.sum_squares(v - x)
        try:
            solve(nearest, [*self.case.domain(v), broken <= 0])
        except cp.SolverError:
            v.value = None
        if v.value is None:  # nothing satisfies them as predicted
            solve(nearest / self.Q + cp.sum(cp.pos(broken)), self.case.domain(v))
        self.x[j] = np.asarray(v.value)

    def follow(self, w: Array, losses: Array) -> None:
        if self.gap == 0:
            mixed = losses[w > 0].min()
        else:
            eta = math.log(EXPERTS) / self.gap
            mixed = losses.min() - math.log(w @ np.exp(-eta * (losses - losses.min()))) / eta
        self.gap += max(w @ losses - mixed, 0.0)
        self.L += losses


@pytest.mark.parametrize("name", CASES)
def test_decisions_equal_the_listing(name: str) -> None:
    case = CASES[name]
    price = case.price.tolist() if len(case.price) > 1 else case.price[0]
    plan = plan_of(case.text(f", penalty {price}"), "hedged")
    assert plan.guarantee is not None and not plan.choice.warnings
    listing = Listing(case, case.price, float(plan.settings["Q"].value or 0))
    run = Run(plan)
    for d in drawn(case):
        (x,) = run.decisions
        assert np.linalg.norm(x - listing.decision()) <= 1e-5
        run.play(d)
        listing.play(d)
        np.testing.assert_allclose(run.value("x"), np.array(listing.x), atol=2e-5)
        np.testing.assert_allclose(run.value("L"), listing.L, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(run.value("margin"), listing.margin, atol=1e-4)
    assert run.value("gap") == pytest.approx(listing.gap, rel=1e-3)


AFFINE = CASES["affine, data times decisions"]


def hostile(kind: str, rng: np.random.Generator) -> Callable[[Array, int], Round]:
    """Rounds that see the decision: random, losses that push to where the constraint will be, or both turned against it."""

    def data(c: Array, b: Array) -> Round:
        return {"c": c, "A": rng.uniform(0, 1, (2, 3)) if kind == "random" else np.ones((2, 3)), "b": b}

    if kind == "random":
        return lambda x, t: data(rng.uniform(-1, 1, 3), rng.uniform(0.2, 1.5, 2))
    if kind == "turning":
        return lambda x, t: data(np.full(3, -1.0 if (t // 40) % 2 else 1.0), np.full(2, 1.5 if t % 2 else 0.2))
    return lambda x, t: data(np.where(x > 0.2, 1.0, -1.0), np.where(np.sum(x) > 0.6, 0.2, 1.5) * np.ones(2))


@pytest.mark.parametrize("kind", ["random", "turning", "against"])
def test_regret_on_the_penalised_loss_is_what_was_paid(kind: str) -> None:
    """Against the best fixed u of the whole domain: weighted losses <= min L + 2 Delta, Delta <= its own bound, and the expert's bound."""
    rounds, D = 160, math.sqrt(3)
    plan = plan_of(AFFINE.text(", penalty [2, 5]", rounds), "hedged")
    run, respond = Run(plan), hostile(kind, np.random.default_rng(5))
    played, weighted, squares, total, seen = 0.0, 0.0, 0.0, np.zeros(EXPERTS), list[Round]()
    for t in range(rounds):
        (x,), before = run.decisions, run.value("L")
        eta = math.log(EXPERTS) / max(float(run.value("gap")), 1e-290)
        w = np.exp(-eta * (before - before.min()))
        seen.append(d := respond(x, t))
        run.play(d)
        losses = run.value("L") - before
        mine = d["c"] @ x + PRICES @ np.maximum(d["A"] @ x - d["b"], 0)
        assert mine <= w @ losses / w.sum() + 1e-9
        played, weighted, total = played + mine, weighted + w @ losses / w.sum(), total + losses
        squares += np.ptp(losses) ** 2
    gap, S = float(run.value("gap")), run.value("S")
    assert weighted <= total.min() + 2 * gap + 1e-6
    assert 2 * gap <= math.sqrt((4 + math.log(EXPERTS)) * squares) + 1e-6
    u, slopes = cp.Variable(3), np.sum([d["c"] for d in seen], axis=0)
    rows, right = np.concatenate([d["A"] for d in seen]), np.concatenate([d["b"] for d in seen])
    solve(slopes @ u + np.tile(PRICES, rounds) @ cp.pos(rows @ u - right), [u >= 0, u <= 1])
    best = float(slopes @ u.value + np.tile(PRICES, rounds) @ np.maximum(rows @ u.value - right, 0))
    expert = math.sqrt(2) * D * math.sqrt(S[GRADIENTS.index((1.0, 1.0))])
    assert total[GRADIENTS.index((1.0, 1.0))] - best <= expert + 1e-6
    assert played - best <= expert + 2 * gap + 1e-6
    assert plan.guarantee is not None
    promised = plan.guarantee.regret(rounds)
    assert promised is not None and expert + math.sqrt((4 + math.log(EXPERTS)) * squares) <= promised


def test_comparators_that_move_pay_for_their_path() -> None:
    """Regret of the expert against u_t that jumps, D^2 + 2 D V in the place of D^2, and of the whole with the price of the weights."""
    rounds, D, rng = 120, math.sqrt(3), np.random.default_rng(2)
    plan = plan_of(AFFINE.text(", penalty [2, 5]", rounds), "hedged")
    run, k = Run(plan), GRADIENTS.index((1.0, 1.0))
    theirs, ours, path, u = 0.0, 0.0, 0.0, np.zeros(3)
    for t in range(rounds):
        d = {
            "c": np.where(rng.uniform(size=3) < 0.5, -1.0, 1.0),
            "A": rng.uniform(0, 1, (2, 3)),
            "b": np.array([0.9, 1.2]),
        }
        if t % 20 == 0:
            moved = rng.uniform(0, 0.4, 3)
            path, u = path + (np.linalg.norm(moved - u) if t else 0.0), moved
        theirs += d["c"] @ u + PRICES @ np.maximum(d["A"] @ u - d["b"], 0)
        (x,) = run.decisions
        ours += d["c"] @ x + PRICES @ np.maximum(d["A"] @ x - d["b"], 0)
        run.play(d)
    bound = (D + (D**2 + 2 * D * path) / D) / 2 * math.sqrt(2 * run.value("S")[k])
    assert run.value("L")[k] - theirs <= bound + 1e-6
    assert ours - theirs <= bound + 2 * run.value("gap") + 1e-6


def test_prices_come_from_the_model_or_from_the_setting() -> None:
    """A stated penalty is the price, whatever the tradeoff; a given setting goes before it; else the tradeoff has it."""
    stated = AFFINE.text(", penalty [2, 5]")
    rounds = drawn(AFFINE)
    by_model = trajectory(plan_of(stated, "hedged"), rounds)
    assert plan_of(stated, "hedged").settings["penalty"].value == 5
    given = trajectory(plan_of(stated, "hedged", {"penalty": 3}), rounds)
    alike = trajectory(plan_of(AFFINE.text(", penalty [3, 3]"), "hedged"), rounds)
    alone = trajectory(plan_of(AFFINE.text(), "hedged", {"penalty": 3}), rounds)
    assert max(np.abs(a[0] - b[0]).max() for a, b in zip(by_model, given)) > 1e-3
    for a, b, c in zip(given, alike, alone):
        np.testing.assert_allclose(a[0], b[0], atol=1e-9)
        np.testing.assert_allclose(a[0], c[0], atol=1e-9)
    for tradeoff in (0.1, 10.0):
        made = compile_plan(parse(AFFINE.text()), "hedged", "unit-free", tradeoff=tradeoff)
        loss_range = made.choice.situation.loss_range
        assert loss_range is not None and made.choice.winner is not None and made.choice.winner.scales is not None
        assert made.settings["penalty"].value == pytest.approx(tradeoff * loss_range / made.choice.winner.scales.loss)


def test_dearer_violations_are_fewer() -> None:
    """The same rounds at penalties that grow: less violation, no less loss."""
    rng = np.random.default_rng(4)
    data = {
        "c": rng.uniform(-1, 0.2, (240, 3)),
        "A": rng.uniform(0, 1, (240, 2, 3)),
        "b": rng.uniform(0.2, 1.5, (240, 2)),
    }
    found = []
    for price in (0.1, 1.0, 10.0):
        trace = oco.compile(parse(AFFINE.text(f", penalty {price}", 240)), "hedged", backend="numpy").run(data)
        found.append((trace.loss.sum(), np.maximum(trace.constraints, 0).sum()))
    (l1, v1), (l2, v2), (l3, v3) = found
    assert v1 > 1.5 * v2 > 2 * v3 and l1 < l2 < l3


def test_without_prices_it_is_there_for_those_who_ask() -> None:
    for text, offered in ((AFFINE.text(", penalty [2, 5]"), True), (AFFINE.text(), False)):
        verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "hedged")
        assert (verdict.applicability is not Applicability.REFUSED) == offered
        assert offered or ("states no penalty" in verdict.reasons[0] and "penalty V" in verdict.fix)
        assert plan_of(text, "hedged").guarantee is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("A @ x <= b", "x[j] <= b"), "picks entries of arrays"),
        (("each round", "on average"), "binds on average"),
        (("penalty [2, 5]\n", "penalty [2, 5]\nfeedback gradient\n"), "does not give the loss as a function"),
    ],
)
def test_what_it_cannot_play_is_refused_with_its_reason(change: tuple[str, str], said: str) -> None:
    text = AFFINE.text(", penalty [2, 5]").replace("minimize", "stream j in 0..2\nminimize").replace(*change)
    verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "hedged")
    assert any(said in r for r in verdict.reasons), verdict.reasons


def test_no_horizon_is_needed() -> None:
    text = AFFINE.text(", penalty [2, 5]")
    rounds = drawn(AFFINE)
    known, unknown = (trajectory(plan_of(t, "hedged"), rounds) for t in (text, text.replace(f"= {T}", "unknown")))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(known, unknown))


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_and_fleets_decide_as_numpy_does() -> None:
    case = CASES["separable, integers"]
    plan = oco.compile(parse(case.text(", penalty 3")), "hedged")
    fleet = plan.fleet(9, backend="c")
    alone = [plan.learner(seed=k, backend=b) for k in range(9) for b in ("numpy", "c")]
    rng = np.random.default_rng(1)
    for _ in range(T):
        decided, single = np.asarray(fleet.decide()), [np.asarray(a.decide()) for a in alone]
        for k in range(9):
            np.testing.assert_allclose(single[2 * k], single[2 * k + 1], atol=1e-9)
            np.testing.assert_allclose(decided[k], single[2 * k + 1], atol=1e-9)
        rounds = [case.draw(rng) for _ in range(9)]
        fleet.observe(**{n: np.stack([d[n] for d in rounds]) for n in rounds[0]})
        for k, a in enumerate(alone):
            a.observe(**rounds[k // 2])


def test_the_guarantee_counts_its_own_prices() -> None:
    """R grows with the prices; the violations are at most (R + F T) over the least of them."""
    s = situation(AFFINE.text(", penalty [2, 5]"))
    guarantee = plan_of(AFFINE.text(", penalty [2, 5]"), "hedged").guarantee
    dearer = plan_of(AFFINE.text(", penalty [4, 10]"), "hedged").guarantee
    assert guarantee is not None and dearer is not None and s.loss_range is not None
    regret, violation = guarantee.regret(100), guarantee.violation(100)
    slopes, sizes = s.inequality_bounds("lipschitz.l2"), s.inequality_bounds("upper")
    assert regret is not None and violation is not None and slopes is not None and sizes is not None
    G, M = math.sqrt(3) + PRICES @ slopes, s.loss_range + PRICES @ sizes
    assert regret == pytest.approx(math.sqrt(600) * G + M * math.sqrt((4 + math.log(EXPERTS)) * 100), rel=1e-6)
    assert violation == pytest.approx((regret + s.loss_range * 100) / 2)
    assert (dearer.regret(100) or 0) > regret


def test_where_the_model_states_penalties_it_is_the_default() -> None:
    """On data, and where every guarantee is vacuous; without penalties pilots decide, and tuning takes a line that compiles again."""
    rng, rounds = np.random.default_rng(6), 60
    data = {"c": rng.uniform(-1, 1, (60, 3)), "A": rng.uniform(0, 1, (60, 2, 3)), "b": rng.uniform(0.2, 1.5, (60, 2))}
    stated, silent = parse(AFFINE.text(", penalty [2, 5]", rounds)), parse(AFFINE.text("", rounds))
    plan = oco.compile(stated, data=data)
    assert plan.algorithm == "hedged" and plan.choice.pilots is None
    assert "by the penalties that the model states" in str(plan.explain())
    assert oco.compile(silent, data=data).algorithm != "hedged"
    tuned = oco.tune(stated, data, "hedged", seconds=2.0)
    assert oco.parse(f"{AFFINE.text(', penalty [2, 5]', rounds)}{tuned.line}\n").using is not None


def test_bounds_that_are_too_wide_change_little() -> None:
    """Losses and right sides may be ten times as large as those that come: what is paid differs by less than a thousandth."""
    rng = np.random.default_rng(8)
    data = {
        "c": rng.uniform(-1, 0.2, (120, 3)),
        "A": rng.uniform(0, 1, (120, 2, 3)),
        "b": rng.uniform(0.2, 1.5, (120, 2)),
    }
    text, paid = AFFINE.text(", penalty [2, 5]", 120), []
    for wide in (
        text,
        text.replace("c[3] in [-1, 1]", "c[3] in [-10, 10]").replace("b[2] in [0.2, 1.5]", "b[2] in [-9, 15]"),
    ):
        trace = oco.compile(parse(wide), "hedged", backend="numpy").run(data)
        paid.append(trace.loss.sum() + (np.maximum(trace.constraints, 0) @ PRICES).sum())
    assert paid[1] == pytest.approx(paid[0], rel=1e-3)
