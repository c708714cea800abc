"""Stores that known constraints tie to other decisions: multipliers against CVXPY's duals, costs of flows, values and decisions."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_c99 import has_compiler
from thorough import corners, thorough

import oco
from oco.compiler.algorithms.costs_to_come import filling
from oco.compiler.algorithms.row_multipliers import charged_for_rows
from oco.compiler.algorithms.shared_flows import FLOWS, SharedFlows, charged_at_decision, filling_entries, tied_known
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import has_curvature, stores
from oco.compiler.proximal.known_multipliers import UNMET, KnownMultipliers

HOURS = 24
PLANTS = """\
model plants
horizon T = 10
decision u in box(-5, 5)
decision y[3] in box(0, [4, 3, 6])
context eff in [0, 1]
context need in [0, 20]
context cap in [0, 20]
context tilt in [-5, 5]
stream c[3] in [-9, 9]
state s = s + u in [0, 50] start 20
minimize c @ y
subject to
    balance: sum(y) - eff * u >= need         each round
    joint:   y[0] + 2 * y[1] + 0.5 * u <= cap each round
    even:    y[1] - y[2] == tilt              each round
"""
HOME = """\
model home
horizon T = 900
decision charge in box(-20, 20)
decision buy in box(0, 80)
decision sell in box(0, 40)
context load in [0, 60]
context sun in [0, 60]
stream price in [0, 200]
state soc = soc + charge in [0, 80] start 40
minimize price * buy - 0.6 * price * sell
subject to
    balance: buy - sell - charge + sun >= load each round
"""
METER = HOME.replace("decision buy in box(0, 80)\ndecision sell in box(0, 40)", "decision grid in box(-40, 80)")
METER = METER.replace("price * buy - 0.6 * price * sell", "maximum(price * grid, 0.6 * price * grid)")
METER = METER.replace("buy - sell - charge", "grid - charge")
HOMES = {
    "at least": HOME,
    "equal": HOME.replace(">=", "=="),
    "discharged": HOME.replace("soc + charge", "soc - charge").replace("sell - charge", "sell + charge"),
    "one meter": METER,
}
FLEET = """\
model fleet
horizon T = 300
decision discharge[3] in box(-10, [10, 20, 10])
decision buy in box(0, 200)
context load in [0, 60]
context eff in [0, 1]
stream price in [0, 200]
state soc[3] = 0.99 * soc - discharge in [0, [80, 50, 80]] start 40
minimize price * buy
subject to
    balance: buy + eff * sum(discharge) >= load each round
"""


def problem_of(text: str) -> Any:
    return canonical(oco.parse(text)).learned


def view(t: Any, problem: Any, seen: Any) -> Problem:
    return Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), seen, t.lift(1))


def floats(*shapes: tuple[int, ...]) -> list[Type]:
    return [Type(DType.FLOAT, s) for s in shapes]


def drawn_plants(rng: Any, cost: Any) -> tuple[Any, Any, Any]:
    """Contexts, least-cost decisions of the plants for the flow that comes first in them, and what a unit of the flow costs, by CVXPY."""
    data = np.array([rng.uniform(0.8, 1), rng.uniform(3, 7), rng.uniform(4, 9), rng.uniform(-1, 1)])
    eff, need, cap, tilt = data
    u, y = rng.uniform(-2, 2), cp.Variable(3)
    balance, joint = cp.sum(y) - eff * u >= need, y[0] + 2 * y[1] + 0.5 * u <= cap
    problem = cp.Problem(cp.Minimize(cost(y)), [balance, joint, y[1] - y[2] == tilt, y >= 0, y <= [4, 3, 6]])
    problem.solve(solver="CLARABEL")
    if problem.status != "optimal":
        return drawn_plants(rng, cost)
    return data, np.array([u, *y.value]), eff * float(balance.dual_value) + 0.5 * float(joint.dual_value)


def test_multipliers_at_a_minimizer_are_the_duals_of_cvxpy() -> None:
    problem, rng, bound = problem_of(PLANTS), np.random.default_rng(3), 0

    def charged(t: Any, x: Any, g: Any, data: Any) -> Any:
        p = view(t, problem, dict(zip(("eff", "need", "cap", "tilt"), (data[i] for i in range(4)))))
        return charged_at_decision(p, Point((x[0], x[1:])), Point((g[0], g[1:]))).blocks[0]

    of = as_numpy("charged", charged, *floats((4,), (4,), (4,)))
    for _ in range(12):
        w, c = rng.uniform(0.5, 2, 3), rng.uniform(-3, 2, 3)
        data, x, expected = drawn_plants(rng, lambda y, w=w, c=c: w @ cp.square(y - c))
        slope = np.array([0.0, *(2 * w * (x[1:] - c))])
        assert_allclose(of(x, slope, data)[0], expected, atol=1e-4)
        bound += abs(expected) > 0.1
    assert bound > 6


def test_long_steps_show_the_duals_of_linear_programs_from_anywhere() -> None:
    problem, rng = problem_of(PLANTS), np.random.default_rng(4)

    def charged(t: Any, x: Any, g: Any, data: Any) -> Any:
        p = view(t, problem, dict(zip(("eff", "need", "cap", "tilt"), (data[i] for i in range(4)))))
        own = KnownMultipliers(p, tied_known(problem), Point((x[0], x[1:])), filling_entries(problem))
        return own.charged(own.of_steps(t.reshape(x, (1, 4)), Point((g[0], g[1:])), 1e4))[0][0]

    of = as_numpy("charged", charged, *floats((4,), (4,), (4,)))
    for _ in range(12):
        c = rng.normal(2, 2, 3)
        data, x, expected = drawn_plants(rng, lambda y, c=c: c @ y)
        start = np.array([x[0], *rng.uniform(0, [4, 3, 6])])
        assert_allclose(of(start, np.array([0.0, *c]), data)[0], expected, atol=2e-3 * np.linalg.norm(c))


def test_the_multiplier_of_a_cut_domain_is_beside_those_of_known_constraints() -> None:
    text = PLANTS.replace("box(0, [4, 3, 6])", "box(0, [4, 3, 6]) with [1, 2, 1] @ y <= 6").replace(
        "cap each", "20 each"
    )
    problem, rng, bound = problem_of(text), np.random.default_rng(5), 0

    def charged(t: Any, x: Any, minus: Any, data: Any) -> Any:
        p = view(t, problem, dict(zip(("eff", "need", "tilt"), (data[i] for i in (0, 1, 3)))))
        return charged_for_rows(
            p, Point((x[0], x[1:])), lambda x: Point((x.blocks[0] * 0.0, x.blocks[1] - minus))
        ).blocks[1]

    of = as_numpy("charged", charged, *floats((4,), (3,), (4,)))
    for _ in range(16):
        data, c = np.array([0.9, rng.uniform(3, 7), 20.0, rng.uniform(-1, 1)]), rng.uniform(0, 6, 3)
        u, y = rng.uniform(-2, 2), cp.Variable(3)
        row, balance, even = y[0] + 2 * y[1] + y[2] <= 6, cp.sum(y) - 0.9 * u >= data[1], y[1] - y[2] == data[3]
        made = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(y - c)), [row, balance, even, y >= 0, y <= [4, 3, 6]])
        made.solve(solver="CLARABEL")
        if made.status != "optimal":
            continue
        at = np.array(y.value)
        if min(at.min(), (np.array([4, 3, 6]) - at).min()) > 1e-3:
            assert_allclose(of(np.array([u, *at]), c, data)[0], float(row.dual_value) * np.array([1, 2, 1]), atol=2e-3)
            bound += float(row.dual_value) > 0.1
    assert bound > 3


@pytest.mark.parametrize("name", corners(HOMES, ["discharged", "one meter"]))
def test_flows_cost_the_slope_of_what_the_others_pay(name: str) -> None:
    """0.6 of the price where the house sells, the price where it buys, however the model says it and whatever was decided."""
    problem, rng, sides = problem_of(HOMES[name]), np.random.default_rng(5), set()
    sizes = [b.domain.size for b in problem.blocks]

    def charged(t: Any, x: Any, data: Any) -> Any:
        p = view(t, problem, dict(zip(("load", "sun", "price"), (data[i] for i in range(3)))))
        own = Point(tuple(x[i] for i in range(len(sizes))))
        middle, above = SharedFlows(p, stores(problem)).charged(p, own, filling(p).gradient(own), filling(p).gradient)
        return t.concat(middle, *(middle + a for a in above))

    of = as_numpy("charged", charged, *floats((len(sizes),), (3,)))
    way = -1.0 if name == "discharged" else 1.0
    for _ in range(6):
        load, sun, price = rng.uniform(0, 60), rng.uniform(0, 35), rng.uniform(20, 200)
        x = np.array([rng.uniform(d.domain.lower, d.domain.upper) for d in problem.blocks], dtype=float).ravel()
        middle, *costs = way * of(x, np.array([load, sun, price]))[0]
        flows = np.linspace(-20, 20, FLOWS) * (1 - 2 * 0.0137)
        expected = np.where(load - sun + flows > 0, price, 0.6 * price)
        assert_allclose(costs, expected, rtol=2e-2)
        assert middle == pytest.approx(expected[FLOWS // 2], rel=2e-2)
        sides |= set(np.round(expected / price, 1))
    assert sides == {0.6, 1.0}


def test_a_row_that_nothing_meets_has_a_finite_multiplier() -> None:
    problem = problem_of(HOME)

    def charged(t: Any, x: Any, load: Any) -> Any:
        p = view(t, problem, {"load": load, "sun": t.lift(0.0), "price": t.lift(50.0)})
        own = Point((x[0], x[1], x[2]))
        return charged_at_decision(p, own, p.gradient(own)).blocks[0]

    of, slope = as_numpy("charged", charged, *floats((3,), ())), np.hypot(50, 30)
    cost = of(np.array([20.0, 80.0, 0.0]), np.array(90.0))[0]
    assert 50 < cost <= UNMET * slope * (1 + 1e-9)


def test_costs_between_flows_are_interpolated_and_do_not_fall() -> None:
    problem, rng = problem_of(FLEET), np.random.default_rng(6)
    least, most = np.array([[-10, -20, -10], [10, 10, 10]], dtype=float)
    flow = np.sort(rng.uniform(least.reshape(3, 1), most.reshape(3, 1), (3, 7)))
    learned = rng.normal(size=(FLOWS, 3))
    of = as_numpy(
        "above", lambda t, v: SharedFlows(view(t, problem, {}), stores(problem)).above(v, flow), *floats((FLOWS, 3))
    )
    rising = np.maximum.accumulate(learned)
    at = np.linspace(least, most, FLOWS)
    assert_allclose(of(learned)[0], [np.interp(flow[j], at[:, j], rising[:, j]) for j in range(3)], atol=1e-12)


def test_losses_of_single_entries_of_a_vector_have_no_curvature() -> None:
    text = PLANTS.replace("c @ y", "c[0] * y[0] + 2 * y[1]")
    assert not has_curvature(problem_of(text))
    assert has_curvature(problem_of(text.replace("y[1]\n", "square(y[1])\n")))


def days(T: int, seed: int) -> dict[str, Any]:
    """Load, sun and price of a house, (T,) each."""
    rng, t = np.random.default_rng(seed), np.arange(T)
    price = np.clip(60 + 25 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, 8, T), 1, 200)
    load = np.clip(18 + 8 * np.sin(2 * np.pi * (t - 12) / HOURS) + rng.normal(0, 3, T), 0, 60)
    sun = np.maximum(40 * np.sin(2 * np.pi * (t - 6) / HOURS), 0) * rng.uniform(0.3, 1, T)
    return {"load": load, "sun": sun, "price": price}


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def decided(text: str, data: dict[str, Any], backend: str) -> dict[str, Any]:
    """Decisions by name over the rounds of data, of which the price comes afterwards."""
    learner, made = plan_of(text).learner(backend=backend), []
    for k in range(data["price"].size):
        made.append(learner.decide(**{n: v[k] for n, v in data.items() if n != "price"}))
        learner.observe(price=data["price"][k])
    return {n: np.array([x[n] for x in made]) for n in made[0]}


def least_cost(data: dict[str, Any]) -> float:
    """Cost of the house with foresight."""
    T = data["price"].size
    charge, buy, sell = cp.Variable(T), cp.Variable(T, nonneg=True), cp.Variable(T, nonneg=True)
    soc = 40 + cp.cumsum(charge)
    rows = [cp.abs(charge) <= 20, buy <= 80, sell <= 40, soc >= 0, soc <= 80]
    rows.append(buy - sell - charge + data["sun"] >= data["load"])
    return float(cp.Problem(cp.Minimize(data["price"] @ (buy - 0.6 * sell)), rows).solve(solver="HIGHS"))


def cost_of_thresholds(data: dict[str, Any], low: float, high: float) -> float:
    """Cost of a house that charges below a quantile of the prices of three days and serves itself above another one."""
    soc, total, price = 40.0, 0.0, data["price"]
    for k in range(price.size):
        net, past = data["load"][k] - data["sun"][k], price[max(0, k - 72) : k]
        ends = np.quantile(past, [low, high]) if k >= HOURS else (0.0, 1e9)
        wanted = 20.0 if price[k - HOURS] <= ends[0] else -net if price[k - HOURS] >= ends[1] else max(-net, 0.0)
        flow = float(np.clip(wanted if k >= HOURS else 0.0, max(-20, -soc), min(20, 80 - soc)))
        soc, total = soc + flow, total + price[k] * (net + flow) * (1.0 if net + flow > 0 else 0.6)
    return total


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", [thorough("at least"), "one meter"])
def test_a_house_saves_most_of_what_foresight_saves(name: str) -> None:
    data = days(900, 7)
    x = decided(HOMES[name], data, "c")
    sold = x["sell"] if "sell" in x else np.maximum(-x["grid"], 0)
    cost = data["price"] @ ((x["buy"] if "buy" in x else np.maximum(x["grid"], 0)) - 0.6 * sold)
    net = data["load"] - data["sun"]
    without, least = data["price"] @ np.where(net > 0, net, 0.6 * net), least_cost(data)
    rules = [cost_of_thresholds(data, a, 1 - b) for a in (0.1, 0.2, 0.3) for b in (0.2, 0.35, 0.5)]
    assert without - cost > 0.6 * (without - least)
    assert cost < min(rules)


@pytest.mark.thorough
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_a_battery_behind_a_meter_that_counts_both_ways_earns_what_it_earns_alone() -> None:
    data = days(600, 8)
    behind = HOME.replace("buy in box(0, 80)", "buy in box(-80, 80)").replace("sell in box(0, 40)", "sell in box(0, 1)")
    x = decided(behind.replace("0.6 * price * sell", "0 * sell"), data, "c")
    earned = data["price"] @ (data["load"] - data["sun"] - x["buy"])
    alone = "model m\nhorizon T = 900\ndecision charge in box(-20, 20)\nstream price in [0, 200]\n"
    alone += "state soc = soc + charge in [0, 80] start 40\nminimize price * charge\n"
    learner, paid = oco.compile(oco.parse(alone)).learner(backend="c"), 0.0
    for price in data["price"]:
        paid += price * float(learner.decide())
        learner.observe(price=price)
    assert earned > 0.95 * -paid > 0


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize(
    "text", [METER, thorough(HOMES["equal"]), thorough(FLEET)], ids=["one meter", "equal", "fleet"]
)
def test_numpy_and_c_decide_alike(text: str) -> None:
    data = days(26, 9)  # a day, and into the next
    if "eff" in text:
        data = {"load": data["load"], "eff": np.linspace(0.8, 1, 26), "price": data["price"]}
    one, other = (decided(text, data, backend) for backend in ("numpy", "c"))
    for name, made in one.items():
        assert_allclose(made, other[name], atol=1e-7)
