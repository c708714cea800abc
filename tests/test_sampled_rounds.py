"""Experts of `hedged` that solve a round with the mean of its loss over quantiles of the errors of a prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Run, solve
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.experts import GRADIENTS, sampled, solving
from oco.compiler.algorithms.predictions import LEVELS, kinked_streams, places
from oco.compiler.lowering.predicted_round import averaged_over, predicted_of
from oco.compiler.problem.canonical import canonical

T = 250
CHARGING = f"""\
model charging
horizon T = {T}
decision charge[2] in box(0, 60)
context price in [0, 1]
stream wanted[2] in [0, 60]
stream free in [10, 150]
minimize price * sum(charge) + 0.6 * sum(maximum(wanted - charge, 0))
subject to
    feeder: sum(charge) <= free  each round, penalty 2
"""
LOADING = CHARGING[: CHARGING.index("subject to")].replace("stream free in [10, 150]\n", "")
"""Model without constraints."""


def drawn(seed: int, rounds: int = T) -> dict[str, Array]:
    """Rounds with prices that move the best quantile of what is wanted from 5/6 to 1/6."""
    rng = np.random.default_rng(seed)
    wanted = np.clip(np.array([25.0, 15.0]) * rng.lognormal(0, 0.5, (rounds, 2)), 0, 60)
    return {"price": rng.choice([0.1, 0.3, 0.5], rounds), "wanted": wanted, "free": rng.uniform(30, 60, rounds)}


def learned(text: str, rounds: int) -> tuple[oco.Plan, Run, dict[str, Array]]:
    """Learner after some rounds, with the data of these and of the next one."""
    plan, data = oco.compile(oco.parse(text), "hedged", {"units": "user"}), drawn(2)
    run = Run(plan)
    for t in range(rounds):
        run.decided({"price": data["price"][t]})
        run.play({n: d[t] for n, d in data.items() if n in text})
    return plan, run, data


@pytest.mark.parametrize("text", [CHARGING, LOADING])
def test_decisions_are_those_of_cvxpy(text: str) -> None:
    plan, run, data = learned(text, 12)
    own, count = sampled(plan.canonical, 1), len(GRADIENTS) + len(solving(plan.canonical, 1))
    before = run.value("x")
    run.decided({"price": data["price"][12]})
    after, S, made = run.value("x"), run.value("S"), run.value("predicted")
    levels, D = made[list(places(plan.canonical, 1)[3])][:, :2], 60 * math.sqrt(2)
    for i, (row, reach, _) in enumerate(own, start=count - len(own)):
        u, alpha = cp.Variable(2), math.sqrt(2 * S[i]) / (2 * reach * D)
        cost = sum(cp.sum(cp.pos(s - u)) for s in levels) * 0.6 / len(LEVELS)
        cost += data["price"][12] * cp.sum(u) + alpha * cp.sum_squares(u - before[i])
        if "feeder" in text:
            margin = run.value("margin")[i - len(GRADIENTS), 0]
            cost += float(plan.settings["Q"].value or 0) * cp.pos(cp.sum(u) - made[row, 2] + margin)
        solve(cost, [u >= 0, u <= 60])
        np.testing.assert_allclose(after[i], u.value, atol=2e-3)


def test_the_mean_of_a_loss_is_solved_as_the_loss_is() -> None:
    problem = canonical(oco.parse(CHARGING))
    assert kinked_streams(problem) == ("wanted",)
    mean = averaged_over(problem, ("wanted",), 3)
    assert mean.whole is not None and mean.streams == predicted_of(problem).streams


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_quantiles_follow_the_price() -> None:
    """Cost beside the best quantile at each price, which is near, and one quantile at all prices, which is far."""
    data = {n: d for n, d in drawn(1).items() if n != "free"}
    x = np.asarray(oco.compile(oco.parse(LOADING), "hedged", backend="c").run(data).decisions)
    late, price = slice(T // 5, T), data["price"][:, None]
    best = np.quantile(data["wanted"], [1 - p / 0.6 for p in data["price"]], axis=0)
    steady = [np.tile(np.quantile(data["wanted"], q, axis=0), (T, 1)) for q in np.arange(0.1, 1, 0.1)]

    def cost(decided: Array) -> float:
        return float((price * decided + 0.6 * np.maximum(data["wanted"] - decided, 0))[late].sum())

    assert cost(x) <= 1.03 * cost(best) and cost(x) <= 0.97 * min(map(cost, steady))


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_and_fleets_decide_as_numpy_does() -> None:
    plan = oco.compile(oco.parse(CHARGING), "hedged", {"season": 3})
    rounds = [drawn(seed, 8) for seed in range(3)]
    alone: Sequence[oco.Learner] = [plan.learner(backend="numpy") for _ in rounds]
    single, fleet = plan.learner(backend="c"), plan.fleet(len(rounds), backend="c")
    for t in range(8):
        price = np.array([d["price"][t] for d in rounds])
        decided = np.array([a.decide(price=p) for a, p in zip(alone, price)])
        np.testing.assert_allclose(single.decide(price=price[0]), decided[0], atol=1e-7)
        np.testing.assert_allclose(fleet.decide(price=price), decided, atol=1e-7)
        given = [{n: d[n][t] for n in ("wanted", "free")} for d in rounds]
        for learner, one in zip((*alone, single), (*given, given[0])):
            learner.observe(**one)
        fleet.observe(**{n: np.stack([one[n] for one in given]) for n in given[0]})
