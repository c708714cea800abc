"""Stores whose flows data scale: which they are, values against quadratic programs with expected factors, flows against bisection."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from store_grid import grid_of

import oco
from oco.compiler.algorithms.learned_costs import SIZE_RATE
from oco.compiler.algorithms.shared_flows import SharedFlows
from oco.compiler.algorithms.store_flows import OneFlow, SeveralFlows
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.positive_parts import multiple, slopes_of
from oco.compiler.problem.stores import no_stores, stores
from oco.dsl.expressions import Call, walk

HOURS, AHEAD = 24, 24
FORMS = {
    "video": (
        """\
model video
horizon T = 100
decision rate in [0.3, 6]
stream slow in [0.05, 5]
state buffer = buffer + 4 - 4 * slow * rate in [0, 30] start 8
minimize -log(rate) + 2 * pos(rate * 4 * slow - buffer)
""",
        [-4 * 2.525],
    ),
    "buyer": (
        """\
model buyer
horizon T = 400
decision spend in [0, 40]
stream price in [0.5, 8]
stream sales in [0, 12]
state stock = stock + spend / price - sales in [0, 80] start 20
minimize spend + 12 * pos(sales - stock - spend / price) + 0.02 * stock
""",
        [(2 + 1 / 8) / 2],
    ),
    "rows": (
        """\
model rows
horizon T = 100
decision order[2] in box(0, 50)
context yields[2] in [0.5, 1]
stream sales[2] in [0, 50]
state stock[2] = stock + yields * order - sales in [0, 500] start 20
minimize sum(order) + 8 * sum(pos(sales - stock - yields * order))
""",
        [0.75, 0.75],
    ),
    "round": (
        """\
model round
horizon T = 100
decision order in box(0, 50)
stream sales in [0, 50]
state stock = stock + (1 + t % 2) * order - sales in [0, 500] start 20
minimize order + 8 * pos(sales - stock - (1 + t % 2) * order)
""",
        [1.5],
    ),
}
BATTERY = """\
model battery
horizon T = 480
decision charge in box(-30, 40)
stream price in [0, 100]
context gain in [0.4, 1.6]
state stored = 0.98 * stored + gain * charge in [0, 200] start 50
minimize price * charge + 0.1 * square(charge) + 0.3 * stored
using hedged with season = 24
"""


@pytest.mark.parametrize("form", FORMS)
def test_states_whose_flows_data_scale_are_stores(form: str) -> None:
    text, rate = FORMS[form]
    (own,) = stores(canonical(oco.parse(text)).learned)
    assert_allclose(own.rate, rate)
    assert own.changing and not {"OCO615", "OCO617"} & {d.code for d in oco.check(oco.parse(text)).warnings}


def test_where_they_move_several_stores_or_are_tied_to_others_they_are_none() -> None:
    other = "state filled = filled + spend in [0, 900] start 0\n"
    for more in (other, other.replace("spend", "0.1 * stock")):
        text = FORMS["buyer"][0].replace("minimize", f"{more}minimize filled +")
        assert "stock" in {s.state.name for s in no_stores(canonical(oco.parse(text)).learned)}


def test_products_of_other_data_are_others() -> None:
    text = FORMS["video"][0].replace("stream slow", "stream fast in [0, 1]\nstream slow")
    rows = ("4 * slow * rate - buffer", "2 * buffer - rate * 8 * slow", "4 * fast * rate - buffer")
    parsed = [canonical(oco.parse(text.replace("-log(rate)", f"norm1({r})"))).objective for r in rows]
    first, second, third = (slopes_of(_argument_of(e)) for e in parsed)
    assert_allclose(multiple(second, first), -2)
    assert multiple(third, first) == 0


def _argument_of(objective: Any) -> Any:
    """Argument of the absolute value in an expression."""
    return next(n.args[0] for n in walk(objective) if isinstance(n, Call) and n.atom in ("abs", "norm1"))


def expected(learner: Any, name: str, h: int, row: int = 0) -> float:
    """Number of the h-th round after the next, from the averages that are kept under this name."""
    table, overall, level, errors, above = (
        learner.value(f"{name}_{n}") for n in ("by_phase", "overall", "level", "errors", "above")
    )
    of_phase = table[(learner.round - 1 + h) % HOURS, :, 0]
    if row:
        return float(of_phase[row])
    phi, theta, higher = (float(np.clip(errors[k + 1] / np.maximum(errors[k], 1e-300), 0, 1)[0, 0]) for k in (0, 2, 4))
    mean, now = overall[0, 0, 0], level[0, 0]
    return float(mean + higher * (now - mean) + theta * of_phase[0] + phi ** (h + 1) * above[0, 0])


def marginal_value(learner: Any, stored: float) -> float:
    """Value of a unit more before the rounds to come, a multiplier of a quadratic program in what is decided, with expected factors."""
    cost, growth, held = (np.array([expected(learner, "cost", h, k) for h in range(1, AHEAD + 1)]) for k in range(3))
    gain = np.array([expected(learner, "scale", h) for h in range(1, AHEAD + 1)])
    x, s, start = cp.Variable(AHEAD), cp.Variable(AHEAD + 1), cp.Parameter(value=stored)
    given = s[0] == start
    total = cost @ x + cp.sum(cp.multiply(growth / 2, cp.square(x))) + held @ s[:-1]
    total -= learner.value("cost_overall")[0, 0, 0] * s[AHEAD]
    after = [s[1:] == 0.98 * s[:-1] + cp.multiply(gain, x), x >= -30, x <= 40, s[1:] >= 0, s[1:] <= 200]
    cp.Problem(cp.Minimize(total), [given, *after]).solve(solver="CLARABEL")
    return float(given.dual_value)


def test_values_are_the_multipliers_of_a_quadratic_program_with_expected_factors() -> None:
    learner, rng, t = oco.compile(oco.parse(BATTERY)).learner(backend="c"), np.random.default_rng(1), np.arange(156)
    price = 45 + 20 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, 3, 156)
    gain = 1 + 0.5 * np.sin(2 * np.pi * (t - 2) / HOURS)
    for now, of in zip(price, gain, strict=True):
        learner.decide(gain=of)
        learner.observe(price=now)
    assert_allclose(
        [expected(learner, "scale", h) for h in range(HOURS)], gain[(156 + np.arange(HOURS)) % HOURS], atol=0.1
    )
    grid, values = grid_of(learner, 0, 0, 200, 70), learner.value("value")[0]
    assert (np.diff(values) <= 1e-9).all() and np.ptp(values) > 5
    for place in (4, 10, 16):
        assert abs(values[place] - marginal_value(learner, grid[place])) <= 0.06 * np.ptp(values)


def test_what_flows_are_off_is_what_is_decided_times_the_error_of_the_factor() -> None:
    text, (rate,) = FORMS["buyer"]
    learner, rng, off = (
        oco.compile(oco.parse(f"{text}using hedged with season = 24\n")).learner(),
        np.random.default_rng(4),
        0.0,
    )
    for played in range(1, 61):
        price, factor = rng.uniform(1, 4), rate * expected(learner, "scale", 0)
        spend = float(learner.decide())
        learner.observe(price=price, sales=rng.uniform(0, 9))
        if played > 1:
            off += max(SIZE_RATE, 1 / played) * (spend * abs(1 / price - factor) - off)
    assert off > 0.1
    assert_allclose(learner.value("scale_off"), off, rtol=1e-9)


@pytest.mark.parametrize("several", [False, True])
def test_flows_of_the_round_and_the_store_have_one_price(several: bool) -> None:
    """The value before a round is where bisection finds that flows of the round, at their costs, leave a store of this value."""
    text = BATTERY.replace("+ gain * charge", "+ gain * charge - gain * sell").replace(
        "decision", "decision sell in box(0, 9)\ndecision", 1
    )
    problem = canonical(oco.parse(text if several else BATTERY)).learned
    own, kept, slope, rng = stores(problem), np.linspace(0, 200, 9), 0.3, np.random.default_rng(3)
    least, most = own[0].least, own[0].most

    def traced(t: Any, v: Any, row: Any) -> Any:
        p = Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), {}, t.lift(1))
        of = SeveralFlows if several else OneFlow
        flows = of(t, own, curved=False, kinks=False, shared=SharedFlows(p, ()), scales=4)
        return flows.at_one_price(t.constant(kept.reshape(1, -1)), lambda left: v - slope * left, row)

    run = as_numpy("one_price", traced, Type(DType.FLOAT, ()), Type(DType.FLOAT, (5, 1 + several)))
    for _ in range(20):
        v, costs, scale = rng.uniform(0, 150), rng.uniform(-20, 120, 1 + several), rng.uniform(0.3, 2, 1 + several)
        row = np.zeros((5, 1 + several))
        row[0], row[4] = costs, scale
        for k, value in zip(kept, run(np.float64(v), row)[0].ravel(), strict=True):
            low, high = -1e4, 1e4
            for _ in range(80):
                middle = (low + high) / 2
                flow = (scale * np.where(costs < middle * scale, most, least)).sum()
                low, high = (middle, high) if v - slope * (k + flow) > middle else (low, middle)
            assert_allclose(value, low, atol=1e-9)


def base_stock(price: Any, sales: Any) -> float:
    """Cost of filling the stock up to a level, the best one in hindsight of some, at the price of the last round."""
    best = np.inf
    for level in (6, 8, 10, 12, 16, 24, 32):
        stock, total, last = 20.0, 0.0, 2.0
        for now, sold in zip(price, sales, strict=True):
            spend = float(np.clip((level - stock) * last, 0, 40))
            total += spend + 12 * max(sold - stock - spend / now, 0) + 0.02 * stock
            stock, last = float(np.clip(stock + spend / now - sold, 0, 80)), now
        best = min(best, total)
    return best


def test_goods_are_bought_where_prices_are_low() -> None:
    rng, T = np.random.default_rng(0), 400
    walk = np.zeros(T)
    for k in range(1, T):
        walk[k] = 0.85 * walk[k - 1] + 0.2 * rng.standard_normal()
    price, sales = np.clip(2 * np.exp(walk), 0.5, 8), np.clip(rng.poisson(4, T), 0, 12).astype(float)
    trace = oco.compile(oco.parse(FORMS["buyer"][0])).run({"price": price, "sales": sales}, backend="c")
    assert float(trace.loss.sum()) <= base_stock(price, sales)


def test_c_values_what_is_left_as_numpy_does() -> None:
    plan, rng = oco.compile(oco.parse(FORMS["rows"][0])), np.random.default_rng(2)
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    for _ in range(32):
        yields, sales = rng.uniform(0.5, 1, 2), rng.uniform(0, 30, 2)
        assert_allclose(*(one.decide(yields=yields) for one in learners), atol=1e-7)
        for one in learners:
            one.observe(sales=sales)
    assert_allclose(*(one.value("value") for one in learners), rtol=1e-7)
