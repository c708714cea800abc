"""Functions of ordinary use with the Lipschitz constant of their gradient and their modulus of strong convexity, in closed form.

`f` is the function again in NumPy: for points x of shape (places, n) and streams s with the places first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from second_differences import Differences, Set, Values

Floats = np.ndarray[Any, Any]
Ranges = Mapping[str, tuple[tuple[int, ...], float, float]]
A = np.array([[1, 2, 0.3], [0.1, 0.7, 1]])
P = np.array([[3.0, 1.0], [1.0, 2.0]])
PARAMS = f"param A[2, 3] = {A.tolist()}\nparam P[2, 2] = {P.tolist()}\n"
GRAM, EIGENVALUES = float(np.linalg.eigvalsh(A.T @ A)[-1]), np.linalg.eigvalsh(P)
E1, E2 = math.e, math.exp(2)


@dataclass(frozen=True)
class Case:
    """`smooth` None: the gradient jumps. `strong` None: not stated. `tight`: names of smoothness and strong convexity where within 1.2."""

    loss: str
    domain: Set
    f: Values
    smooth: float | None
    strong: float | None
    streams: Ranges = field(default_factory=dict)
    tight: tuple[str, ...] = ("smoothness", "strong_convexity")
    l2: float | None = None

    @property
    def text(self) -> str:
        kinds = {
            "box": f"box({self.domain.lower}, {self.domain.upper})",
            "ball": f"ball({self.domain.upper})",
            "simplex": "simplex" + (f" with x >= {self.domain.lower}" if self.domain.lower else ""),
        }
        lines = [f"decision x[{self.domain.n}] in {kinds[self.domain.kind]}"]
        for name, (shape, lo, hi) in self.streams.items():
            size = f"[{', '.join(map(str, shape))}]" if shape else ""
            lines.append(f"stream {name}{size} in [{lo}, {hi}]")
        return "model m\nhorizon T = 100\n" + PARAMS + "\n".join(lines) + f"\nminimize {self.loss}\n"

    @property
    def differences(self) -> Differences:
        return Differences(self.f, self.domain, self.streams)


def total(v: Floats) -> Floats:
    return np.asarray(v.reshape(len(v), -1).sum(1))


def dot(a: Floats, b: Floats) -> Floats:
    return np.asarray((a * b).sum(1))


def image(H: Floats, x: Floats) -> Floats:
    return np.asarray((H * x[:, None, :]).sum(2))


def huber(v: Floats, m: float) -> Floats:
    size = np.abs(v)
    return np.where(size <= m, v * v, 2 * m * size - m * m)


def softplus(v: Floats) -> Floats:
    return np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v)))


def lse(v: Floats) -> Floats:
    top = v.max(1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(v - top).sum(1)))


def bell(u: float) -> float:
    return math.exp(-u) / (1 + math.exp(-u)) ** 2


WIDE, UNIT3, UNIT2 = Set("box", 3, -1, 2), Set("box", 3, -1, 1), Set("box", 2, -1, 1)
AWAY = Set("simplex", 3, 0.05)
MIDDLE = 2 / (1 - AWAY.lower)  # 1 / x at the largest x that two entries of the simplex share
c3: Ranges = {"c": ((3,), -1, 2)}
signs3: Ranges = {"a": ((3,), -1, 1)}
rows: Ranges = {"H": ((4, 3), -1, 1), "d": ((4,), -1, 1)}

CASES: tuple[Case, ...] = (
    # squares
    Case("sum_squares(x)", WIDE, lambda x, s: total(x**2), 2, 2, l2=2 * math.sqrt(12)),
    Case("norm2(x)**2", WIDE, lambda x, s: total(x**2), 2, 2, l2=2 * math.sqrt(12)),
    Case("sum(abs(x)**2)", WIDE, lambda x, s: total(x**2), 2, 2, l2=2 * math.sqrt(12)),
    Case(
        "norm2(x) * norm2(x) + norm1(x)", Set("box", 2, 0.5, 2), lambda x, s: total(x**2 + x), 2, 2, l2=5 * math.sqrt(2)
    ),
    Case(
        "0.5 * sum_squares(A @ x - b)",
        WIDE,
        lambda x, s: total((x @ A.T - s["b"]) ** 2) / 2,
        GRAM,
        0,
        {"b": ((2,), -1, 1)},
    ),
    Case("sum_squares(H @ x)", UNIT3, lambda x, s: total(image(s["H"], x) ** 2), 12, 0, {"H": ((2, 3), -1, 1)}),
    Case("quad_form(x, P)", UNIT2, lambda x, s: dot(x @ P, x), 2 * EIGENVALUES[1], 2 * EIGENVALUES[0]),
    Case("x.T @ (A.T @ A) @ x", UNIT3, lambda x, s: total((x @ A.T) ** 2), 2 * GRAM, 0),
    Case("x[0] * x[1] + sum_squares(x)", UNIT2, lambda x, s: x[:, 0] * x[:, 1] + total(x**2), 3, 1),
    Case("sum(a * square(x))", WIDE, lambda x, s: total(s["a"] * x**2), 4, 1, {"a": ((3,), 0.5, 2)}),
    Case("sum_squares(x) + square(c @ x)", WIDE, lambda x, s: total(x**2) + dot(s["c"], x) ** 2, 26, 2, c3),
    Case(
        "quad_form(x, P) + sum(a * square(x))",
        UNIT2,
        lambda x, s: dot(x @ P, x) + total(s["a"] * x**2),
        2 * EIGENVALUES[1] + 2,
        2 * EIGENVALUES[0],
        {"a": ((2,), 0, 1)},
    ),
    # pieces that meet smoothly
    Case("sum(huber(x, 0.5))", WIDE, lambda x, s: total(huber(x, 0.5)), 2, 0, l2=math.sqrt(3)),
    Case("sum(huber(x))", Set("box", 2, -0.5, 0.5), lambda x, s: total(x**2), 2, 2),
    Case("sum(huber(x - c, 2))", UNIT2, lambda x, s: total((x - s["c"]) ** 2), 2, 2, {"c": ((2,), -1, 1)}),
    Case("huber(a @ x)", UNIT3, lambda x, s: huber(dot(s["a"], x), 1), 6, 0, signs3),
    Case(
        "sum(huber(A @ x - b, 0.3))",
        UNIT3,
        lambda x, s: total(huber(x @ A.T - s["b"], 0.3)),
        2 * GRAM,
        0,
        {"b": ((2,), -1, 1)},
    ),
    Case("sum(square(pos(x)))", WIDE, lambda x, s: total(np.maximum(x, 0) ** 2), 2, 0, l2=4 * math.sqrt(3)),
    Case("sum(hinge(a * x)**2)", UNIT3, lambda x, s: total(np.maximum(1 - s["a"] * x, 0) ** 2), 2, 0, signs3),
    Case(
        "square(maximum(a @ x - 1, 0))",
        Set("box", 3, -2, 2),
        lambda x, s: np.maximum(dot(s["a"], x) - 1, 0) ** 2,
        6,
        0,
        signs3,
    ),
    Case("sum(abs(x)**3)", WIDE, lambda x, s: total(np.abs(x) ** 3), 12, 0, l2=12 * math.sqrt(3)),
    Case("sum(pos(x)**3)", WIDE, lambda x, s: total(np.maximum(x, 0) ** 3), 12, 0),
    # logistic
    Case("sum(logistic(x))", WIDE, lambda x, s: total(softplus(x)), 0.25, bell(2)),
    Case("sum(logistic(c * x))", UNIT3, lambda x, s: total(softplus(s["c"] * x)), 1, 0, c3),
    Case(
        "logistic(-y * (a @ x))",
        Set("ball", 3, -2, 2),
        lambda x, s: softplus(-s["y"] * dot(s["a"], x)),
        0.75,
        0,
        {**signs3, "y": ((), -1, 1)},
    ),
    Case("sum(logistic(-d * (H @ x)))", UNIT3, lambda x, s: total(softplus(-s["d"] * image(s["H"], x))), 3, 0, rows),
    Case(
        "mean(logistic(-d * (H @ x))) + 0.05 * sum_squares(x)",
        UNIT3,
        lambda x, s: total(softplus(-s["d"] * image(s["H"], x))) / 4 + 0.05 * total(x**2),
        0.85,
        0.1,
        rows,
    ),
    Case("log(1 + exp(a @ x))", UNIT3, lambda x, s: softplus(dot(s["a"], x)), 0.75, 0, signs3),
    # soft maxima
    Case("log_sum_exp(x)", Set("box", 3, -3, 3), lambda x, s: lse(x), 1 / (2 + math.exp(-6)), 0),
    Case("log(sum(exp(x)))", Set("box", 2, -1, 2), lambda x, s: lse(x), 0.5, 0),
    Case("log(exp(x[0]) + exp(x[1]))", Set("box", 2, -1, 2), lambda x, s: lse(x), 0.5, 0),
    Case(
        "log(exp(x[0] + 2 * x[1]) + exp(0.5 * x[1] - x[0]))",
        UNIT2,
        lambda x, s: lse(np.stack([x[:, 0] + 2 * x[:, 1], 0.5 * x[:, 1] - x[:, 0]], axis=1)),
        (4 + 1.5**2) / 4,
        0,
    ),
    Case("log(exp(sum(x)) + exp(-sum(x)))", UNIT3, lambda x, s: np.logaddexp(total(x), -total(x)), 3, 0),
    Case("0.3 * log_sum_exp(c * x)", UNIT2, lambda x, s: 0.3 * lse(s["c"] * x), 0.6, 0, {"c": ((2,), 1, 2)}),
    Case(
        "log(1 + sum(exp(x)))",
        Set("box", 3, -3, 3),
        lambda x, s: lse(np.concatenate([np.zeros((len(x), 1)), x], axis=1)),
        1 / (2 + math.exp(-3) + math.exp(-6)),
        None,
        tight=("smoothness",),
    ),
    # entropies
    Case("-sum(entr(x))", Set("box", 2, 0.1, 2), lambda x, s: total(x * np.log(x)), 10, 0.5),
    Case("sum(x * log(x))", AWAY, lambda x, s: total(x * np.log(x)), 20, MIDDLE),
    Case("sum(kl_div(x, p))", AWAY, lambda x, s: total(x * np.log(x / s["p"]) - x), 20, MIDDLE, {"p": ((3,), 0.1, 1)}),
    Case(
        "sum(rel_entr(x, p))",
        Set("box", 2, 0.2, 1),
        lambda x, s: total(x * np.log(x / s["p"])),
        5,
        1,
        {"p": ((2,), 0.1, 1)},
    ),
    Case(
        "sum(kl_div(p, x))",
        Set("box", 2, 0.1, 1),
        lambda x, s: total(x - s["p"] * np.log(x)),
        100,
        0.1,
        {"p": ((2,), 0.1, 1)},
    ),
    Case(
        "-3 * sum(entr(x)) + 0.5 * sum_squares(x)",
        AWAY,
        lambda x, s: total(3 * x * np.log(x) + x**2 / 2),
        61,
        3 * MIDDLE + 1,
    ),
    # exponentials, logarithms, powers
    Case("sum(exp(x))", WIDE, lambda x, s: total(np.exp(x)), E2, 1 / E1, l2=E2 * math.sqrt(3)),
    Case("exp(c @ x)", UNIT2, lambda x, s: np.exp(dot(s["c"], x)), 2 * E2, 0, {"c": ((2,), -1, 1)}),
    Case("sum(inv_pos(x + 2))", WIDE, lambda x, s: total(1 / (x + 2)), 2, 2 / 4**3),
    Case("-sum(log(x))", Set("box", 2, 0.5, 2), lambda x, s: -total(np.log(x)), 4, 0.25),
    Case("-log(c @ x + 8)", WIDE, lambda x, s: -np.log(dot(s["c"], x) + 8), 3, 0, c3),
    Case(
        "sum(inv_pos(x + 0.1)) - sum(log(x + 0.1))",
        Set("box", 2, 0, 1),
        lambda x, s: total(1 / (x + 0.1) - np.log(x + 0.1)),
        2100,
        2 / 1.331 + 1 / 1.21,
    ),
    Case("sum(sqrt(1 + square(x)))", WIDE, lambda x, s: total(np.sqrt(1 + x**2)), 1, 5**-1.5),
    Case("norm2(x + 3)", Set("box", 2, -1, 2), lambda x, s: np.sqrt(total((x + 3) ** 2)), 1 / math.sqrt(8), 0),
    Case("norm2(x)**4", UNIT2, lambda x, s: total(x**2) ** 2, 24, 0),
    Case("sum(power(x, 1.5))", Set("box", 2, 0.25, 4), lambda x, s: total(x**1.5), 1.5, 0.375),
    Case("sum(x**4)", WIDE, lambda x, s: total(x**4), 48, 0),
    # gradients that jump
    Case("norm1(x)", WIDE, lambda x, s: total(np.abs(x)), None, 0, l2=math.sqrt(3)),
    Case("norm2(x)", WIDE, lambda x, s: np.sqrt(total(x**2)), None, 0, l2=1),
    Case("max(x) + sum_squares(x)", WIDE, lambda x, s: x.max(1) + total(x**2), None, 2),
    Case("sum(maximum(x, c))", WIDE, lambda x, s: total(np.maximum(x, s["c"])), None, 0, c3, l2=math.sqrt(3)),
)
