"""Stores whose factors, ends and costs hang on the round: against linear programs over the rounds to come, and rules that people use."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from store_grid import grid_of
from test_c99 import has_compiler
from test_pipelines import flat

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import no_stores, season_by_round, state_costs, stores, systems

BACKEND = "c" if has_compiler() else "numpy"
HOURS, AHEAD = 24, 24
KEEP, ROOM, SHORT = np.full(HOURS, 1.0), np.full(HOURS, 160.0), np.zeros(HOURS)
KEEP[0], KEEP[10:16], ROOM[16:22], SHORT[23], SHORT[12] = 0.0, 0.9, 90.0, 60.0, 55.0
TANK = f"""\
model tank
horizon T = 480
param keep[24] = {KEEP.tolist()}
param room[24] = {ROOM.tolist()}
param short[24] = {SHORT.tolist()}
decision fill in box(0, 40)
stream price in [0, 100]
context most in [0, 50]
state stored = keep[t % 24] * stored + fill in [0, 200] start 0
minimize price * fill + 0.1 * square(fill) + short[t % 24] * pos(80 - keep[t % 24] * stored - fill)
subject to
    full: keep[t % 24] * stored + fill <= room[t % 24]  each round
    pump: fill <= most                                  each round
using hedged with season = 24
"""
OPEN = np.where(np.arange(HOURS) % HOURS < 8, 12.0, 30.0)
OPENING = TANK.replace("context most in [0, 50]\n", f"param open[24] = {OPEN.tolist()}\n").replace(
    "fill <= most", "fill <= open[t % 24]"
)
LIGHT = """\
model greenhouse
horizon T = 960
param goes_on[24] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
param last[24] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
decision lamp in box(0, 1)
context price in [0, 2]
stream sun in [0, 3]
state light = goes_on[t % 24] * light + 1.2 * lamp + sun in [0, 60] start 0
minimize price * lamp + 1.5 * last[t % 24] * pos(12 - light - 1.2 * lamp - sun)
"""
TANDEM = """\
model tandem
horizon T = 200
param stays[3] = [0.7, 0.2, 0.9]
decision serve[2] in box(0, 9)
stream arrivals in [0, 9]
state first = stays[t % 3] * first - serve[0] + arrivals in [0, 90] start 40
state last = 0.6 * last + (1 - stays[t % 3]) * first - serve[1] in [0, 90] start 20
minimize 50 * sum(serve) + 0.1 * first + 0.4 * last
using hedged with ahead = 96
"""
PONDS = """\
model ponds
horizon T = 480
param stays[6] = [1, 1, 0.9, 0.6, 0.6, 0.9]
decision pump in box(0, 20)
decision use in box(0, 20)
stream price[2] in [0, 100]
state upper = stays[t % 6] * upper + pump in [0, 40] start 20
state lower = lower + (1 - stays[t % 6]) * upper - use in [0, 200] start 20
minimize price[0] * pump - price[1] * use
using hedged with season = 24
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def tank_data(T: int, seed: int) -> tuple[Any, Any]:
    rng, t = np.random.default_rng(seed), np.arange(1, T + 1)
    price = np.clip(45 + 20 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, 3, T), 0, 100)
    return price, np.where(t % HOURS < 8, 12.0, 30.0)


def expected(learner: Any, name: str, h: int) -> Any:
    """Rows as expected of the h-th round after the next one, from the averages that are kept: costs, or limits of flows."""
    table, overall, level, errors = (learner.value(f"{name}_{n}") for n in ("by_phase", "overall", "level", "errors"))
    overall, level, errors = overall[0], level[0], errors[:, 0]  # of the only season
    phi, theta, higher = (np.clip(errors[k + 1] / np.maximum(errors[k], 1e-4), 0, 1) for k in (0, 2, 4))
    row = table[(learner.round - 1 + h) % HOURS]
    first = (
        overall[0] + higher * (level - overall[0]) + theta * row[0] + phi ** (h + 1) * learner.value(f"{name}_above")[0]
    )
    return np.concatenate([first.reshape(1, -1), row[1:]])


def marginal_value(learner: Any, stored: float, is_learned: bool) -> float:
    """Value of a unit more before those rounds, as the multiplier of what is in store in a quadratic program; limits are learned or not."""
    costs = np.array([expected(learner, "cost", h)[:3, 0] for h in range(1, AHEAD + 1)])
    at = (learner.round + np.arange(1, AHEAD + 1)) % HOURS
    most = [
        expected(learner, "limit", h)[0, 1] if is_learned else OPEN[(learner.round + h) % HOURS]
        for h in range(1, AHEAD + 1)
    ]
    u, s, start = cp.Variable(AHEAD), cp.Variable(AHEAD + 1), cp.Parameter(value=stored)
    given = s[0] == start
    total = costs[:, 0] @ u + cp.sum(cp.multiply(costs[:, 1] / 2, cp.square(u))) + costs[:, 2] @ s[:-1]
    total += SHORT[at] @ cp.pos(80 - s[1:]) - learner.value("cost_overall")[0, 0, 0] * s[AHEAD]
    after = [s[1:] == cp.multiply(KEEP[at], s[:-1]) + u, u >= 0, u <= most, s[1:] >= 0, s[1:] <= ROOM[at]]
    cp.Problem(cp.Minimize(total), [given, *after]).solve(solver="CLARABEL")
    return float(given.dual_value)


@pytest.mark.parametrize(("text", "rounds"), [(TANK, 52), (TANK, 57), (OPENING, 66)])
def test_values_are_the_multipliers_of_a_program_with_the_numbers_of_each_round(text: str, rounds: int) -> None:
    learner = plan_of(text).learner(backend=BACKEND)
    for price, most in zip(*tank_data(rounds, 1), strict=True):
        learner.decide(**({"most": most} if text == TANK else {}))
        learner.observe(price=price)
    grid, values = grid_of(learner, 0, 0, 160, 40), learner.value("value")[0]
    assert (np.diff(values) <= 1e-9).all() and np.ptp(values) > 5
    room, inside = ROOM[(learner.round + np.arange(1, AHEAD)) % HOURS], 0
    for place in (6, 8, 12, 17, 22):
        if grid[place] < room[0]:
            assert abs(values[place] - marginal_value(learner, grid[place], text == TANK)) <= 0.06 * np.ptp(
                values[grid < room[0]]
            )
            inside += 1
    assert inside >= 2


def test_a_unit_that_the_next_round_forgets_has_no_value() -> None:
    """Before the first round of a day what is left of the day before is gone: a value is 0 there, and not an hour before or after."""
    learner, seen = plan_of(TANK).learner(backend=BACKEND), {}
    for price, most in zip(*tank_data(72, 2), strict=True):
        learner.decide(most=most)
        learner.observe(price=price)
        seen[(learner.round + 1) % HOURS] = np.abs(learner.value("value")).max()
    assert seen[0] <= 1e-9 and seen[1] > 1 and seen[23] > 1


def test_tables_of_stores_are_those_of_the_model() -> None:
    problem = canonical(oco.parse(TANK)).learned
    (tank,), ((cost,),) = stores(problem), state_costs(problem)
    assert_allclose(tank.keep[:, 0], np.roll(KEEP, -1))
    assert_allclose(tank.ends.uppers[:, 0], np.roll(ROOM, -1))
    assert tank.ends.lower == [0] and tank.ends.upper == [160] and cost.left and cost.by_round
    light = canonical(oco.parse(LIGHT)).learned
    assert_allclose(stores(light)[0].keep[:, 0], [1] * 23 + [0])
    assert (
        len(state_costs(light)[0]) == 1
    )  # at the first hour of a day it is no cost of what is left, but has no price then
    also_first = canonical(oco.parse(LIGHT.replace("last[24] = [0,", "last[24] = [1,"))).learned
    assert not stores(also_first) and "nothing keeps its lower end" in no_stores(also_first)[0].reason


@pytest.mark.parametrize(
    ("factor", "rows", "season"), [("by[t]", 480, 1), ("by[t % 240]", 240, 1), ("by[t % 7]", 7, 7)]
)
def test_tables_are_over_a_cycle_or_over_all_rounds(factor: str, rows: int, season: int) -> None:
    by = f"param by[481] = [{', '.join(str(0.5 + 0.5 * (k % 11 > 0)) for k in range(481))}]"
    text = TANK.replace("param short", f"{by}\nparam short").replace("keep[t % 24]", factor).replace("[t % 24]", "[3]")
    problem = canonical(oco.parse(text)).learned
    assert len(stores(problem)[0].keep) == rows and season_by_round(problem) == season


def test_factors_of_no_cycle_want_a_horizon() -> None:
    text = LIGHT.replace("goes_on[t % 24] * light", "(1 - 1 / t) * light").replace(
        "12 - light", "12 - (1 - 1 / t) * light"
    )
    assert len(stores(canonical(oco.parse(text)).learned)[0].keep) == 960
    (none,) = no_stores(canonical(oco.parse(text.replace("horizon T = 960", "horizon T unknown"))).learned)
    assert "`(1 - 1 / t) * light` has a factor that changes with the rounds" in none.reason


def test_seasons_that_a_model_reads_stand_where_data_repeat_by_chance() -> None:
    """Three days of noise that repeats after 11 hours: the model reads hours of a day."""
    rng, rows = np.random.default_rng(0), 480
    noise = np.tile(rng.uniform(0, 100, 11), rows)[:rows]
    plan = oco.compile(
        oco.parse(TANK.replace("using hedged with season = 24", "")), data={"price": noise, "most": noise / 2}
    )
    assert plan.settings["season"].value == HOURS


def test_values_are_the_adjoint_of_a_system_that_changes_with_the_round() -> None:
    """Where serving costs more than waiting ever does, v_h = A_h' v_{h+1} - m."""
    learner, rng = plan_of(TANDEM).learner(backend=BACKEND), np.random.default_rng(3)
    own, stays = stores(canonical(oco.parse(TANDEM)).learned), np.array([0.7, 0.2, 0.9])
    matrices = np.array([[[stays[t % 3], 0.0], [1 - stays[t % 3], 0.6]] for t in range(1, 4)])
    assert_allclose(systems(own), matrices)
    for _ in range(3):
        for _ in range(4):
            learner.decide()
            learner.observe(arrivals=rng.uniform(5, 7))
        value = np.zeros(2)
        for t in reversed(range(learner.round, learner.round + 400)):
            value = matrices[(t - 1) % 3].T @ value - [0.1, 0.4]
        assert_allclose(learner.value("value_slope"), value, rtol=1e-3)


def test_flows_are_planned_near_the_best_of_a_program_over_the_rounds_to_come() -> None:
    learner, rng, t = plan_of(PONDS).learner(backend=BACKEND), np.random.default_rng(4), np.arange(120)
    dear = np.clip(60 + 30 * np.sin(2 * np.pi * (t - 9) / HOURS) + rng.normal(0, 3, t.size), 0, 100)
    stays, levels = np.array([1, 1, 0.9, 0.6, 0.6, 0.9]), np.array([20.0, 20.0])
    for cheap, sold in zip(dear[::-1] / 4, dear, strict=True):
        stay, moved = stays[learner.round % 6], learner.decide()
        levels = np.array([[stay, 0], [1 - stay, 1]]) @ levels + [moved["pump"], -moved["use"]]
        learner.observe(price=[cheap, sold])
    H = learner.value("plan").shape[0] - 1
    costs = np.array([expected(learner, "cost", h)[0] for h in range(H + 1)]) * [1, -1]
    stays, end = stays[(learner.round + np.arange(H + 1)) % 6], learner.value("cost_overall")[0, 0]
    learner.decide()
    plan = learner.value("plan")

    def cost(flows: Any, s: Any) -> Any:
        return cp.sum(cp.multiply(costs, flows)) - s[H + 1] @ end

    x, s = cp.Variable((H + 1, 2)), cp.Variable((H + 2, 2))
    follows = [s[0] == levels, s[1:, 0] == cp.multiply(stays, s[:-1, 0]) + x[:, 0]]
    follows += [s[1:, 1] == s[:-1, 1] + cp.multiply(1 - stays, s[:-1, 0]) - x[:, 1]]
    within = [s >= 0, s[:, 0] <= 40, s[:, 1] <= 200, x >= 0, x <= 20]
    least = float(cp.Problem(cp.Minimize(cost(x, s)), [*follows, *within]).solve(solver="CLARABEL"))
    reached = [np.array(levels)]
    for stay, flow in zip(stays, plan, strict=True):
        upper, lower = reached[-1]
        reached.append(np.array([stay * upper + flow[0], lower + (1 - stay) * upper - flow[1]]))
    none = cost(np.zeros((H + 1, 2)), np.array([levels] * (H + 2))).value
    planned = float(cost(plan, np.array(reached)).value)
    assert np.min(reached) >= 0 and np.max(reached, axis=0)[0] <= 40
    # costs are linear, and a gradient method nears the best of them slowly
    assert least <= planned <= least + 0.2 * (none - least)


def test_prices_of_a_table_over_all_rounds_are_seen_ahead() -> None:
    """A battery under prices of no season that the model states for all rounds earns nearly what perfect foresight does."""
    T, rng = 240, np.random.default_rng(0)
    tariff = np.clip(50 + np.cumsum(rng.normal(0, 3, T)) + 25 * rng.normal(size=T), 0, 200).round(2)
    text = f"""\
model known
horizon T = {T}
param tariff[{T}] = {tariff.tolist()}
decision charge in box(-40, 40)
stream fee in [0, 5]
state soc = soc + charge in [0, 200] start 100
minimize (tariff[t - 1] + fee) * charge
"""
    trace = plan_of(text).run({"fee": np.full(T, 1.0)}, backend=BACKEND)
    loss, left = float(trace.loss.sum()), 100 + float(trace.decisions.sum())
    x, s = cp.Variable(T), cp.Variable(T + 1)
    limits = [s[0] == 100, s[T] == left, s[1:] == s[:-1] + x, s >= 0, s <= 200, x >= -40, x <= 40]
    least = float(cp.Problem(cp.Minimize((tariff + 1) @ x), limits).solve(solver="CLARABEL"))
    assert least <= loss + 1e-6 * abs(loss) <= 0.95 * least < 0


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("text", [TANK, PONDS])
def test_c_and_fleets_decide_as_numpy_does(text: str) -> None:
    plan, rng = plan_of(text), np.random.default_rng(5)
    fleet, alone = plan.fleet(2, backend="c"), [plan.learner(backend=b) for b in ("numpy", "c")]
    for _ in range(27):
        data = {"price": rng.uniform(2, 9, () if text == TANK else 2)}
        known = {"most": rng.uniform(5, 40)} if text == TANK else {}
        first, second = (flat(one.decide(**known)) for one in alone)
        assert_allclose(first, second, atol=1e-7)
        both = flat(fleet.decide(**{n: np.repeat(v, 2) for n, v in known.items()}))
        assert_allclose(both, np.repeat(second, 2), atol=1e-7)
        for one in alone:
            one.observe(**data)
        fleet.observe(price=np.stack([data["price"]] * 2))


def greenhouse(T: int, seed: int) -> tuple[Any, Any]:
    rng, t = np.random.default_rng(seed), np.arange(T)
    h, d = t % HOURS, t // HOURS
    cloud = np.clip(0.6 + 0.4 * np.sin(d / 9) + 0.3 * rng.normal(size=T // HOURS)[d], 0.1, 1.2)
    sun = np.clip(np.sin((h - 6) / 12 * np.pi), 0, None) * 1.2 * cloud * np.clip(1 + 0.2 * rng.normal(size=T), 0, None)
    jumps = 60 * (rng.random(T) < 0.01)
    price = np.clip(
        40 + 25 * np.sin((h - 9) / 24 * 2 * np.pi) + 10 * (d % 7 < 5) + 8 * rng.normal(size=T) + jumps, 1, None
    )
    return price / 100, np.minimum(sun, 3)


def rule_of_lamps(price: Any, sun: Any) -> float:
    """Least cost of rules that light hours cheap beside those of the last three days, and what is short in the last hours."""
    best = np.inf
    for share in (0.1, 0.2, 0.3, 0.4):
        light, total = 0.0, 0.0
        for k, now in enumerate(price):
            hour = (k + 1) % HOURS
            short = 12 - (light if hour else 0.0)
            lamp = min(max(short / 1.2 - (23 - hour), 0.0), 1.0)
            if now <= np.quantile(price[max(0, k - 72) : k + 1], share):
                lamp = min(1.0, max(short, 0.0) / 1.2)
            light = 12 - short + 1.2 * lamp + sun[k]
            total += now * lamp + 1.5 * (hour == 23) * max(12 - light, 0.0)
        best = min(best, total)
    return best


def test_a_daily_quota_of_light_is_met_in_cheap_hours() -> None:
    price, sun = greenhouse(960, 1)
    trace = oco.compile(oco.parse(LIGHT)).run({"price": price, "sun": sun}, backend=BACKEND)
    assert float(trace.loss.sum()) <= rule_of_lamps(price, sun)
