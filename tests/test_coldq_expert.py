"""COLDQ-Expert against Algorithm 2 of Wang, Yan & Liu 2025 (appendix J) written out with CVXPY; its promise against runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, Run, solved, trajectory
from thorough import corners

from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import parse

TEXT = """
model m
horizon T = {T}
decision x[4] in {domain}
stream a[4] in [-2, 2]
stream G[2, 4] in [-1, 1]
minimize sum_squares(x - a)
subject to
    limits: G @ x <= 0.3 each round
measure dynamic regret
"""
MATRIX = """
model m
horizon T = {T}
decision X[2, 2] in {domain}
stream a[4] in [-2, 2]
stream G[2, 4] in [-1, 1]
minimize 3 * logistic(a[0:2] @ X[0] + a[2:4] @ X[1])
subject to
    limits: G[0:2, 0:2] @ X[0] + G[0:2, 2:4] @ X[1] <= 0.3 each round
measure dynamic regret
"""


def _logistic(x: Array, a: Array) -> Array:
    return np.asarray(3 * a / (1 + np.exp(-a @ x)))


LOSSES: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "squares": (TEXT, lambda x, a: 2 * (x - a)),
    "logistic": (TEXT.replace("sum_squares(x - a)", "3 * logistic(a @ x)"), _logistic),
    "matrix": (MATRIX, _logistic),
}


def nuclear_at_most_one(v: cp.Variable) -> list[cp.Constraint]:
    """Of a matrix [[a, b], [c, d]] the square of the sum of singular values is a^2 + b^2 + c^2 + d^2 + 2 |a d - b c|: two cones."""
    a, b, c, d = (v[k] for k in range(4))
    return [cp.norm2(cp.hstack([a + d, b - c])) <= 1, cp.norm2(cp.hstack([a - d, b + c])) <= 1]


DOMAINS = {
    "box(0, 1)": (lambda v: [v >= 0, v <= 1], np.full(4, 0.5), 2.0),
    "ball(1)": (lambda v: [cp.norm2(v) <= 1], np.zeros(4), 2.0),
    "simplex": (lambda v: [v >= 0, cp.sum(v) == 1], np.full(4, 0.25), math.sqrt(2)),
    "nuclear_ball(1)": (lambda v: nuclear_at_most_one(v), np.zeros(4), 2.0),
}


class ExpertStep:
    """Step of an expert by CVXPY: argmin of <slope, v - x> + a |v - x|^2 + sum_n [rows v - levels]_n^+, put into standard form once."""

    def __init__(self, constraints: Callable[[cp.Variable], list[cp.Constraint]]) -> None:
        self.v, moved, self.x = cp.Variable(4), cp.Variable(4), cp.Parameter(4)
        self.slope, self.a = cp.Parameter(4), cp.Parameter(nonneg=True)
        self.rows, self.levels = cp.Parameter((2, 4)), cp.Parameter(2)
        violation = cp.sum(cp.pos(self.rows @ self.v - self.levels))
        cost = self.slope @ moved + self.a * cp.sum_squares(moved) + violation
        self.problem = cp.Problem(cp.Minimize(cost), [*constraints(self.v), moved == self.v - self.x])

    def __call__(self, slope: Array, a: float, x: Array, rows: Array, levels: Array) -> Array:
        self.slope.value, self.a.value, self.x.value = slope, a, x
        self.rows.value, self.levels.value = rows, levels
        solved(self.problem)
        return np.asarray(self.v.value)


def reference(rounds: list[Round], domain: str, gradient: Callable[[Array, Array], Array]) -> list[Array]:
    """Algorithm 2; each expert by CVXPY. M = floor(log2(1 + T) / 2) + 1; the weights move at t = 1 too (erratum 17)."""
    T = len(rounds)
    M = math.floor(math.log2(1 + T) / 2) + 1
    eta, gamma, kappa = T**-1.5, 0.5 * T**1.5, T**-0.5
    constraints, start, _ = DOMAINS[domain]
    step = ExpertStep(constraints)
    w = np.array([(M + 1) / (m * (m + 1) * M) for m in range(1, M + 1)])
    x, Q = [start.copy() for _ in range(M)], [np.full(2, gamma) for _ in range(M)]
    played = []
    for t, d in enumerate(rounds, start=1):
        mean = sum(v * y for v, y in zip(w, x))
        played.append(mean)
        slope = gradient(mean, d["a"])
        following = []
        for m in range(M):
            g = d["G"] @ x[m] - 0.3
            Q[m] = Q[m] if t == 1 else np.maximum((1 - eta) * Q[m] + np.maximum(g, 0), gamma)
            own, rows = gradient(x[m], d["a"]) / gamma, Q[m][:, None] * d["G"] / gamma
            following.append(step(own, math.sqrt(t) / 2**m / gamma, x[m], rows, 0.3 * Q[m] / gamma))
        w = w * np.exp(-kappa * np.array([slope @ (y - mean) for y in x]))
        w, x = w / w.sum(), following
    return played


def drawn(rng: np.random.Generator, T: int) -> list[Round]:
    return [{"a": rng.uniform(-1, 1, 4), "G": rng.uniform(-1, 1, (2, 4))} for _ in range(T)]


CASES = [(d, loss) for d in DOMAINS for loss in LOSSES if (loss == "matrix") == d.startswith("nuclear")]
BY_TURNS = [c for c in CASES if c[1] == "matrix" or list(DOMAINS).index(c[0]) % 2 == list(LOSSES).index(c[1]) % 2]
"""Each domain with one loss of vectors."""


@pytest.mark.parametrize(("domain", "loss"), corners(CASES, [c for c in BY_TURNS if not c[0].startswith("box")]))
def test_trajectories_equal_the_listing(domain: str, loss: str) -> None:
    """A matrix is the vector of its rows in the reference."""
    rounds = drawn(np.random.default_rng(3), 20)
    text, gradient = LOSSES[loss]
    plan = compile_plan(parse(text.format(T=20, domain=domain)), algorithm="coldq-expert")
    ours = trajectory(plan, rounds)
    worst = max(np.linalg.norm(np.ravel(x) - z) for (x,), z in zip(ours, reference(rounds, domain, gradient)))
    assert worst <= 1e-6 * DOMAINS[domain][2]


def test_weights_follow_the_best_expert() -> None:
    """Weights stay positive and sum to one over a long run, and decisions stay in the domain."""
    T = 200
    run = Run(compile_plan(parse(TEXT.format(T=T, domain="box(0, 1)")), algorithm="coldq-expert"))
    for d in drawn(np.random.default_rng(5), T):
        run.play(d)
        w, (x,) = run.value("w"), run.decisions
        assert w.shape == (4,) and (w > 0).all() and w.sum() == pytest.approx(1)
        assert (x >= -1e-12).all() and (x <= 1 + 1e-12).all()


def test_the_promise_of_corollary_3() -> None:
    """Dynamic regret against the best decision of each round by CVXPY-free closed form: the target moves inside the limits."""
    T = 200
    text = """
model m
horizon T = 200
decision x in box(0, 1)
stream a in [0, 1]
stream cap in [0.2, 1]
minimize 5 * square(x - a)
subject to
    limit: x <= cap each round
measure dynamic regret
"""
    plan = compile_plan(parse(text), algorithm="coldq-expert")
    rng = np.random.default_rng(8)
    a, cap = 0.5 + 0.5 * np.sin(np.arange(T) / 9), rng.uniform(0.2, 1, T)
    x = np.array([v for (v,) in trajectory(plan, [{"a": s, "cap": c} for s, c in zip(a, cap)])[:T]])
    best = np.minimum(a, cap)
    regret = np.cumsum(5 * (x - a) ** 2 - 5 * (best - a) ** 2)
    violation = np.cumsum(np.maximum(x - cap, 0))
    assert plan.guarantee is not None
    bounds = plan.guarantee.regret_curve(T), plan.guarantee.violation_curve(T)
    assert bounds[0] is not None and bounds[1] is not None
    assert (regret <= bounds[0]).all() and (violation <= bounds[1]).all()
    assert plan.guarantee.regret_bound.rate == "T**((1 + V_x)/2)"
