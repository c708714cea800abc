"""Balseiro, Lu & Mirrokni 2023: prices on budgets, against a literal reference, adversaries and the promise."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.dsl.text.formatter import format_text

BACKENDS = ("numpy", "c")


def text(T: int, budget: float, measure: str = "dynamic", more: str = "") -> str:
    return format_text(f"""\
model pacing
horizon T = {T}
decision x[3] in box(0, 1)
context fee[3] in [0, 1]
context gain[3] in [0, 1]
minimize -gain @ x
subject to
    spend: fee @ x <= {budget}  in total
measure {measure} regret
{more}""")


SIMPLEX = format_text("""\
model channels
horizon T = 60
decision x[4] in simplex
context fee[3] in [0, 2]
context gain[3] in [0, 1]
context load[3] in [0, 1]
minimize -gain @ x[0:3]
subject to
    money: fee @ x[0:3] <= 12  in total
    time: load @ x[0:3] <= 6  in total
using pacing with price = 3, eta = 0.2
""")


def reference(data: dict[str, Any], budgets: Any, price: float, eta: float, box: bool) -> tuple[Any, Any]:
    """Decisions (T, n) and prices (T, K) written from the paper, each argmin by a solver; the decision that costs nothing is 0, or the
    last channel.
    """
    T, costs = len(data["gain"]), [data[k] for k in ("fee", "load") if k in data]
    n = 3 if box else 4
    free = np.zeros(n) if box else np.eye(n)[-1]
    prices, spent, xs, seen = np.zeros(len(costs)), np.zeros(len(costs)), [], []
    x, slope = cp.Variable(n), cp.Parameter(n)
    problem = cp.Problem(cp.Minimize(slope @ x), [x >= 0, x <= 1] if box else [x >= 0, cp.sum(x) == 1])
    for t in range(T):
        a = np.array([np.append(c[t], np.zeros(n - 3)) for c in costs])
        rho = budgets / T
        slope.value = (prices / rho) @ a - np.append(data["gain"][t], np.zeros(n - 3))
        problem.solve(solver="HIGHS")
        need, left = a @ x.value, budgets - spent
        theta = min([1.0, *(max(b, 0) / c for b, c in zip(left, need) if c > b)])
        xs.append(free + theta * (x.value - free))
        spent = spent + a @ xs[-1]
        prices = np.clip(prices + eta * (a @ xs[-1] / rho - 1), 0, price)
        seen.append(prices)
    return np.array(xs), np.array(seen)


@pytest.mark.parametrize("backend", corners(BACKENDS, ["c"]))
def test_it_decides_as_the_listing(backend: str) -> None:
    rng = np.random.default_rng(2)
    data = {"fee": rng.uniform(0, 2, (60, 3)), "gain": rng.uniform(0, 1, (60, 3)), "load": rng.uniform(0, 1, (60, 3))}
    trace = oco.compile(oco.parse(SIMPLEX)).run(data, backend=backend)
    xs, _ = reference(data, np.array([12.0, 6.0]), 3.0, 0.2, box=False)
    np.testing.assert_allclose(trace.decisions, xs, atol=1e-5)
    own = {k: v for k, v in data.items() if k != "load"}
    own["fee"] = own["fee"] / 2
    learner = oco.compile(oco.parse(text(60, 9, more="using pacing with price = 2, eta = 0.3\n"))).learner(
        backend=backend
    )
    xs, prices = reference(own, np.array([9.0]), 2.0, 0.3, box=True)
    for t in range(60):
        np.testing.assert_allclose(learner.decide(fee=own["fee"][t], gain=own["gain"][t]), xs[t], atol=1e-5)
        learner.observe()
        np.testing.assert_allclose(learner.value("price"), prices[t], atol=1e-4)


def sequence(kind: str, T: int, seed: int) -> dict[str, Any]:
    """Rounds against it: gains that come once the budget is tempted away, costs that jump."""
    rng, half = np.random.default_rng(seed), np.arange(T)[:, None] >= T / 2
    fee, gain = rng.uniform(0, 1, (T, 3)), rng.uniform(0, 1, (T, 3))
    if kind == "gains come late":
        gain, fee = np.where(half, 1.0, 0.3) * np.ones((T, 3)), np.ones((T, 3))
    if kind == "gains come early":
        gain, fee = np.where(half, 0.3, 1.0) * np.ones((T, 3)), np.ones((T, 3))
    if kind == "dear, then cheap":
        fee = np.where(half, 0.05, 1.0) * np.ones((T, 3))
    if kind == "in blocks":
        block = (np.arange(T)[:, None] // max(int(np.sqrt(T)), 1)) % 2
        fee, gain = 0.1 + 0.9 * block * np.ones((T, 3)), 0.2 + 0.8 * block * np.ones((T, 3))
    return {"fee": fee, "gain": gain}


KINDS = ("drawn", "gains come late", "gains come early", "dear, then cheap", "in blocks")


def planned(data: dict[str, Any], part: float) -> float:
    """Least loss of decisions that spend at most a part in each round: of gains per cost, dearest last."""
    total = 0.0
    for fee, gain in zip(data["fee"], data["gain"]):
        left = part
        for k in np.argsort(fee / np.maximum(gain, 1e-12)):
            x = 1.0 if fee[k] <= left else left / fee[k]
            total, left = total - x * gain[k], left - x * fee[k]
    return total


def test_regret_keeps_the_promise_and_grows_as_the_root_of_the_rounds() -> None:
    worst, horizons = [], (64, 256, 1024)
    for T in horizons:
        budget = 0.2 * T
        plan = oco.compile(oco.parse(text(T, budget)))
        assert plan.choice.winner is not None and plan.choice.winner.name == "pacing"
        bound, regrets = plan.guarantee.regret_curve(T)[-1], []
        for kind in KINDS:
            data = sequence(kind, T, 3)
            trace = plan.run(data, backend="numpy")
            assert (data["fee"] * trace.decisions).sum() <= budget
            regrets.append(float(trace.loss.sum()) - planned(data, budget / T))
        assert max(regrets) <= bound
        worst.append(max(*regrets, 1.0))
    exponent = np.polyfit(np.log(horizons), np.log(worst), 1)[0]
    assert exponent < 0.6, worst


def test_of_independent_contexts_it_comes_near_the_best_decisions_under_the_total() -> None:
    T, gaps = 400, []
    plan = oco.compile(oco.parse(text(T, 0.2 * T)))
    for seed in range(4):
        data, x = sequence("drawn", T, seed), cp.Variable((T, 3))
        within = [x >= 0, x <= 1, cp.sum(cp.multiply(data["fee"], x)) <= 0.2 * T]
        best = cp.Problem(cp.Minimize(-cp.sum(cp.multiply(data["gain"], x))), within).solve()
        gaps.append(float(plan.run(data).loss.sum()) - best)
    assert np.mean(gaps) <= plan.guarantee.regret_curve(T)[-1]
    assert np.mean(gaps) < 0.1 * T  # of the 0.5 a round that there is to gain


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("context fee", "stream fee", "not known before"),
        ("-gain @ x", "-gain @ x + sum_squares(x)", "not linear"),
        ("in total\n", "in total\n    cap: x[0] <= gain[0]  each round\n", "known before the decision too"),
        ("spend: fee @ x <= 9  in total", "spend: fee @ x <= 0.15  each round", "no constraint `in total`"),
    ],
)
def test_where_it_does_not_apply(old: str, new: str, words: str) -> None:
    choice = oco.compile(oco.parse(text(60, 9).replace(old, new))).choice
    verdict = next(v for v in choice.verdicts if v.name == "pacing")
    assert any(words in reason for reason in verdict.reasons), verdict.reasons


def test_a_price_below_the_range_of_losses_promises_nothing() -> None:
    plan = oco.compile(oco.parse(text(60, 9, more="using pacing with price = 0.1\n")))
    assert "price must be at least" in str([d.message for d in plan.warnings])


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_the_last_round_the_total_still_holds(backend: str) -> None:
    learner, spent = oco.compile(oco.parse(text(20, 5))).learner(backend=backend), 0.0
    for _ in range(60):
        spent += float(np.asarray(learner.decide(fee=np.ones(3), gain=np.ones(3))).sum())
        learner.observe()
    assert 4 < spent <= 5
