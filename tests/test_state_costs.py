"""Costs of levels alone: which parts of a loss they are, their slopes, and values of stores that have them against convex programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from store_grid import grid_of

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.state_costs import LEVEL, level_name, slope_of_costs
from oco.compiler.problem.stores import state_costs, stores, without_outside
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name

AHEAD = 24
MODEL = """model m
horizon T = 100
decision x[2] in box(-3, 8)
context gain in [0, 1]
stream price in [0, 1]
state level[2] = 0.9 * level + [1, 2] * x - 1 in [0, [10, 20]] start 5
minimize price * sum(x) + {loss}
"""
PRICE, GAIN = 0.7, 0.4
LEFT = "0.9 * level + [1, 2] * x - 1"
Level = Callable[[Any], Any]
CASES: dict[str, tuple[str, Level | None, Level | None]] = {
    "kink": (f"7 * sum(pos({LEFT} - [6, 9]))", lambda z: 7 * np.maximum(z - [6, 9], 0), None),
    "multiple": (f"sum(pos(3 - 2 * ({LEFT})))", lambda z: np.maximum(3 - 2 * z, 0), None),
    "size": (f"norm1({LEFT} - 4)", lambda z: abs(z - 4), None),
    "squares": (f"0.5 * sum_squares({LEFT} - 4)", lambda z: 0.5 * (z - 4) ** 2, None),
    "square of a kink": (f"sum(square(pos(4 - ({LEFT}))))", lambda z: np.maximum(4 - z, 0) ** 2, None),
    "maximum": (f"2 * sum(maximum({LEFT}, 6))", lambda z: 2 * np.maximum(z, 6), None),
    # The larger piece exceeds the other by [z - 6]_+, though both are of what is decided.
    "two pieces": ("sum(maximum([1, 2] * x, 7 - 0.9 * level))", lambda z: np.maximum(z - 6, 0), None),
    "of the state": ("3 * sum(square(level - 2))", None, lambda s: 3 * (s - 2) ** 2),
    "both": (
        f"sum(pos(level - 8)) + [1, 3] @ pos({LEFT} - 8)",
        lambda z: [1, 3] * np.maximum(z - 8, 0),
        lambda s: np.maximum(s - 8, 0),
    ),
    "by the round's price": (f"price * sum(pos({LEFT} - 6))", lambda z: PRICE * np.maximum(z - 6, 0), None),
    "beside data": (f"sum(pos({LEFT} - 6 * gain))", lambda z: np.maximum(z - 6 * GAIN, 0), None),
    "of the state, by the round's price": ("price * sum(square(level - 2))", None, None),
    "beside what is decided": (f"sum(pos({LEFT} - 6 * x))", None, None),
    "affine": (f"sum({LEFT}) + 0.1 * sum(level)", None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_loss_says_of_levels_alone(name: str) -> None:
    """The loss less its other part is the cost of levels, and their slopes are difference quotients of it, at random points."""
    loss, left, held = CASES[name]
    problem = canonical(oco.parse(MODEL.format(loss=loss))).learned
    ((store,), (costs,)), rng = (stores(problem), state_costs(problem)), np.random.default_rng(3)
    assert [any(c.left for c in costs), any(not c.left for c in costs)] == [left is not None, held is not None]
    bare = without_outside(problem).objective
    for _ in range(20):
        x, s = rng.uniform(-3, 8, 2), rng.uniform(0, [10, 20])
        env = {"x": x, "level": s, "price": PRICE, "gain": GAIN}
        z = 0.9 * s + [1, 2] * x - 1
        known = sum(float(np.sum(f(v))) for f, v in ((left, z), (held, s)) if f)
        rest = float(evaluate(problem.objective, env)) - float(evaluate(bare, env))
        assert rest == pytest.approx(known, abs=1e-9)
    for is_left, f in ((True, left), (False, held)):
        if f is None:
            continue
        at, step = rng.uniform(-5, 25, (9, 2)), 1e-6
        own = slope_of_costs([c for c in costs if c.left == is_left], level_name(9, store.state))
        slopes = np.broadcast_to(evaluate(own, {LEVEL: at, "price": PRICE, "gain": GAIN}), at.shape)
        assert_allclose(slopes, (np.asarray(f(at + step)) - f(at - step)) / (2 * step), atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "slope"),
    [
        # Where a level hardly changes within a round, a little of it beside what is left counts as that.
        (f"2 * sum(pos({LEFT} + 0.05 * level - 6))", lambda v: 2 * 1.05 * (1.05 * v > 6)),
        # Convex within the range alone: beyond it the slope is that at the end.
        (f"-price * sum(log(2 + {LEFT}))", lambda v: -PRICE / (2 + np.clip(v, 0, [10, 20]))),
    ],
)
def test_slopes_of_what_is_nearly_of_the_level(loss: str, slope: Any) -> None:
    problem = canonical(oco.parse(MODEL.format(loss=loss))).learned
    ((store,), (costs,)) = stores(problem), state_costs(problem)
    at = np.random.default_rng(5).uniform(-5, 25, (9, 2))
    own = evaluate(slope_of_costs(costs, level_name(9, store.state)), {LEVEL: at, "price": PRICE})
    assert_allclose(np.broadcast_to(own, at.shape), slope(at), atol=1e-9)


MOVED = """model m
horizon T = 100
decision start[2] in box(0, 60)
stream load[2] in [0, 600]
state booting[2] = start in [0, 60] start 10
state machines[2] = [0.9, 0.8] * machines + [1, 0.5] * booting in [0, 600] start 100
minimize 0.1 * sum(start) + sum(machines) + 30 * sum(pos(load - 2 * ([0.9, 0.8] * machines + [1, 0.5] * booting{beside})))
"""


@pytest.mark.parametrize(("beside", "known"), [("", True), (" + 0.1 * booting", False), (" + start", False)])
def test_costs_beside_data_of_levels_that_other_states_move(beside: str, known: bool) -> None:
    """What is paid for less than the load needs hangs on the level alone where both are of all that moves it, by the same factor."""
    problem = canonical(oco.parse(MOVED.format(beside=beside))).learned
    costs = dict(zip((s.name for s in stores(problem)), state_costs(problem), strict=True))
    assert [name for name, own in costs.items() if own] == (["machines"] if known else [])
    if known:
        at, load = np.random.default_rng(8).uniform(0, 600, (9, 2)), np.array([500.0, 90.0])
        own = evaluate(
            slope_of_costs(costs["machines"], Name(LEVEL, Kind.STREAM, shape=(9, 2))), {LEVEL: at, "load": load}
        )
        assert_allclose(own, -60.0 * (load > 2 * at), atol=1e-9)


BOOTING = """model m
horizon T = 400
decision start in [0, 60]
stream load in [0, 600]
state booting = start in [0, 60] start 10
state machines = 0.9 * machines + booting in [0, 600] start 100
minimize 0.001 * start + machines + 30 * pos(load - 0.9 * machines - booting)
"""


def test_machines_are_started_for_the_load_that_comes() -> None:
    """Little more is paid than by the best of the rules that start up to a fixed number of machines, chosen afterwards."""
    load = 100 + 10 * np.random.default_rng(0).normal(size=400)
    loss = float(oco.compile(oco.parse(BOOTING)).run({"load": load}).loss.sum())

    def of_rule(target: float) -> float:
        machines, booting, total = 100.0, 10.0, 0.0
        for now in load:
            there = 0.9 * machines + booting
            start = float(np.clip(target - 0.9 * there, 0, 60))
            total += 0.001 * start + machines + 30 * max(now - there, 0)
            machines, booting = there, start
        return total

    assert loss <= 1.15 * min(map(of_rule, range(90, 131)))


STAFF = """model staff
horizon T = 400
decision hire in box(0, 30)
decision fire in box(0, 30)
stream need in [0, 400]
state people = 0.98 * people + hire - fire in [0, 500] start 100
minimize people + 4 * hire + 6 * fire + 5 * pos(need - people - hire + fire)
"""


def test_hiring_is_for_what_is_needed_later() -> None:
    """Less than twice as far from foresight as the better of the rules: as many as were needed last, with a few more or fewer."""
    rng, t, T = np.random.default_rng(6), np.arange(400), 400
    need = np.clip(100 + 30 * np.sin(2 * np.pi * t / 52) + rng.normal(0, 8, T), 0, 400)
    loss = float(oco.compile(oco.parse(STAFF), data={"need": need}).run({"need": need}).loss.sum())

    def of_rule(more: float) -> float:
        people, total = 100.0, 0.0
        for k, now in enumerate(need):
            wanted = (need[k - 1] if k else 100.0) + more - people
            hire, fire = np.clip(wanted, 0, 30), np.clip(-wanted, 0, 30)
            total += people + 4 * hire + 6 * fire + 5 * max(now - people - hire + fire, 0)
            people = 0.98 * people + hire - fire
        return float(total)

    hire, fire, people = cp.Variable(T, nonneg=True), cp.Variable(T, nonneg=True), cp.Variable(T + 1)
    total = cp.sum(people[:-1] + 4 * hire + 6 * fire + 5 * cp.pos(need - people[:-1] - hire + fire))
    follows = [people[0] == 100, people[1:] == 0.98 * people[:-1] + hire - fire, hire <= 30, fire <= 30, people >= 0]
    foresight = float(cp.Problem(cp.Minimize(total), follows).solve(solver="CLARABEL"))
    assert foresight <= loss <= foresight + 2 * (min(map(of_rule, (-8, 0, 8))) - foresight)


STORE = """model m
horizon T = 200
decision x in box(-25, 25)
stream price in [0, 100]
state level = 0.98 * level + x in [0, 100] start 50
minimize price * x + 60 * pos(37 - 0.98 * level - x) + 0.3 * square(0.98 * level + x - 60) + 0.2 * abs(level - 80)
using hedged with season = 24
"""


def prices_of(T: int, seed: int) -> Any:
    rng, t = np.random.default_rng(seed), np.arange(T)
    return np.clip(45 + 20 * np.sin(2 * np.pi * (t - 9) / 24) + rng.normal(0, 4, T), 0, 100)


def costs_to_come(learner: Any) -> Any:
    """Price of a unit in the rounds to come, as learned."""
    table, overall, level, errors = (learner.value(f"cost_{n}") for n in ("by_phase", "overall", "level", "errors"))
    overall, level, errors = overall[0], level[0], errors[:, 0]  # of the only season
    phi, theta, higher = (np.clip(errors[k + 1] / np.maximum(errors[k], 1e-300), 0, 1) for k in (0, 2, 4))
    h = np.arange(1, AHEAD + 1)
    season = theta * table[(learner.round - 1 + h) % 24, 0]
    return (
        overall[0] + higher * (level - overall[0]) + season + phi ** (h[:, None] + 1) * learner.value("cost_above")[0]
    )[:, 0]


def paid_for_levels(s: Any) -> Any:
    """What the loss of STORE pays for levels of the rounds to come, of shape (AHEAD + 1,), in CVXPY."""
    left = 60 * cp.pos(37 - s[1:]) + 0.3 * cp.square(s[1:] - 60) + 0.2 * cp.abs(s[:-1] - 80)
    return cp.sum(left)


def test_values_are_the_multipliers_of_a_convex_program_that_pays_for_levels() -> None:
    learner = oco.compile(oco.parse(STORE)).learner()
    for now in prices_of(60, 1):
        learner.decide()
        learner.observe(price=now)
    # What a unit costs is the price alone: nothing of what levels cost is learned with it.
    assert_allclose(learner.value("cost_overall")[0, 0, 0], prices_of(60, 1).mean(), rtol=0.02)
    assert_allclose(learner.value("cost_overall")[0, 1:4, 0], 0, atol=1e-9)
    price, mean = costs_to_come(learner), float(learner.value("cost_overall")[0, 0, 0])
    u, s, start = cp.Variable(AHEAD), cp.Variable(AHEAD + 1), cp.Parameter()
    given = s[0] == start
    total = price @ u + paid_for_levels(s) - mean * s[AHEAD]
    within = [s[1:] == 0.98 * s[:-1] + u, cp.abs(u) <= 25, s[1:] >= 0, s[1:] <= 100]
    program, grid = cp.Problem(cp.Minimize(total), [given, *within]), grid_of(learner, 0, 0, 100, 50)
    # The values are those without what the next round pays for the level with which it begins.
    values = learner.value("value")[0] - 0.2 * np.sign(grid - 80)
    assert (np.diff(values) <= 1e-9).all()
    for place in range(1, grid.size - 1, 3):
        start.value = grid[place]
        program.solve(solver="CLARABEL")
        assert abs(values[place] - float(given.dual_value)) <= 0.06 * np.ptp(values)


def paid_by_rule(price: Any, target: float, eager: float) -> float:
    """Loss of a rule that fills STORE up to a target, to less of it where a day ago was dear."""
    level, total = 50.0, 0.0
    for t, now in enumerate(price):
        aim = target - (eager * (price[t - 24] - 45) if t >= 24 else 0)
        x = np.clip(np.clip(aim, 0, 100) - 0.98 * level, -25, 25)
        left = 0.98 * level + x
        total += now * x + 60 * max(37 - left, 0) + 0.3 * (left - 60) ** 2 + 0.2 * abs(level - 80)
        level = left
    return float(total)


def test_levels_are_kept_as_well_as_by_a_rule_that_was_tuned_afterwards() -> None:
    price = prices_of(200, 2)
    trace = oco.compile(oco.parse(STORE)).run({"price": price}, backend="c")
    best = min(paid_by_rule(price, target, eager) for target in range(40, 90, 5) for eager in (0, 0.3, 1, 2))
    assert float(trace.loss.sum()) <= 1.03 * best
