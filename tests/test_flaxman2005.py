"""Bandit gradient descent against a literal reference, its estimates against exact gradients, its promise against runs."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from thorough import corners, thorough

import oco

DOMAINS = {
    "box": ("x[3] in box(-1, 1)", 3, lambda v: np.clip(v, -1, 1)),
    "ball": ("x[3] in ball(2)", 3, lambda v: v * min(1.0, 2 / max(np.linalg.norm(v), 1e-300))),
    "simplex": ("x[3] in simplex", 2, lambda v: simplex_point(v)),
}
TEXT = """
model bandit
horizon T = {T}
decision {domain}
stream a[3] in [-1, 1]
minimize sum_squares(x) + a @ x
feedback bandit
"""


def simplex_point(v: np.ndarray) -> np.ndarray:
    """Nearest point of the simplex, by bisection of the threshold."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - (low + high) / 2, 0)


@cache
def plan_of(name: str, T: int, **settings: float) -> oco.Plan:
    text = TEXT.format(T=T, domain=DOMAINS[name][0])
    return oco.compile(oco.parse(text), algorithm="bgd", settings=settings or None)


@pytest.mark.parametrize("name", DOMAINS)
def test_decisions_are_those_of_the_paper(name: str) -> None:
    """x_t = y_t + delta u_t; y_{t+1} = P(y_t - eta d/delta (f_t(x_t) - baseline) u_t) over the shrunk domain about its centre."""
    T = 60
    _, d, project = DOMAINS[name]
    plan = plan_of(name, T, units="user", eta=0.02, delta=0.1, r=0.25, baseline=0.5)
    rng = np.random.default_rng(3)
    a, normals = rng.uniform(-1, 1, (T, 3)), rng.normal(size=(T, 3))
    trace = plan.run({"a": a}, draws={"u": normals})
    centre = np.full(3, 1 / 3) if name == "simplex" else np.zeros(3)
    y, shrink = centre.copy(), 1 - 0.1 / 0.25
    for t in range(T):
        u = normals[t] - (normals[t].mean() if name == "simplex" else 0.0)
        u /= np.linalg.norm(u)
        x = y + 0.1 * u
        np.testing.assert_allclose(trace.decisions[t], x, atol=1e-9)
        value = x @ x + a[t] @ x
        y = centre + shrink * (project(centre + (y - 0.02 * d / 0.1 * (value - 0.5) * u - centre) / shrink) - centre)


def design(name: str) -> np.ndarray:
    """Directions of mean 0 with the mean outer product of the sphere: cross-polytope, or hexagon in the plane of a simplex."""
    if name != "simplex":
        return np.vstack([np.eye(3), -np.eye(3)])
    first, second = np.array([1.0, -1.0, 0.0]) / math.sqrt(2), np.array([1.0, 1.0, -2.0]) / math.sqrt(6)
    angles = np.arange(6) * math.pi / 3
    return np.outer(np.cos(angles), first) + np.outer(np.sin(angles), second)


@pytest.mark.parametrize("name", DOMAINS)
def test_estimates_have_the_gradient_for_their_mean(name: str) -> None:
    """One step from the centre along each direction of a design, which is exact for quadratic losses, in the affine hull."""
    eta, delta = 1e-4, 0.1
    plan = plan_of(name, 2, units="user", eta=eta, delta=delta, r=0.25, baseline=0.0)
    a, steps = np.array([0.7, -0.2, 0.4]), []
    centre = np.full(3, 1 / 3) if name == "simplex" else np.zeros(3)
    for u in design(name):
        trace = plan.run({"a": np.stack([a, a])}, draws={"u": np.stack([u, u])})
        steps.append((trace.decisions[1] - delta * u - centre) / -eta)
    exact = 2 * centre + a
    exact = exact - exact.mean() if name == "simplex" else exact
    np.testing.assert_allclose(np.mean(steps, axis=0), exact, atol=1e-8)


KINDS = ("still", "drawn", "swings")


@pytest.mark.parametrize("seeds", [2, thorough(4)])
@pytest.mark.parametrize(("name", "kind"), corners(product(DOMAINS, KINDS), [*zip(DOMAINS, KINDS)]))
def test_regret_stays_within_the_promise_and_decisions_in_the_domain(name: str, kind: str, seeds: int) -> None:
    T = 1000
    plan = plan_of(name, T)
    assert plan.guarantee is not None
    rng, regrets = np.random.default_rng(1), []
    sign = np.array([1.0, -1.0, 1.0])
    for seed in range(seeds):
        a = {
            "still": np.tile(sign, (T, 1)),
            "drawn": rng.uniform(-1, 1, (T, 3)),
            "swings": sign * np.sign(np.sin(np.arange(T) / 100))[:, None],
        }[kind]
        trace = plan.run({"a": a}, seed=seed)
        assert all(plan.canonical.blocks[0].domain.contains(x) for x in trace.decisions[::50])
        regrets.append(trace.regret("static")[-1])
    assert np.mean(regrets) <= plan.guarantee.regret()


def test_it_learns_from_values_alone() -> None:
    """Losses that stay have their least value at -0.75, and staying at the centre costs 0: the last tenth is below -0.15."""
    T = 20_000
    a = np.tile([1.0, -1.0, 1.0], (T, 1))
    assert plan_of("ball", T).run({"a": a}, seed=1).loss[-T // 10 :].mean() < -0.15


def test_models_without_a_learner_before_have_one() -> None:
    for text in (
        "model m\nhorizon T = 1000\ndecision x[5] in simplex\nstream a[5] in [0, 1]\nminimize a @ x\nfeedback bandit\n",
        "model m\nhorizon T = 1000\ndecision x in box(0, 9)\nstream p in [0, 1]\nminimize (x - 5 * p) ** 2\nfeedback bandit\n",
        "model m\nhorizon T unknown\ndecision x[2] in ball(1)\nstream a[2] in [0, 1]\nminimize a @ x\nfeedback bandit\n",
        "model m\nhorizon T = 99\ndecision x[2] in ball(1)\nstream a[2] in [0, 1]\nminimize a @ x\n"
        "measure dynamic regret\nfeedback bandit\n",
    ):
        assert oco.compile(oco.parse(text)).algorithm == "response-surface"
        assert oco.compile(oco.parse(text), "bgd").guarantee is not None


def test_a_point_leaves_no_room_for_perturbations_and_none_for_regret() -> None:
    text = "model m\nhorizon T = 100\ndecision x[2] in box(1, 1)\nstream a[2] in [0, 1]\nminimize a @ x\nfeedback bandit\nusing bgd\n"
    plan = oco.compile(oco.parse(text))
    assert plan.guarantee is not None and plan.guarantee.regret() == 0
    assert np.array_equal(plan.run({"a": np.full((100, 2), 0.5)}).decisions, np.ones((100, 2)))
