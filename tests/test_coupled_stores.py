"""States that move each other: against the adjoint of a linear system, linear programs with foresight, and rules of practice."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_c99 import has_compiler
from thorough import corners

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores, systems

HOURS, T = 24, 480
BACKEND = "c" if has_compiler() else "numpy"
A = np.array([[0.87, 0.10, 0.0], [0.10, 0.79, 0.10], [0.0, 0.10, 0.85]])
OUT = np.array([0.03, 0.01, 0.05])
ZONES = """\
model zones
horizon T = 480
decision heat[3] in box(0, 8)
context outside in [-30, 40]
stream price in [0, 2]
param A[3, 3] = [[0.87, 0.10, 0], [0.10, 0.79, 0.10], [0, 0.10, 0.85]]
state temp[3] = A @ temp + [0.03, 0.01, 0.05] * outside + 0.5 * heat in [-30, 60] start 20
minimize price * sum(heat) + 0.5 * sum(pos(20 - temp)) + 0.5 * sum(pos(temp - 24))
"""
WALL = """\
model wall
horizon T = 480
decision heat in box(0, 8)
context outside in [-30, 40]
stream price in [0, 2]
state room = 0.7 * room + 0.25 * wall + 0.05 * outside + 0.5 * heat in [-30, 60] start 20
state wall = 0.93 * wall + 0.06 * room + 0.01 * outside in [-30, 60] start 18
minimize price * heat + 0.5 * pos(20 - room) + 0.5 * pos(room - 24)
"""
TANDEM = """\
model tandem
horizon T = 200
decision serve[2] in box(0, 9)
stream arrivals in [0, 9]
state first = 0.7 * first - serve[0] + arrivals in [0, 90] start 40
state middle = 0.8 * middle + 0.1 * first + 0.05 * last in [0, 90] start 30
state last = 0.6 * last + 0.3 * middle + 0.1 * first - serve[1] in [0, 90] start 20
minimize 50 * sum(serve) + 0.1 * first + 0.2 * middle + 0.4 * last
using hedged with ahead = 96
"""
TOWER = """\
model tower
horizon T = 240
decision pump in box(0, 20)
stream price in [0, 2]
stream demand in [0, 20]
state upper = 0.7 * upper + pump in [0, 80] start 20
state lower = lower + 0.3 * upper - demand in [0, 80] start 20
minimize price * pump + 8 * pos(demand - lower - 0.3 * upper)
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def weather(seed: int) -> dict[str, Any]:
    """Prices by the hour of the day with jumps that last for hours, and temperatures of days and spells."""
    rng, t = np.random.default_rng(seed), np.arange(T)
    spell, jump = np.zeros(T), np.zeros(T)
    for k in range(1, T):
        spell[k] = 0.97 * spell[k - 1] + rng.normal(0, 0.6)
        jump[k] = 0.8 * jump[k - 1] + (rng.random() < 0.01) * rng.uniform(0.3, 1)
    day = 0.12 * np.sin(2 * np.pi * (t - 8) / HOURS) + 0.1 * np.sin(4 * np.pi * (t - 7) / HOURS)
    outside = -2 + 4 * np.sin(2 * np.pi * (t - 9) / HOURS) + spell
    return {"outside": outside, "price": np.clip(0.3 + day + jump + rng.normal(0, 0.03, T), 0.01, 2)}


def comfort(temp: Any) -> Any:
    return 0.5 * (np.maximum(20 - temp, 0) + np.maximum(temp - 24, 0)).sum()


def rule_of_thermostats(data: dict[str, Any], matrix: Any, out: Any, start: Any, heated: int) -> float:
    """Least cost of rules that heat each of the first rooms to a temperature, and to another one where the hour was cheap a day before."""
    best = np.inf
    for low, high, share in [(20.0, h, q) for h in (20.0, 21.0, 22.0, 23.0, 24.0) for q in (0.1, 0.25, 0.5)]:
        temp, total = np.array(start), 0.0
        for k, price in enumerate(data["price"]):
            was = data["price"][k - HOURS] if k >= HOURS else np.inf
            aim = high if was <= np.quantile(data["price"][max(0, k - 2 * HOURS) : k + 1], share) else low
            free = matrix @ temp + out * data["outside"][k]
            heat = np.clip((aim - free[:heated]) / 0.5, 0, 8)
            total, temp = total + price * heat.sum() + comfort(temp[:heated]), free
            temp[:heated] += 0.5 * heat
        best = min(best, total)
    return best


def foresight(data: dict[str, Any], matrix: Any, out: Any, start: Any, heated: int) -> float:
    heat, temp = cp.Variable((T, heated)), cp.Variable((T + 1, len(start)))
    to = 0.5 * np.eye(heated, len(start))
    follows = [temp[1:] == temp[:-1] @ matrix.T + np.outer(data["outside"], out) + heat @ to, temp[0] == start]
    rooms = temp[:-1, :heated]
    total = data["price"] @ cp.sum(heat, axis=1) + 0.5 * cp.sum(cp.pos(20 - rooms) + cp.pos(rooms - 24))
    return float(cp.Problem(cp.Minimize(total), [*follows, heat >= 0, heat <= 8]).solve(solver="CLARABEL"))


CASES = {
    "zones": (ZONES, A, OUT, [20.0, 20.0, 20.0], 3),
    "wall": (WALL, np.array([[0.7, 0.25], [0.06, 0.93]]), np.array([0.05, 0.01]), [20.0, 18.0], 1),
}


@pytest.mark.parametrize("name", corners(CASES, ["wall"]))  # vectors decide as scalars do: see below
def test_rooms_are_heated_in_cheap_hours(name: str) -> None:
    """Less than the best of fifteen rules, and no less than foresight."""
    text, *rest = CASES[name]
    data = weather(1)
    loss = float(plan_of(text).run(data, backend=BACKEND).loss.sum())
    assert foresight(data, *rest) <= loss <= rule_of_thermostats(data, *rest)


def drawn_demand(rounds: int, seed: int) -> dict[str, Any]:
    """Prices and demand by the hour of the day."""
    rng, t = np.random.default_rng(seed), np.arange(rounds)
    price = 0.5 + 0.3 * np.sin(2 * np.pi * (t - 8) / HOURS) + rng.normal(0, 0.05, rounds)
    demand = 6 + 3 * np.sin(2 * np.pi * (t - 14) / HOURS) + rng.normal(0, 1, rounds)
    return {"price": np.clip(price, 0, 2), "demand": np.clip(demand, 0, 20)}


def water_kept(data: dict[str, Any], level: float) -> float:
    """Loss of the rule that fills both tanks together up to a level."""
    upper, lower, total = 20.0, 20.0, 0.0
    for price, demand in zip(data["price"], data["demand"], strict=True):
        pump = np.clip(level - upper - lower, 0, 20)
        left = lower + 0.3 * upper - demand
        total += price * pump + 8 * max(-left, 0)
        upper, lower = np.clip(0.7 * upper + pump, 0, 80), np.clip(left, 0, 80)
    return float(total)


def test_a_tank_is_filled_through_another_one_in_time_and_in_cheap_hours() -> None:
    """Less than any level that both tanks could have been kept at, and at most a third more than with foresight."""
    data = drawn_demand(240, 1)
    loss = float(plan_of(TOWER).run(data, backend=BACKEND).loss.sum())
    pump, s, missing = cp.Variable(240), cp.Variable((241, 2)), cp.Variable(240)
    limits = [s[0] == 20, s >= 0, s <= 80, pump >= 0, pump <= 20, missing >= 0, s[1:, 0] <= 0.7 * s[:-1, 0] + pump]
    limits.append(s[1:, 1] <= s[:-1, 1] + 0.3 * s[:-1, 0] - data["demand"] + missing)
    least = float(cp.Problem(cp.Minimize(data["price"] @ pump + 8 * cp.sum(missing)), limits).solve(solver="CLARABEL"))
    assert least <= loss <= 4 / 3 * least
    assert loss <= min(water_kept(data, level) for level in range(20, 81, 2))


def test_values_are_the_adjoint_of_the_linear_system() -> None:
    """Where serving costs more than waiting ever does, v_h = A' v_{h+1} - m for units in three queues that run into each other."""
    learner = plan_of(TANDEM).learner(backend=BACKEND)
    rng = np.random.default_rng(3)
    for _ in range(8):
        learner.decide()
        learner.observe(arrivals=rng.uniform(5, 7))
    own = stores(canonical(oco.parse(TANDEM)).learned)
    system = np.array([[0.7, 0.0, 0.0], [0.1, 0.8, 0.05], [0.1, 0.3, 0.6]])
    assert [s.name for s in own] == ["first", "middle", "last"]
    assert_allclose(systems(own), [system])
    held, value = np.array([0.1, 0.2, 0.4]), np.zeros(3)
    for _ in range(400):
        value = system.T @ value - held
    assert_allclose(learner.value("value_slope"), value, rtol=1e-3)
    assert_allclose(learner.value("value_drop"), 0, atol=1e-9)


def test_a_vector_and_scalars_that_read_each_other_are_one() -> None:
    vector = """\
decision heat[2] in box(0, 8)
context outside in [-30, 40]
stream price in [0, 2]
state temp[2] = [[0.84, 0.1], [0.2, 0.75]] @ temp + [0.06, 0.05] * outside + 0.5 * heat in [-30, 60] start 20
minimize price * sum(heat) + 0.5 * sum(pos(20 - temp)) + 0.5 * sum(pos(temp - 24))
"""
    scalars = """\
decision heat[2] in box(0, 8)
context outside in [-30, 40]
stream price in [0, 2]
state a = 0.84 * a + 0.1 * b + 0.06 * outside + 0.5 * heat[0] in [-30, 60] start 20
state b = 0.2 * a + 0.75 * b + 0.05 * outside + 0.5 * heat[1] in [-30, 60] start 20
minimize price * sum(heat) + 0.5 * (pos(20 - a) + pos(20 - b) + pos(a - 24) + pos(b - 24))
"""
    data = {n: v[:48] for n, v in weather(2).items()}
    one, other = (
        oco.compile(oco.parse(f"model m\nhorizon T = 48\n{text}")).run(data, backend=BACKEND)
        for text in (vector, scalars)
    )
    assert_allclose(one.decisions, other.decisions, atol=1e-8)


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("text", [WALL, pytest.param(ZONES, marks=pytest.mark.thorough)])
def test_c_and_fleets_decide_as_numpy_does(text: str) -> None:
    plan, data = plan_of(text), {n: v[:24] for n, v in weather(4).items()}
    numpy, c = (plan.run(data, backend=b).decisions for b in ("numpy", "c"))
    assert_allclose(numpy, c, atol=1e-7)
    fleet = plan.fleet(2)
    for k, decided in enumerate(numpy):
        together = fleet.decide(outside=np.full(2, data["outside"][k]))
        assert_allclose(together, [decided, decided], atol=1e-7)
        fleet.observe(price=np.full(2, data["price"][k]))


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_decides_as_numpy_does_where_data_come_late() -> None:
    plan = plan_of(TOWER.replace("T = 240", "T = 48") + "feedback full delayed 2\n")
    numpy, c = (plan.run(drawn_demand(48, 2), backend=b).decisions for b in ("numpy", "c"))
    assert_allclose(numpy, c, atol=1e-7)


STATES = """\
model m
horizon T = 100
decision x[2] in box(0, 1)
stream c in [-1, 1]
param k
state a = 0.9 * a + k * b + x[0] in [0, 90] start 1
state b = 0.9 * b + 0.05 * a + x[1] in [0, 90] start 1
minimize c * sum(x) + pos(a - b)
"""


def test_states_name_those_below_them() -> None:
    model = oco.parse(STATES, params={"k": 0.1})
    assert oco.parse(model.to_oco()).to_oco() == model.to_oco()
    with pytest.raises(oco.OcoError, match="OCO201"):
        oco.parse(STATES.replace("k * b", "k * d"))
    with pytest.raises(oco.OcoError, match="OCO204"):
        oco.parse(STATES.replace("k * b", "k * d * b") + "let d = 2\n")
    with pytest.raises(oco.OcoError, match="OCO529"):
        oco.parse(STATES.replace("state b =", "state b[3] ="))


WARD = """\
model ward
horizon T = 400
decision admit in [0, 60]
stream emergencies in [0, 120]
stream referrals in [0, 80]
state occupied = 0.8 * occupied + admit + emergencies in [0, 900] start 280
state waiting = waiting - admit + referrals in [0, 3000] start 60
minimize 20 * pos(0.8 * occupied + admit + emergencies - 300) + waiting
subject to
    listed: admit <= waiting  each round
"""


def test_a_ward_and_its_waiting_list_are_planned_together() -> None:
    """A flow into stores of which one keeps less than the other: as good as a target that knows the emergencies and is tuned afterwards."""
    rng, t = np.random.default_rng(3), np.arange(400)
    emergencies = np.clip(35 + 6 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 6, t.size), 0, 120)
    referrals = np.clip(12 + 12 * (t % 7 < 5) + rng.normal(0, 4, t.size), 0, 80)

    def paid(target: float) -> float:
        occupied, waiting, loss = 280.0, 60.0, 0.0
        for came, listed in zip(emergencies, referrals, strict=True):
            admit = np.clip(target - 0.8 * occupied - emergencies.mean(), 0, min(60, waiting))
            occupied = 0.8 * occupied + admit + came
            loss += 20 * max(occupied - 300, 0) + waiting
            waiting += listed - admit
        return loss

    plan = oco.compile(oco.parse(WARD))
    assert any(f.name == "plan" for f in plan.program.state)
    trace = plan.run({"emergencies": emergencies, "referrals": referrals}, backend=BACKEND)
    assert trace.loss.sum() <= 1.03 * min(map(paid, range(260, 330, 5)))
