"""COLDQ against Algorithm 1 of Wang, Yan & Liu 2025 written out with CVXPY, and its step against exact bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from driving import Array, Round, Run, solve, trajectory

from oco.compiler.plan import compile_plan
from oco.dsl.load import load, parse

Draw = Callable[[np.random.Generator], Round]


@dataclass(frozen=True)
class Case:
    """A model, its rounds, and the same problem by hand: gradients in NumPy, domain and constraints in CVXPY."""

    text: str
    draw: Draw
    gradient: Callable[[Round, list[Array]], list[Array]]
    constraints: Callable[[Round, list[Any]], list[Any]]
    domain: Callable[[list[cp.Variable]], list[Any]]
    shapes: tuple[tuple[int, ...], ...]
    start: tuple[Array, ...]
    diameter: float


def reference(case: Case, rounds: Sequence[Round], T: int, alpha: Callable[[int], float]) -> list[list[Array]]:
    """Algorithm 1: Q_1 = gamma; for t > 1 equation (8); x_{t+1} solves P_{t+1}. eta = 1/T, gamma = T/2."""
    eta, gamma = 1 / T, 0.5 * T
    x = [np.array(s) for s in case.start]
    found = [x]
    Q: Array | None = None
    for t, data in enumerate(rounds, start=1):
        g = np.array([float(np.asarray(v.value if hasattr(v, "value") else v)) for v in case.constraints(data, x)])
        Q = np.full(len(g), gamma) if Q is None else np.maximum((1 - eta) * Q + np.maximum(g, 0), gamma)
        variables = [cp.Variable(s) for s in case.shapes]
        slopes = case.gradient(data, x)
        cost = sum(
            cp.sum(cp.multiply(s, v - y)) + alpha(t) * cp.sum_squares(v - y) for s, v, y in zip(slopes, variables, x)
        )
        cost += sum(q * cp.pos(h) for q, h in zip(Q, case.constraints(data, variables)))
        solve(cost / gamma, case.domain(variables))
        x = [np.asarray(v.value) for v in variables]
        found.append(x)
    return found


def _tracking(rng: np.random.Generator) -> Round:
    return {
        "H": rng.uniform(-1, 1, (4, 10)),
        "noise": rng.normal(size=4).clip(-6, 6),
        "A": rng.uniform(0, 1, (2, 10)),
        "b": rng.uniform(0, 1, 2),
    }


TRACKING = Case(
    """
model tracking
horizon T = 40
decision x[10] in box(0, 5)
stream H[4, 10] in [-1, 1]
stream noise[4] in [-6, 6]
stream A[2, 10] in [0, 1]
stream b[2] in [0, 1]
minimize 0.5 * sum_squares(H @ x - H @ ones(10) - noise)
subject to
    limits: A @ x <= b each round
""",
    _tracking,
    lambda d, x: [d["H"].T @ (d["H"] @ x[0] - d["H"] @ np.ones(10) - d["noise"])],
    lambda d, v: [d["A"][n] @ v[0] - d["b"][n] for n in range(2)],
    lambda v: [v[0] >= 0, v[0] <= 5],
    ((10,),),
    (np.full(10, 2.5),),
    5 * math.sqrt(10),
)

BALL = Case(
    """
model ball
horizon T = 40
decision x[5] in ball(2)
stream a[5] in [-1, 1]
stream G[3, 5] in [-1, 1]
stream h[3] in [-0.5, 1]
minimize 3 * logistic(a @ x)
subject to
    first: G[0:2] @ x <= h[0:2] each round
    last: h[2] >= G[2] @ x each round
""",
    lambda rng: {"a": rng.uniform(-1, 1, 5), "G": rng.uniform(-1, 1, (3, 5)), "h": rng.uniform(-0.5, 1, 3)},
    lambda d, x: [3 * d["a"] / (1 + np.exp(-d["a"] @ x[0]))],
    lambda d, v: [d["G"][n] @ v[0] - d["h"][n] for n in range(3)],
    lambda v: [cp.norm2(v[0]) <= 2],
    ((5,),),
    (np.zeros(5),),
    4.0,
)

SIMPLEX = Case(
    """
model weights
horizon T = 40
decision w[6] in simplex
stream r[6] in [0.5, 2]
stream G[2, 6] in [-1, 1]
minimize -20 * log(r @ w)
subject to
    exposure: G @ w <= 0.1 each round
""",
    lambda rng: {"r": rng.uniform(0.5, 2, 6), "G": rng.uniform(-1, 1, (2, 6))},
    lambda d, x: [-20 * d["r"] / (d["r"] @ x[0])],
    lambda d, v: [d["G"][n] @ v[0] - 0.1 for n in range(2)],
    lambda v: [v[0] >= 0, cp.sum(v[0]) == 1],
    ((6,),),
    (np.full(6, 1 / 6),),
    math.sqrt(2),
)

EQUALITY = Case(
    """
model balance
horizon T = 30
decision x[4] in box([0, 0, -1, -1], [1, 2, 1, 1])
stream p[4] in [-3, 3]
stream s in [0.5, 1.5]
minimize p @ x
subject to
    balance: sum(x) == s each round
""",
    lambda rng: {"p": rng.uniform(-3, 3, 4), "s": rng.uniform(0.5, 1.5)},
    lambda d, x: [d["p"]],
    lambda d, v: [sum(v[0]) - d["s"], d["s"] - sum(v[0])],
    lambda v: [v[0] >= np.array([0, 0, -1, -1]), v[0] <= np.array([1, 2, 1, 1])],
    ((4,),),
    (np.array([0.5, 1, 0, 0]),),
    math.sqrt(13),
)

SQUARES = Case(
    """
model squares
horizon T = 30
decision x[4] in box(-1, 2)
stream c[4] in [-2, 2]
stream r in [0.5, 2]
stream w[4] in [0, 1]
minimize 4 * sum(huber(x - c))
subject to
    energy: sum_squares(x) <= r each round
    mixed: sum(w * exp(x)) - x[1] <= 2 each round
""",
    lambda rng: {"c": rng.uniform(-2, 2, 4), "r": rng.uniform(0.5, 2), "w": rng.uniform(0, 1, 4)},
    lambda d, x: [8 * np.clip(x[0] - d["c"], -1, 1)],
    lambda d, v: [
        cp.sum_squares(v[0]) - d["r"],
        cp.sum(cp.multiply(d["w"], cp.exp(v[0]))) - v[0][1] - 2,
    ],
    lambda v: [v[0] >= -1, v[0] <= 2],
    ((4,),),
    (np.full(4, 0.5),),
    6.0,
)

TWO = Case(
    """
model two
horizon T = 30
decision x[3] in box(0, 1)
decision Y[2, 2] in ball(1)
stream a[3] in [-1, 1]
stream B[2, 2] in [-1, 1]
stream k in [0, 1]
minimize 2 * a @ x + sum_squares(Y - B)
subject to
    joint: sum(x) + sum(B * Y) <= k each round
""",
    lambda rng: {"a": rng.uniform(-1, 1, 3), "B": rng.uniform(-1, 1, (2, 2)), "k": rng.uniform(0, 1)},
    lambda d, x: [2 * d["a"], 2 * (x[1] - d["B"])],
    lambda d, v: [cp.sum(v[0]) + cp.sum(cp.multiply(d["B"], v[1])) - d["k"]],
    lambda v: [v[0] >= 0, v[0] <= 1, cp.norm(v[1], "fro") <= 1],
    ((3,), (2, 2)),
    (np.full(3, 0.5), np.zeros((2, 2))),
    math.sqrt(3 + 4),
)


@pytest.mark.parametrize(
    "case",
    [TRACKING, BALL, SIMPLEX, EQUALITY, SQUARES, TWO],
    ids=["box", "ball", "simplex", "equality", "squares", "two"],
)
def test_trajectories_equal_the_listing(case: Case) -> None:
    rng = np.random.default_rng(7)
    model = parse(case.text)
    T = 30 if "T = 30" in case.text else 40
    rounds = [case.draw(rng) for _ in range(T)]
    ours = trajectory(compile_plan(model, algorithm="coldq", settings={"alpha": "sqrt(t)"}), rounds)
    theirs = reference(case, rounds, T, math.sqrt)
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

    def excess(lam: Any) -> Any:
        return mp.mpf(jobs) - 4 * sum(mp.log(1 + 4 * x) for x in decision(lam))

    low, high = mp.mpf(0), mp.mpf(Q)
    if excess(low) <= 0:
        return decision(low)
    if excess(high) >= 0:
        return decision(high)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
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
    run = Run(compile_plan(parse(TRACKING.text), algorithm="coldq"))
    run.play(TRACKING.draw(rng))
    assert (run.value("Q") == 20.0).all()
    for _ in range(60):
        run.play(TRACKING.draw(rng))
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
    """Rows of all sizes: independent, opposite, dependent, zero, whole numbers."""
    A = rng.normal(size=(5, 6)) * 10.0 ** rng.integers(-2, 3)
    match rng.integers(4):
        case 1:
            A[1], A[3] = -A[0], A[2]
        case 2:
            A[2], A[4] = A[0] + A[1], 0
        case 3:
            A = np.round(A)
    return A, A @ rng.uniform(-1, 1, 6) + rng.normal(size=5) * rng.choice([0, 0.1, 1])


@pytest.mark.parametrize("domain", SETS)
def test_steps_are_as_good_as_those_of_cvxpy_on_hard_rows(domain: str) -> None:
    """Gradients, rows and queues over seven orders of magnitude, dependent and infeasible rows: never a worse objective than CVXPY's."""
    rng = np.random.default_rng(1)
    run = Run(compile_plan(parse(HARD.format(domain=domain)), algorithm="coldq"))
    begin = run.state
    (y,) = run.decisions
    for _ in range(40):
        c, (A, b) = rng.normal(size=6) * 10.0 ** rng.integers(-2, 5), hard_rows(rng)
        Q = 10.0 ** rng.uniform(-2, 5, 5)
        run.state = (*begin[:2], Q)
        run.play({"c": c, "A": A, "b": b})
        v = cp.Variable(6)
        size = max(1.0, float(np.abs(c).max()), float((Q * np.abs(A).max(axis=1)).max()))
        solve((c @ (v - y) + cp.sum_squares(v - y) + Q @ cp.pos(A @ v - b)) / size, SETS[domain](v))

        def cost(x: Array, c: Array = c, A: Array = A, b: Array = b, Q: Array = Q) -> float:
            return float(c @ (x - y) + ((x - y) ** 2).sum() + Q @ np.maximum(A @ x - b, 0))

        terms = np.abs(c) @ np.abs(v.value - y) + Q @ np.abs(A @ v.value - b) + 1
        assert cost(run.decisions[0]) <= cost(v.value) + 1e-5 * terms
