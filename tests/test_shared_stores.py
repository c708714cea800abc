"""Stores that share what moves between them: multipliers of rows that cut domains, values under uncertain drifts and prices with a jump."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from store_grid import grid_of
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms import stored_value
from oco.compiler.algorithms.hedged_rule import _off_kinks
from oco.compiler.algorithms.row_multipliers import _charged, charged_for_rows
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical

AHEAD = 24
BIKES = """\
model bikes

horizon T = 300

decision move[2] in box(-6, 6) with sum(move) == 0

stream taken[2] in [0, 20]
stream brought[2] in [0, 20]
state stock[2] = stock + move - taken + brought in [0, [20, 30]] start 10

minimize 0.4 * norm1(move) + 3 * sum(pos(taken - brought - stock - move)) + 2 * sum(pos(stock + move + brought - taken - [20, 30]))

using hedged with season = 150, ahead = 24
"""


def charged(domain: Any, x: Any, slope: Any) -> Any:
    types = [Type(DType.FLOAT, domain.shape)] * 2
    return as_numpy("charged", lambda t, x, g: _charged(t, domain, domain.row, x, g), *types)(x, slope)[0]


@pytest.mark.parametrize("sign", ["==", "<="])
@pytest.mark.parametrize("total", [0.5, 6.0])
def test_the_multiplier_of_a_row_is_that_of_cvxpy(sign: str, total: float) -> None:
    head = "model m\nhorizon T = 10\nstream s[4] in [0, 1]\n"
    text = f"{head}decision x[4] in box(-1, 2) with [1, 2, 1, 3] @ x {sign} {total}\nminimize s @ x\n"
    domain = canonical(oco.parse(text)).blocks[0].domain
    rng, a, bound = np.random.default_rng(5), np.array([1.0, 2.0, 1.0, 3.0]), 0
    for _ in range(8):
        w, c, u = rng.uniform(0.5, 2, 4), rng.normal(0.6, 0.5, 4), cp.Variable(4)
        row = a @ u == total if sign == "==" else a @ u <= total
        cp.Problem(cp.Minimize(w @ cp.square(u - c)), [row, u >= -1, u <= 2]).solve(solver="CLARABEL")
        mu = float(row.dual_value)
        x = np.clip(c - mu * a / (2 * w), -1, 2)  # as the solver's point, with entries at their bounds exactly
        assert_allclose(x, u.value, atol=1e-5)
        if ((x > -1) & (x < 2)).any():
            assert_allclose(charged(domain, x, 2 * w * (x - c)), mu * a, atol=1e-4)
            bound += abs(mu) > 1e-2
    assert bound or (sign, total) == ("<=", 6.0)


def rounds_of(T: int) -> tuple[Any, Any]:
    """Bikes that are taken and brought, (T, 2) each."""
    rng = np.random.default_rng(4)
    return rng.poisson((5, 3), (T, 2)).astype(float), rng.poisson((3, 5), (T, 2)).astype(float)


def least_cost_to_come(costs: Any, unsure: float, grid: Any, mean: float) -> Any:
    """Derivative by the stock, at the points of the grid, of the least expected cost of the rounds to come, by value iteration on a fine
    grid: `costs` are the prices of the rounds to come, the jump of the price at a flow of 0 and the drift.
    """
    prices, jump, drift = costs
    end = grid[-1]
    fine = np.linspace(0, end, 201)
    errors = unsure * np.array([-1.606, -0.657, 0.0, 0.657, 1.606])
    cost = -mean * fine
    move = fine[None, :] - fine[:, None]
    for price in reversed(prices):
        left = fine[:, None] + drift + errors
        outside = 3 * np.maximum(-left, 0) + 2 * np.maximum(left - end, 0)
        after = (outside + np.interp(np.clip(left, 0, end), fine, cost)).mean(axis=1)
        paid = np.where(np.abs(move) <= 6 + 1e-9, price * move + 0.5 * jump * np.abs(move), np.inf)
        cost = (paid + after).min(axis=1)
    return np.interp(grid, (fine[1:] + fine[:-1]) / 2, -np.diff(cost) / np.diff(fine))


def test_values_are_those_of_value_iteration_under_errors_of_the_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_value, "UNSURE_CELLS", 20)  # as fine as where nothing is unsure
    backend = "c" if has_compiler() else "numpy"  # the same decisions, in a quarter of the time
    learner, (taken, brought) = oco.compile(oco.parse(BIKES)).learner(backend=backend), rounds_of(50)
    for row in zip(taken, brought, strict=True):
        learner.decide()
        learner.observe(taken=row[0], brought=row[1])
    overall, errors = learner.value("cost_overall")[0], learner.value("cost_errors")[:, 0]
    assert_allclose(overall[4], 0.8, rtol=1e-6)
    # What bikes share is scarce at the first station: it is worth something to move one there.
    assert overall[0].min() > 0.3
    fades, higher = (np.clip(errors[k + 1] / np.maximum(errors[k], 1e-300), 0, 1) for k in (0, 4))
    prices = overall[0] + higher * (learner.value("cost_level")[0] - overall[0])
    prices = prices + fades ** np.arange(2, AHEAD + 2).reshape(-1, 1) * learner.value("cost_above")[0]
    for store, end in enumerate((20.0, 30.0)):
        costs = (prices[:, store], overall[4, store], overall[3, store])
        unsure = learner.value("unsure")[store]
        grid, places = np.unique(grid_of(learner, store, 0, end, 12, unsure), return_index=True)
        expected = least_cost_to_come(costs, unsure, grid, overall[0, store])
        values = learner.value("value")[store][places]
        # Below the lower end a bike has the value that the loss pays for one that is missing.
        before, after = np.r_[3.0, expected[:-1]], np.r_[expected[1:], expected[-1]]
        # Within a cell of the grid, but for that at the upper end, in which values fall to what a unit too much costs.
        room, inner = 0.06 * np.ptp(expected), slice(-2)
        assert (values <= before + room)[inner].all() and (values >= after - room)[inner].all()
        assert np.abs(values - expected)[inner].mean() <= room


def test_entries_without_a_finite_slope_do_not_price_a_row() -> None:
    text = (
        "model m\nhorizon T = 10\nstream s[3] in [0, 1]\ndecision x[3] in box(-1, 1) with sum(x) == 0\nminimize s @ x\n"
    )
    domain = canonical(oco.parse(text)).blocks[0].domain
    assert_allclose(charged(domain, np.zeros(3), np.array([-1e299, 2.0, 4.0])), -3.0)
    assert_allclose(charged(domain, np.zeros(3), np.full(3, -1e299)), 0.0)


STATIONS = """\
model stations
horizon T = 300
decision move[3] in box(-6, 6) with sum(move) == 0
stream taken[3] in [0, 20]
stream brought[3] in [0, 20]
state stock[3] = stock + move - taken + brought in [0, [20, 30, 25]] start 10
minimize 0.4 * norm1(move) + 3 * sum(pos(taken - brought - stock - move)) + 2 * sum(pos(stock + move + brought - taken - [20, 30, 25]))
using hedged with ahead = 8
"""


@pytest.mark.thorough
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("T", [300, 1000])
def test_whole_numbers_at_kinks_are_decided_alike_in_c(T: int) -> None:
    """Whole data put decisions, stocks and their slopes on kinks, where rounding differs."""
    plan, rng = oco.compile(oco.parse(STATIONS.replace("300", str(T)))), np.random.default_rng(4)
    data = {n: rng.poisson(mean, (T, 3)).astype(float) for n, mean in (("taken", (5, 3, 4)), ("brought", (3, 5, 4)))}
    one, other = plan.learner(backend="numpy"), plan.learner(backend="c")
    for k in range(T):
        assert_allclose(one.decide(), other.decide(), atol=1e-9)
        for learner in (one, other):
            learner.observe(**{n: v[k] for n, v in data.items()})


def test_slopes_on_either_side_of_a_kink_price_a_row_alike() -> None:
    """|x| at x_3 = 0, between entries with slopes 1 and -1: every side of rounding has the multiplier of slope 0."""
    text = "model m\nhorizon T = 9\ndecision x[3] in box(-6, 6) with sum(x) == 0\nstream a[3] in [-9, 9]\nminimize norm1(x) + a @ x\n"
    problem = canonical(oco.parse(text))

    def priced(t: Any, x: Any, a: Any) -> Any:
        p = Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), {"a": a}, t.lift(1))
        return charged_for_rows(p, Point((x,)), p.gradient).blocks[0]

    of = as_numpy("priced", priced, *[Type(DType.FLOAT, (3,))] * 2)
    for third in (-1e-13, 0.0, 1e-13):
        assert_allclose(of(np.array([2.0, -2.0, third]), np.full(3, 0.5))[0], -0.5, atol=1e-12)


def test_slopes_beside_a_decision_of_whole_numbers_are_off_it_in_every_entry() -> None:
    """On the way to a point of the domain, by far more than rounding."""
    text = (
        "model m\nhorizon T = 9\ndecision x[3] in box(-6, 6) with sum(x) == 0\nstream a[3] in [-9, 9]\nminimize a @ x\n"
    )
    problem = canonical(oco.parse(text))

    def aside(t: Any, x: Any) -> Any:
        p = Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), {}, t.lift(1))
        return _off_kinks(p, Point((x,))).blocks[0]

    of = as_numpy("aside", aside, Type(DType.FLOAT, (3,)))
    for x in np.array([[2, -2, 0], [1, -1, 0], [0, 0, 0], [4, -2, -2], [-3, 1, 2]], dtype=float):
        moved = of(x)[0] - x
        assert (abs(moved) > 1e-11).all() and abs(moved.sum()) < 1e-14
