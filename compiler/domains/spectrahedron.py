"""Spectrahedron: symmetric positive semidefinite matrices of a given trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import Domain
from oco.compiler.domains.combination import Combination
from oco.compiler.domains.low_rank import atom
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.properties import FactorForm, LinearBound
from oco.compiler.domains.simplex import WEIGHT_FLOOR, simplex_threshold
from oco.compiler.domains.spectral import (
    FACTORED_RESIDUAL,
    LARGE,
    SMALL,
    WARM_RESIDUAL,
    bottom_eigenvector,
    each_row,
    expensive_decompositions,
    perturbed_start,
    slopes,
)
from oco.dsl.intervals import Interval, point
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


LARGEST_HULL = 1 << 16
"""Entries up to which the bounds of those on the diagonal are kept apart from those of the others."""


def symmetric_part(x: Value) -> Value:
    """Matrix (x + x') / 2, shape (n, n)."""
    return (x + x.T) * 0.5


@dataclass(frozen=True, eq=False)
class Spectrahedron(Domain):
    """{ X symmetric, positive semidefinite : tr X = trace }, the convex hull of trace v v' over unit vectors v."""

    kind: ClassVar[str] = "spectrahedron"
    spectral: ClassVar[bool] = True
    factors: ClassVar[FactorForm | None] = FactorForm(identity=True)
    lengths = ("trace",)

    trace: float = 1.0

    projection_cost = "O(n^3), a full eigenvalue decomposition"
    lmo_cost = "O(n^2) for each step of a Lanczos iteration; a full decomposition for small matrices"

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace", number("trace", self.trace))

    @property
    def geometry(self) -> str:
        """ "von neumann": the mirror map is tr X log X, on the eigenvalues the entropy of the simplex."""
        return "von neumann"

    @property
    def _order(self) -> int:
        return self.shape[0]

    @property
    def expensive(self) -> Mapping[str, str]:
        return expensive_decompositions(self.shape)

    def support_over(self, a: Interval) -> LinearBound | None:
        """The trace times the greatest eigenvalue of m 11' + B with entries of B of at most r in size: n (max(m, 0) + r)."""
        if not a.lo.size == a.hi.size == 1:
            return None
        low, high = point(a.least), point(a.greatest)
        share = max(high.greatest, ((high - low) * point(0.5)).greatest)
        return LinearBound((point(self.radius) * point(float(self._order)) * point(share)).greatest, False)

    def violation(self, x: Floats) -> float:
        share = x / self.trace
        least = float(np.linalg.eigvalsh((share + share.T) / 2)[0])
        return max(-least, abs(math.fsum(np.diag(share)) - 1), float(np.max(np.abs(share - share.T))))

    def violation_of_factors(self, U: Floats, s: Floats, V: Floats, diagonal: float = 0.0) -> float:
        uneven = np.sqrt(np.einsum("ik,ik->k", U - V, U - V))
        total = math.fsum(s / self.trace) + diagonal / self.trace * self._order
        return max(float(np.max(s * uneven, initial=-diagonal)) / self.trace, abs(total - 1))

    def interior_margin(self, x: Floats) -> float:
        # The least eigenvalue of a traceless matrix of norm one is at least -sqrt((n - 1) / n).
        n = self._order
        return float(np.linalg.eigvalsh((x + x.T) / 2)[0]) * math.sqrt(n / (n - 1)) if n > 1 else 0.0

    def project(self, t: Tracer, v: Value) -> Value:
        # The projection of the eigenvalues on the simplex, in the same eigenvectors.
        values, q = t.eigh(symmetric_part(v))
        w = t.maximum(values - t.max(values), -self.trace)
        return self._compose(t, q, t.maximum(w - simplex_threshold(t, w, self.trace), 0.0))

    def _compose(self, t: Tracer, q: Value, values: Value) -> Value:
        """q diag(values) q', symmetric to the last bit."""
        return symmetric_part((q * values) @ q.T)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # Derivative of a spectral function (Lewis & Sendov, SIAM J. Matrix Anal. Appl. 23, 2001).
        values, q = t.eigh(symmetric_part(v))
        w = t.maximum(values - t.max(values), -self.trace)
        f = t.maximum(w - simplex_threshold(t, w, self.trace), 0.0)
        factor, active = slopes(t, values, f)

        def derivative(H: Value) -> Value:
            core = q.T @ symmetric_part(H) @ q
            mean = t.sum(t.diag(core) * active) / t.sum(active)
            return q @ (factor * core - t.diag(mean * active)) @ q.T

        return each_row(t, derivative, M)

    def lmo(self, t: Tracer, c: Value) -> Value:
        v = bottom_eigenvector(t, symmetric_part(c))
        return t.outer(self.trace * v, v)

    @property
    def lmo_start(self) -> int | None:
        return self._order if self._order > SMALL else None

    def lmo_from(self, t: Tracer, c: Value | Combination, start: Value) -> tuple[Value | Combination, Value]:
        guess = perturbed_start(t, start)
        if isinstance(c, Combination):
            v = bottom_eigenvector(t, c, guess, FACTORED_RESIDUAL)
            return Combination(((1.0, atom(t, self.trace * v, v)),)), v
        v = bottom_eigenvector(t, symmetric_part(c), guess, WARM_RESIDUAL)
        return t.outer(self.trace * v, v), v

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        # exp(log x - p) scaled to the trace; the largest exponent is 0 (Tsuda, Raetsch & Warmuth, JMLR 6, 2005).
        values, q = t.eigh(symmetric_part(x) / self.trace)
        log_x = (q * t.log(t.maximum(values, WEIGHT_FLOOR))) @ q.T
        exponent, q = t.eigh(symmetric_part(log_x - p))
        weight = t.exp(exponent - t.max(exponent))
        return self._compose(t, q, weight * (self.trace / t.sum(weight)))

    @property
    def lower(self) -> Floats:
        least = -self.trace / 2
        if self._coarse:
            return np.broadcast_to(least, self.shape)
        return self._with_diagonal(self.trace if self._order == 1 else 0.0, least)

    @property
    def upper(self) -> Floats:
        if self._coarse:
            return np.broadcast_to(self.trace, self.shape)
        return self._with_diagonal(self.trace, self.trace / 2)

    @property
    def _coarse(self) -> bool:
        """True if all entries have the same bounds, as facts look at each entry that has its own."""
        return self.size > LARGEST_HULL

    def _with_diagonal(self, on: float, off: float) -> Floats:
        """A matrix with one number on the diagonal and one beside it, read only: rows of it overlap in memory, so n is no matter."""
        n = self._order
        band = np.full(2 * n - 1, off)
        band[n - 1] = on
        step = band.itemsize
        return np.lib.stride_tricks.as_strided(band[n - 1 :], (n, n), (-step, step), writeable=False)

    def support(self, c: Floats) -> float:
        return self.trace * float(np.linalg.eigvalsh((c + c.T) / 2)[-1])

    @property
    def bounds_only(self) -> frozenset[str]:
        return frozenset(["diameter.l1"] * (self._order > 2) + ["hull"] * self._coarse)

    def _diameter_l2(self) -> float:
        return math.sqrt(2) * self.trace if self._order > 1 else 0.0

    def _diameter_l1(self) -> float:
        """|D|_1 <= n |D|_2; attained for two rows."""
        return self._order * self._diameter_l2()

    @property
    def radius(self) -> float:
        return self.trace

    @property
    def radius_about_centre(self) -> float:
        return self.trace * math.sqrt(1 - 1 / self._order)

    @property
    def inner_radius(self) -> float:
        n = self._order
        return self.trace / math.sqrt(n * (n - 1)) if n > 1 else 0.0

    def centre(self) -> Floats:
        return self._with_diagonal(self.trace / self._order, 0.0)

    @property
    def bregman_diameter(self) -> float:
        return math.inf if self._order > 1 else 0.0

    @property
    def bregman_radius(self) -> float:
        """The divergence of a matrix of rank one from the multiple of the identity: trace log n."""
        return self.trace * math.log(self._order)

    def affine_hull(self) -> tuple[Floats, Floats]:
        n = self._order
        above = np.transpose(np.triu_indices(n, 1))
        A = np.zeros((len(above) + 1, n, n))
        for k, (i, j) in enumerate(above):
            A[k, i, j], A[k, j, i] = 1.0, -1.0
        A[-1] = np.eye(n)
        return A.reshape(-1, n * n), np.append(np.zeros(len(above)), self.trace)

    @property
    def dimension(self) -> int:
        return self._order * (self._order + 1) // 2 - 1

    def tangent(self, c: Floats) -> Floats:
        even = (c + c.T) / 2
        return np.asarray(even - np.eye(self._order) * (np.trace(even) / self._order))

    @property
    def decomposes(self) -> bool:
        return self.size > LARGE

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        g = rng.standard_normal((n, *self.shape))
        wishart = g @ np.swapaxes(g, 1, 2)
        return np.asarray(self.trace * wishart / np.trace(wishart, axis1=1, axis2=2)[:, None, None])

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable == variable.T, variable >> 0, cp.trace(variable) == self.trace]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        n = self._order
        within = variable - margin * math.sqrt((n - 1) / n) * np.eye(n)
        return [variable == variable.T, within >> 0, cp.trace(variable) == self.trace]

    def __str__(self) -> str:
        return f"spectrahedron({written(self.trace)})"
