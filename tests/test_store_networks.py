"""Stores that several entries fill, and entries that move several stores: against linear programs, bisection and perfect foresight."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from store_grid import grid_of
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.shared_flows import SharedFlows
from oco.compiler.algorithms.store_flows import SeveralFlows
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import moved_beside, stores

HOURS, AHEAD = 24, 24
BATTERY = """\
model battery
horizon T = 480
decision charge in box(0, 50)
decision discharge in box(0, 40)
stream price in [0, 100]
state stored = 0.99 * stored + 0.95 * charge - discharge / 0.95 in [0, 200] start 100
minimize price * (charge - discharge)
using hedged with season = 24
"""
RIVER = """\
model river
horizon T = 480
decision upper in box(0, 60)
decision lower in box(5, 80)
stream price in [0, 100]
stream rain[2] in [0, 60]
state lake = lake + rain[0] - upper in [0, 900] start 400
state pond = pond + rain[1] + upper - lower in [0, 400] start 200
maximize price * (0.3 * upper + 0.2 * lower) - 100 * pos(upper - lake - rain[0]) - 100 * pos(lower - pond - rain[1] - upper)
using hedged with season = 24
"""
SHOPS = """\
model shops
horizon T = 200
decision order[2] in box(0, 90)
decision move in box(-30, 30)
stream sales[2] in [0, 120]
state a = a + order[0] - move - sales[0] in [0, 400] start 60
state b = b + order[1] + move - sales[1] in [0, 400] start 60
minimize sum(order) + 0.3 * abs(move) + 0.2 * pos(a + order[0] - move - sales[0]) + 0.2 * pos(b + order[1] + move - sales[1]) \
    + 6 * pos(sales[0] - a - order[0] + move) + 6 * pos(sales[1] - b - order[1] - move)
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def prices(T: int, seed: int) -> Any:
    rng, t = np.random.default_rng(seed), np.arange(T)
    return np.clip(45 + 20 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, 4, T), 0, 100)


def test_flows_and_the_store_have_one_price() -> None:
    """The value before a round is where bisection finds that flows at this price leave a store with this value."""
    problem = canonical(oco.parse(RIVER)).learned
    own = stores(problem)[1:]
    (pond,) = own
    kept, slope = np.linspace(0, 400, 9), 0.3

    def traced(t: Any, v: Any, row: Any) -> Any:
        p = Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), {}, t.lift(1))
        flows = SeveralFlows(t, own, curved=False, kinks=False, shared=SharedFlows(p, own))
        return flows.at_one_price(t.constant(kept.reshape(1, -1)), lambda left: v - slope * left, row)

    run, rng = as_numpy("one_price", traced, Type(DType.FLOAT, ()), Type(DType.FLOAT, (4, 2))), np.random.default_rng(3)
    for _ in range(20):
        v, costs = rng.uniform(0, 150), rng.uniform(-20, 120, 2)
        row = np.zeros((4, 2))
        row[0] = costs
        for k, found in zip(kept, run(np.float64(v), row)[0].ravel(), strict=True):
            low, high = -1e4, 1e4
            for _ in range(80):
                middle = (low + high) / 2
                flow = np.where(costs < middle, pond.most, pond.least).sum()
                low, high = (middle, high) if v - slope * (k + flow) > middle else (low, middle)
            assert_allclose(found, low, atol=1e-9)


def marginal_value(learner: Any, stored: float) -> float:
    """Value of a unit more before the rounds to come, as the multiplier of what is in store in a linear program."""
    table, overall, level, errors = (learner.value(f"cost_{n}") for n in ("by_phase", "overall", "level", "errors"))
    overall, level, errors = overall[0], level[0], errors[:, 0]  # of the only season
    phi, theta, higher = (np.clip(errors[k + 1] / np.maximum(errors[k], 1e-300), 0, 1) for k in (0, 2, 4))
    costs = np.array(
        [
            overall[0]
            + higher * (level - overall[0])
            + theta * table[(learner.round - 1 + h) % HOURS][0]
            + phi ** (h + 1) * learner.value("cost_above")[0]
            for h in range(1, AHEAD + 1)
        ]
    )
    charge, discharge, s, start = (
        cp.Variable(AHEAD),
        cp.Variable(AHEAD),
        cp.Variable(AHEAD + 1),
        cp.Parameter(value=stored),
    )
    given = s[0] == start
    total = costs[:, 0] @ charge - costs[:, 1] @ discharge - overall[0].mean() * s[AHEAD]
    limits = [s[1:] == 0.99 * s[:-1] + charge - discharge, charge >= 0, charge <= 0.95 * 50, s[1:] >= 0, s[1:] <= 200]
    limits += [discharge >= 0, discharge <= 40 / 0.95]
    cp.Problem(cp.Minimize(total), [given, *limits]).solve(solver="CLARABEL")
    return float(given.dual_value)


def test_values_are_the_multipliers_of_a_linear_program_over_the_rounds_to_come() -> None:
    learner = plan_of(BATTERY).learner(backend="c" if has_compiler() else "numpy")
    for price in prices(60, 1):
        learner.decide()
        learner.observe(price=price)
    grid, values = grid_of(learner, 0, 0, 200, 0.95 * 50 + 40 / 0.95), learner.value("value")[0]
    assert (np.diff(values) <= 1e-9).all() and np.ptp(values) > 5
    for place in (3, 6, 10, 14, 17):
        expected = [marginal_value(learner, grid[place] + off) for off in (-10, 10)]
        assert expected[1] - 0.5 <= values[place] <= expected[0] + 0.5


def test_a_battery_that_is_charged_and_discharged_by_two_decisions_earns_most_of_what_foresight_does() -> None:
    T = 480
    price = prices(T, 5)
    loss = float(plan_of(BATTERY).run({"price": price}, backend="c" if has_compiler() else "numpy").loss.sum())
    c, d, s = cp.Variable(T), cp.Variable(T), cp.Variable(T + 1)
    limits = [
        s[0] == 100,
        s >= 0,
        s <= 200,
        c >= 0,
        c <= 50,
        d >= 0,
        d <= 40,
        s[1:] == 0.99 * s[:-1] + 0.95 * c - d / 0.95,
    ]
    foresight = cp.Problem(cp.Minimize(price @ (c - d)), limits).solve(solver="CLARABEL")
    assert foresight <= loss <= 0.75 * foresight


def rained(T: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.clip(np.array([20, 5]) + rng.normal(0, 4, (T, 2)), 0, 60)


def test_water_that_two_turbines_use_one_after_the_other_is_kept_for_dear_hours() -> None:
    T = 480
    price, rain = prices(T, 6), rained(T, 7)
    earned = -float(
        plan_of(RIVER).run({"price": price, "rain": rain}, backend="c" if has_compiler() else "numpy").loss.sum()
    )
    as_it_comes = float(price @ (0.3 * rain[:, 0] + 0.2 * rain.sum(axis=1)))
    u, w, a, b = cp.Variable(T), cp.Variable(T), cp.Variable(T + 1), cp.Variable(T + 1)
    limits = [u >= 0, u <= 60, w >= 5, w <= 80, a >= 0, a <= 900, b >= 0, b <= 400, a[0] == 400, b[0] == 200]
    limits += [a[1:] <= a[:-1] + rain[:, 0] - u, b[1:] <= b[:-1] + rain[:, 1] + u - w]
    foresight = cp.Problem(cp.Maximize(price @ (0.3 * u + 0.2 * w)), limits).solve(solver="CLARABEL")
    assert 1.15 * as_it_comes <= earned <= foresight
    assert earned >= 0.88 * foresight


QUEUE = """\
model queue
horizon T = 480
decision serve in box(0, 90)
stream arrivals in [0, 150]
stream price in [0, 100]
state backlog = backlog - serve + arrivals in [0, 3000] start 0
minimize 0.1 * price * serve + 0.4 * backlog
"""


def test_a_queue_waits_for_cheap_hours() -> None:
    """Less than serving at once all that waits, and than any threshold of the price of the hour a day before."""
    T, rng = 480, np.random.default_rng(4)
    arrivals = np.clip(rng.poisson(30 * (1 + 0.6 * np.sin(2 * np.pi * (np.arange(T) - 6) / HOURS))), 0, 150).astype(
        float
    )
    data = {"arrivals": arrivals, "price": prices(T, 3)}
    plan = oco.compile(oco.parse(QUEUE), data=data)
    loss = float(plan.run(data, backend="c" if has_compiler() else "numpy").loss.sum())

    def of_rule(share: float) -> float:
        backlog, total = 0.0, 0.0
        for t in range(T):
            day = data["price"][max(0, t - HOURS) : t]
            cheap = t < HOURS or data["price"][t - HOURS] <= np.quantile(day, share) or backlog > 400
            served = min(backlog, 90.0) if cheap else 0.0
            total += 0.1 * data["price"][t] * served + 0.4 * backlog
            backlog += arrivals[t] - served
        return total

    served, backlog = cp.Variable(T, nonneg=True), cp.Variable(T + 1, nonneg=True)
    follows = [backlog[0] == 0, served <= 90, backlog[1:] == backlog[:-1] - served + arrivals]
    total = 0.1 * data["price"] @ served + 0.4 * cp.sum(backlog[:-1])
    foresight = float(cp.Problem(cp.Minimize(total), follows).solve(solver="CLARABEL"))
    assert foresight <= loss <= min(map(of_rule, (0.3, 0.5, 0.7, 1.0)))


def test_what_flows_move_beside_their_own_store() -> None:
    lake, pond = stores(canonical(oco.parse(RIVER)))
    assert lake.filled.size == 1 and pond.filled.size == 2
    # A unit more in the lake takes one from the pond; one more in the pond through the upper turbine takes one from the lake.
    assert_allclose(moved_beside((lake, pond)), [[0, -1], [-1, 0], [0, 0]])


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("text", [RIVER, pytest.param(SHOPS, marks=pytest.mark.thorough)])
def test_c_decides_as_numpy_does(text: str) -> None:
    plan, T = plan_of(text), 26
    rng = np.random.default_rng(2)
    data = {"price": prices(T, 8), "rain": rained(T, 9), "sales": rng.gamma(9, 5, (T, 2))}
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    names = [n for n in data if f"stream {n}" in text]
    for k in range(T):
        for a, b in zip(*(flat(one.decide()) for one in learners), strict=True):
            assert_allclose(a, b, atol=1e-7)
        for one in learners:
            one.observe(**{n: data[n][k] for n in names})


def flat(decision: Any) -> list[Any]:
    return [np.asarray(v) for v in decision.values()] if isinstance(decision, dict) else [np.asarray(decision)]
