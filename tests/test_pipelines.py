"""Stores that orders reach rounds later: which chains of states they are, their position, its value against convex programs and laws."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_c99 import has_compiler
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.pipelines import Pipeline
from oco.compiler.problem.store_forms import StoreOfState
from oco.compiler.problem.stores import stores
from oco.dsl.evaluate import evaluate

MODEL = """model m
horizon T = 300
decision order{n} in box(0, 50)
stream sales{n} in [0, 60]
{states}
minimize 0.1 * sum(order) + sum(0.2 * pos({left}) + 3 * pos(-({left})))
"""
ONE = "state a = order in [0, 50] start 20\nstate stock = stock + a - sales in [0, 400] start 40"
TWO = """state late[2] = 0.9 * order in [0, 45] start 20
state soon[2] = late in [0, 50] start [10, 20]
state stock[2] = 0.95 * stock + 0.5 * soon - sales in [0, 400] start 40"""
QUEUE = """state way[3] = [0.8 * order, way[0], way[1]] in [0, 50] start 20
state stock = 0.9 * stock + way[2] - sales in [-200, 400] start 40"""
PIPELINES = {
    "one": (ONE, "", "stock + a - sales", 1, [1.0]),
    "two": (TWO, "[2]", "0.95 * stock + 0.5 * soon - sales", 2, [0.45, 0.45]),
    "queue": (QUEUE, "", "0.9 * stock + way[2] - sales", 3, [0.8]),
}
NONE = {
    "no room": (ONE.replace("order in [0, 50]", "order in [0, 49]"), "stock + a - sales"),
    "something is added": (ONE.replace("= order in", "= order + 1 in"), "stock + a - sales"),
    "some of it stays": (ONE.replace("= order in", "= 0.5 * a + order in"), "stock + a - sales"),
    "another loss": (ONE, "stock - sales"),
    "filled at once too": (ONE.replace("stock + a", "stock + a + order"), "stock + a + order - sales"),
}


def store_of(states: str, n: str, left: str) -> StoreOfState | None:
    """Store with a pipeline of a model; None where it has none."""
    found = stores(canonical(oco.parse(MODEL.format(n=n, states=states, left=left))).learned)
    return next((s for s in found if s.pipeline is not None), None)


@pytest.mark.parametrize("name", PIPELINES)
def test_what_is_in_store_when_an_order_has_come(name: str) -> None:
    """The states, played round by round, come to the position after the order with what is left of the drifts."""
    states, n, left, length, rate = PIPELINES[name]
    store = store_of(states, n, left)
    assert store is not None
    way, rng = store.pipeline, np.random.default_rng(2)
    assert isinstance(way, Pipeline)
    assert way.length == length
    assert_allclose(way.rate, rate)
    streams = canonical(oco.parse(MODEL.format(n=n, states=states, left=left))).streams
    own = {s.name: s for s in streams if s.uncut is not None}
    for _ in range(5):
        env: dict[str, Any] = {k: rng.uniform(5, 40, s.shape) for k, s in own.items()}
        orders = rng.uniform(0, 50, (length + 1, *store.shape))
        sales = rng.uniform(0, 10, (length + 1, *store.shape))
        position = way.of_stock * env["stock"]
        for stage in way.stages:
            position = position + stage.share * np.ravel(env[stage.state.name])[stage.entries]
        moved = evaluate(store.moved, {**env, "order": orders[0], "sales": sales[0]})
        assert_allclose(moved, way.rate.reshape(store.shape) * orders[0])
        expected = position + way.rate * orders[0].ravel()
        for k in range(length + 1):
            env |= {"order": orders[k], "sales": sales[k]}
            expected = expected + way.of_drifts[k] * np.ravel(evaluate(store.drift, env))
            env |= {s: np.asarray(evaluate(own[s].uncut, env)) for s in own}
        assert_allclose(np.ravel(env["stock"]), expected.ravel())


@pytest.mark.parametrize("name", NONE)
def test_other_chains_are_no_pipelines(name: str) -> None:
    states, left = NONE[name]
    assert store_of(states, "", left) is None


def test_constraints_on_a_stock_are_left_to_other_rules() -> None:
    text = MODEL.format(n="", states=ONE, left="stock + a - sales")
    kept = oco.parse(f"{text}subject to\n    room: stock + a + order <= 300  each round\n")
    assert all(s.pipeline is None for s in stores(canonical(kept).learned))


def test_late_states_that_are_stores_are_not_warned_of() -> None:
    text = MODEL.format(n="", states=ONE, left="stock + a - sales")
    assert not oco.check(oco.parse(text)).warnings
    warned = oco.check(oco.parse(text.replace("order in [0, 50]", "order in [0, 49]"))).warnings
    assert [d.code for d in warned] == ["OCO615"]


def test_the_warning_names_the_state_that_keeps_what_comes() -> None:
    text = (
        "model m\nhorizon T = 100\ndecision start in [0, 60]\nstream load in [0, 600]\nstate first = start in [0, 60] start 10\n"
        "state second = first in [0, 60] start 10\nstate machines = 0.9 * machines + second in [0, 600] start 100\n"
        "minimize 0.1 * start + machines + 30 * pos(load - 0.9 * machines - second)\n"
    )
    (warned,) = oco.check(oco.parse(text)).warnings
    assert warned.code == "OCO615" and "`second` through `first`" in warned.message
    assert warned.hint is not None and "below the end of `machines`" in warned.hint


AHEAD = 24
STEADY = """model m
horizon T = 100
decision order in box(0, 40)
stream price in [0, 10]
stream used in [0, 30]
state a = 0.9 * order in [0, 36] start 10
state stock = 0.95 * stock + a - used in [0, 200] start 20
minimize price * order + 0.05 * square(0.95 * stock + a - used - 20) + 4 * pos(used - a - 0.95 * stock)
using hedged with season = 24
"""


def marginal_value(stock: float, way: float, ordered: float) -> float:
    """Value of a unit more of 0.9 order, as the multiplier of it in a program over the rounds to come, with the states round by round."""
    x, s, a, u = cp.Variable(AHEAD + 1), cp.Variable(AHEAD + 3), cp.Variable(AHEAD + 3), cp.Parameter(value=ordered)
    given = 0.9 * x[0] == u
    limits = [s[0] == stock, a[0] == way, x >= 0, x[1:] <= 40, a[1 : AHEAD + 2] == 0.9 * x, a[AHEAD + 2] == 0]
    limits += [s[1:] == 0.95 * s[:-1] + a[:-1] - 12]
    left = s[2:]  # the order of this round reaches the level of the next one
    levels = cp.sum(0.05 * cp.square(left - 20) + 4 * cp.pos(-left))
    # After the last round a unit of the position has the mean cost of one.
    position = 0.95**2 * s[AHEAD + 1] + 0.95 * a[AHEAD + 1]
    total = levels + 3 * cp.sum(x[1:]) - 3 / 0.9 * position
    cp.Problem(cp.Minimize(total), [given, *limits]).solve(solver="CLARABEL")
    return float(given.dual_value)


def test_worth_of_an_order_is_the_multiplier_of_a_convex_program_over_the_rounds_to_come() -> None:
    learner = oco.compile(oco.parse(STEADY)).learner(backend="c" if has_compiler() else "numpy")
    for _ in range(30):
        learner.decide()
        learner.observe(price=3.0, used=12.0)
    learner.decide()
    assert_allclose(learner.value("order_error"), 0, atol=1e-9)
    knots, drops = (np.ravel(learner.value(f"order_{n}")) for n in ("knot", "drop"))
    slopes = float(np.ravel(learner.value("order_slope"))[0]) - np.concatenate([[0], np.cumsum(drops)])
    ends = np.concatenate([[0], knots, [36]])
    for flow, slope in zip((ends[:-1] + ends[1:]) / 2, slopes, strict=True):
        expected = marginal_value(learner.value("kept_stock"), learner.value("kept_a"), float(flow))
        assert slope == pytest.approx(expected, abs=0.015 * np.ptp(slopes))


SHOP = """model shop
horizon T = 400
decision order in box(0, 60)
stream price in [0, 10]
stream sales in [0, 40]
state soon = order in [0, 60] start 12
state stock = stock + soon - sales in [{lower}, 300] start 30
minimize price * order + 0.2 * pos(stock + soon - sales) + 3 * pos(sales - stock - soon)
using hedged with season = {season}
"""


def played(season: int, lower: int, price: Any, sales: Any) -> Any:
    """Loss of the shop by rounds."""
    plan = oco.compile(oco.parse(SHOP.format(season=season, lower=lower)))
    return plan.run({"price": price, "sales": sales}, backend="c" if has_compiler() else "numpy").loss


def paid_by_base_stock(aim: float, price: Any, sales: Any, lower: int) -> Any:
    """Loss of the shop by rounds where it orders up to a position."""
    stock, soon, paid = 30.0, 12.0, list[float]()
    for p, sold in zip(price, sales, strict=True):
        order = min(max(aim - stock - soon, 0.0), 60.0)
        left = stock + soon - sold
        paid.append(p * order + 0.2 * max(left, 0.0) + 3 * max(-left, 0.0))
        stock, soon = max(left, lower), order
    return np.array(paid)


@pytest.mark.parametrize("lower", [0, thorough(-200)])
def test_orders_come_near_the_base_stock_of_the_law(lower: int) -> None:
    """With a fixed price the best rule orders up to the quantile 3 / 3.2 of the sales of two rounds (Scarf 1960), late or lost."""
    rng = np.random.default_rng(4)
    law = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    sales, price = rng.choice([4.0, 8.0, 12.0, 16.0, 20.0], 400, p=law), np.full(400, 1.0)
    both, sums = np.convolve(law, law), np.arange(9) * 4.0 + 8.0
    aim = sums[np.searchsorted(np.cumsum(both), 3 / 3.2)]
    best, own = paid_by_base_stock(aim, price, sales, lower), played(1, lower, price, sales)
    assert own[100:].sum() <= 1.05 * best[100:].sum()


def test_what_is_needed_is_ordered_ahead_where_it_is_cheap() -> None:
    """With sales of 10 a round and a price that is low in one of four, loss is near that with foresight once it has been learned."""
    T = 400
    price, sales = np.tile([1.0, 3.0, 4.0, 3.0], T // 4), np.full(T, 10.0)
    order, stock, soon = cp.Variable(T), cp.Variable(T + 1), cp.Variable(T + 1)
    limits = [stock[0] == 30, soon[0] == 12, order >= 0, order <= 60, soon[1:] == order]
    left = stock[:-1] + soon[:-1] - sales
    limits += [stock[1:] == left, left >= 0]
    paid = cp.multiply(price, order) + 0.2 * left
    cp.Problem(cp.Minimize(cp.sum(paid)), limits).solve(solver="CLARABEL")
    best = np.asarray(paid.value)[200:360].sum()
    as_needed = paid_by_base_stock(20.0, price, sales, 0)[200:360].sum()
    own = played(4, 0, price, sales)[200:360].sum()
    assert 0.999 * best <= own <= best + 0.05 * (as_needed - best)


BATTERY = """decision charge in box(-5, 5)
stream tariff in [0, 100]
state stored = stored + charge in [0, 20] start 10
"""
BESIDE = SHOP.format(season=6, lower=0).replace("minimize ", f"{BATTERY}minimize tariff * charge + ")


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("text", [BESIDE, thorough(MODEL.format(n="[2]", states=TWO, left=PIPELINES["two"][2]))])
def test_c_and_fleets_decide_as_numpy_does(text: str) -> None:
    plan, rng = oco.compile(oco.parse(text)), np.random.default_rng(5)
    fleet, alone = plan.fleet(2, backend="c"), [plan.learner(backend=b) for b in ("numpy", "c")]
    shapes = {s.name: s.shape for s in canonical(plan.model).streams if s.uncut is None}
    for _ in range(25):
        data = {n: rng.uniform(0, 10, shape) for n, shape in shapes.items()}
        first, second = (flat(one.decide()) for one in alone)
        assert_allclose(first, second, atol=1e-7)
        assert_allclose(flat(fleet.decide()), np.repeat(second, 2), atol=1e-7)
        for one in alone:
            one.observe(**data)
        fleet.observe(**{n: np.stack([v, v]) for n, v in data.items()})


def flat(decision: Any) -> Any:
    """Decisions in one vector, each repeated in a fleet."""
    parts = decision.values() if isinstance(decision, dict) else [decision]
    return np.concatenate([np.ravel(np.transpose(v)) for v in parts])


@pytest.mark.thorough
def test_stores_of_both_kinds_are_filled_as_each_alone() -> None:
    """A battery beside a stock: what one is worth says nothing of the other."""
    alone = f"model battery\nhorizon T = 400\n{BATTERY}minimize tariff * charge\nusing hedged with season = 6\n"
    rng = np.random.default_rng(6)
    tariff = 50 + 20 * np.sin(2 * np.pi * np.arange(400) / 6) + rng.normal(0, 2, 400)
    data = {"price": np.full(400, 1.0), "sales": rng.uniform(5, 15, 400), "tariff": tariff}
    backend = "c" if has_compiler() else "numpy"
    loss = oco.compile(oco.parse(BESIDE)).run(data, backend=backend).loss
    apart = oco.compile(oco.parse(alone)).run({"tariff": tariff}, backend=backend).loss
    shop = played(6, 0, data["price"], data["sales"])
    assert loss[100:].sum() == pytest.approx(apart[100:].sum() + shop[100:].sum(), abs=0.05 * abs(apart[100:].sum()))
