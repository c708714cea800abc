"""Box: lo <= x <= hi, entry by entry."""

from __future__ import annotations

import math
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import filled_to, written
from oco.compiler.domains.base import MAX_VERTICES, Domain, Halfspaces, euclidean_radius_of_hull
from oco.compiler.domains.norms import Floats, exact_sum, unit_rows, vector_norm
from oco.compiler.domains.vertices import not_whole
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """{ x : lo <= x <= hi }. Bounds are numbers or arrays that fill the shape; equal bounds fix an entry."""

    kind: ClassVar[str] = "box"
    is_box: ClassVar[bool] = True
    tight_hull: ClassVar[bool] = True
    lengths = ("lo", "hi")

    lo: Floats = field(default_factory=lambda: np.zeros(()))
    hi: Floats = field(default_factory=lambda: np.ones(()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "lo", filled_to("lo", self.lo, self.shape))
        object.__setattr__(self, "hi", filled_to("hi", self.hi, self.shape))

    def _bounds(self, t: Tracer) -> tuple[Value | float, Value | float]:
        def bound(value: Floats, name: str) -> Value | float:
            return t.constant(value, name, f"`{name}` of {self.kind}") if value.ndim else float(value)

        return bound(self.lo, "lo"), bound(self.hi, "hi")

    @property
    def fractional(self) -> str:
        return not_whole(self, self.lower, self.upper)

    @property
    def vertex_draws(self) -> int:
        return self.size

    def vertex(self, t: Tracer, x: Value, u: Value) -> Value:
        return self.shaped(t, t.to_float(u < self.flat(t, x)))

    def violation(self, x: Floats) -> float:
        below, above = self.lower - x, x - self.upper
        scale = np.maximum(np.maximum(np.abs(self.lower), np.abs(self.upper)).max(), np.finfo(float).tiny)
        return float(np.max(np.maximum(below, above)) / scale)

    def interior_margin(self, x: Floats) -> float:
        free = self.lower < self.upper
        if not free.any():
            return 0.0
        return float(np.min(np.minimum(x - self.lower, self.upper - x)[free]))

    def project(self, t: Tracer, v: Value) -> Value:
        lo, hi = self._bounds(t)
        return t.minimum(t.maximum(v, lo), hi)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        lo, hi = self._bounds(t)
        return t.where(t.and_(v > lo, v < hi), M, 0.0)

    def lmo(self, t: Tracer, c: Value) -> Value:
        lo, hi = self._bounds(t)
        return t.where(c < 0.0, hi, lo)

    @property
    def origin(self) -> Floats:
        return np.asarray(self.lo / 2 + self.hi / 2)

    def rescaled(self, origin: Floats, unit: float) -> Box:
        return Box(self.shape, (self.lo - origin) / unit, (self.hi - origin) / unit)

    @cached_property
    def lower(self) -> Floats:
        return np.broadcast_to(self.lo, self.shape)

    @cached_property
    def upper(self) -> Floats:
        return np.broadcast_to(self.hi, self.shape)

    @property
    def _width(self) -> Floats:
        return self.upper - self.lower

    def support(self, c: Floats) -> float:
        return exact_sum(np.maximum(c * self.lower, c * self.upper).ravel())

    def _diameter_l2(self) -> float:
        return vector_norm(self._width)

    def _diameter_l1(self) -> float:
        return exact_sum(self._width.ravel())

    @property
    def radius(self) -> float:
        return euclidean_radius_of_hull(self.lower, self.upper)

    @property
    def radius_about_centre(self) -> float:
        return vector_norm(self._width) / 2

    @property
    def inner_radius(self) -> float:
        width = self._width[self._width > 0]
        return float(width.min() / 2) if width.size else 0.0

    def centre(self) -> Floats:
        return self.lower / 2 + self.upper / 2

    def affine_hull(self) -> tuple[Floats, Floats]:
        fixed = np.flatnonzero(self._width.ravel() == 0)
        return unit_rows(fixed, self.size), self.lower.ravel()[fixed]

    @property
    def dimension(self) -> int:
        return int(np.count_nonzero(self._width))

    def tangent(self, c: Floats) -> Floats:
        return np.where(self._width > 0, c, 0.0)

    def halfspaces(self) -> Halfspaces:
        identity = np.eye(self.size)
        sides = np.concatenate([self.upper.ravel(), -self.lower.ravel()])
        return Halfspaces(np.concatenate([identity, -identity]), sides, np.zeros((0, self.size)), np.zeros(0))

    def vertices(self) -> Floats | None:
        free = np.flatnonzero(self._width.ravel() > 0)
        if len(free) > math.log2(MAX_VERTICES):
            return None
        corners = np.tile(self.lower.ravel(), (2 ** len(free), 1))
        bits = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1
        corners[:, free] = np.where(bits, self.upper.ravel()[free], self.lower.ravel()[free])
        return corners.reshape(-1, *self.shape)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        share = rng.random((n, *self.shape))
        return (1 - share) * self.lower + share * self.upper

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable >= self.lower, variable <= self.upper]

    def __str__(self) -> str:
        return f"box({written(self.lo)}, {written(self.hi)})"
