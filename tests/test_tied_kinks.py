"""Kinks of losses that tie entries together: the loss again from its parts, and the decisions of CVXPY."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import oco
from oco.compiler.lowering.predicted_round import predicted_of
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores, valued
from oco.compiler.problem.tied_kinks import any_kink, tied, with_kinks_apart
from oco.dsl.evaluate import evaluate

HEAD = "model m\nhorizon T = 50\ndecision x[3] in box(0, [3, 5, 8])\nstream demand in [0, 15]\nstream price in [1, 5]\n"
LOSSES = [
    ("[1, 2, 4] @ x + 30 * pos(demand - sum(x)) + price * pos(sum(x) - demand)", 1),
    ("2 * abs(x[0] - x[1]) + pos(x[1] - x[0] - demand) + x[2] ** 2", 2),
    ("norm1([[1, 1, 0], [0, 1, 2]] @ x - demand) + maximum(sum(x), 2 * demand)", 2),
    ("maximum(2 * sum(x) - 4, 6 - demand) - minimum(1 - sum(x), 0.5 * demand - 2) + pos(x[0] - 1)", 2),
    ("pos(price * sum(x) - demand) + pos(demand - price * sum(x))", 1),  # affine in the product of price and sum(x)
]
DECISIONS = ("x",)


@pytest.mark.parametrize(("loss", "rows"), LOSSES)
def test_a_loss_is_its_rest_and_what_its_kinks_cost(loss: str, rows: int) -> None:
    objective = canonical(oco.parse(f"{HEAD}minimize {loss}\n")).objective
    apart, rng = with_kinks_apart(objective, DECISIONS, tied), np.random.default_rng(4)
    assert apart is not None and len(apart.rows) == rows
    for _ in range(30):
        own = {"x": rng.uniform(0, [3, 5, 8]), "demand": rng.uniform(0, 15), "price": rng.uniform(1, 5)}
        total = evaluate(apart.rest, own)
        for row, price in zip(apart.rows, apart.prices, strict=True):
            charged = np.asarray(evaluate(price, own))
            assert (charged >= 0).all()
            total = total + (charged * np.maximum(evaluate(row.expr, own), 0)).sum()
        assert_allclose(total, evaluate(objective, own), rtol=1e-12, atol=1e-12)


def test_kinks_of_single_entries_and_within_others_stay() -> None:
    objective = canonical(
        oco.parse(f"{HEAD}minimize pos(x[0] - demand) + pos(sum(x) + pos(x[1] - 2) - demand)\n")
    ).objective
    assert with_kinks_apart(objective, DECISIONS, tied) is None
    other = canonical(oco.parse(f"{HEAD}minimize sum(pos(x - demand)) + norm2(x)\n")).objective
    assert with_kinks_apart(other, DECISIONS, tied) is None
    apart = with_kinks_apart(other, DECISIONS, any_kink)
    assert apart is not None and apart.rows[0].shape == (3,)


def test_what_the_value_of_a_store_pays_for_missing_units_is_taken_off_their_price() -> None:
    text = """model m
horizon T = 50
decision a in box(0, 9)
decision b in box(0, 9)
stream sales in [0, 20]
state stock = stock + a + b - sales in [0, 50] start 9
minimize 2 * a + 3 * b + 8 * pos(sales - stock - a - b)
"""
    problem = valued(canonical(oco.parse(text)).learned)
    assert stores(problem)
    own = predicted_of(problem)
    assert own.whole is not None and own.prices
    names = [
        "_slope_stock",
        "_short_stock",
        "_over_stock",
        *(f"_{n}{k}_stock" for k in range(7) for n in ("knot", "drop")),
    ]
    data = dict.fromkeys(names, 1.0) | {"_short_stock": 5.0, "_over_stock": 0.0}
    assert min(float(np.min(evaluate(e, data))) for e in own.prices) >= 0


def test_rounds_are_solved_as_cvxpy_does() -> None:
    """With data that never change the learner's round is the program's."""
    model = oco.parse(f"{HEAD}minimize {LOSSES[0][0]} + 0.05 * x[2] ** 2\n")
    plan = oco.compile(model, "hedged")
    demand, price = 10.5, 2.0
    trace = plan.run({"demand": np.full(50, demand), "price": np.full(50, price)})
    x = cp.Variable(3)
    short, over = cp.pos(demand - cp.sum(x)), cp.pos(cp.sum(x) - demand)
    loss = np.array([1, 2, 4]) @ x + 30 * short + price * over + 0.05 * cp.square(x[2])
    best = cp.Problem(cp.Minimize(loss), [x >= 0, x <= [3, 5, 8]]).solve(solver="CLARABEL")
    last: Any = trace.loss[-1]
    assert best - 1e-6 <= last <= best + 0.02 * abs(best)
