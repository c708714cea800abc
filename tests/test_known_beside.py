"""Rounds that `hedged` solves on predictions are solved within the known constraints: the cheapest entries serve a shared load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thorough import turns

import oco

Array = np.ndarray[Any, Any]
T, CAPS, COSTS = 60, np.array([2.0, 4.0, 6.0]), np.array([3.0, 1.0, 5.0])
MODEL = """\
model dispatch
horizon T = 60
context load in [1, 10]
decision p[3] in {domain}
stream price[3] in [0, 9]
minimize price @ p{loss}
subject to
    balance: sum(p) >= load  each round
{rule}
using hedged
"""


def merit_order(load: Array, curvature: float) -> Array:
    """Cheapest decisions (T, 3) that serve each load: with marginal costs c + 2 q x equal to a level where no bound holds, by bisection."""
    if curvature == 0.0:
        order = np.argsort(COSTS)
        before = np.concatenate([[0.0], np.cumsum(CAPS[order])[:-1]])
        x = np.zeros((load.size, 3))
        x[:, order] = np.clip(load[:, None] - before, 0.0, CAPS[order])
        return x
    low, high = np.zeros(load.size), np.full(load.size, 50.0)
    for _ in range(80):
        level = (low + high) / 2
        x = np.clip((level[:, None] - COSTS) / (2 * curvature), 0.0, CAPS)
        short = x.sum(axis=1) < load
        low, high = np.where(short, level, low), np.where(short, high, level)
    return x


CASES = [
    ("box([0, 0, 0], [2, 4, 6])", 0.0, ""),
    ("box([0, 0, 0], [2, 4, 6])", 0.2, ""),
    ("box([0, 0, 0], [2, 4, 6]) with sum(p) <= 11", 0.2, ""),
    ("box([0, 0, 0], [2, 4, 6])", 0.0, "    clean: price @ p <= 80  each round, penalty 2"),
]


@pytest.mark.parametrize(("case", "backend"), turns(CASES, ["c", "numpy"]))
def test_decisions_come_to_cost_what_the_merit_order_does(case: tuple[str, float, str], backend: str) -> None:
    domain, curvature, rule = case
    loss = f" + {curvature} * sum_squares(p)" if curvature else ""
    load = np.random.default_rng(4).uniform(1, 10, T)
    plan = oco.compile(oco.parse(MODEL.format(domain=domain, loss=loss, rule=rule)))
    trace = plan.run({"load": load, "price": np.tile(COSTS, (T, 1))}, backend=backend)
    best = merit_order(load, curvature)
    paid, least = (x @ COSTS + curvature * (x**2).sum(axis=1) for x in (trace.decisions, best))
    assert np.all(trace.decisions.sum(axis=1) >= load - 1e-7)
    late = slice(T // 2, None)
    assert paid[late].sum() <= 1.02 * least[late].sum()


@pytest.mark.thorough  # their values are held against value iteration in `tests/test_shared_stores.py`
def test_stores_are_valued_where_the_domain_is_cut_by_a_row() -> None:
    model = oco.parse("""\
model bikes
horizon T = 8
decision move[2] in box(-5, 5) with sum(move) == 0
stream taken[2] in [0, 8]
stream brought[2] in [0, 8]
state bikes[2] = bikes + move - taken + brought in [0, 20] start 10
minimize 0.2 * norm1(move) + 3 * sum(pos(taken - brought - bikes - move))
using hedged with ahead = 4
""")
    rng = np.random.default_rng(2)
    data = {
        "taken": rng.uniform(0, 8, (8, 2)) * [1.0, 0.2],
        "brought": rng.uniform(0, 8, (8, 2)) * [0.2, 1.0],
    }
    trace = oco.compile(model).run(data, backend="numpy")
    stock, lost, still = np.full(2, 10.0), 0.0, 0.0
    unmoved = np.full(2, 10.0)
    for x, out, back in zip(trace.decisions, data["taken"], data["brought"], strict=True):
        assert abs(x.sum()) <= 1e-7
        lost += 0.2 * np.abs(x).sum() + 3 * np.maximum(out - back - stock - x, 0).sum()
        still += 3 * np.maximum(out - back - unmoved, 0).sum()
        stock, unmoved = (np.clip(s - out + back, 0, 20) for s in (stock + x, unmoved))
    assert lost == pytest.approx(trace.loss.sum(), rel=1e-9)
    assert lost < 0.8 * still


def test_a_cut_box_has_the_corner_that_its_bounds_state() -> None:
    """Entries of corners are rounded: of this one 2.2e-16 in the place of 0, beyond which a loss was bounded below what it reaches."""
    model = oco.parse("""\
model dispatch
horizon T = 60
decision p[3] in box([0, 0, 0], [2, 4, 6]) with sum(p) <= 11
stream price[3] in [0, 9]
minimize price @ p + 0.2 * sum_squares(p)
""")
    assert oco.check(model)["loss.lower"].value == 0.0
