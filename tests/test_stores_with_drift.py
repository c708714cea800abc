"""Stores that streams move: what keeps their range, the value where the range is cut, and runs against rules of practice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import KNOTS, cut_names, knot_names, slope_name, stores, valued, without_outside
from oco.dsl.evaluate import evaluate

MODEL = """model m
horizon T = 100
decision x in box(0, 8)
stream price in [0, 1]
stream draw in [0, 5]
state stock = stock + x - draw in [0, 10] start 5
minimize {loss}
{rest}"""
INVENTORY = """model inventory
horizon T = 500
decision order in box(0, 60)
context cost in [1, 7]
stream demand in [0, 60]
state stock = stock + order - demand in [0, 120] start 20
minimize cost * order + 0.1 * (stock + order) + 8 * pos(demand - stock - order)
"""
TOWER = """model tower
horizon T = 500
decision pump in box(0, 60)
stream price in [0.02, 0.6]
stream draw in [0, 55]
state level = level + pump - draw in [0, 400] start 200
minimize 0.5 * price * pump
subject to
    least: level + pump - draw >= 40   each round
    most:  level + pump - draw <= 400  each round
"""


@pytest.mark.parametrize(
    ("loss", "rest", "lower", "upper", "paid", "wasted", "charged"),
    [
        ("price * x", "stock + x - draw >= 2 each round", 2, 10, 0, 1, 0),
        ("price * x", "3 * draw <= 3 * x + 3 * stock - 6 each round; stock + x - draw <= 9 each round", 2, 9, 0, 0, 0),
        ("price * x", "draw - x - stock <= -1 in 90% of rounds", 1, 10, 0, 1, 0),
        ("x + 7 * pos(draw - stock - x)", "", 0, 10, 7, 1, 0),
        ("x + 7 * maximum(0, draw - stock - x)", "", 0, 10, 7, 1, 0),
        ("x - 7 * minimum(draw, stock + x)", "", 0, 10, 7, 1, 0),
        ("x + 7 * pos(draw - stock - x) + 2 * pos(stock + x - draw - 10)", "", 0, 10, 7, 1, 2),
        ("x + 7 * pos(draw - stock - x) + 2 * maximum(stock + x - draw, 10)", "", 0, 10, 7, 1, 2),
        ("x + 7 * pos(draw - stock - x) + price * pos(stock + x - draw - 10)", "", 0, 10, 7, 1, 0),
    ],
)
def test_what_keeps_the_range(
    loss: str, rest: str, lower: float, upper: float, paid: float, wasted: float, charged: float
) -> None:
    lines = "".join(f"    c{i}: {c}\n" for i, c in enumerate(rest.split("; "))) if rest else ""
    text = MODEL.format(loss=loss, rest=f"subject to\n{lines}" if rest else "")
    (store,) = stores(canonical(oco.parse(text)).learned)
    ends = store.ends
    assert [float(v[0]) for v in (ends.lower, ends.upper, ends.paid, ends.wasted, ends.charged)] == [
        lower,
        upper,
        paid,
        wasted,
        charged,
    ]


@pytest.mark.parametrize(
    ("loss", "rest"),
    [
        ("price * x", ""),  # what is missing is lost, and costs nothing
        ("x + 7 * pos(draw - stock - x - 1)", ""),  # paid before anything is missing
        ("x + price * pos(draw - stock - x)", ""),
        ("x + square(pos(draw - stock - x))", ""),
        ("price * x", "subject to\n    c: stock + x - draw >= 2 on average\n"),
        ("price * x", "subject to\n    c: stock + x - 2 * draw >= 2 each round\n"),
        ("x + 7 * pos(draw - stock - x)", "subject to\n    c: stock + x >= 3 * price each round\n"),
    ],
)
def test_states_whose_range_nothing_keeps_are_no_stores(loss: str, rest: str) -> None:
    assert not stores(canonical(oco.parse(MODEL.format(loss=loss, rest=rest))).learned)


def test_the_valued_loss_is_the_loss_less_the_value_of_what_the_cut_leaves() -> None:
    problem = canonical(oco.parse(MODEL.format(loss="price * x + 0.3 * stock + 7 * pos(draw - stock - x)", rest="")))
    (store,), rng = stores(problem.learned), np.random.default_rng(3)
    own, bare = valued(problem.learned).objective, without_outside(problem.learned).objective
    slope, drops, knots = 4.0, rng.uniform(0, 0.5, KNOTS), np.sort(rng.uniform(1, 9, KNOTS))
    short, over = cut_names(store)
    env: dict[str, Any] = {slope_name(store): slope, short: slope, over: slope - drops.sum(), "price": 0.4}
    for k in range(KNOTS):
        env |= dict(zip(knot_names(store, k), (knots[k], drops[k]), strict=True))

    def value(s: float) -> float:
        return float(slope * s - drops @ np.maximum(s - knots, 0))

    at, losses = np.linspace(0, 8, 41), list[float]()
    for stock, draw in ((0.5, 5.0), (4.0, 2.0), (9.0, 0.5)):
        for x in at:
            here = env | {"x": x, "stock": stock, "draw": draw}
            z = stock + x - draw
            filling = 0.4 * x + 0.3 * stock
            losses.append(float(evaluate(own, here)))
            assert float(evaluate(bare, here)) == pytest.approx(filling)
            assert losses[-1] == pytest.approx(filling + 7 * max(-z, 0) - value(min(max(z, 0), 10)))
        assert (np.diff(losses[-at.size :], 2) >= -1e-9).all()


def test_learners_say_that_what_is_left_is_an_estimate() -> None:
    plan = oco.compile(oco.parse(TOWER))
    assert plan.guarantee is None and plan.withheld == "what is left in `level` has a value, which is an estimate"
    assert plan.contract.guarantee[0] == f"No guarantee: {plan.withheld}."


def base_stock(demand: Any, cost: Any) -> float:
    """Loss of the best of rules that order up to a quantile of the demand of the same days of the week."""
    best = np.inf
    for q in (0.5, 0.7, 0.8, 0.9, 0.95, 0.98):
        stock, total = 20.0, 0.0
        for t, (d, c) in enumerate(zip(demand, cost, strict=True)):
            days = demand[t % 7 : t : 7][-10:] if t >= 7 else demand[: max(t, 1)]
            order = min(max(np.quantile(days, q) - stock, 0.0), 60.0)
            total += c * order + 0.1 * (stock + order) + 8 * max(d - stock - order, 0.0)
            stock = min(max(stock + order - d, 0.0), 120.0)
        best = min(best, total)
    return best


@pytest.mark.thorough
def test_stock_is_ordered_ahead_where_orders_are_cheap() -> None:
    T, rng = 500, np.random.default_rng(8)
    week = np.array([15, 14, 13, 15, 21, 27, 10.0])[np.arange(T) % 7]
    demand = np.minimum(week * np.where(np.arange(T) < 250, 1.0, 1.5) * rng.gamma(14, 1 / 14, T), 60)
    swings = np.zeros(T)
    for t in range(1, T):
        swings[t] = 0.9 * swings[t - 1] + 0.44 * rng.normal()
    cost = np.clip(3.5 + swings, 1, 7)
    data = {"cost": cost, "demand": demand}
    plan = oco.compile(oco.parse(INVENTORY), data=data)
    loss = float(plan.run(data, backend="c").loss.sum())
    assert plan.algorithm == "hedged" and loss <= base_stock(demand, cost)


def test_a_tower_is_filled_in_cheap_hours() -> None:
    T, rng, t = 500, np.random.default_rng(9), np.arange(500)
    price = np.clip(0.2 + 0.1 * np.sin(2 * np.pi * (t - 9) / 24) + 0.02 * rng.normal(size=T), 0.02, 0.6)
    draw = np.clip((14 + 8 * np.sin(2 * np.pi * (t - 6) / 24)) * rng.gamma(25, 1 / 25, T), 0, 55)
    data = {"price": price, "draw": draw}
    trace = oco.compile(oco.parse(TOWER), data=data).run(data, backend="c")
    even = 0.5 * float(price @ draw)  # pumping what is drawn, as it is drawn
    assert float(trace.loss.sum()) <= 0.8 * even
    assert (trace.constraints.max(axis=1) > 1e-6).mean() <= 0.01


NIGHTS = """model tower
horizon T = 336
param tariff[24] = [40, 40, 40, 40, 40, 40, 80, 120, 120, 120, 120, 90, 90, 90, 90, 90, 120, 160, 160, 160, 120, 80, 40, 40]
decision pump in box(0, 5)
stream demand in [0, 6]
state level = level + pump - demand in [0, 20] start 10
minimize tariff[(t - 1) % 24] * pump + 400 * pos(demand - level - pump)
"""


def test_a_tower_with_a_tariff_by_the_hour_pays_less_than_filling_it_at_night() -> None:
    """The model reads its season by the round; no data are seen before the run, and nothing else says what is known of a round."""
    T, rng = 336, np.random.default_rng(0)
    hour = np.arange(T) % 24
    daily = 1.6 * (1 + 0.5 * np.sin((hour - 7) * np.pi / 6)) * (hour > 4)
    demand = np.clip(daily + 0.4 + rng.normal(0, 0.4, T), 0, 6)
    model = oco.parse(NIGHTS)
    tariff = np.asarray(next(p.data for p in model.params if p.name == "tariff"))[hour]

    def paid(pump: Any) -> float:
        """Cost of hours in which pump(hour, level) is pumped."""
        level, total = 10.0, 0.0
        for t, (price, d) in enumerate(zip(tariff, demand, strict=True)):
            x = float(np.clip(pump(t, level), 0, 5))
            total += price * x + 400 * max(d - level - x, 0)
            level = min(max(level + x - d, 0), 20)
        return total

    def filling(top: float, low: float) -> float:
        return paid(lambda t, level: (top if tariff[t] == 40 else low) - level + 2)

    plan = oco.compile(model)
    assert plan.algorithm == "hedged" and plan.season == 24 and "by the round" in plan.settings["season"].why
    own = plan.run({"demand": demand}, backend="c")
    assert own.loss.sum() == pytest.approx(paid(lambda t, level: own.decisions.ravel()[t]), rel=1e-9)
    assert own.loss.sum() < 0.95 * min(filling(top, low) for top in range(8, 21, 2) for low in (1, 2, 3, 4, 6))


def test_the_season_by_which_a_stream_is_predicted_is_that_of_the_store() -> None:
    text = TOWER.replace("minimize", "predict price = 0.5 * last(price) + 0.5 * season(price, 12)\nminimize")
    assert oco.compile(oco.parse(text)).season == 12
    assert oco.compile(oco.parse(text.replace("12)", "300)"))).season == 1  # does not come twice


@pytest.mark.parametrize(
    ("price", "season"),
    [
        ("tariff[(t + 5) % 24]", 24),
        ("tariff[t % 12] + tariff[t % 24]", 24),
        ("tariff[(2 * t) % 24]", 1),  # repeats itself sooner
        ("1 + t % 200", 1),  # does not come twice
        ("40", 1),
    ],
)
def test_the_season_that_a_model_reads_by_the_round(price: str, season: int) -> None:
    text = NIGHTS.replace("tariff[(t - 1) % 24]", f"({price})")
    assert oco.compile(oco.parse(text)).season == season
    without = "\n".join(line for line in text.splitlines() if not line.startswith("state"))
    without = without.replace("demand - level - pump", "demand - pump")
    assert oco.compile(oco.parse(without)).season == 1  # nothing is left to later rounds
