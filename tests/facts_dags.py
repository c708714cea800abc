"""Random models for tests of soundness: DAGs of atoms over decisions in several domains and streams with boxes.

Every model is text in the language. Nothing makes its functions convex, and a part may be undefined: the prover is to say so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
DOMAINS = (
    "box({lo}, {hi})",
    "box({lo}, {hi})",
    "ball({r})",
    "simplex",
    "simplex({r})",
    "l1_ball({r})",
    "nonneg_ball({r})",
    "budget(0, 1, 1.5)",
)
HEAD = "model random\nhorizon T = {horizon}\n"


def number(rng: Rng) -> str:
    """A constant: small integers, halves, and a few that are not exact in binary."""
    return str(rng.choice(["0.1", "0.5", "1", "2", "3", "1.7", "0.3", "4"]))


class Dag:
    """Expressions of one model, drawn at random; parts that were made are used again now and then."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.n = int(rng.integers(2, 4))
        self.two = rng.random() < 0.4
        self.scalars: list[str] = []
        self.vectors: list[str] = []

    def pick(self, *options: Callable[[], str]) -> str:
        return options[int(self.rng.integers(len(options)))]()

    # ---- numbers

    def scalar(self, depth: int) -> str:
        if self.scalars and self.rng.random() < 0.15:
            return str(self.rng.choice(self.scalars))
        found = self._scalar_leaf() if depth <= 0 else self._scalar(depth - 1)
        self.scalars.append(found)
        return found

    def _scalar_leaf(self) -> str:
        leaves = [
            "x[0]",
            "x[1]",
            "x[0]",
            "x[1]",
            "sum(x)",
            "(c @ x)",
            "q",
            "p",
            "k",
            "t",
            f"{number(self.rng)}",
            "c[0]",
            "sum(x)",
            "x[0]",
        ]
        leaves += ["y", "y", "y"] if self.two else []
        return str(self.rng.choice(leaves))

    def _scalar(self, d: int) -> str:
        s, v = self.scalar, self.vector
        return self.pick(
            lambda: f"({s(d)} + {s(d)})",
            lambda: f"({s(d)} - {s(d)})",
            lambda: f"({s(d)} * {s(d)})",
            lambda: f"({number(self.rng)} * {s(d)})",
            lambda: f"({s(d)} / {self.positive(d)})",
            lambda: f"(-{s(d)})",
            lambda: f"abs({s(d)})",
            lambda: f"pos({s(d)})",
            lambda: f"neg({s(d)})",
            lambda: f"hinge({s(d)})",
            lambda: f"huber({s(d)}, {number(self.rng)})",
            lambda: f"square({s(d)})",
            lambda: f"({s(d)}) ** {self.rng.choice(['2', '3', '4'])}",
            lambda: f"power({self.positive(d)}, {self.rng.choice(['0.5', '1.5', '2.5', '-1', '-0.5', '3'])})",
            lambda: f"({self.positive(d)}) ** p",
            lambda: f"sqrt({self.positive(d)})",
            lambda: f"log({self.positive(d)})",
            lambda: f"log1p({self.positive(d)})",
            lambda: f"entr({self.positive(d)})",
            lambda: f"inv_pos({self.positive(d)})",
            lambda: f"logistic({s(d)})",
            lambda: f"exp({number(self.rng)} * {s(0)})",
            lambda: f"rel_entr({self.positive(d)}, {self.positive(d)})",
            lambda: f"kl_div({self.positive(d)}, {self.positive(d)})",
            lambda: f"maximum({s(d)}, {s(d)})",
            lambda: f"minimum({s(d)}, {s(d)})",
            lambda: f"sum({v(d)})",
            lambda: f"mean({v(d)})",
            lambda: f"max({v(d)})",
            lambda: f"min({v(d)})",
            lambda: f"norm1({v(d)})",
            lambda: f"norm2({v(d)})",
            lambda: f"norm_inf({v(d)})",
            lambda: f"sum_squares({v(d)})",
            lambda: f"log_sum_exp({v(d)})",
            lambda: f"({v(d)} @ {v(d)})",
            lambda: f"dot({v(d)}, {v(d)})",
            lambda: f"quad_form({v(0)}, P)",
            lambda: f"{v(0)}[k]",
            lambda: f"({v(0)} @ (P @ {v(0)}))",
            lambda: f"(square({s(d)}) / {self.positive(d)})",
            lambda: f"({self.positive(d)} * log({self.positive(d)}))",
        )

    def positive(self, depth: int) -> str:
        """Mostly positive, now and then of any sign."""
        d = depth - 1
        return self.pick(
            lambda: "p",
            lambda: f"(p + {number(self.rng)})",
            lambda: f"({self.scalar(d)} + {self.rng.choice(['4', '9', '2'])})",
            lambda: f"(abs({self.scalar(d)}) + 0.5)",
            lambda: f"(1 + square({self.scalar(d)}))",
            lambda: f"exp({number(self.rng)} * {self.scalar(0)})",
            lambda: f"(sum(a) + {number(self.rng)})",
            lambda: f"({number(self.rng)} + pos({self.scalar(d)}))",
        )

    # ---- vectors of n entries

    def vector(self, depth: int) -> str:
        if self.vectors and self.rng.random() < 0.15:
            return str(self.rng.choice(self.vectors))
        found = self._vector_leaf() if depth <= 0 else self._vector(depth - 1)
        self.vectors.append(found)
        return found

    def _vector_leaf(self) -> str:
        return str(
            self.rng.choice(["x", "x", "x", "x", "c", "a", "(x - c)", "(x - c)", "(a * x)", "(H @ x)", "(P @ x)", "w"])
        )

    def _vector(self, d: int) -> str:
        s, v = self.scalar, self.vector
        return self.pick(
            lambda: f"({v(d)} + {v(d)})",
            lambda: f"({v(d)} - {v(d)})",
            lambda: f"({v(d)} * {v(d)})",
            lambda: f"({s(d)} * {v(d)})",
            lambda: f"({v(d)} - {s(d)})",
            lambda: f"({v(d)} / ({v(d)} + {self.rng.choice(['4', '9'])}))",
            lambda: f"abs({v(d)})",
            lambda: f"pos({v(d)})",
            lambda: f"huber({v(d)})",
            lambda: f"square({v(d)})",
            lambda: f"exp({number(self.rng)} * {v(0)})",
            lambda: f"logistic({v(d)})",
            lambda: f"log({v(d)} + {self.rng.choice(['4', '9'])})",
            lambda: f"sqrt(abs({v(d)}) + {number(self.rng)})",
            lambda: f"maximum({v(d)}, {v(d)})",
            lambda: f"minimum({v(d)}, {s(d)})",
            lambda: f"(H @ {v(d)})",
            lambda: f"(P @ {v(d)})",
            lambda: f"({v(d)} @ H)",
            lambda: f"entr(abs({v(d)}))",
            lambda: f"(abs({v(d)}) ** 1.5)",
            lambda: f"({v(d)} ** 3)",
            lambda: f"[{', '.join(s(d) for _ in range(self.n))}]",
        )


def random_dag(seed: int, deepest: int = 4) -> str:
    """The text of a model: a loss and one constraint, each a random expression."""
    rng = np.random.default_rng(seed)
    dag = Dag(rng)
    lo = float(rng.choice([-2, -1, 0, 0.5, -3]))
    sizes = {"lo": lo, "hi": lo + float(rng.choice([0.5, 1, 3])), "r": float(rng.choice([0.5, 1, 2]))}
    matrix = rng.normal(size=(dag.n, dag.n)).round(1)
    definite = (matrix @ matrix.T).round(2) if rng.random() < 0.6 else matrix + matrix.T
    loss = dag.scalar(int(rng.integers(1, deepest + 1)))
    limit = dag.scalar(int(rng.integers(1, max(2, deepest))))
    second = "decision y in box(-1, 2)\n" if dag.two else ""
    return (
        HEAD.format(horizon=int(rng.choice([1, 5, 100])))
        + f"param P[{dag.n}, {dag.n}] = {definite.tolist()}\nparam w[{dag.n}] = {rng.normal(size=dag.n).round(1).tolist()}\n"
        + f"decision x[{dag.n}] in {str(rng.choice(DOMAINS)).format(**sizes)}\n{second}"
        + f"stream c[{dag.n}] in [-1, 2]\nstream a[{dag.n}] in [0, 1]\nstream q in [-1, 1]\nstream p in [0.5, 2]\n"
        + f"stream k in 0..{dag.n - 1}\nstream H[{dag.n}, {dag.n}] in [-1, 1]\n"
        + f"minimize {loss} + sum(x) * 0\nsubject to\n    limit: {limit} + x[0] * 0 <= q\n"
    )
