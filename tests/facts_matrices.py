"""Random models for tests of soundness over matrices and coupled sets: reductions along axes, spectral norms, parts of matrices, groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from facts_dags import number

Rng = np.random.Generator
MATRICES = ("box({lo}, {hi})", "ball({r})", "nuclear_ball({r})", "birkhoff(3)", "spectrahedron({r})", "l1_ball({r})")
VECTORS = (
    "group_ball({r}, [0, 0, 1])",
    "flow([[0, 1], [1, 2], [0, 2]], 0, 2)",
    "simplex",
    "ellipsoid([[2, 0.5, 0], [0.5, 1, 0], [0, 0, 3]], [0, 1, 0])",
    "polytope([[1, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], [1, 1, 1, 2, 0.5])",
    "box(0, 1) with z[0] + z[1] <= 1",
)
AXIS_REDUCTIONS = ("sum", "mean", "max", "min", "norm1", "norm2", "norm_inf", "log_sum_exp")


class Matrices:
    """Expressions over a 3 x 3 decision X, a decision z of 3 entries, and streams of both shapes."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def pick(self, *options: Callable[[], str]) -> str:
        return options[int(self.rng.integers(len(options)))]()

    def index(self) -> str:
        return str(self.rng.integers(3))

    def scalar(self, depth: int) -> str:
        d, s, v, m = depth - 1, self.scalar, self.vector, self.matrix
        if depth <= 0:
            leaves = ("X[0, 1]", "z[0]", "X[i, j]", "q", "trace(X)", "sum(X)", "sum(z)", number(self.rng), "z[i]")
            return str(self.rng.choice(leaves))
        return self.pick(
            lambda: f"({s(d)} + {s(d)})",
            lambda: f"({s(d)} - {s(d)})",
            lambda: f"(q * {s(d)})",
            lambda: f"square({s(d)})",
            lambda: f"abs({s(d)})",
            lambda: f"exp(0.5 * {s(0)})",
            lambda: f"maximum({s(d)}, {s(d)})",
            lambda: f"sum({m(d)})",
            lambda: f"max({m(d)})",
            lambda: f"norm_inf({m(d)})",
            lambda: f"sum_squares({m(d)})",
            lambda: f"norm1({v(d)})",
            lambda: f"norm2({v(d)})",
            lambda: f"max({v(d)})",
            lambda: f"sum({v(d)})",
            lambda: f"log_sum_exp({v(d)})",
            lambda: f"({v(d)} @ {v(d)})",
            lambda: f"nuclear_norm({m(d)})",
            lambda: f"sigma_max({m(d)})",
            lambda: f"trace({m(d)})",
            lambda: f"quad_form({v(0)}, P)",
            lambda: f"({m(d)})[{self.index()}, {self.index()}]",
            lambda: f"({v(d)})[{self.index()}]",
        )

    def vector(self, depth: int) -> str:
        d, s, v, m = depth - 1, self.scalar, self.vector, self.matrix
        if depth <= 0:
            return str(
                self.rng.choice(("z", "z", "X[0]", "X[:, 1]", "c", "(X @ c)", "(z - c)", "diag(X)", "X[[0, 1, 2], r]"))
            )
        axis = self.rng.integers(2)
        return self.pick(
            lambda: f"{self.rng.choice(AXIS_REDUCTIONS)}({m(d)}, axis = {axis})",
            lambda: f"{self.rng.choice(AXIS_REDUCTIONS)}({m(d)}, axis = {axis})",
            lambda: f"({v(d)} + {v(d)})",
            lambda: f"({v(d)} - {s(d)})",
            lambda: f"({v(d)} * {v(d)})",
            lambda: f"square({v(d)})",
            lambda: f"abs({v(d)})",
            lambda: f"({m(d)} @ {v(d)})",
            lambda: f"({v(d)} @ {m(d)})",
            lambda: f"diag({m(d)})",
            lambda: f"({m(d)})[{self.index()}]",
            lambda: f"({m(d)})[:, {self.index()}]",
            lambda: f"[{s(d)}, {s(d)}, {s(d)}]",
        )

    def matrix(self, depth: int) -> str:
        d, s, v, m = depth - 1, self.scalar, self.vector, self.matrix
        if depth <= 0:
            return str(
                self.rng.choice(("X", "X", "X.T", "C", "(X - C)", "(C * X)", "(C @ X)", "(P @ X)", "outer(z, c)"))
            )
        return self.pick(
            lambda: f"({m(d)} + {m(d)})",
            lambda: f"({m(d)} - {v(d)})",
            lambda: f"({m(d)} * {m(d)})",
            lambda: f"({s(d)} * {m(d)})",
            lambda: f"square({m(d)})",
            lambda: f"abs({m(d)})",
            lambda: f"({m(d)}).T",
            lambda: f"({m(0)} @ {m(d)})",
            lambda: f"outer({v(d)}, {v(d)})",
            lambda: f"diag({v(d)})",
            lambda: f"maximum({m(d)}, {s(d)})",
            lambda: f"exp(0.3 * {m(0)})",
        )


def random_matrices(seed: int, deepest: int = 3) -> str:
    """The text of a model: a loss and one constraint, each a random expression."""
    rng = np.random.default_rng(seed)
    made = Matrices(rng)
    lo = float(rng.choice([-2, -1, 0, 0.5]))
    sizes = {"lo": lo, "hi": lo + float(rng.choice([0.5, 1, 3])), "r": float(rng.choice([0.5, 1, 2]))}
    matrix = rng.normal(size=(3, 3)).round(1)
    definite = (matrix @ matrix.T).round(2) if rng.random() < 0.6 else matrix + matrix.T
    loss, limit = made.scalar(int(rng.integers(1, deepest + 1))), made.scalar(int(rng.integers(1, deepest + 1)))
    return (
        f"model random\nhorizon T = 5\nparam P[3, 3] = {definite.tolist()}\n"
        f"decision X[3, 3] in {str(rng.choice(MATRICES)).format(**sizes)}\n"
        f"decision z[3] in {str(rng.choice(VECTORS)).format(**sizes)}\n"
        "stream C[3, 3] in [-1, 1]\nstream c[3] in [-1, 2]\nstream q in [0, 1]\n"
        "stream i in 0..2\nstream j in 0..2\nstream r[3] in 0..2\n"
        f"minimize {loss} + 0 * (sum(X) + sum(z))\nsubject to\n    limit: {limit} + 0 * (X[0, 0] + z[0]) <= q\n"
    )
