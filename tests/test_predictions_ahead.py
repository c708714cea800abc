"""Predictions of rounds to come: values of stores against quadratic programs over them, re-solved programs, and wrong forecasts."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from store_grid import grid_of

import oco

ROUNDS, SIZE, LEAST, MOST, KEEP = 25, 100.0, -25.0, 25.0, 0.98
BATTERY = """\
model battery

horizon T = 240

decision charge in box(-25, 25)

context next_price[25] in [-50, 150]
stream price in [-50, 150]
state stored = 0.98 * stored + charge in [0, 100] start 50

predict price = ahead(next_price)

minimize price * charge + 0.2 * sum_squares(charge)
"""
COLD = """\
model cold

horizon T = 240

decision cool in box(0, 2)

context outside in [0, 40]
context forecast[24] in [0, 40]
stream price in [0, 100]
state temperature = temperature + 0.04 * (outside - temperature) - cool in [2, 8] start 5

predict outside = ahead(forecast)

minimize price * cool
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def prices(T: int, seed: int) -> Any:
    """Prices of T rounds without any season, and of those after each."""
    rng = np.random.default_rng(seed)
    walk = 45 + 20 * np.sin(np.cumsum(rng.uniform(0.1, 0.5, T + ROUNDS))) + rng.normal(0, 3, T + ROUNDS)
    return walk[:T], np.stack([walk[k : k + T] for k in range(ROUNDS)], axis=1)


def cost(x: Any, price: Any) -> float:
    return float(price @ x + 0.2 * np.sum(x**2))


def program(count: int) -> tuple[Any, ...]:
    """Quadratic program over so many rounds: its prices, what is in store at first, what a unit is worth at the end, charges, first row."""
    u, s, price, first, end = (
        cp.Variable(count),
        cp.Variable(count + 1),
        cp.Parameter(count),
        cp.Parameter(),
        cp.Parameter(),
    )
    given = s[0] == first
    after = [s[1:] == KEEP * s[:-1] + u, u >= LEAST, u <= MOST, s[1:] >= 0, s[1:] <= SIZE]
    total = price @ u + 0.2 * cp.sum_squares(u) - end * s[count]
    return cp.Problem(cp.Minimize(total), [given, *after]), price, first, end, u, given


def resolved(path: Any, price: Any) -> float:
    """Cost of solving such a program each round, for the prices predicted then."""
    problem, predicted, first, end, u, _ = program(path.shape[1])
    stored, charges = 50.0, list[float]()
    for row in path:
        predicted.value, first.value, end.value = row, stored, float(row.mean())
        problem.solve(solver="CLARABEL")
        charges.append(float(np.clip(u.value[0], max(LEAST, -KEEP * stored), min(MOST, SIZE - KEEP * stored))))
        stored = KEEP * stored + charges[-1]
    return cost(np.array(charges), price)


def test_values_are_the_multipliers_of_a_quadratic_program_over_the_predicted_rounds() -> None:
    learner, (price, path) = plan_of(BATTERY).learner(backend="c"), prices(30, 1)
    for t in range(29):
        learner.decide(next_price=path[t])
        learner.observe(price=price[t])
    learner.decide(next_price=path[29])
    problem, predicted, first, end, _, given = program(ROUNDS - 1)
    predicted.value, end.value = path[29, 1:], (price[:29].sum() + path[29].sum()) / (29 + ROUNDS)
    grid, values = grid_of(learner, 0, 0, SIZE, MOST - LEAST), learner.value("value")[0]
    assert (np.diff(values) <= 1e-9).all() and np.ptp(values) > 10
    expected = list[float]()
    places = range(2, grid.size - 1, 3)
    for place in places:
        first.value = grid[place]
        problem.solve(solver="CLARABEL")
        expected.append(float(given.dual_value))
    assert np.abs(values[list(places)] - expected).mean() <= 0.06 * np.ptp(values)


@pytest.mark.parametrize("error", [0.0, 0.3])
def test_it_earns_what_a_program_solved_each_round_does(error: float) -> None:
    price, path = prices(120, 2)
    path = np.clip(path * (1 + error * np.random.default_rng(3).normal(size=path.shape)), -50, 150)
    trace = plan_of(BATTERY).run({"price": price, "next_price": path}, backend="c")
    assert trace.loss.sum() <= 0.98 * resolved(path, price)


def test_c_decides_as_numpy_does() -> None:
    price, path = prices(30, 4)
    traces = [plan_of(BATTERY).run({"price": price, "next_price": path}, backend=b) for b in ("numpy", "c")]
    np.testing.assert_allclose(traces[0].decisions, traces[1].decisions, atol=1e-7)


def test_what_is_wrong_on_average_is_learned_and_nothing_known_breaks() -> None:
    price, path = prices(240, 5)
    learned = "\n".join(line for line in BATTERY.splitlines() if "next_price" not in line)
    paid = {
        name: plan_of(text).run({"price": price, "next_price": data}, backend="c")
        for name, text, data in (
            ("right", BATTERY, path),
            ("higher", BATTERY, path + 30),
            ("opposite", BATTERY, 90 - path),
        )
    }
    paid["none"] = plan_of(learned).run({"price": price}, backend="c")
    loss = {name: trace.loss.sum() for name, trace in paid.items()}
    assert loss["right"] < 1.5 * loss["none"] < 0
    assert loss["higher"] <= 0.97 * loss["right"]
    for trace in paid.values():
        assert trace.constraints.max() <= 1e-6 and np.ptp(trace.data.array("stored")) <= SIZE + 1e-6


def test_contexts_of_rounds_to_come_move_what_is_in_store() -> None:
    T, paid = 240, np.zeros(2)
    for seed in (7, 8):
        rng = np.random.default_rng(seed)
        outside = np.repeat(rng.choice([5.0, 35.0], 22), 12)
        data = {"outside": outside[:T], "price": np.clip(rng.normal(50, 10, T), 0, 100)}
        right, wrong = np.stack([outside[k : k + T] for k in range(24)], axis=1), np.full((T, 24), 2.0)
        paid += [plan_of(COLD).run({**data, "forecast": f}, backend="c").loss.sum() for f in (right, wrong)]
    assert paid[0] <= 0.99 * paid[1]


def test_it_is_made_of_more_than_a_forecast() -> None:
    _, path = prices(40, 7)
    two = BATTERY.replace("stream price", "context other[25] in [-50, 150]\nstream price")
    two = two.replace("ahead(next_price)", "0.5 * ahead(next_price) + 0.5 * ahead(other)")
    off = np.random.default_rng(8).normal(0, 3, ROUNDS)
    mixed, one = (plan_of(text).learner(backend="c") for text in (two, BATTERY))
    mixed.decide(next_price=path[0] - off, other=path[0] + off)
    one.decide(next_price=path[0])
    np.testing.assert_allclose(mixed.value("value"), one.value("value"), atol=1e-9)


def test_text_and_builder_say_the_same() -> None:
    m = oco.Model("battery", horizon=240)
    charge = m.decision("charge", domain=oco.box(-25, 25))
    next_price = m.context("next_price", 25, bounds=(-50, 150))
    price = m.stream("price", bounds=(-50, 150))
    m.state("stored", following=lambda s: 0.98 * s + charge, bounds=(0, 100), start=50)
    m.predict(price, oco.ahead(next_price))
    m.minimize(price * charge + 0.2 * oco.sum_squares(charge))
    assert m.to_oco() == oco.parse(BATTERY).to_oco() == BATTERY


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("ahead(next_price)", "ahead(price)", "OCO220"),
        ("ahead(next_price)", "ahead(stored)", "OCO220"),
        ("ahead(next_price)", "ahead(next_price, 3)", "OCO220"),
        ("ahead(next_price)", "ahead(2 * next_price)", "OCO220"),
        ("ahead(next_price)", "next_price", "OCO219"),
        ("next_price[25]", "next_price[25, 2]", "OCO219"),
        ("next_price[25]", "next_price", "OCO220"),
        ("predict price", "predict stored", "OCO219"),
        ("predict price = ahead(next_price)", "predict next_price = last(price)", "OCO219"),
        ("minimize price", "minimize ahead(next_price)", "OCO202"),
    ],
)
def test_what_looks_not_ahead(old: str, new: str, code: str) -> None:
    with pytest.raises(oco.OcoError) as caught:
        oco.parse(BATTERY.replace(old, new))
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert caught.value.diagnostics[0].span is not None and caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("old", "new", "warned"),
    [
        ("", "", False),
        ("state stored = 0.98 * stored + charge in [0, 100] start 50\n", "", True),
        ("sum_squares(charge)\n", "sum_squares(charge)\n\nusing hedged with ahead = 1\n", True),
        ("sum_squares(charge)\n", "sum_squares(charge)\n\nusing optimistic\n", True),
        ("sum_squares(charge)\n", "sum_squares(charge)\n\nfeedback full delayed 2\n", False),
    ],
)
def test_it_is_said_where_nothing_looks_ahead(old: str, new: str, warned: bool) -> None:
    plan = plan_of(BATTERY.replace(old, new) if old else BATTERY)
    assert ("OCO616" in [d.code for d in plan.warnings]) is warned
