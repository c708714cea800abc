"""Second derivatives by differences of values, without the compiler: what no bound of them may contradict.

Along a segment of the domain (f(x + h d) - 2 f(x) + f(x - h d)) / h^2 is an average of the second derivative along d, so it lies between
the modulus of strong convexity and the Lipschitz constant of the gradient, kinks of the slope included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Floats = np.ndarray[Any, Any]
Values = Callable[[Floats, Mapping[str, Floats]], Floats]
STEP = np.longdouble(1e-4)


@dataclass(frozen=True)
class Set:
    """A domain by its ends, its points of interest and how far a point may move: `kind` box, ball or simplex, in n dimensions."""

    kind: str
    n: int
    lower: float = 0.0
    upper: float = 1.0

    def points(self, rng: np.random.Generator, count: int) -> Floats:
        """Corners, the point near 0, the middle, single entries at their ends, and random points between these."""
        if self.kind == "box":
            ends = rng.choice([self.lower, self.upper, min(max(0.0, self.lower), self.upper)], size=(count, self.n))
            x = np.where(rng.random((count, 1)) < 0.6, ends, rng.uniform(self.lower, self.upper, (count, self.n)))
            x[0], x[1], x[2] = self.lower, self.upper, np.clip(0.0, self.lower, self.upper)
        elif self.kind == "ball":
            x = rng.normal(size=(count, self.n))
            x *= self.upper * rng.choice([0.0, 0.5, 1.0], size=(count, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
        else:
            shares = rng.dirichlet(np.full(self.n, 0.3), size=count)
            chosen = rng.integers(0, 2, size=(count, self.n)) + 1e-9
            shares = np.where(rng.random((count, 1)) < 0.5, chosen / chosen.sum(1, keepdims=True), shares)
            x = self.lower + (1 - self.n * self.lower) * shares
        return self.inside(x)

    def inside(self, x: Floats) -> Floats:
        """Towards the middle by as much as a step needs."""
        middle = {"box": (self.lower + self.upper) / 2, "ball": 0.0, "simplex": 1 / self.n}[self.kind]
        width = {"box": (self.upper - self.lower) / 2, "ball": self.upper, "simplex": 1 / self.n - self.lower}[
            self.kind
        ]
        return middle + (x - middle) * (1 - 4 * float(STEP) / width)

    @property
    def directions(self) -> Floats:
        """An orthonormal basis of the directions in which it extends, in rows."""
        if self.kind != "simplex":
            return np.eye(self.n)
        return np.linalg.svd(np.ones((1, self.n)))[2][1:]


def streams_at(
    ranges: Mapping[str, tuple[tuple[int, ...], float, float]], rng: np.random.Generator, count: int
) -> Mapping[str, Floats]:
    """Ends, the values nearest to 0, all alike or each for itself, and random values."""
    found = {}
    for k, (name, (shape, lo, hi)) in enumerate(ranges.items()):
        special = np.array([lo, hi, min(max(0.0, lo), hi)])
        one = (count, *(1,) * len(shape))
        value = np.where(
            rng.random(one) < 0.5, rng.choice(special, size=one), rng.choice(special, size=(count, *shape))
        )
        value = np.where(rng.random(one) < 0.15, rng.uniform(lo, hi, (count, *shape)), value)
        value[:3] = special[[(k + i) % 3 for i in range(3)]].reshape(3, *(1,) * len(shape))
        found[name] = value
    return found


@dataclass(frozen=True)
class Differences:
    """The function whose second differences are taken."""

    f: Values
    domain: Set
    ranges: Mapping[str, tuple[tuple[int, ...], float, float]]

    def along(self, x: Floats, s: Mapping[str, Floats], d: Floats) -> Floats:
        """The second difference at each point along each of its directions of length 1."""
        x, d = x.astype(np.longdouble), d.astype(np.longdouble) * STEP
        s = {n: v.astype(np.longdouble) for n, v in s.items()}
        return (self.f(x + d, s) - 2 * self.f(x, s) + self.f(x - d, s)) / STEP**2

    def extremes(self, rng: np.random.Generator, count: int) -> tuple[float, float]:
        """The least and the largest second difference at so many places, along eigenvectors of the matrices of second differences."""
        x, s = self.domain.points(rng, count), streams_at(self.ranges, rng, count)
        basis = self.domain.directions
        k = len(basis)
        matrix = np.zeros((count, k, k))
        for i in range(k):
            matrix[:, i, i] = self.along(x, s, np.tile(basis[i], (count, 1)))
            for j in range(i):
                both, apart = (np.tile((basis[i] + sign * basis[j]) / np.sqrt(2), (count, 1)) for sign in (1, -1))
                matrix[:, i, j] = matrix[:, j, i] = (self.along(x, s, both) - self.along(x, s, apart)) / 2
        vectors = np.linalg.eigh(matrix)[1]
        low, high = (self.along(x, s, vectors[:, :, end] @ basis) for end in (0, -1))
        return float(low.min()), float(high.max())
