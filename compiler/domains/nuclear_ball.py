"""Nuclear ball: the singular values of a matrix sum to at most r."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import Domain
from oco.compiler.domains.combination import Combination
from oco.compiler.domains.l1_ball import shrink_to_sum
from oco.compiler.domains.low_rank import atom
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.properties import FactorForm, LinearBound
from oco.compiler.domains.spectral import (
    LARGE,
    RESIDUAL,
    SMALL,
    WARM_RESIDUAL,
    WARM_SMALL,
    column,
    each_row,
    expensive_decompositions,
    perturbed_start,
    slopes,
    top_singular_pair,
)
from oco.dsl.intervals import Interval, point
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class NuclearBall(Domain):
    """{ X of shape (m, n) : sum of singular values <= r }, the convex hull of r u v' over unit vectors u, v."""

    kind: ClassVar[str] = "nuclear_ball"
    tight_hull: ClassVar[bool] = True
    sign_symmetric: ClassVar[bool] = True
    spectral: ClassVar[bool] = True
    factors: ClassVar[FactorForm | None] = FactorForm(identity=False)
    lengths = ("r",)

    r: float = 1.0

    projection_cost = "O(m n min(m, n)), a full singular value decomposition"
    lmo_cost = "O(m n) for each step of a Lanczos iteration; a full decomposition for small matrices"

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r))

    @property
    def _rank(self) -> int:
        return min(self.shape)

    @property
    def expensive(self) -> Mapping[str, str]:
        return expensive_decompositions(self.shape)

    def support_over(self, a: Interval) -> LinearBound | None:
        """r times the spectral norm of a matrix with equal entries."""
        if not a.lo.size == a.hi.size == 1:
            return None
        most = point(self.radius) * point(float(a.magnitude.max())) * point(float(a.size)).sqrt()
        return LinearBound(most.greatest, True)

    def violation(self, x: Floats) -> float:
        return math.fsum(np.linalg.svd(x / self.r, compute_uv=False)) - 1

    def violation_of_factors(self, U: Floats, s: Floats, V: Floats, diagonal: float = 0.0) -> float:
        return math.fsum(s / self.r) - 1

    def interior_margin(self, x: Floats) -> float:
        # |d|_nuclear <= sqrt(q) |d|_2, attained along the singular vectors of x.
        return (self.r - math.fsum(np.linalg.svd(x, compute_uv=False))) / math.sqrt(self._rank)

    def project(self, t: Tracer, v: Value) -> Value:
        # The projection of the singular values on { sum <= r }, in the same singular vectors.
        u, sigma, vt = t.svd(v)
        return t.where(t.sum(sigma) <= self.r, v, (u * shrink_to_sum(t, sigma, self.r)) @ vt)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # Derivative of a spectral function f (Lewis & Sendov, Set-Valued Anal. 13, 2005). With H~ = U' H V: its symmetric part times
        # (f_i - f_j) / (s_i - s_j), its skew part times (f_i + f_j) / (s_i + s_j), the diagonal by the Jacobian of f; the parts of H
        # outside the column or row space of v times f_i / s_i.
        u, sigma, vt = t.svd(v)
        f = shrink_to_sum(t, sigma, self.r)
        positive = t.maximum(sigma, np.finfo(float).tiny)
        symmetric, active = slopes(t, sigma, f)
        skew = t.where(column(t, sigma) + sigma > 0, (column(t, f) + f) / (column(t, positive) + positive), 0.0)
        ratio = f / positive

        def derivative(H: Value) -> Value:
            left, right = u.T @ H, H @ vt.T
            core = left @ vt.T
            even, odd = (core + core.T) * 0.5, (core - core.T) * 0.5
            mean = t.sum(t.diag(core) * active) / t.maximum(t.sum(active), 1.0)
            inner = symmetric * even + skew * odd - t.diag(mean * active)
            rows = (left - core @ vt) * column(t, ratio)
            columns = (right - u @ core) * ratio
            return u @ (inner @ vt + rows) + columns @ vt

        return t.where(t.sum(sigma) <= self.r, M, each_row(t, derivative, M))

    def lmo(self, t: Tracer, c: Value) -> Value:
        u, v = self.lmo_factors(t, c)
        return t.outer(u, v)

    @property
    def lmo_start(self) -> int | None:
        return self.shape[1] if self._rank > WARM_SMALL else None

    def lmo_from(self, t: Tracer, c: Value | Combination, start: Value) -> tuple[Value | Combination, Value]:
        exact = self._rank <= SMALL and not isinstance(c, Combination)
        tolerance = RESIDUAL if exact else WARM_RESIDUAL
        u, v = self.lmo_factors(t, c, perturbed_start(t, start), tolerance)
        return Combination(((1.0, atom(t, u, v)),)) if isinstance(c, Combination) else t.outer(u, v), v

    def lmo_factors(
        self, t: Tracer, c: Value | Combination, start: Value | None = None, tolerance: float = RESIDUAL
    ) -> tuple[Value, Value]:
        """Vectors u (m,) and v (n,), |v| = 1, with u v' the linear minimisation; `start` is a guess for v, the last answer for example.

        `tolerance` is the relative residual of the singular pair: |c' u / r + sigma v| <= tolerance sigma.
        """
        u, v = top_singular_pair(t, c, start, tolerance)
        return -self.r * u, v

    @property
    def lower(self) -> Floats:
        return np.broadcast_to(-self.r, self.shape)

    @property
    def upper(self) -> Floats:
        return np.broadcast_to(self.r, self.shape)

    def support(self, c: Floats) -> float:
        return self.r * float(np.linalg.norm(c, 2))

    def _diameter_l2(self) -> float:
        return 2 * self.r

    def _diameter_l1(self) -> float:
        return 2 * self.r * math.sqrt(self.size)

    @property
    def radius(self) -> float:
        return self.r

    @property
    def radius_about_centre(self) -> float:
        return self.r

    @property
    def inner_radius(self) -> float:
        return self.r / math.sqrt(self._rank)

    def centre(self) -> Floats:
        return np.broadcast_to(0.0, self.shape)

    @property
    def decomposes(self) -> bool:
        return self.size > LARGE

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        direction = rng.standard_normal((n, *self.shape))
        norms = np.linalg.svd(direction, compute_uv=False).sum(axis=1)
        share = rng.random(n) ** (1 / self.size) / norms
        return np.asarray(self.r * share[:, None, None] * direction)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [cp.normNuc(variable) <= self.r]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        return [cp.normNuc(variable) + math.sqrt(self._rank) * margin <= self.r]

    def __str__(self) -> str:
        return f"nuclear_ball({written(self.r)})"
