"""Value of what a round leaves in stores: against quadratic programs over the rounds to come, rules of practice and perfect foresight."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from store_grid import grid_of

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores

HOURS, AHEAD = 24, 24
BATTERY = """\
model battery

horizon T = 480

index zone = [north, south]

decision charge[zone] in box(-[30, 50], [40, 50])

stream price[zone] in [0, 100]
state stored[zone] = 0.98 * stored + [1, 0.9] * charge in [0, [200, 300]] start [50, 100]

minimize price @ charge + 0.1 * sum_squares(charge) + 0.3 * sum(stored)

using hedged with season = 24
"""
COLD = """\
model cold

horizon T = 480

decision cool in box(0, 2)

stream price in [0, 100]
context outside in [0, 40]
state temperature = temperature + 0.04 * (outside - temperature) - cool in [2, 8] start 5

minimize price * cool
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def prices(T: int, noise: float, seed: int) -> Any:
    rng, t = np.random.default_rng(seed), np.arange(T)
    return np.clip(45 + 20 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, noise, T), 0, 100)


def expected_costs(learner: Any, h: int) -> Any:
    """Cost of a unit, its growth and that of holding one, (3, m), of the h-th round after the next, from the averages that are kept."""
    table, overall, level, errors = (learner.value(f"cost_{n}") for n in ("by_phase", "overall", "level", "errors"))
    overall, level, errors = overall[0], level[0], errors[:, 0]  # of the only season
    phi, theta, higher = (np.clip(errors[k + 1] / np.maximum(errors[k], 1e-300), 0, 1) for k in (0, 2, 4))
    row = table[(learner.round - 1 + h) % HOURS]
    cost = overall[0] + higher * (level - overall[0]) + theta * row[0] + phi ** (h + 1) * learner.value("cost_above")[0]
    return np.stack([cost, row[1], row[2]])


def marginal_value(learner: Any, store: int, stored: float) -> float:
    """Value of a unit more before those rounds, as the multiplier of what is in store in a quadratic program."""
    costs = np.array([expected_costs(learner, h)[:, store] for h in range(1, AHEAD + 1)])
    least, most = ((-30, 40), (-45, 45))[store]
    u, s, start = cp.Variable(AHEAD), cp.Variable(AHEAD + 1), cp.Parameter(value=stored)
    given = s[0] == start
    total = costs[:, 0] @ u + cp.sum(cp.multiply(costs[:, 1] / 2, cp.square(u))) + costs[:, 2] @ s[:-1]
    total -= learner.value("cost_overall")[0, 0, store] * s[AHEAD]
    after = [s[1:] == 0.98 * s[:-1] + u, u >= least, u <= most, s[1:] >= 0, s[1:] <= (200, 300)[store]]
    cp.Problem(cp.Minimize(total), [given, *after]).solve(solver="CLARABEL")
    return float(given.dual_value)


def test_values_are_the_multipliers_of_a_quadratic_program_over_the_rounds_to_come() -> None:
    learner, price = (
        plan_of(BATTERY).learner(backend="c"),
        np.stack([prices(60, 3, 1), prices(60, 3, 2)[::-1]], axis=1),
    )
    for row in price:
        learner.decide()
        learner.observe(price=row)
    for store, size in enumerate((200, 300)):
        grid, values = grid_of(learner, store, 0, size, (70, 90)[store]), learner.value("value")[store]
        assert (np.diff(values) <= 1e-9).all() and np.ptp(values) > 5
        for place in (4, 10, 16):
            expected = marginal_value(learner, store, grid[place])
            assert abs(values[place] - expected) <= 0.06 * np.ptp(values)


def test_c_values_what_is_left_as_numpy_does() -> None:
    plan, price = plan_of(BATTERY), np.stack([prices(32, 5, 3), prices(32, 5, 4)], axis=1)
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    for row in price:
        decided = [one.decide() for one in learners]
        np.testing.assert_allclose(*decided, atol=1e-7)
        for one in learners:
            one.observe(price=row)
    np.testing.assert_allclose(*(one.value("value") for one in learners), rtol=1e-7)


def rule_of_hand(price: Any, outside: Any) -> float:
    """Cost of cooling as fast as it goes where the price of a day ago was among the lower half of that day, else as is needed."""
    best = np.inf
    for share in (0.2, 0.3, 0.4, 0.5, 0.6):
        temperature, total = 5.0, 0.0
        for t, now in enumerate(price):
            warm, day = 0.96 * temperature + 0.04 * outside[t], price[max(0, t - HOURS) : t]
            cheap = t >= HOURS and price[t - HOURS] < np.quantile(day, share)
            cool = min(2.0, max(warm - (2.0 if cheap else 8.0), 0.0))
            total, temperature = total + now * cool, warm - cool
        best = min(best, total)
    return best


def test_a_cold_store_cools_in_cheap_hours() -> None:
    T, t = 480, np.arange(480)
    price, outside = prices(T, 4, 5), 22 + 8 * np.sin(2 * np.pi * (t - 9) / HOURS)
    plan = oco.compile(oco.parse(COLD), data={"price": price, "outside": outside})
    assert plan.algorithm == "hedged" and plan.settings["season"].value == HOURS
    trace = plan.run({"price": price, "outside": outside}, backend="c")
    assert trace.data.array("temperature").max() <= 8 + 1e-6 and trace.constraints.max() <= 1e-6
    x, s = cp.Variable(T), cp.Variable(T + 1)
    follows = s[1:] == 0.96 * s[:-1] + 0.04 * outside - x
    foresight = cp.Problem(cp.Minimize(price @ x), [s[0] == 5, follows, s >= 2, s <= 8, x >= 0, x <= 2])
    foresight.solve(solver="CLARABEL")
    loss = float(trace.loss.sum())
    assert foresight.value <= loss <= 1.1 * foresight.value
    assert loss <= rule_of_hand(price, outside)


@pytest.mark.parametrize(
    ("following", "rest", "count"),
    [
        ("stored + x", "", 1),
        ("0.9 * stored + load - 2 * x", "", 1),
        ("stored + x - price", "", 0),  # what follows is known only afterwards
        ("stored + load * x", "", 1),
        ("stored + price * x", "", 0),  # of no known sign
        ("stored + x + y", "", 1),
        ("stored + x * y", "", 0),
        ("stored + x", "subject to\n    late: stored + x >= load  each round\n", 0),
    ],
)
def test_states_that_are_stores(following: str, rest: str, count: int) -> None:
    text = f"""model m
horizon T = 100
decision x in box(-1, 1)
decision y in box(-1, 1)
context load in [0, 1]
stream price in [-1, 1]
state stored = {following} in [0, 10] start 5
minimize price * x + y ** 2
{rest}"""
    assert len(stores(canonical(oco.parse(text)).learned)) == count


def test_a_horizon_of_one_round_values_nothing() -> None:
    plan = plan_of(BATTERY.replace("season = 24", "ahead = 1"))
    assert not any(f.name.startswith("cost_") for f in plan.program.state)
    assert plan.guarantee is not None and not plan.withheld and plan_of(BATTERY).guarantee is None


def test_a_stated_season_costs_nothing_where_prices_have_none() -> None:
    """Levels that change, as in weeks of heat, and at no phase of a season: they count beside the season."""
    level, rng = np.repeat([30.0, 60.0, 40.0, 70.0, 35.0], [70, 125, 83, 111, 91]), np.random.default_rng(7)
    price = np.stack([np.clip(level + rng.normal(0, 10, 480), 0, 100)] * 2, axis=1)
    losses = [
        float(plan_of(BATTERY.replace("season = 24", f"season = {k}")).run({"price": price}, backend="c").loss.sum())
        for k in (1, 24)
    ]
    assert losses[1] <= losses[0] + 0.05 * abs(losses[0])
