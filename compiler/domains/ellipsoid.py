"""Ellipsoid: (x - c)' P^-1 (x - c) <= 1."""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import filled_to, finite, written
from oco.compiler.domains.base import Domain
from oco.compiler.domains.norms import Floats, direction, exact_sum, scaled_norm, vector_norm
from oco.compiler.domains.properties import QuadraticInequality
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

MAX_SIGNS = 12  # entries whose 2^n signs are tried for the largest l1 norm


@dataclass(frozen=True, eq=False)
class Ellipsoid(Domain):
    """{ x : (x - c)' P^-1 (x - c) <= 1 } for vectors x; P = Q diag(d) Q' has the semi-axes sqrt(d)."""

    kind: ClassVar[str] = "ellipsoid"
    dense: ClassVar[bool] = True

    P: Floats = field(default_factory=lambda: np.eye(1))
    c: Floats = field(default_factory=lambda: np.zeros(()))

    projection_cost = "O(n^2)"
    lmo_cost = "O(n^2)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "P", finite("P", self.P))
        object.__setattr__(self, "c", filled_to("c", self.c, self.shape))

    @property
    def quadratic(self) -> QuadraticInequality:
        inverse, centre = np.linalg.inv((self.P + self.P.T) / 2), np.broadcast_to(self.c, (self.size,))
        return QuadraticInequality(float(centre @ inverse @ centre) - 1.0, -2.0 * inverse @ centre, 2.0 * inverse)

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """d > 0 increasing, and Q."""
        largest = float(np.max(np.abs(self.P)))
        values, q = np.linalg.eigh((self.P / largest + self.P.T / largest) / 2)
        return values * largest, q

    @cached_property
    def _axes(self) -> Floats:
        """The semi-axes, increasing."""
        return np.sqrt(self._spectrum[0])

    def _gauge(self, x: Floats) -> tuple[float, Floats]:
        """sqrt((x - c)' P^-1 (x - c)) and its gradient, in the coordinates of the axes."""
        z = (self._spectrum[1].T @ (x - self.c)) / self._axes
        gauge = vector_norm(z)
        return gauge, z / (self._axes * gauge) if gauge > 0 else z

    def violation(self, x: Floats) -> float:
        gauge, slope = self._gauge(x)
        if gauge <= 1:
            return gauge - 1
        return (gauge - 1) / vector_norm(slope) / max(float(self._axes[-1]), float(np.max(np.abs(self.c))))

    def interior_margin(self, x: Floats) -> float:
        return (1 - self._gauge(x)[0]) * float(self._axes[0])

    def _traced(self, t: Tracer) -> tuple[Value, Value, Value]:
        """Q, d and c."""
        d, q = self._spectrum
        return (
            t.constant(q, "Q", "the axes of the ellipsoid: P = Q diag(d) Q'"),
            t.constant(d, "d", "squares of the semi-axes"),
            t.constant(np.broadcast_to(self.c, self.shape), "c", "centre of the ellipsoid"),
        )

    def project(self, t: Tracer, v: Value) -> Value:
        # In units of the largest semi-axis, so that products of lengths stay numbers at every scale.
        Q, _, c = self._traced(t)
        unit = float(self._axes[-1])
        d = t.constant((self._axes / unit) ** 2, "d", "squares of the semi-axes, in units of the largest")
        y = Q.T @ ((v - c) / unit)
        inside = t.sum((y / t.sqrt(d)) ** 2) <= 1.0
        return t.where(inside, v, c + unit * (Q @ self._project_outside(t, y, d)))

    def _project_outside(self, t: Tracer, y: Value, d: Value) -> Value:
        """u_i = d_i y_i / (d_i + lam), with lam the root of n(lam) = |s|_2 = 1, s_i = sqrt(d_i) y_i / (d_i + lam).

        1 / n is concave and increasing, so that Newton's method on 1 / n = 1 rises to the root from any point left of it
        (More & Sorensen, SIAM J. Sci. Stat. Comput. 4, 1983). It starts at |sqrt(d) y| - max d, at most max d - min d before the root.
        """
        weighted = t.sqrt(d) * y

        def gauge(lam: Value) -> tuple[Value, Value]:
            s = weighted / (d + lam)
            return s, t.sqrt(t.sum(s * s))

        def not_converged(lam: Value, before: Value) -> Value:
            return lam > before

        def newton(lam: Value, before: Value) -> tuple[Value, Value]:
            s, n = gauge(lam)
            return lam + t.maximum(n - 1.0, 0.0) * n * n / t.sum(s * s / (d + lam)), lam

        _, length, scale = scaled_norm(t, weighted)
        start = t.maximum(scale * length - 1.0, 0.0)
        lam = t.while_(not_converged, newton, (start, -1.0))[0]
        s, n = gauge(lam)
        return t.sqrt(d) * s / t.maximum(n, 1.0)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # Outside: D - q q' / sigma in the axes, D = diag(d / (d + lam)), q = d y / (d + lam)^2, sigma = sum d y^2 / (d + lam)^3.
        Q, d, c = self._traced(t)
        y, u = Q.T @ (v - c), Q.T @ (p - c)
        inside = t.sum((y / t.sqrt(d)) ** 2) <= 1.0
        lam = t.sqrt(t.sum((y - u) ** 2) / t.where(inside, 1.0, t.sum((u / d) ** 2)))
        q = d * y / (d + lam) ** 2
        sigma = t.where(inside, 1.0, t.sum(q * y / (d + lam)))
        rows = M @ Q
        outside = (rows * (d / (d + lam)) - t.outer(rows @ q / sigma, q)) @ Q.T
        return t.where(inside, M, outside)

    def lmo(self, t: Tracer, c: Value) -> Value:
        Q, d, centre = self._traced(t)
        axes = t.sqrt(d)
        return centre - Q @ (axes * direction(t, axes * (Q.T @ c)))

    @cached_property
    def _half_widths(self) -> Floats:
        """Half the width along each coordinate: sqrt(P_ii)."""
        return np.asarray(np.sqrt(np.diag(self.P)))

    @property
    def lower(self) -> Floats:
        return np.asarray(self.c - self._half_widths)

    @property
    def upper(self) -> Floats:
        return np.asarray(self.c + self._half_widths)

    def support(self, c: Floats) -> float:
        return exact_sum(np.broadcast_to(self.c, self.shape) * c) + vector_norm(self._axes * (self._spectrum[1].T @ c))

    @property
    def bounds_only(self) -> frozenset[str]:
        loose = {"diameter.l1"} if self.size > MAX_SIGNS else set()
        return frozenset(loose | ({"radius"} if np.any(self.c) else set()))

    def _diameter_l2(self) -> float:
        return 2 * float(self._axes[-1])

    def _diameter_l1(self) -> float:
        """2 max over signs s of sqrt(s' P s); bounded by the widths where the signs are too many to try."""
        if self.size > MAX_SIGNS:
            return 2 * min(exact_sum(self._half_widths), math.sqrt(self.size) * float(self._axes[-1]))
        factor = self._axes[:, None] * self._spectrum[1].T
        signs = itertools.product((-1.0, 1.0), repeat=self.size - 1)
        return 2 * max(vector_norm(factor @ np.array((1.0, *rest))) for rest in signs)

    @property
    def radius(self) -> float:
        return vector_norm(np.broadcast_to(self.c, self.shape)) + float(self._axes[-1])

    @property
    def radius_about_centre(self) -> float:
        return float(self._axes[-1])

    @property
    def inner_radius(self) -> float:
        return float(self._axes[0])

    def centre(self) -> Floats:
        return np.array(np.broadcast_to(self.c, self.shape))

    def rescaled(self, origin: Floats, unit: float) -> Ellipsoid:
        scaled = Ellipsoid(self.shape, P=self.P / unit / unit, c=(self.c - origin) / unit)
        squares, q = self._spectrum
        vars(scaled)["_spectrum"] = squares / unit / unit, q  # the expensive part is that of this one
        return scaled

    def vertices(self) -> Floats | None:
        return np.array([self.lower, self.upper]) if self.size == 1 else None

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        normal = rng.standard_normal((n, self.size))
        normal *= rng.random((n, 1)) ** (1 / self.size) / np.linalg.norm(normal, axis=1, keepdims=True)
        return np.asarray(self.c + (normal * self._axes) @ self._spectrum[1].T)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return self.interior_constraints(cp, variable, 0.0)

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        whitening = self._spectrum[1].T / self._axes[:, None]
        gauge = cp.norm(whitening @ (variable - np.broadcast_to(self.c, self.shape)), 2)
        return [gauge + margin / float(self._axes[0]) <= 1]

    def __str__(self) -> str:
        centre = f", {written(self.c)}" if np.any(self.c) else ""
        return f"ellipsoid({written(self.P)}{centre})"
