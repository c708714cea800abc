"""Whole trajectories of coldq and recoo in the nuclear ball against their listings.

A semidefinite program leaves more than 1e-6 in each step, and over a run it adds up. Here a step's argmin is found in NumPy from its dual,

    max over 0 <= lambda_n <= W_n of the minimum over X of <c + sum_n lambda_n a_n, x> - lambda @ b + alpha |x - y|^2,

with projections by singular values, and certified: alpha |x - x*|^2 is at most the gap between both values. CVXPY's objective is no less.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, plan_of, solve, trajectory
from scipy.optimize import brentq
from test_baselines import NUCLEAR

ROUNDS = 30
Step = Callable[[Array, Array, float, Array, Array, Array], Array]


def level(slope: Callable[[float], float], most: float) -> float:
    """Where a concave function on [0, most] with this slope is largest."""
    if most <= 0 or slope(0.0) <= 0:
        return 0.0
    return most if slope(most) >= 0 else float(brentq(slope, 0.0, most, xtol=1e-15, rtol=1e-15))


def exact_step(y: Array, c: Array, alpha: float, A: Array, b: Array, W: Array) -> Array:
    """argmin over the ball of <c, x - y> + alpha |x - y|^2 + W @ [A x - b]_+ for two rows."""

    def at(first: float, second: float) -> Array:
        return NUCLEAR.project(y - (c + first * A[0] + second * A[1]) / (2 * alpha))

    def second_at(first: float) -> float:
        return level(lambda s: A[1] @ at(first, s) - b[1], W[1])

    first = level(lambda s: A[0] @ at(s, second_at(s)) - b[0], W[0])
    lam = np.array([first, second_at(first)])
    x = at(*lam)
    dual = (c + lam @ A) @ x - lam @ b
    primal = c @ x + W @ np.maximum(A @ x - b, 0)
    assert primal - dual <= 1e-13 * (1 + W.sum() + np.abs(c).sum()), "the dual was not solved"
    return x


def rows(d: Round) -> tuple[Array, Array]:
    return np.asarray(d["A"]).reshape(2, 9), np.array([0.1, 0.2])


def coldq(rounds: list[Round], step: Step) -> list[Array]:
    """Algorithm 1 of Wang, Yan & Liu 2025 with alpha_t = sqrt(t) / 2, eta = 1/20, gamma = 2."""
    x, Q, found = NUCLEAR.start, np.full(2, 2.0), [NUCLEAR.start]
    for t, d in enumerate(rounds, start=1):
        if t > 1:
            Q = np.maximum((1 - 1 / 20) * Q + np.maximum(NUCLEAR.g(d, x), 0), 2.0)
        x = step(x, NUCLEAR.gradient(d, x), math.sqrt(t) / 2, *rows(d), Q)
        found.append(x)
    return found


def recoo(rounds: list[Round], step: Step) -> list[Array]:
    """The listing of Guo, Liu, Wei & Ying 2022 with alpha_t = sqrt(t) / 2, gamma_t = 0.3 t^0.6, eta_t = sqrt(t) / 2."""
    x, Q, found = NUCLEAR.start, np.full(2, 0.5), [NUCLEAR.start]
    for t, d in enumerate(rounds, start=1):
        gamma = 0.3 * t**0.6
        x = step(x, NUCLEAR.gradient(d, x), math.sqrt(t) / 2, *rows(d), gamma * Q)
        Q = np.maximum(Q + gamma * np.maximum(NUCLEAR.g(d, x), 0), 0.5 * math.sqrt(t + 1))
        found.append(x)
    return found


LISTINGS = {
    "coldq": (coldq, {"alpha": "sqrt(t) / 2", "eta": 1 / 20, "gamma": 2}),
    "recoo": (recoo, {"alpha": "0.5 * sqrt(t)", "gamma": "0.3 * t**0.6", "eta": "0.5 * sqrt(t)"}),
}


@pytest.mark.parametrize("name", LISTINGS)
def test_trajectories_in_the_nuclear_ball_equal_the_listing(name: str) -> None:
    """To 1e-6 of the diameter; penalties act between their ends in some rounds, at them in others."""
    listing, settings = LISTINGS[name]
    rng = np.random.default_rng(3)
    rounds = [NUCLEAR.draw(rng) for _ in range(ROUNDS)]
    ours, theirs = trajectory(plan_of(NUCLEAR.text, name, settings), rounds), listing(rounds, exact_step)
    assert max(np.linalg.norm(np.ravel(x) - z) for (x,), z in zip(ours, theirs, strict=True)) <= 1e-6 * NUCLEAR.diameter
    binding = [np.abs(A @ z - b) <= 1e-9 for (A, b), z in zip(map(rows, rounds), theirs[1:])]
    assert 5 <= np.sum(binding) < 2 * ROUNDS - 5


@pytest.mark.parametrize("name", LISTINGS)
def test_the_exact_step_is_the_argmin_of_cvxpy(name: str) -> None:
    """Every fifth step of the listing: no worse than CVXPY's answer, and within what its tolerance leaves of it."""
    rng, asked = np.random.default_rng(3), 0

    def step(y: Array, c: Array, alpha: float, A: Array, b: Array, W: Array) -> Array:
        nonlocal asked
        x, asked = exact_step(y, c, alpha, A, b, W), asked + 1
        if asked % 5 == 0:
            v = cp.Variable(9)
            solve(c @ (v - y) + alpha * cp.sum_squares(v - y) + W @ cp.pos(A @ v - b), NUCLEAR.domain(v))

            def cost(z: Array) -> float:
                return float(c @ (z - y) + alpha * ((z - y) ** 2).sum() + W @ np.maximum(A @ z - b, 0))

            assert cost(x) <= cost(v.value) + 1e-7 and np.linalg.norm(x - v.value) <= 1e-4
        return x

    LISTINGS[name][0]([NUCLEAR.draw(rng) for _ in range(20)], step)
    assert asked == 20
