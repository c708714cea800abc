"""Ball: |x|_2 <= r."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import Domain
from oco.compiler.domains.norms import Floats, direction, scaled_norm, vector_norm
from oco.compiler.domains.properties import EntrySum, LinearBound, QuadraticInequality
from oco.dsl.intervals import Interval, point
from oco.dsl.magnitudes import HUGE, TINY
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer, Values
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """{ x : |x|_2 <= r }, the Frobenius norm for a matrix."""

    kind: ClassVar[str] = "ball"
    is_ball: ClassVar[bool] = True
    tight_hull: ClassVar[bool] = True
    sign_symmetric: ClassVar[bool] = True
    lengths = ("r",)

    r: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r))

    def violation(self, x: Floats) -> float:
        return vector_norm(x / self.r) - 1

    def interior_margin(self, x: Floats) -> float:
        return self.r - vector_norm(x)

    def project(self, t: Tracer, v: Value) -> Value:
        def far() -> Value:
            u, length, _ = scaled_norm(t, v)
            return u * (self.r / t.maximum(length, 1.0))

        def outside() -> Values:
            return t.if_(square <= HUGE, lambda: (v / (t.sqrt(square) / self.r),), lambda: (far(),))

        if not TINY <= self.r**2 <= HUGE:
            u, length, scale = scaled_norm(t, v)
            return t.where(scale * length <= self.r, v, u * (self.r / t.maximum(length, 1.0)))
        # Where the sum of squares overflows, the largest entry is taken out before.
        square = t.name("square", t.sum(v * v))
        return t.name("nearest", t.if_(square <= self.r**2, lambda: (v,), outside)[0])

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # Outside: (r / |v|) (I - n n'), with n = v / |v|.
        u, length, scale = scaled_norm(t, v)
        normal = u / t.maximum(length, 1.0)
        rows, n = self.rows(t, M), self.flat(t, normal)
        outside = (self.r / scale) / t.maximum(length, 1.0) * (rows - t.outer(rows @ n, n))
        return self.shaped_rows(t, t.where(scale * length <= self.r, rows, outside))

    def lmo(self, t: Tracer, c: Value) -> Value:
        return -self.r * direction(t, c)

    def support_over(self, a: Interval) -> LinearBound:
        squares = Interval(a.magnitude, a.magnitude, a.shape).square().sum().sqrt()
        return LinearBound((squares * point(self.radius)).greatest, True)

    @property
    def entry_sum(self) -> EntrySum:
        return EntrySum("square", self.radius**2 * (1 + 2**-50), search=max(4.0, math.sqrt(self.size) / 2))

    @property
    def quadratic(self) -> QuadraticInequality:
        return QuadraticInequality(-1.0, np.zeros(self.size), np.full(self.size, 2.0 / self.radius**2))

    @property
    def lower(self) -> Floats:
        return np.full(self.shape, -self.r)

    @property
    def upper(self) -> Floats:
        return np.full(self.shape, self.r)

    def support(self, c: Floats) -> float:
        return self.r * vector_norm(c)

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
        return self.r

    def centre(self) -> Floats:
        return np.zeros(self.shape)

    def vertices(self) -> Floats | None:
        return np.array([-self.r, self.r]).reshape(2, *self.shape) if self.size == 1 else None

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        normal = rng.standard_normal((n, self.size))
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        return np.asarray(self.r * normal * rng.random((n, 1)) ** (1 / self.size)).reshape(n, *self.shape)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [cp.norm(cp.vec(variable, order="C"), 2) <= self.r]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        return [cp.norm(cp.vec(variable, order="C"), 2) + margin <= self.r]

    def __str__(self) -> str:
        return f"ball({written(self.r)})"
