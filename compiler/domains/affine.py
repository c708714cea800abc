"""Shifted and scaled domains: { shift + scale u : u in a domain }."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import filled_to, number, written
from oco.compiler.domains.base import Domain, Halfspaces
from oco.compiler.domains.norms import Floats, vector_norm
from oco.compiler.domains.properties import AffineRow
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class Affine(Domain):
    """{ shift + scale u : u in inner }, scale > 0."""

    kind: ClassVar[str] = "affine"

    inner: Domain = field(kw_only=True)
    shift: Floats = field(kw_only=True)
    scale: float = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", filled_to("shift", self.shift, self.shape))
        object.__setattr__(self, "scale", number("scale", self.scale))

    @property
    def geometry(self) -> str:
        """Geometry of the inner domain; a shift leaves only the Euclidean one."""
        return "euclidean" if np.any(self.shift) else self.inner.geometry

    @property
    def expensive(self) -> Mapping[str, str]:
        return self.inner.expensive

    @property
    def bounds_only(self) -> frozenset[str]:
        moved = frozenset({"radius"}) if np.any(self.shift) else frozenset()
        return self.inner.bounds_only | moved

    @property
    def projection_cost(self) -> str:  # type: ignore[override]
        return self.inner.projection_cost

    @property
    def lmo_cost(self) -> str:  # type: ignore[override]
        return self.inner.lmo_cost

    def _back(self, x: Floats) -> Floats:
        return np.asarray((x - self.shift) / self.scale)

    def _forth(self, u: Floats) -> Floats:
        return np.asarray(self.shift + self.scale * u)

    def _shift(self, t: Tracer) -> Value | float:
        return t.constant(self.shift, "shift", "the middle of the domain") if self.shift.ndim else float(self.shift)

    def violation(self, x: Floats) -> float:
        # Rounding of the shift is forgiven: the scale is that of the whole set.
        size = max(self.inner.radius * self.scale, float(np.max(np.abs(self.shift))))
        share = self.inner.radius * self.scale / size if size > 0 else 1.0
        return self.inner.violation(self._back(x)) * share

    def interior_margin(self, x: Floats) -> float:
        return self.scale * self.inner.interior_margin(self._back(x))

    def project(self, t: Tracer, v: Value) -> Value:
        shift = self._shift(t)
        return shift + self.scale * self.inner.project(t, (v - shift) / self.scale)

    def lmo(self, t: Tracer, c: Value) -> Value:
        return self._shift(t) + self.scale * self.inner.lmo(t, c)

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        if self.geometry == "euclidean":
            return self.project(t, x - p)
        # All three divergences are homogeneous: D(s u, s x) = s D(u, x), as is <p, s u>.
        return self.scale * self.inner.bregman_step(t, x / self.scale, p)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        shift = self._shift(t)
        return self.inner.project_jacobian(t, (v - shift) / self.scale, (p - shift) / self.scale, M)

    @property
    def lower(self) -> Floats:
        return self._forth(self.inner.lower)

    @property
    def upper(self) -> Floats:
        return self._forth(self.inner.upper)

    @property
    def row(self) -> AffineRow | None:
        own = self.inner.row
        if own is None:
            return None
        return replace(own, total=float(np.sum(own.weights * self.shift)) + self.scale * own.total)

    def support(self, c: Floats) -> float:
        return float(np.sum(c * self.shift)) + self.scale * self.inner.support(c)

    def _diameter_l2(self) -> float:
        return self.scale * self.inner.diameter("l2")

    def _diameter_l1(self) -> float:
        return self.scale * self.inner.diameter("l1")

    @property
    def radius(self) -> float:
        if not np.any(self.shift):
            return self.scale * self.inner.radius
        corners = self.vertices()
        if corners is not None:
            return max(vector_norm(x) for x in corners)
        return min(
            vector_norm(np.maximum(np.abs(self.lower), np.abs(self.upper))),
            vector_norm(self.centre()) + self.radius_about_centre,
        )

    @property
    def radius_about_centre(self) -> float:
        return self.scale * self.inner.radius_about_centre

    @property
    def inner_radius(self) -> float:
        return self.scale * self.inner.inner_radius

    @property
    def inner_centre(self) -> Floats:
        return self._forth(self.inner.inner_centre)

    def centre(self) -> Floats:
        return self._forth(self.inner.centre())

    @property
    def bregman_diameter(self) -> float:
        homogeneous = self.geometry != "euclidean"
        return self.scale * self.inner.bregman_diameter if homogeneous else super().bregman_diameter

    @property
    def bregman_radius(self) -> float:
        homogeneous = self.geometry != "euclidean"
        return self.scale * self.inner.bregman_radius if homogeneous else super().bregman_radius

    def affine_hull(self) -> tuple[Floats, Floats]:
        A, b = self.inner.affine_hull()
        return A, self.scale * b + A @ np.broadcast_to(self.shift, self.shape).ravel()

    @property
    def hull_fits(self) -> bool:
        return self.inner.hull_fits

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def tangent(self, c: Floats) -> Floats:
        return self.inner.tangent(c)

    def halfspaces(self) -> Halfspaces | None:
        h = self.inner.halfspaces()
        if h is None:
            return None
        shift = np.broadcast_to(self.shift, self.shape).ravel()
        return Halfspaces(h.A, self.scale * h.b + h.A @ shift, h.E, self.scale * h.f + h.E @ shift)

    def vertices(self) -> Floats | None:
        corners = self.inner.vertices()
        return None if corners is None else self._forth(corners)

    @property
    def sampling_cost(self) -> int:
        return self.inner.sampling_cost

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        return self._forth(self.inner.sample(rng, n))

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return self.inner.constraints(cp, (variable - np.broadcast_to(self.shift, self.shape)) / self.scale)

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        back = (variable - np.broadcast_to(self.shift, self.shape)) / self.scale
        return self.inner.interior_constraints(cp, back, margin / self.scale)

    def __str__(self) -> str:
        return f"{written(self.shift)} + {written(self.scale)} * {self.inner}"


def shifted_and_scaled(inner: Domain, shift: Any = 0.0, scale: float = 1.0) -> Affine:
    """{ shift + scale u : u in inner }."""
    return Affine(inner.shape, inner=inner, shift=np.asarray(shift, dtype=np.float64), scale=scale)


def in_units(inner: Domain, origin: Floats, unit: float) -> Domain:
    """{ (x - origin) / unit : x in inner }, of the kind of `inner` where that kind has it."""
    own = inner.rescaled(origin, unit)
    return shifted_and_scaled(inner, -origin / unit, 1 / unit) if own is None else own
