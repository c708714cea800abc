"""Quantiles of the data that experts solve rounds at: where kinks of the loss move with them."""

from __future__ import annotations

import numpy as np
import pytest

import oco
from oco.compiler.algorithms.experts import sampled
from oco.compiler.algorithms.predictions import LEVELS, kinked_entries, places
from oco.compiler.problem.canonical import canonical

T = 400
STOCK = f"""\
model stock
horizon T = {T}
decision q[2] in box(0, 100)
stream demand[2] in [0, 200]
stream room in [50, 400]
minimize 2 * sum(q) - 6 * sum(minimum(q, demand))
subject to
    space: sum(q) <= room  each round, penalty 6
"""


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("2 * sum(q) - 6 * sum(minimum(q, demand))", [True, True, False]),
        ("sum(maximum(demand - q, 0)) + sum_squares(q)", [True, True, False]),
        ("sum_squares(q - demand) + sum(maximum(demand - q, 0))", [True, True, False]),
        ("sum(abs(q - demand))", [True, True, False]),
        ("sum_squares(q - demand)", [False, False, False]),
        ("demand @ q + sum_squares(q)", [False, False, False]),
        ("sum(exp(q * demand / 1000))", [False, False, False]),
    ],
)
def test_kinks_say_where_means_are_not_enough(loss: str, expected: list[bool]) -> None:
    text = STOCK.replace("2 * sum(q) - 6 * sum(minimum(q, demand))", loss)
    assert kinked_entries(canonical(oco.parse(text))).tolist() == expected


def test_as_many_rounds_are_above_a_quantile_as_its_level_says() -> None:
    rng = np.random.default_rng(4)
    demand = np.clip(40 + rng.lognormal(2, 0.5, (T, 2)), 0, 200)
    learner = oco.compile(oco.parse(STOCK), "hedged", {"season": 1}).learner(backend="numpy")
    rows, above = list(places(canonical(oco.parse(STOCK)), 1)[3]), np.zeros((len(LEVELS), 2))
    for t in range(T):
        made = np.array(learner.values["predicted"])[rows, :2]
        if t >= T // 4:
            above += demand[t] > made
        learner.decide()
        learner.observe(demand=demand[t], room=300.0)
    np.testing.assert_allclose(above / (T - T // 4), 1 - np.array(LEVELS)[:, None] * np.ones(2), atol=0.07)


def test_stock_of_uncertain_demand_comes_near_the_best_quantile() -> None:
    rng, week = np.random.default_rng(5), 1 + 0.4 * np.sin(2 * np.pi * np.arange(T)[:, None] / 7 + np.arange(2))
    demand = np.clip(40 * week * rng.lognormal(0, 0.4, (T, 2)), 0, 200)
    plan = oco.compile(oco.parse(STOCK), "hedged", {"season": 7})
    assert sampled(plan.canonical, 7)
    trace = plan.run({"demand": demand, "room": np.full(T, 400.0)})
    later = slice(T // 2, T)
    best = 40 * week * np.exp(0.4 * 0.4307)  # the quantile 2/3 of what is drawn, phase by phase
    cost = (2 * best - 6 * np.minimum(best, demand)).sum(axis=1)[later].sum()
    assert trace.loss[later].sum() <= cost + 0.04 * abs(cost)
