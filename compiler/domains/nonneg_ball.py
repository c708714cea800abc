"""The part of a ball without negative entries: x >= 0, |x|_2 <= r."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.ball import Ball
from oco.compiler.domains.base import Domain
from oco.compiler.domains.norms import Floats, scaled_norm, unit_rows, vector_norm
from oco.compiler.domains.properties import EntrySum, QuadraticInequality
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class NonnegBall(Domain):
    """{ x >= 0 : |x|_2 <= r }."""

    kind: ClassVar[str] = "nonneg_ball"
    tight_hull: ClassVar[bool] = True
    lengths = ("r",)

    r: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r))

    @property
    def _ball(self) -> Ball:
        return Ball(self.shape, self.r)

    @property
    def entry_sum(self) -> EntrySum:
        return self._ball.entry_sum

    @property
    def quadratic(self) -> QuadraticInequality:
        return self._ball.quadratic

    def violation(self, x: Floats) -> float:
        return max(float(np.max(-x / self.r)), self._ball.violation(x))

    def interior_margin(self, x: Floats) -> float:
        return min(float(x.min()), self._ball.interior_margin(x))

    def project(self, t: Tracer, v: Value) -> Value:
        # The cone first, then the ball about its apex (Bauschke, Bui & Wang, SIAM J. Optim. 28, 2018, Theorem 7.1).
        return self._ball.project(t, t.maximum(v, 0.0))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        positive = t.to_float(v > 0.0)
        return self._ball.project_jacobian(t, t.maximum(v, 0.0), p, M * positive)

    def lmo(self, t: Tracer, c: Value) -> Value:
        u, length, _ = scaled_norm(t, t.maximum(-c, 0.0))
        return u * (self.r / t.maximum(length, 1.0))

    @property
    def lower(self) -> Floats:
        return np.zeros(self.shape)

    @property
    def upper(self) -> Floats:
        return np.full(self.shape, self.r)

    def support(self, c: Floats) -> float:
        return self.r * vector_norm(np.maximum(c, 0))

    def _diameter_l2(self) -> float:
        return math.sqrt(2) * self.r if self.size > 1 else self.r

    def _diameter_l1(self) -> float:
        # |x - y|_1 with x, y on k and n - k entries: at most r (sqrt k + sqrt(n - k)), and sqrt is concave.
        half = self.size // 2
        return self.r * (math.sqrt(half) + math.sqrt(self.size - half))

    @property
    def radius(self) -> float:
        return self.r

    @property
    def radius_about_centre(self) -> float:
        # At 0, or at r times the unit vectors: |x|^2 - 2 <c, x> + |c|^2 is largest over the ball's part where <c, x> is least.
        c = self.centre()
        return max(
            vector_norm(c), vector_norm(c - self.r * unit_rows(np.zeros(1, np.int64), self.size).reshape(self.shape))
        )

    @property
    def inner_radius(self) -> float:
        return self.r / (1 + math.sqrt(self.size))

    def centre(self) -> Floats:
        """The centre of the largest ball within: all entries equal to its radius."""
        return np.full(self.shape, self.inner_radius)

    def vertices(self) -> Floats | None:
        return np.array([0.0, self.r]).reshape(2, *self.shape) if self.size == 1 else None

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        return np.abs(self._ball.sample(rng, n))

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable >= 0, *self._ball.constraints(cp, variable)]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        return [variable >= margin, *self._ball.interior_constraints(cp, variable, margin)]

    def __str__(self) -> str:
        return f"nonneg_ball({written(self.r)})"
