"""Models for COLDQ with the same problem by hand, and Algorithm 1 of Wang, Yan & Liu 2025 written out with CVXPY."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from driving import Array, Round, solve

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

    rounds: int | None = None

    @property
    def horizon(self) -> int:
        return 30 if "T = 30" in self.text else 40


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

# Kinks: rows of one absolute value, of the largest of several, sums of them with weights, nodes in nodes, with smooth functions.
KINKS: dict[str, tuple[str, Callable[[Round, Any], list[Any]]]] = {
    "largest": (
        """
    near: abs(x[0] - c[0] / 4) <= 0.3 each round
    widest: norm_inf(A @ x) <= 0.4 each round
    worst: max(w * x) <= maximum(0.2, w[0]) / 2 each round
    """,
        lambda d, v: [
            cp.abs(v[0] - d["c"][0] / 4) - 0.3,
            cp.norm_inf(d["A"] @ v) - 0.4,
            cp.max(cp.multiply(d["w"], v)) - max(0.2, d["w"][0]) / 2,
        ],
    ),
    "sums": (
        """
    turnover: norm1(x - 0.3 * w) <= 0.8 each round
    hinges: w @ pos(A @ x - 0.1) + hinge(x[1] + 1) <= 0.4 each round
    range: max(x) - min(x) <= 0.5 each round
    """,
        lambda d, v: [
            cp.norm1(v - 0.3 * d["w"]) - 0.8,
            d["w"] @ cp.pos(d["A"] @ v - 0.1) + cp.pos(-v[1]) - 0.4,
            cp.max(v) - cp.min(v) - 0.5,
        ],
    ),
    "nodes": (
        """
    deep: max(abs(A @ x) + w) - minimum(x[0], abs(c[1])) <= 1.2 each round
    each: 2 * pos(norm1(x) - 1) + neg(x) / 3 <= 0.1 each round
    """,
        lambda d, v: [
            cp.max(cp.abs(d["A"] @ v) + d["w"]) - cp.minimum(v[0], abs(d["c"][1])) - 1.2,
            *(2 * cp.pos(cp.norm1(v) - 1) + cp.neg(v[i]) / 3 - 0.1 for i in range(4)),
        ],
    ),
    "smooth": (
        """
    energy: sum_squares(x) + 0.3 * norm1(A @ x) <= 0.5 each round
    either: maximum(sum_squares(x - 0.2 * w) - 0.4, x[0] + x[1] - 0.3) <= 0 each round
    plain: c @ x <= 0.3 each round
    """,
        lambda d, v: [
            cp.sum_squares(v) + 0.3 * cp.norm1(d["A"] @ v) - 0.5,
            cp.maximum(cp.sum_squares(v - 0.2 * d["w"]) - 0.4, v[0] + v[1] - 0.3),
            d["c"] @ v - 0.3,
        ],
    ),
}
KINKED = """
model kinks
horizon T = 30
decision x[4] in {domain}
stream c[4] in [-2, 2]
stream A[4, 4] in [-1, 1]
stream w[4] in [0, 1]
minimize c @ x
subject to{constraints}
"""
SETS: dict[str, tuple[str, Callable[[Any], list[Any]], Array, float]] = {
    "box": ("box(-1, 1)", lambda v: [v >= -1, v <= 1], np.zeros(4), 4.0),
    "ball": ("ball(1)", lambda v: [cp.norm2(v) <= 1], np.zeros(4), 2.0),
    "simplex": ("simplex", lambda v: [v >= 0, cp.sum(v) == 1], np.full(4, 0.25), math.sqrt(2)),
}


def kinked(kinks: str, domain: str) -> Case:
    text, within, start, diameter = SETS[domain]
    lines, constraints = KINKS[kinks]
    return Case(
        KINKED.format(domain=text, constraints=lines.rstrip()),
        lambda rng: {"c": rng.uniform(-2, 2, 4), "A": rng.uniform(-1, 1, (4, 4)), "w": rng.uniform(0, 1, 4)},
        lambda d, x: [d["c"]],
        lambda d, v: constraints(d, v[0]),
        lambda v: within(v[0]),
        ((4,),),
        (start,),
        diameter,
        rounds=12,
    )


CASES = {
    "box": TRACKING,
    "ball": BALL,
    "simplex": SIMPLEX,
    "equality": EQUALITY,
    "squares": SQUARES,
    "two": TWO,
    **{f"{kinks}-{domain}": kinked(kinks, domain) for kinks in KINKS if kinks != "smooth" for domain in SETS},
}
