"""Guarantees: special values by hand, and runs against random, drifting and adversarial sequences that must never break them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from driving import Array, Round, trajectory
from scipy.optimize import linprog
from thorough import one_in

from oco.compiler.algorithms.classic import path_weight
from oco.compiler.algorithms.wang_yan_liu2025 import QUEUE_VIOLATION
from oco.compiler.selection.plan import Plan, compile_plan
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.theorems import Bound, Guarantee, Quantity
from oco.dsl.load import parse

T = 300
Sequence_ = Callable[[np.random.Generator, int, int], Array]


def random_signs(rng: np.random.Generator, rounds: int, n: int) -> Array:
    """Each entry meets a fair coin: the game of the lower bound."""
    return rng.choice([-1.0, 1.0], (rounds, n))


def drifting(rng: np.random.Generator, rounds: int, n: int) -> Array:
    turn = np.linspace(0, 6 * math.pi, rounds)[:, None] + np.arange(n)
    return np.cos(turn)


def alternating(rng: np.random.Generator, rounds: int, n: int) -> Array:
    return np.where(np.arange(rounds) % 2, 1.0, -1.0)[:, None] * np.ones(n)


def turning_once(rng: np.random.Generator, rounds: int, n: int) -> Array:
    return np.where(np.arange(rounds) < rounds // 2, 1.0, -1.0)[:, None] * np.ones(n)


SEQUENCES = [random_signs, drifting, alternating, turning_once]
each_sequence = pytest.mark.parametrize("sequence", one_in(2, SEQUENCES), ids=lambda f: f.__name__)


def decisions(plan: Plan, rounds: Sequence[Round]) -> Array:
    return np.array([x for (x,) in trajectory(plan, rounds)[: len(rounds)]])


def best_linear(costs: Array, A: Array, b: Array, bounds: tuple[float, float]) -> Array:
    """The prefix losses of the best fixed decision of each prefix: sum_{tau<=t} c_tau @ x over {A x <= b} in a box."""
    totals = np.cumsum(costs, axis=0)
    return np.array([linprog(c, A, b, bounds=[bounds] * len(c)).fun for c in totals])


def never_above(measured: Array, bound: Array | None, share: float = -math.inf) -> None:
    """The bound holds in every prefix; at the end the measured value is at least `share` of it, so that the bound is put to a test."""
    assert bound is not None
    assert (measured <= bound * (1 + 1e-9) + 1e-9).all()
    assert measured[-1] / bound[-1] >= share


def queue_bound(g: Guarantee, rounds: int) -> float | None:
    """Theorem 2 of Wang, Yan & Liu alone, without the bound by the step's optimality."""
    assert g.violation_bound is not None
    return replace(g.violation_bound, formula=QUEUE_VIOLATION).number(rounds)


# Special values, worked out by hand.


def test_ogd_is_within_the_book_s_bound() -> None:
    """3/2 G D sqrt(T) on box(-1, 1)^4 with |c| <= 2: D = 4, G = 4; strongly convex G^2 (1 + log T) / (2 mu)."""
    text = "model m\nhorizon T = 400\ndecision x[4] in box(-1, 1)\nstream c[4] in [-2, 2]\nminimize "
    linear = compile_plan(parse(text + "c @ x\n"), algorithm="ogd").guarantee
    steps = sum(1 / math.sqrt(t) for t in range(1, 401))
    assert linear is not None and linear.regret(400) == pytest.approx(16 / 2 * 20 + 16 / 2 * steps)
    assert 0.95 * 1.5 * 16 * 20 <= linear.regret(400) <= 1.5 * 16 * 20
    squares = compile_plan(parse(text + "sum_squares(x - c)\n"), algorithm="ogd").guarantee
    slope = 2 * 3 * 2  # |2 (x - c)| <= 2 * 3 in each of four entries
    harmonic = sum(1 / t for t in range(1, 401))
    assert squares is not None and squares.regret(400) == pytest.approx(slope**2 / 4 * harmonic, rel=1e-6)
    assert squares.regret(400) <= slope**2 / 4 * (1 + math.log(400))


def test_coldq_theorems_1_and_2_by_hand() -> None:
    """X = [0, 1]^2, f = c @ x with |c| <= 1, g = x_0 + x_1 - 0.5 fixed: R = D = sqrt 2, G = 1.5, N = 1, no variation."""
    text = """
model m
horizon T = 100
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
minimize c @ x
subject to
    cap: sum(x) <= 0.5 each round
"""
    plan = compile_plan(parse(text), algorithm="coldq")
    g = plan.guarantee
    assert g is not None and plan.algorithm == "coldq"
    inverse = sum(1 / math.sqrt(t) for t in range(1, 101))
    assert g.regret() == pytest.approx(2 * 10 + 2 / 4 * inverse + 2)
    gamma = 50
    theorem_2 = (2 / 4 * inverse + (2 + 2 * 1.5**2) * 100 + 2 * 10) / gamma + 1.5
    assert queue_bound(g, 100) == pytest.approx(theorem_2)
    assert g.violation() == pytest.approx(1.5 + 2 * 100 / gamma + 2 * 10 / gamma)
    assert str(g.rates["static regret"]) == "sqrt(T)" and str(g.rates["hard violation"]) == "1"


def test_coldq_small_constraints_use_twice_epsilon() -> None:
    """Erratum 19: with |g| <= 0.1 and epsilon = 0.5 the bound takes G = 1."""
    text = """
model m
horizon T = 100
decision x[1] in box(0, 1)
stream c[1] in [-1, 1]
minimize c @ x
subject to
    cap: 0.1 * sum(x) <= 0.05 each round
"""
    g = compile_plan(parse(text), algorithm="coldq").guarantee
    inverse = sum(1 / math.sqrt(t) for t in range(1, 101))
    assert g is not None and queue_bound(g, 100) == pytest.approx((1 / 4 * inverse + (1 + 2) * 100 + 10) / 50 + 1)


def test_mirror_descent_theorem_3_1_by_hand() -> None:
    """X = [0, 1]^2: L^2 = 2, R = 1; |grad f| <= D_1 = sqrt 2; g = w (x_0 + x_1) - 1 with |w| <= 1: G = 1 and D_2 = sqrt 2."""
    text = """
model m
horizon T = 100
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
stream w ~ uniform(0, 1)
minimize c @ x
subject to
    cap: w * sum(x) <= 1 on average
"""
    g = compile_plan(parse(text), algorithm="mirror-descent").guarantee
    assert g is not None and g.regret() == pytest.approx(10 * ((1 + 2 * 2) + 2 / 2 + 1))


def test_the_heaviest_walk_of_the_comparators() -> None:
    """path_weight is the value of a linear program: maximize sum alpha_{t-1} d_t, 0 <= d_t <= step, sum d_t <= path."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        alpha = np.sort(rng.uniform(0.1, 3, 12))
        step, path = rng.uniform(0.1, 2), rng.uniform(0, 15)
        found = path_weight(Schedule(Rounds.every(12), alpha), step, path)
        for rounds in range(1, 13):
            weights = alpha[: rounds - 1]
            solved = (
                linprog(-weights, np.ones((1, rounds - 1)), [path], bounds=[(0, step)] * (rounds - 1)).fun
                if rounds > 1
                else 0
            )
            assert found[rounds - 1] == pytest.approx(-solved, abs=1e-9)
        backwards = Schedule(Rounds.every(12), alpha[::-1])  # weights that decrease: no less than the program's value
        falling = path_weight(backwards, step, path)[-1]
        program = linprog(-alpha[::-1][:11], np.ones((1, 11)), [path], bounds=[(0, step)] * 11)
        assert falling >= -program.fun - 1e-9


# Runs.


@each_sequence
def test_ogd_keeps_its_promise(sequence: Sequence_) -> None:
    text = f"model m\nhorizon T = {T}\ndecision x[3] in box(-1, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
    plan = compile_plan(parse(text), algorithm="ogd")
    costs = sequence(np.random.default_rng(1), T, 3)
    x = decisions(plan, [{"c": c} for c in costs])
    regret = np.cumsum((costs * x).sum(axis=1)) + np.abs(np.cumsum(costs, axis=0)).sum(axis=1)
    assert plan.algorithm == "ogd" and plan.guarantee is not None
    never_above(regret, plan.guarantee.regret_curve(T), 0.1 if sequence is random_signs else -math.inf)


@each_sequence
def test_ogd_keeps_its_logarithm(sequence: Sequence_) -> None:
    text = f"model m\nhorizon T = {T}\ndecision x[2] in ball(1)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - a)\n"
    plan = compile_plan(parse(text), algorithm="ogd")
    a = sequence(np.random.default_rng(2), T, 2)
    x = decisions(plan, [{"a": v} for v in a])
    losses = np.cumsum(((x - a) ** 2).sum(axis=1))
    mean = np.cumsum(a, axis=0) / np.arange(1, T + 1)[:, None]
    best = mean / np.maximum(1, np.linalg.norm(mean, axis=1))[:, None]
    comparator = np.array([((best[t] - a[: t + 1]) ** 2).sum() for t in range(T)])
    assert plan.guarantee is not None and str(plan.guarantee.rates["static regret"]) == "log(T)"
    never_above(losses - comparator, plan.guarantee.regret_curve(T), 0.01 if sequence is random_signs else -math.inf)


@each_sequence
def test_oeg_keeps_its_promise(sequence: Sequence_) -> None:
    text = f"model m\nhorizon T = {T}\ndecision w[4] in simplex\nstream c[4] in [-1, 1]\nminimize c @ w\n"
    plan = compile_plan(parse(text), algorithm="oeg")
    costs = sequence(np.random.default_rng(3), T, 4)
    x = decisions(plan, [{"c": c} for c in costs])
    regret = np.cumsum((costs * x).sum(axis=1)) - np.cumsum(costs, axis=0).min(axis=1)
    assert plan.algorithm == "oeg" and plan.guarantee is not None
    never_above(regret, plan.guarantee.regret_curve(T), 0.1 if sequence is random_signs else -math.inf)


@each_sequence
def test_coldq_keeps_its_promises(sequence: Sequence_) -> None:
    """Fixed constraints, linear losses: the comparator of each prefix is a linear program."""
    text = f"""
model m
horizon T = {T}
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x
subject to
    caps: [[1, 2, 0], [0, 1, 3]] @ x <= [0.8, 0.9] each round
"""
    plan = compile_plan(parse(text), algorithm="coldq")
    costs = sequence(np.random.default_rng(4), T, 3)
    x = decisions(plan, [{"c": c} for c in costs])
    A, b = np.array([[1.0, 2, 0], [0, 1, 3]]), np.array([0.8, 0.9])
    regret = np.cumsum((costs * x).sum(axis=1)) - best_linear(costs, A, b, (0, 1))
    violation = np.cumsum(np.maximum(x @ A.T - b, 0).sum(axis=1))
    assert plan.algorithm == "coldq" and plan.guarantee is not None
    never_above(regret, plan.guarantee.regret_curve(T), 0.02 if sequence is random_signs else -math.inf)
    never_above(violation, plan.guarantee.violation_curve(T), 0.001)


def test_coldq_where_the_start_violates() -> None:
    """X = [1, 4], f = x^2 / 4, g = 2 - x, x_1 = 1.5: methods with a small weight on g violate every round; the best point is 2."""
    rounds = 2000
    text = f"""
model m
horizon T = {rounds}
decision x[1] in box(1, 4)
stream s in [1, 1]
minimize s * sum_squares(x) / 4
subject to
    floor: 2 - x <= 0 each round
"""
    plan = compile_plan(parse(text), algorithm="coldq")
    data = [{"s": 1.0}] * rounds
    x = np.array([v[0] for (v,) in trajectory(plan, data, [np.array([1.5])])[:rounds]])
    assert plan.guarantee is not None
    never_above(np.cumsum(x**2 / 4 - 1), plan.guarantee.regret_curve(rounds))
    never_above(np.cumsum(np.maximum(2 - x, 0)), plan.guarantee.violation_curve(rounds), 0.001)
    assert np.cumsum(np.maximum(2 - x, 0))[-1] == pytest.approx(0.5)  # the first round alone violates


@each_sequence
def test_coldq_keeps_its_dynamic_promise(sequence: Sequence_) -> None:
    """A moving limit: the best decision of each round is x = limit where the price is negative, else 0."""
    text = f"""
model m
horizon T = {T}
decision x in box(0, 1)
stream price in [-1, 1]
stream limit in [0.2, 0.8]
minimize price * x
subject to
    cap: x <= limit each round
measure dynamic regret
"""
    plan = compile_plan(parse(text), algorithm="coldq")
    rng = np.random.default_rng(5)
    price, limit = sequence(rng, T, 1)[:, 0], 0.5 + 0.3 * sequence(rng, T, 1)[:, 0]
    x = np.array([v for (v,) in trajectory(plan, [{"price": p, "limit": b} for p, b in zip(price, limit)])[:T]])
    regret = np.cumsum(price * x - np.minimum(price * limit, 0))
    assert plan.algorithm == "coldq" and plan.guarantee is not None
    never_above(regret, plan.guarantee.regret_curve(T))
    never_above(np.cumsum(np.maximum(x - limit, 0)), plan.guarantee.violation_curve(T))


@pytest.mark.parametrize("domain", ["box(0, 1)", "simplex"])
@each_sequence
def test_mirror_descent_keeps_its_promises_in_the_mean(sequence: Sequence_, domain: str) -> None:
    """Regret and violation in the mean over seeds; the comparator satisfies E w @ x <= 0.4 with E w = (0.2, 0.5, 0.8)."""
    text = f"""
model m
horizon T = {T}
decision x[3] in {domain}
stream c[3] in [-1, 1]
stream w[3] ~ uniform([0, 0.2, 0.6], [0.4, 0.8, 1])
minimize c @ x
subject to
    cap: w @ x <= 0.4 on average
"""
    plan = compile_plan(parse(text), algorithm="mirror-descent")
    costs = sequence(np.random.default_rng(6), T, 3)
    low, high = np.array([0, 0.2, 0.6]), np.array([0.4, 0.8, 1])
    regrets, violations = [], []
    rows, right = (np.ones((1, 3)), [1.0]) if domain == "simplex" else (None, None)
    fixed = linprog(costs.sum(axis=0), [(low + high) / 2], [0.4], rows, right, bounds=[(0, 1)] * 3).x
    for seed in range(6):
        w = np.random.default_rng(100 + seed).uniform(low, high, (T, 3))
        x = decisions(plan, [{"c": c, "w": v} for c, v in zip(costs, w)])
        regrets.append(np.cumsum((costs * (x - fixed)).sum(axis=1)))
        violations.append(np.maximum(np.cumsum((w * x).sum(axis=1) - 0.4), 0))
    assert plan.guarantee is not None
    never_above(np.mean(regrets, axis=0), plan.guarantee.regret_curve(T))
    never_above(np.mean(violations, axis=0), plan.guarantee.violation_curve(T))


def test_the_latex_of_a_bound_keeps_that_of_its_quantities() -> None:
    quantities = (Quantity("a", r"\sum_t 1/\alpha_t", "steps", 1.0), Quantity("d", "G_g d_1 / (1 - r)", "start", 2.0))
    bound = Bound("static regret", "sqrt(T)", "a / 4 + d", quantities)
    assert r"\frac{\sum_t 1/\alpha_t}{4}" in bound.latex and "G_g d_1 / (1 - r)" in bound.latex


def test_another_horizon_makes_another_plan() -> None:
    """The same choice, with the settings and the guarantee of the other horizon."""
    text = """
model m
horizon T = 100
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
minimize c @ x
subject to
    cap: sum(x) <= 0.5 each round
"""
    plan = compile_plan(parse(text), algorithm="coldq")
    longer = plan.with_horizon(400)
    assert longer.algorithm == plan.algorithm and longer.horizon == 400
    assert longer.settings["gamma"].value == 200 and plan.settings["gamma"].value == 50
    assert plan.guarantee is not None and longer.guarantee is not None
    assert longer.guarantee.regret() == pytest.approx(plan.guarantee.regret(400))
