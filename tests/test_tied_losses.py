"""Losses that tie decisions of several widths together, as the conditional value at risk of a round's cost does."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores

T = 400
AT_RISK = f"""\
model at_risk
horizon T = {T}
decision order in box(0, 60)
decision level in box(-1000, 1000)
stream sales in [0, 50]
let cost = 2 * order - 5 * minimum(order, sales)
minimize level + 10 * pos(cost - level)
"""
STOCK = """\
model stock_at_risk
horizon T = 100
decision order in box(0, 60)
decision level in box(-1000, 1000)
stream sales in [0, 50]
state stock = stock + order - sales in [0, 90] start 40
let cost = 8 * pos(sales - stock - order) + 0.5 * pos(stock + order - sales)
minimize level + 10 * pos(cost - level)
"""


def test_most_of_what_the_best_fixed_decision_saves_is_saved() -> None:
    sales = np.clip(np.random.default_rng(4).normal(25, 9, T), 0, 50)
    order, level = cp.Variable(), cp.Variable()
    cost = 2 * order - 5 * cp.minimum(order, sales)
    problem = cp.Problem(cp.Minimize(T * level + 10 * cp.sum(cp.pos(cost - level))), [order >= 0, order <= 60])
    best = problem.solve(solver=cp.CLARABEL)
    held = 10 * np.maximum(60 - 5 * np.minimum(30, sales), 0).sum()  # the middle of the domain
    trace = oco.compile(oco.parse(AT_RISK), "hedged").run({"sales": sales})
    assert trace.loss.sum() - best <= 0.5 * (held - best)


def test_prices_within_prices_are_none_of_a_store() -> None:
    own = oco.parse(STOCK)
    assert not stores(canonical(own))
    sales = np.random.default_rng(5).uniform(0, 50, 100)
    stock = oco.compile(own, "hedged").run({"sales": sales}).data.array("stock")
    assert ((stock >= 0) & (stock <= 90)).all()
