"""Prices of constraints on average in `hedged`, against the formula: the penalty, or slopes that come where these are less."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from driving import Run, plan_of
from scipy.optimize import minimize
from test_pilots_on_data import TEXT as PACING
from test_pilots_on_data import rounds

import oco
from oco.compiler.algorithms.dual_prices import RESERVE, STEP, DualPrices
from oco.compiler.algorithms.experts import gradients, solving
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical

TEXT = """
model spending
horizon T = 30
decision x[2] in box(0, 1)
stream v[2] in [0, 1]
stream c[2] in [0, 2]
minimize -v @ x
subject to
    budget: c @ x <= 0.4  on average, penalty {penalty}
"""


@pytest.mark.parametrize("penalty", [0.2, 50.0])
def test_prices_follow_the_formula(penalty: float) -> None:
    run, rng = Run(plan_of(TEXT.format(penalty=penalty), "hedged")), np.random.default_rng(3)
    price, squares, used, F, G, guesses = 0.0, 0.0, 0.0, 0.0, 0.0, list[float]()
    for t in range(1, 31):
        (x,) = run.decisions
        v, c = rng.uniform(0, 1, 2), rng.uniform(0, 2, 2)
        g = c @ x - 0.4
        used, squares, F, G = used + g, squares + g * g, F + v @ v, G + c @ c
        left, size = 30 - t + 1, math.sqrt(squares / t)
        error = g + (used + RESERVE * size) / left
        guesses.append(min(penalty, math.sqrt(F / G)))
        price = min(max(price + STEP * guesses[-1] * error / (size * math.sqrt(min(t, left))), 0.0), penalty)
        run.play({"v": v, "c": c})
        np.testing.assert_allclose(run.value("lambda"), [price], atol=1e-9)
    assert max(guesses) == penalty if penalty < 1 else max(guesses) < 3


def test_rounding_of_a_constraint_that_is_met_as_an_equality_has_no_price() -> None:
    """0.1 - 0.3 + 0.2 is 0, and more than 0 in floating point: its slope is no part of the subgradient, that of 1e-9 is."""
    text = "model m\nhorizon T = 9\ndecision x[3] in box(-1, 1)\nstream a[3] in [-1, 1]\nminimize a @ x\n"
    problem = canonical(oco.parse(f"{text}subject to\n    met: sum(x) <= 0 each round\n"))

    def slope(t: Any, x: Any, a: Any) -> Any:
        p, x = Problem(t, TraceSpec(problem, {}, problem.structure[0], 9.0), {"a": a}, t.lift(1)), Point((x,))
        return DualPrices(p).slope({}, x, p.constraints(x), t.full(2.0, (1,))).blocks[0]

    of, a = as_numpy("slope", slope, *[Type(DType.FLOAT, (3,))] * 2), np.array([0.5, -0.5, 1.0])
    rounded = np.array([0.1 + 0.2, -0.3, 0.0])
    assert rounded.sum() > 0
    np.testing.assert_array_equal(of(rounded, a)[0], a)
    np.testing.assert_array_equal(of(rounded + 1e-9, a)[0], a + 2)


def test_a_constraint_that_is_the_same_in_all_rounds_is_met_on_average_where_it_pays() -> None:
    """Rounds in which a unit is worth 2 use some of what those in which it is worth nothing leave."""
    text = """
model well
horizon T = 400
decision x in box(0, 4)
context v in [0, 4]
minimize 0.5 * (x - v) ** 2
subject to
    pump: x <= 1  on average
"""
    plan = oco.compile(oco.parse(text), "hedged")
    v = np.where(np.arange(400) % 8 < 4, 3.0, 0.0)
    x = plan.run({"v": v}, backend="c").decisions.reshape(400)
    worth, worthless = x[100:][v[100:] > 0], x[100:][v[100:] == 0]
    assert worth.mean() > 1.25 and worthless.mean() < 0.75
    assert 0.93 < x.mean() <= 1.0
    assert 0.5 * ((x[100:] - v[100:]) ** 2).mean() < 0.9  # 1 where each round is held to it


def test_it_is_the_default_on_data_and_earns_more_than_others_that_keep_a_budget() -> None:
    """Values and prices with a season, far below what the model allows: the budget is used up, and not exceeded."""
    data = rounds(0)
    plan = oco.compile(oco.parse(PACING), data=data)
    assert plan.algorithm == "hedged" and plan.choice.pilots is None
    run = plan.run(data)
    assert -0.05 * 3 * 480 < run.constraints.sum() < 0.01 * 3 * 480
    other = oco.compile(oco.parse(PACING), "coldq").run(data)
    assert other.constraints.sum() < 0 and run.loss.sum() < 1.5 * other.loss.sum() < 0


def test_experts_decide_for_the_minimum_of_the_predicted_loss_and_the_price() -> None:
    """Also where the price alone would take the step out of the domain: `argmin f(u; s) + lambda <g, u> + alpha |u - y|^2` by SciPy."""
    text = """
model channels
horizon T = 40
decision x[2] in box(0, 1)
stream v[2] in [0, 8]
stream c[2] in [0, 3]
minimize -sum(v * log(1 + 4 * x))
subject to
    budget: c @ x <= 0.4  on average, penalty 25
"""
    plan, rng = oco.compile(oco.parse(text), "hedged", backend="numpy"), np.random.default_rng(3)
    learner, scales, D = plan.learner(), plan.choice.winner.scales, plan.settings["D"].value
    experts = solving(plan.choice.situation.canonical, 1)
    k = max(range(len(experts)), key=lambda i: experts[i][1])
    row, reach, _ = experts[k]
    k, beyond = k + len(gradients(plan.choice.situation.canonical)), 0
    for _ in range(30):
        learner.decide()
        before = learner.values["x"][k]
        learner.observe(v=rng.uniform(0, 8, 2), c=rng.uniform(1, 3, 2))
        state = learner.values
        (v, c), lam = np.split(state["predicted"][row], 2), float(state["lambda"][0])
        alpha = math.sqrt(2 * state["S"][k]) / (2 * reach * float(D))
        charge = lam * c * scales.radius / scales.inequalities[0]

        def penalised(u: np.ndarray, v: np.ndarray = v, charge: np.ndarray = charge, y: np.ndarray = before) -> float:
            gain = v @ np.log(1 + 4 * np.clip(scales.origins[0] + scales.radius * u, 0, 1))
            return float(-gain / scales.loss + charge @ u + alpha * (u - y) @ (u - y))  # noqa: B023

        ends = [((0 - o) / scales.radius, (1 - o) / scales.radius) for o in np.broadcast_to(scales.origins[0], 2)]
        best = minimize(penalised, before, bounds=ends, tol=1e-14).x
        assert penalised(state["x"][k]) <= penalised(best) + 1e-10
        beyond += int((before - charge / (2 * alpha) < ends[0][0]).any())
    assert beyond > 10
