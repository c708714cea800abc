"""Birkhoff polytope: n x n matrices without negative entries whose rows and columns sum to one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import written
from oco.compiler.domains.assignment import cheapest_assignment
from oco.compiler.domains.base import MAX_VERTICES, Domain, Halfspaces
from oco.compiler.domains.doubly_stochastic import nearest_doubly_stochastic, project_face
from oco.compiler.domains.norms import Floats, exact_sum
from oco.compiler.domains.sampling import hit_and_run, sampling_cost
from oco.compiler.domains.spectral import LARGE
from oco.compiler.ir.precision import Tolerance
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

MAX_ORDER = 200  # systems of n equations, solved about ten times in a projection, stay within milliseconds
SUPPORT = Tolerance(1e-11)
"""Entries up to this are zero but for rounding."""


@dataclass(frozen=True, eq=False)
class Birkhoff(Domain):
    """{ X >= 0 : X 1 = 1, X' 1 = 1 }, the convex hull of the permutation matrices."""

    kind: ClassVar[str] = "birkhoff"
    tight_hull: ClassVar[bool] = True

    n: float = 1.0

    projection_cost = "about ten solutions of n equations (semismooth Newton method)"
    lmo_cost = "O(n^3), an assignment problem"
    fractional = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", int(np.asarray(self.n)))

    @property
    def _order(self) -> int:
        return self.shape[0]

    @property
    def expensive(self) -> Mapping[str, str]:
        if self._order <= MAX_ORDER:
            return {}
        why = f"at n = {self._order} each call solves systems of {self._order} equations several times"
        return {"project": why, "project_jacobian": why, "bregman_step": why}

    def violation(self, x: Floats) -> float:
        sums = np.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return max(float(-x.min()), float(np.max(np.abs(sums - 1))))

    def interior_margin(self, x: Floats) -> float:
        # The facet x_ij = 0 has a normal of length (n - 1) / n within the affine hull.
        n = self._order
        return float(x.min()) * n / (n - 1) if n > 1 else 0.0

    def project(self, t: Tracer, v: Value) -> Value:
        return nearest_doubly_stochastic(t, v)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        return project_face(t, t.to_float(p > SUPPORT), M)

    def lmo(self, t: Tracer, c: Value) -> Value:
        return cheapest_assignment(t, c)[0]

    @property
    def lower(self) -> Floats:
        return np.full(self.shape, 1.0 if self._order == 1 else 0.0)

    @property
    def upper(self) -> Floats:
        return np.ones(self.shape)

    def support(self, c: Floats) -> float:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(c, maximize=True)
        return exact_sum(c[rows, columns])

    def _diameter_l2(self) -> float:
        return math.sqrt(2 * self._order) if self._order > 1 else 0.0

    def _diameter_l1(self) -> float:
        return 2.0 * self._order if self._order > 1 else 0.0

    @property
    def radius(self) -> float:
        return math.sqrt(self._order)

    @property
    def radius_about_centre(self) -> float:
        return math.sqrt(self._order - 1)

    @property
    def inner_radius(self) -> float:
        return 1 / (self._order - 1) if self._order > 1 else 0.0

    def centre(self) -> Floats:
        return np.full(self.shape, 1 / self._order)

    def affine_hull(self) -> tuple[Floats, Floats]:
        """All rows, and all columns but the last, whose sum then follows."""
        n = self._order
        identity, ones = np.eye(n), np.ones((1, n))
        return np.concatenate([np.kron(identity, ones), np.kron(ones, identity)[:-1]]), np.ones(2 * n - 1)

    @property
    def dimension(self) -> int:
        return (self._order - 1) ** 2

    def tangent(self, c: Floats) -> Floats:
        return np.asarray(c - c.mean(axis=0) - c.mean(axis=1)[:, None] + c.mean())

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(-np.eye(self.size), np.zeros(self.size), *self.affine_hull())

    def vertices(self) -> Floats | None:
        if math.factorial(self._order) > MAX_VERTICES:
            return None
        identity = np.eye(self._order)
        return np.array([identity[list(p)] for p in itertools.permutations(range(self._order))])

    @property
    def decomposes(self) -> bool:
        return self.size > LARGE

    @property
    def sampling_cost(self) -> int:
        return sampling_cost(self.size, self.size)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        k = self._order

        def centred(u: Floats) -> Floats:
            X = u.reshape(-1, k, k)
            parts = X.mean(axis=1, keepdims=True) + X.mean(axis=2, keepdims=True) - X.mean(axis=(1, 2), keepdims=True)
            return np.asarray(X - parts).reshape(-1, k * k)

        points = hit_and_run(rng, n, self.centre().ravel(), centred, lambda u: -u, lambda x: x)
        return points.reshape(n, k, k)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable >= 0, cp.sum(variable, axis=0) == 1, cp.sum(variable, axis=1) == 1]

    def __str__(self) -> str:
        return f"birkhoff({written(float(self._order))})"
