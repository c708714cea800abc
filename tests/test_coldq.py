"""COLDQ against Algorithm 1 of Wang, Yan & Liu 2025 written out with CVXPY, and its step against exact bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from coldq_cases import CASES, reference
from driving import Array, Round, Run, solve, solved, trajectory
from thorough import corners

from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import load, parse

BY_TURNS = ["simplex", "squares", "equality", "nodes-simplex"]
"""Affine rows and smooth ones, equalities and kinks; `tests/test_kinked_steps.py` has kinks over the other sets."""


@pytest.mark.parametrize("name", corners(CASES, BY_TURNS))
def test_trajectories_equal_the_listing(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(7)
    rounds = [case.draw(rng) for _ in range(case.rounds or case.horizon)]
    ours = trajectory(compile_plan(parse(case.text), algorithm="coldq", settings={"alpha": "sqrt(t)"}), rounds)
    theirs = reference(case, rounds, case.horizon, math.sqrt)
    worst = max(np.linalg.norm(a - b) for x, z in zip(ours, theirs) for a, b in zip(x, z))
    assert worst <= 1e-6 * case.diameter


def _exact_job_step(y: Array, c: Array, alpha: float, Q: float, jobs: float) -> list[Any]:
    """argmin <c, x> + alpha |x - y|^2 + Q [jobs - 4 sum log(1 + 4x)]_+ on [0, 1000]^n, by bisection in 40 digits.

    Entry i solves c + 2 alpha (x - y) = 16 lambda / (1 + 4 x), a quadratic.
    """
    two = 2 * mp.mpf(alpha)
    shifts = [mp.mpf(float(ci)) - two * mp.mpf(float(yi)) for ci, yi in zip(c, y)]

    def decision(lam: Any) -> list[Any]:
        found = []
        for s in shifts:
            a, b, k = 4 * two, two + 4 * s, s - 16 * lam
            root = (-b + mp.sqrt(b * b - 4 * a * k)) / (2 * a) if b * b >= 4 * a * k else mp.mpf(-1)
            found.append(min(max(root, mp.mpf(0)), mp.mpf(1000)))
        return found

    def violation(lam: Any) -> Any:
        return mp.mpf(jobs) - 4 * sum(mp.log(1 + 4 * x) for x in decision(lam))

    low, high = mp.mpf(0), mp.mpf(Q)
    if violation(low) <= 0:
        return decision(low)
    if violation(high) >= 0:
        return decision(high)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if violation(middle) > 0 else (low, middle)
    return decision(low)


def test_steps_of_job_scheduling_are_exact() -> None:
    """Each step from the learner's own state, to 1e-9 of the domain's width."""
    mp.mp.dps = 40
    rng = np.random.default_rng(3)
    model = load("examples/job_scheduling.oco")
    run = Run(compile_plan(model, algorithm="coldq"))
    worst = 0.0
    for t in range(1, 13):
        (x,) = run.decisions
        price, jobs = rng.uniform(-200, 600, 10), float(rng.poisson(2500))
        c = price[np.repeat(np.arange(10), 10)]
        run.play({"price": price, "jobs": jobs})
        exact = _exact_job_step(x, c, math.sqrt(t), float(run.value("Q")[0]), jobs)
        worst = max(worst, max(abs(float(a - mp.mpf(float(b)))) for a, b in zip(exact, run.decisions[0])))
    assert worst <= 1e-9 * 1000


def test_a_kink_in_a_constraint_is_met_exactly() -> None:
    """g = sum |x_i - k_i| - r: entries rest on the kinks, where bisection finds them."""
    rng = np.random.default_rng(5)
    text = """
model kinks
horizon T = 50
decision x[6] in box(-1, 1)
stream c[6] in [-3, 3]
stream k[6] in [-0.5, 0.5]
stream r in [0, 1]
minimize c @ x
subject to
    near: sum(abs(x - k)) <= r each round
"""
    run = Run(compile_plan(parse(text), algorithm="coldq"))
    for t in range(1, 40):
        (y,) = run.decisions
        data = {"c": rng.uniform(-3, 3, 6), "k": rng.uniform(-0.5, 0.5, 6), "r": rng.uniform(0, 1)}
        run.play(data)
        alpha, Q = math.sqrt(t), float(run.value("Q")[0])

        def decision(lam: float, y: Array = y, d: Round = data, alpha: float = alpha) -> Array:
            """Soft thresholding around k, cut to the box: the minimum of a convex function of one entry."""
            target = y - d["c"] / (2 * alpha) - d["k"]
            soft = np.sign(target) * np.maximum(np.abs(target) - lam / (2 * alpha), 0)
            return np.clip(d["k"] + soft, -1, 1)

        low, high = 0.0, Q
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.abs(decision(middle) - data["k"]).sum() > data["r"] else (low, middle)
        assert np.abs(run.decisions[0] - decision(high)).max() <= 1e-9


def test_a_vertex_of_the_domain_is_left_when_the_constraint_asks() -> None:
    """The gradient pushes x far beyond a corner, where the dual is flat; only a large multiplier brings it back."""
    text = """
model corner
horizon T = 100
decision x[3] in box(0, 1)
stream c[3] in [-10000, 10000]
minimize c @ x
subject to
    low: x[0] + 2 * x[1] + 3 * x[2] <= 1 each round
    high: x[0] - x[1] >= -0.5 each round
"""
    run = Run(compile_plan(parse(text), algorithm="coldq", settings={"gamma": "1e6"}))
    run.play({"c": np.full(3, -9000.0)})
    x = cp.Variable(3)
    y = np.full(3, 0.5)
    cost = -9000 * cp.sum(x) + cp.sum_squares(x - y)
    solve(cost / 9000, [x >= 0, x <= 1, x @ np.array([1, 2, 3]) <= 1, x[0] - x[1] >= -0.5])
    assert np.abs(run.decisions[0] - x.value).max() <= 1e-6


def test_the_queue_starts_at_gamma_and_stays_between_its_bounds() -> None:
    """Lemma 1 with G = sup |g|; Q_1 = gamma whatever round 1 reveals."""
    rng = np.random.default_rng(2)
    run = Run(compile_plan(parse(CASES["box"].text), algorithm="coldq"))
    run.play(CASES["box"].draw(rng))
    assert (run.value("Q") == 20.0).all()
    for _ in range(60):
        run.play(CASES["box"].draw(rng))
        assert (run.value("Q") >= 20.0).all() and (run.value("Q") <= 50 * 40).all()


HARD = """
model hard
horizon T = 1000
decision x[6] in {domain}
stream c[6] in [-1000000, 1000000]
stream A[5, 6] in [-1000, 1000]
stream b[5] in [-1000, 1000]
minimize c @ x
subject to
    limits: A @ x <= b each round
"""
SETS: dict[str, Callable[[cp.Variable], list[Any]]] = {
    "box(-1, 2)": lambda v: [v >= -1, v <= 2],
    "ball(1.5)": lambda v: [cp.norm2(v) <= 1.5],
    "simplex(2)": lambda v: [v >= 0, cp.sum(v) == 2],
}


def hard_rows(rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of all sizes: independent, opposite, dependent, zero, integers."""
    A = rng.normal(size=(5, 6)) * 10.0 ** rng.integers(-2, 3)
    match rng.integers(4):
        case 1:
            A[1], A[3] = -A[0], A[2]
        case 2:
            A[2], A[4] = A[0] + A[1], 0
        case 3:
            A = np.round(A)
    return A, A @ rng.uniform(-1, 1, 6) + rng.normal(size=5) * rng.choice([0, 0.1, 1])


@pytest.mark.parametrize("domain", corners(SETS, ["ball(1.5)"]))
def test_steps_are_as_good_as_those_of_cvxpy_on_hard_rows(domain: str) -> None:
    """Gradients, rows and queues over seven orders of magnitude, dependent and infeasible rows: never a worse objective than CVXPY's."""
    rng = np.random.default_rng(1)
    run = Run(compile_plan(parse(HARD.format(domain=domain)), algorithm="coldq"))
    begin = run.state
    (y,) = run.decisions
    v, slope, root, near = cp.Variable(6), cp.Parameter(6), cp.Parameter(nonneg=True), cp.Parameter(6)
    rows, levels = cp.Parameter((5, 6)), cp.Parameter(5)
    objective = slope @ v + cp.sum_squares(root * v - near) + cp.sum(cp.pos(rows @ v - levels))
    problem = cp.Problem(cp.Minimize(objective), SETS[domain](v))
    for _ in range(40):
        c, (A, b) = rng.normal(size=6) * 10.0 ** rng.integers(-2, 5), hard_rows(rng)
        Q = 10.0 ** rng.uniform(-2, 5, 5)
        run.state = (*begin[:2], Q, *begin[3:])
        run.play({"c": c, "A": A, "b": b})
        size = max(1.0, float(np.abs(c).max()), float((Q * np.abs(A).max(axis=1)).max()))
        slope.value, root.value, near.value = c / size, size**-0.5, size**-0.5 * y
        rows.value, levels.value = Q[:, None] * A / size, Q * b / size
        solved(problem)

        def cost(x: Array, c: Array = c, A: Array = A, b: Array = b, Q: Array = Q) -> float:
            return float(c @ (x - y) + ((x - y) ** 2).sum() + Q @ np.maximum(A @ x - b, 0))

        terms = np.abs(c) @ np.abs(v.value - y) + Q @ np.abs(A @ v.value - b) + 1
        assert cost(run.decisions[0]) <= cost(v.value) + 1e-5 * terms
