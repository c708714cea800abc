"""The baselines against their rules written out with NumPy and CVXPY, their settings by hand, and their guarantees against runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, plan_of, solve, solved, trajectory
from thorough import one_in

Project = Callable[[Array], Array]
ROUNDS = 15


@dataclass(frozen=True)
class Case:
    """A model and the same problem by hand: gradients and projection in NumPy, domain and constraints in CVXPY."""

    text: str
    draw: Callable[[np.random.Generator], Round]
    gradient: Callable[[Round, Array], Array]
    rows: Callable[[Round, Array], Array]
    constraints: Callable[[Round, Any], list[Any]]
    project: Project
    domain: Callable[[cp.Variable], list[Any]]
    start: Array
    diameter: float

    def g(self, d: Round, x: Array) -> Array:
        values = self.constraints(d, x)
        return np.array([float(np.asarray(v.value if isinstance(v, cp.Expression) else v)) for v in values])


@cache
def _onto_simplex(size: int) -> tuple[cp.Problem, cp.Variable, cp.Parameter]:
    """Projection onto the simplex, and its variable and parameter."""
    x, v = cp.Variable(size), cp.Parameter(size)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [x >= 0, cp.sum(x) == 1]), x, v


def _project_simplex(v: Array) -> Array:
    problem, x, target = _onto_simplex(len(v))
    target.value = v
    solved(problem)
    return np.asarray(x.value)


BOX = Case(
    """
model box
horizon T = 50
decision x[4] in box(-1, [1, 2, 1, 2])
stream a[4] in [-1, 1]
stream A[2, 4] in [-1, 1]
stream b[2] in [0, 0.5]
minimize 2 * logistic(3 * a @ x)
subject to
    caps: A @ x <= b each round
""",
    lambda rng: {"a": rng.uniform(-1, 1, 4), "A": rng.uniform(-1, 1, (2, 4)), "b": rng.uniform(0, 0.5, 2)},
    lambda d, x: 6 * d["a"] / (1 + np.exp(-3 * d["a"] @ x)),
    lambda d, x: d["A"],
    lambda d, x: [d["A"][n] @ x - d["b"][n] for n in range(2)],
    lambda v: np.clip(v, -1, [1, 2, 1, 2]),
    lambda v: [v >= -1, v <= np.array([1, 2, 1, 2])],
    np.array([0, 0.5, 0, 0.5]),
    math.sqrt(4 + 9 + 4 + 9),
)

BALL = Case(
    """
model ball
horizon T = 50
decision x[5] in ball(2)
stream c[5] in [-2, 2]
stream A[3, 5] in [-1, 1]
stream b[3] in [-0.2, 0.5]
minimize 2 * sum(huber(x - c))
subject to
    caps: A @ x <= b each round
""",
    lambda rng: {"c": rng.uniform(-2, 2, 5), "A": rng.uniform(-1, 1, (3, 5)), "b": rng.uniform(-0.2, 0.5, 3)},
    lambda d, x: 4 * np.clip(x - d["c"], -1, 1),
    lambda d, x: d["A"],
    lambda d, x: [d["A"][n] @ x - d["b"][n] for n in range(3)],
    lambda v: v * min(1.0, 2 / max(np.linalg.norm(v), 1e-12)),
    lambda v: [cp.norm2(v) <= 2],
    np.zeros(5),
    4.0,
)

SIMPLEX = Case(
    """
model weights
horizon T = 50
decision x[6] in simplex
stream r[6] in [0.5, 2]
stream A[2, 6] in [-1, 1]
minimize -5 * log(r @ x)
subject to
    exposure: A @ x <= 0.1 each round
""",
    lambda rng: {"r": rng.uniform(0.5, 2, 6), "A": rng.uniform(-1, 1, (2, 6))},
    lambda d, x: -5 * d["r"] / (d["r"] @ x),
    lambda d, x: d["A"],
    lambda d, x: [d["A"][n] @ x - 0.1 for n in range(2)],
    _project_simplex,
    lambda v: [v >= 0, cp.sum(v) == 1],
    np.full(6, 1 / 6),
    math.sqrt(2),
)

CURVED = Case(
    """
model curved
horizon T = 50
decision x[4] in box(-1, 2)
stream c[4] in [-2, 2]
stream r in [0.5, 2]
stream w[4] in [0, 1]
minimize sum_squares(x - c) + 2 * logistic(sum(x))
subject to
    energy: sum_squares(x) <= r each round
    mixed: sum(w * exp(x)) - x[1] <= 2 each round
""",
    lambda rng: {"c": rng.uniform(-2, 2, 4), "r": rng.uniform(0.5, 2), "w": rng.uniform(0, 1, 4)},
    lambda d, x: 2 * (x - d["c"]) + 2 / (1 + np.exp(-x.sum())),
    lambda d, x: np.array([2 * x, d["w"] * np.exp(x) - np.array([0, 1, 0, 0])]),
    lambda d, x: [cp.sum_squares(x) - d["r"], cp.sum(cp.multiply(d["w"], cp.exp(x))) - x[1] - 2],
    lambda v: np.clip(v, -1, 2),
    lambda v: [v >= -1, v <= 2],
    np.full(4, 0.5),
    6.0,
)


def _project_nuclear(v: Array) -> Array:
    """Singular values onto the simplex of sum 2, where their sum is greater; a matrix is the vector of its rows."""
    u, s, vt = np.linalg.svd(v.reshape(3, 3))
    if s.sum() > 2:
        least = [(s[: k + 1].sum() - 2) / (k + 1) for k in range(3)]
        s = np.maximum(s - max(least), 0)
    return np.asarray((u * s @ vt).reshape(9))


NUCLEAR = Case(
    """
model matrix
horizon T = 50
decision X[3, 3] in nuclear_ball(2)
stream c[3, 3] in [-2, 2]
stream A[2, 3, 3] in [-1, 1]
minimize 2 * sum(huber(X - c))
subject to
    first: sum(A[0] * X) <= 0.1 each round
    second: sum(A[1] * X) <= 0.2 each round
""",
    lambda rng: {"c": rng.uniform(-2, 2, (3, 3)), "A": rng.uniform(-1, 1, (2, 3, 3))},
    lambda d, x: 4 * np.clip(x - d["c"].reshape(9), -1, 1),
    lambda d, x: d["A"].reshape(2, 9),
    lambda d, x: [d["A"][n].reshape(9) @ x - 0.1 * (n + 1) for n in range(2)],
    _project_nuclear,
    lambda v: [cp.normNuc(cp.reshape(v, (3, 3), order="C")) <= 2],
    np.zeros(9),
    4.0,
)

CASES = {"box": BOX, "ball": BALL, "simplex": SIMPLEX, "curved": CURVED, "nuclear": NUCLEAR}


# The rules, literally.

Rule = Callable[[Case, Sequence[Round]], list[Array]]


def dpp(case: Case, rounds: Sequence[Round]) -> list[Array]:
    V, alpha, rho = 3.0, 6.0, 0.05
    x, Q, found = case.start, 0.0, [case.start]
    for d in rounds:
        g, rows = case.g(d, x) + rho, case.rows(d, x)
        y = case.project(x - (V * case.gradient(d, x) + (Q + 0 * g) @ rows) / (2 * alpha))
        Q, x = np.maximum(Q + g + rows @ (y - x), 0), y
        found.append(x)
    return found


def yu_neely(case: Case, rounds: Sequence[Round]) -> list[Array]:
    gamma, alpha = 1.5, 4.0
    x, Q, found = case.start, np.zeros(len(case.g(rounds[0], case.start))), [case.start]
    for d in rounds:
        g = case.g(d, x)
        Q = np.maximum(-gamma * g, Q + gamma * g)
        v = cp.Variable(len(x))
        penalty = sum(w * h for w, h in zip((Q + gamma * g) * gamma, case.constraints(d, v)))
        solve(case.gradient(d, x) @ v + penalty + alpha * cp.sum_squares(v - x), case.domain(v))
        x = np.asarray(v.value)
        found.append(x)
    return found


def mahdavi(case: Case, rounds: Sequence[Round]) -> list[Array]:
    eta, delta = 0.15, 2.0
    x, found = case.start, [case.start]
    lam = np.zeros(len(case.g(rounds[0], x)))
    for d in rounds:
        g, rows = case.g(d, x), case.rows(d, x)
        x = case.project(x - eta * (case.gradient(d, x) + lam @ rows))
        lam = np.maximum(lam + eta * (g - delta * eta * lam), 0)
        found.append(x)
    return found


def jenatton(case: Case, rounds: Sequence[Round]) -> list[Array]:
    R, G, b = 0.5, 1.5, 0.4
    x, lam, found = case.start, 0.0, [case.start]
    for t, d in enumerate(rounds, start=1):
        g, rows = case.g(d, x), case.rows(d, x)
        eta, theta = R / (G * t**b), 6 * R * G / t**b
        mu = 1 / (theta * (t + 1))
        x = case.project(x - eta * (case.gradient(d, x) + lam * rows[np.argmax(g)]))
        lam = max(lam + mu * (g.max() - theta * lam), 0.0)
        found.append(x)
    return found


def recoo(case: Case, rounds: Sequence[Round]) -> list[Array]:
    alpha, gamma, eta = (lambda t: 0.5 * math.sqrt(t)), (lambda t: 0.3 * t**0.6), (lambda t: 0.5 * math.sqrt(t))
    x, found = case.start, [case.start]
    Q = np.full(len(case.g(rounds[0], x)), eta(1))
    for t, d in enumerate(rounds, start=1):
        v = cp.Variable(len(x))
        penalty = sum(q * gamma(t) * cp.pos(h) for q, h in zip(Q, case.constraints(d, v)))
        cost = case.gradient(d, x) @ (v - x) + penalty + alpha(t) * cp.sum_squares(v - x)
        solve(cost / alpha(t), case.domain(v))
        x = np.asarray(v.value)
        Q = np.maximum(Q + gamma(t) * np.maximum(case.g(d, x), 0), eta(t + 1))
        found.append(x)
    return found


def sinha_vaze(case: Case, rounds: Sequence[Round], beta_g: float = 0.5) -> list[Array]:
    beta, rate, D = 0.5, 0.3, 2.0
    x, q, total, found = case.start, 0.0, 0.0, [case.start]
    for d in rounds:
        g = case.g(d, x)
        q += beta_g * max(g.max(), 0.0)
        slope = case.rows(d, x)[np.argmax(g)] if g.max() > 0 else 0.0
        step = beta * case.gradient(d, x) + rate * math.exp(rate * q) * beta_g * slope
        total += step @ step
        x = case.project(x - math.sqrt(2) * D / (2 * math.sqrt(total)) * step)
        found.append(x)
    return found


def sinha_vaze_falling(case: Case, rounds: Sequence[Round]) -> list[Array]:
    beta, beta_g, D = 0.5, 0.8, 2.0
    x, W, total, found = case.start, 0.0, 0.0, [case.start]
    for t, d in enumerate(rounds, start=1):
        g, rate = case.g(d, x), 0.4 / (math.sqrt(t) * (1 + math.log(t)))
        W += rate * beta_g * max(g.max(), 0.0)
        slope = case.rows(d, x)[np.argmax(g)] if g.max() > 0 else 0.0
        step = beta * case.gradient(d, x) + rate * math.exp(W) * beta_g * slope
        total += step @ step
        x = case.project(x - math.sqrt(2) * D / (2 * math.sqrt(total)) * step)
        found.append(x)
    return found


def sinha_vaze_two_scales(case: Case, rounds: Sequence[Round]) -> list[Array]:
    return sinha_vaze(case, rounds, beta_g=0.8)


def sinha_vaze_strong(case: Case, rounds: Sequence[Round]) -> list[Array]:
    beta, V, alpha = 1.0, 4.0, 2.0
    x, q, H, found = case.start, 0.0, 0.0, [case.start]
    for d in rounds:
        g = case.g(d, x)
        q += beta * max(g.max(), 0.0)
        slope = case.rows(d, x)[np.argmax(g)] if g.max() > 0 else 0.0
        H += V * beta * alpha
        x = case.project(x - (V * beta * case.gradient(d, x) + 2 * q * beta * slope) / H)
        found.append(x)
    return found


def pfs(case: Case, rounds: Sequence[Round]) -> list[Array]:
    eta, rho = 0.1, 0.1
    x, found = case.start, [case.start]
    for d in rounds:
        g = case.g(d, x)
        s = case.rows(d, x)[np.argmax(g)]
        y = x - eta * case.gradient(d, x)
        x = case.project(y - max(g.max() + s @ (y - x) + rho, 0) * s / (s @ s))
        found.append(x)
    return found


RULES: dict[str, tuple[str, Rule, dict[str, str | float]]] = {
    "dpp": ("dpp", dpp, {"V": 3, "alpha": 6, "tighten": 0.05}),
    "yu-neely": ("yu-neely", yu_neely, {"gamma": 1.5, "alpha": 4}),
    "mahdavi": ("mahdavi", mahdavi, {"eta": 0.15, "delta": 2}),
    "jenatton": ("jenatton", jenatton, {"R": 0.5, "G": 1.5, "b": 0.4}),
    "recoo": ("recoo", recoo, {"alpha": "0.5 * sqrt(t)", "gamma": "0.3 * t**0.6", "eta": "0.5 * sqrt(t)"}),
    "sinha-vaze": ("sinha-vaze", sinha_vaze, {"beta": 0.5, "rate": 0.3, "D": 2}),
    "sinha-vaze with two scales": (
        "sinha-vaze",
        sinha_vaze_two_scales,
        {"beta": 0.5, "beta_g": 0.8, "rate": 0.3, "D": 2},
    ),
    "sinha-vaze with falling rates": (
        "sinha-vaze",
        sinha_vaze_falling,
        {"beta": 0.5, "beta_g": 0.8, "rate": "0.4 / (sqrt(t) * (1 + log(t)))", "D": 2},
    ),
    "sinha-vaze strongly convex": ("sinha-vaze", sinha_vaze_strong, {"beta": 1, "V": 4, "alpha_f": 2}),
    "pfs": ("pfs", pfs, {"eta": 0.1, "rho": 0.1}),
}


# recoo in the nuclear ball is in test_nuclear_trajectories: what a solver leaves of each semidefinite program adds up over a run.
PAIRS = [(rule, case) for rule in RULES for case in CASES if (rule, case) != ("recoo", "nuclear")]


@pytest.mark.parametrize(("rule", "case"), one_in(3, PAIRS))
def test_trajectories_equal_the_rules(rule: str, case: str) -> None:
    name, reference, settings = RULES[rule]
    problem, rng = CASES[case], np.random.default_rng(3)
    text = problem.text
    if (
        rule.startswith("sinha-vaze") and "strongly" not in rule and case == "curved"
    ):  # without the modulus that would make it the strongly convex rule
        text = text.replace("minimize sum_squares(x - c)", "stream one in [0, 1]\nminimize one * sum_squares(x - c)")
    rounds = [{**problem.draw(rng), "one": 1.0} for _ in range(ROUNDS)]
    ours = trajectory(plan_of(text, name, settings), rounds)
    theirs = reference(problem, rounds)
    worst = max(np.linalg.norm(np.ravel(a) - b) for (a,), b in zip(ours, theirs, strict=True))
    assert worst <= 1e-6 * problem.diameter


def test_gradient_descent_and_frank_wolfe_in_the_nuclear_ball() -> None:
    text = NUCLEAR.text.split("subject to")[0].replace("stream A[2, 3, 3] in [-1, 1]\n", "")
    rng = np.random.default_rng(4)
    rounds = [{"c": rng.uniform(-2, 2, (3, 3))} for _ in range(ROUNDS)]
    descent = trajectory(plan_of(text, "ogd", {"eta": "0.4 / sqrt(t)"}), rounds)
    wolfe = trajectory(plan_of(text, "ofw", {"eta": 0.2, "sigma": 0.3}), rounds)
    x, y, total = np.zeros(9), np.zeros(9), np.zeros(9)
    for t, d in enumerate(rounds, start=1):
        assert np.abs(descent[t - 1][0].reshape(9) - x).max() <= 1e-9
        assert np.abs(wolfe[t - 1][0].reshape(9) - y).max() <= 1e-9
        x = _project_nuclear(x - 0.4 / math.sqrt(t) * NUCLEAR.gradient(d, x))
        total = total + NUCLEAR.gradient(d, y)
        u, _, vt = np.linalg.svd((0.2 * total + y).reshape(3, 3))
        y = y + 0.3 * ((-2 * np.outer(u[:, 0], vt[0])).reshape(9) - y)


@pytest.mark.parametrize(
    ("domain", "lmo", "start"),
    [
        ("box(-1, [1, 2, 3, 4])", lambda c: np.where(c > 0, -1.0, [1, 2, 3, 4]), np.array([0, 0.5, 1, 1.5])),
        ("ball(1.5)", lambda c: -1.5 * c / np.linalg.norm(c), np.zeros(4)),
        ("simplex(2)", lambda c: 2.0 * (np.arange(4) == np.argmin(c)), np.full(4, 0.5)),
    ],
)
def test_ofw_is_frank_wolfe_on_the_sum(domain: str, lmo: Project, start: Array) -> None:
    text = f"model m\nhorizon T = 60\ndecision x[4] in {domain}\nstream a[4] in [-2, 2]\nminimize logistic(3 * a @ x)\n"
    rng = np.random.default_rng(6)
    rounds = [{"a": rng.uniform(-2, 2, 4)} for _ in range(60)]
    ours = trajectory(plan_of(text, "ofw", {"eta": 0.4}), rounds)
    x, total = start, np.zeros(4)
    for t, d in enumerate(rounds, start=1):
        assert np.abs(ours[t - 1][0] - x).max() <= 1e-9
        total = total + 3 * d["a"] / (1 + math.exp(-3 * d["a"] @ x))
        x = x + math.sqrt(3 / 60) * (lmo(0.4 * total + (x - start)) - x)


def test_potentials_that_would_overflow() -> None:
    """exp(rate Q) is never formed: with rate = 50 it exceeds every float after a few rounds of violation."""
    settings: dict[str, str | float] = {"beta": 1, "rate": 50, "D": 4}
    plan = plan_of(BALL.text, "sinha-vaze", settings)
    rng = np.random.default_rng(1)
    rounds = [{**BALL.draw(rng), "b": np.full(3, -0.2)} for _ in range(50)]
    assert all(np.isfinite(x).all() for (x,) in trajectory(plan, rounds))
