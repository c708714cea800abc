"""Problems for the projection-free methods, each twice: a model in the language, and the same by hand in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.dsl.load import parse

Array = np.ndarray[Any, Any]
Round = Mapping[str, Any]
Parts = list[Array]


@dataclass(frozen=True)
class Case:
    """A model, its rounds, and values, gradients and linear minimisation by hand: a list holds an array a decision."""

    text: str
    draw: Callable[[np.random.Generator], Round]
    loss: Callable[[Round, Parts], float]
    slope: Callable[[Round, Parts], Parts]
    constraints: Callable[[Round, Parts], list[float]]
    rows: Callable[[Round, Parts], list[Parts]]
    lmo: Callable[[Parts], Parts]
    start: Parts
    diameter: float
    strong: float = 0.0
    radius: float = 0.0


def in_box(lower: Any, upper: Any) -> Callable[[Array], Array]:
    return lambda c: np.where(c > 0, lower, upper) + 0.0 * c


def in_ball(r: float) -> Callable[[Array], Array]:
    return lambda c: -r * c / np.linalg.norm(c)


def in_simplex(c: Array) -> Array:
    return np.eye(len(c))[np.argmin(c)]


def in_nuclear_ball(r: float) -> Callable[[Array], Array]:
    def lmo(c: Array) -> Array:
        u, _, vt = np.linalg.svd(c)
        return -r * np.outer(u[:, 0], vt[0])

    return lmo


def alone(f: Callable[[Array], Array]) -> Callable[[Parts], Parts]:
    return lambda parts: [f(parts[0])]


def _huber(v: Array) -> Array:
    return np.where(np.abs(v) <= 1, v**2, 2 * np.abs(v) - 1)


BOX = Case(
    """
model boxed
horizon T = 60
decision x[4] in box([0, 0, -1, -1], [1, 2, 1, 3])
stream c[4] in [-2, 2]
stream w[4] in [0.1, 1]
minimize sum(huber(x - c)) + sum_squares(x - c)
subject to
    energy: w @ square(x) <= 1.5 each round
    mixed: sum(exp(x)) - 2 * x[1] <= 7 each round
{feedback}
""",
    lambda rng: {"c": rng.uniform(-2, 2, 4), "w": rng.uniform(0.1, 1, 4)},
    lambda d, x: float(_huber(x[0] - d["c"]).sum() + ((x[0] - d["c"]) ** 2).sum()),
    lambda d, x: [2 * np.clip(x[0] - d["c"], -1, 1) + 2 * (x[0] - d["c"])],
    lambda d, x: [d["w"] @ x[0] ** 2 - 1.5, np.exp(x[0]).sum() - 2 * x[0][1] - 7],
    lambda d, x: [[2 * d["w"] * x[0]], [np.exp(x[0]) - np.array([0, 2, 0, 0])]],
    alone(in_box([0, 0, -1, -1], [1, 2, 1, 3])),
    [np.array([0.5, 1, 0, 1])],
    5.0,
    2.0,
    0.5,
)

BALL = Case(
    """
model ball
horizon T = 60
decision x[5] in ball(2)
stream a[5] in [-1, 1]
stream G[3, 5] in [-1, 1]
minimize 3 * logistic(a @ x) + 0.5 * sum_squares(x)
subject to
    first: G[0:2] @ x <= 0.1 each round
    last: 0.2 >= G[2] @ x each round
{feedback}
""",
    lambda rng: {"a": rng.uniform(-1, 1, 5), "G": rng.uniform(-1, 1, (3, 5))},
    lambda d, x: float(3 * np.log1p(np.exp(d["a"] @ x[0])) + x[0] @ x[0] / 2),
    lambda d, x: [3 * d["a"] / (1 + np.exp(-d["a"] @ x[0])) + x[0]],
    lambda d, x: [*(d["G"][:2] @ x[0] - 0.1), d["G"][2] @ x[0] - 0.2],
    lambda d, x: [[g] for g in d["G"]],
    alone(in_ball(2)),
    [np.zeros(5)],
    4.0,
    1.0,
    2.0,
)

SIMPLEX = Case(
    """
model weights
horizon T = 60
decision w[6] in simplex
stream r[6] in [0.5, 2]
stream G[2, 6] in [-1, 1]
minimize -20 * log(r @ w) + sum_squares(w)
subject to
    exposure: G @ w <= 0.1 each round
{feedback}
""",
    lambda rng: {"r": rng.uniform(0.5, 2, 6), "G": rng.uniform(-1, 1, (2, 6))},
    lambda d, x: float(-20 * np.log(d["r"] @ x[0]) + x[0] @ x[0]),
    lambda d, x: [-20 * d["r"] / (d["r"] @ x[0]) + 2 * x[0]],
    lambda d, x: list(d["G"] @ x[0] - 0.1),
    lambda d, x: [[g] for g in d["G"]],
    alone(in_simplex),
    [np.full(6, 1 / 6)],
    math.sqrt(2),
    2.0,
)

NUCLEAR = Case(
    """
model matrix
horizon T = 60
decision X[4, 5] in nuclear_ball(3)
stream i[6] in 0..3
stream j[6] in 0..4
stream y[6] in [-1, 1]
stream G[2, 4, 5] in [-1, 1]
minimize 0.5 * sum(huber(X[i, j] - y)) + 0.1 * sum_squares(X)
subject to
    side: sum(G[0] * X) <= 0 each round
    other: sum(G[1] * X) <= 0.05 each round
{feedback}
""",
    lambda rng: {
        "i": rng.integers(0, 4, 6),
        "j": rng.integers(0, 5, 6),
        "y": rng.uniform(-1, 1, 6),
        "G": rng.uniform(-1, 1, (2, 4, 5)),
    },
    lambda d, x: float(_huber(x[0][d["i"], d["j"]] - d["y"]).sum() / 2 + (x[0] ** 2).sum() / 10),
    lambda d, x: [_at(d["i"], d["j"], np.clip(x[0][d["i"], d["j"]] - d["y"], -1, 1)) + 0.2 * x[0]],
    lambda d, x: [float((G * x[0]).sum() - limit) for G, limit in zip(d["G"], (0, 0.05))],
    lambda d, x: [[G] for G in d["G"]],
    alone(in_nuclear_ball(3)),
    [np.zeros((4, 5))],
    6.0,
    0.2,
    1.5,
)


def _at(i: Array, j: Array, values: Array) -> Array:
    found = np.zeros((4, 5))
    for row, column, v in zip(i, j, values):
        found[row, column] += v
    return found


TWO = Case(
    """
model two
horizon T = 60
decision x[3] in box(0, 1)
decision Y[2, 2] in ball(1)
stream a[3] in [-1, 1]
stream B[2, 2] in [-1, 1]
minimize 2 * a @ x + sum_squares(Y - B) + sum_squares(x)
subject to
    joint: sum(x) + sum(B * Y) <= 0.5 each round
{feedback}
""",
    lambda rng: {"a": rng.uniform(-1, 1, 3), "B": rng.uniform(-1, 1, (2, 2))},
    lambda d, x: float(2 * d["a"] @ x[0] + ((x[1] - d["B"]) ** 2).sum() + x[0] @ x[0]),
    lambda d, x: [2 * d["a"] + 2 * x[0], 2 * (x[1] - d["B"])],
    lambda d, x: [float(x[0].sum() + (d["B"] * x[1]).sum() - 0.5)],
    lambda d, x: [[np.ones(3), d["B"]]],
    lambda c: [in_box(0, 1)(c[0]), in_ball(1)(c[1])],
    [np.full(3, 0.5), np.zeros((2, 2))],
    math.sqrt(3 + 4),
    2.0,
    0.5,
)

CASES = {"box": BOX, "ball": BALL, "simplex": SIMPLEX, "nuclear": NUCLEAR, "two": TWO}


T = 60
LIVELY = {"G": 4.0, "beta": 0.2, "gamma": 0.7, "rate": 0.4, "guess": 0.05}
"""Settings with which the queue matters and the guess is doubled often."""


def model_of(case: Case, feedback: str = "") -> Any:
    return parse(case.text.format(feedback=feedback))


def rounds_of(case: Case, seed: int = 7) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [case.draw(rng) for _ in range(T)]


def inner(a: Parts, b: Parts) -> float:
    return float(sum((p * q).sum() for p, q in zip(a, b)))


def total(parts: list[Parts]) -> Parts:
    """The sum of points."""
    return [np.sum(blocks, axis=0) for blocks in zip(*parts)]


def combine(a: float, x: Parts, b: float, y: Parts) -> Parts:
    """a x + b y."""
    return [a * p + b * q for p, q in zip(x, y)]


def worst(case: Case, data: Round, x: Parts) -> tuple[float, Parts]:
    """g^+ at x for g = max_n g_n, and its subgradient: zero where g <= 0."""
    values = case.constraints(data, x)
    n = int(np.argmax(values))
    if values[n] <= 0:
        return 0.0, [0.0 * p for p in x]
    return float(values[n]), case.rows(data, x)[n]
