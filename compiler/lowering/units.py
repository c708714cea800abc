"""The units of a problem while a rule is traced: what the rule gets is divided by them, what it decides multiplied.

A unit that is 1 writes no operation, so a rule in the user's own units is traced as it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.theory.scales import Scales

Floats = np.ndarray[Any, Any]
_ROWS = "row_unit", "R/G, for gradients of g / G towards u"
_EQUALITY_ROWS = "equality_row_unit", "R/H, for gradients of h / H towards u"


class Units:
    """f' = f / F, g_n' = g_n / G_n, h_m' = h_m / H_m and their derivatives towards u, where x = c + R u."""

    def __init__(self, tracer: Tracer, scales: Scales | None, domains: tuple[Domain, ...]) -> None:
        self.t, self.scales = tracer, scales
        self.own = domains

    @property
    def radius(self) -> float:
        """R."""
        return 1.0 if self.scales is None else float(self.scales.radius)

    def outward(self, u: Point) -> Point:
        """x = c + R u; in a box cut to its bounds, which rounding may miss."""
        if self.scales is None:
            return u
        cut = (self._cut(b, d) for b, d in zip(self.outward_of_any(u).blocks, self.own, strict=True))
        return Point(tuple(self.t.word("decided", b) if isinstance(b, Value) else b for b in cut))

    def outward_of_any(self, u: Point) -> Point:
        """x = c + R u of any point, which need not lie in the domain."""
        if self.scales is None:
            return u
        grown = u if self.scales.radius == 1 else self._radius() * u
        parts = zip(grown.blocks, self.scales.origins, self._middles(), strict=True)
        return Point(tuple(b + c if np.any(o) else b for b, o, c in parts))

    def _cut(self, x: Value, domain: Domain) -> Value:
        return domain.project(self.t, x) if domain.is_box else x

    def inward(self, x: Point) -> Point:
        """u = (x - c) / R."""
        if self.scales is None:
            return x
        moved = Point(
            tuple(b - c if np.any(o) else b for b, o, c in zip(x.blocks, self.scales.origins, self._middles()))
        )
        return moved if self.scales.radius == 1 else moved / self._radius()

    def _radius(self) -> Value:
        return self._constant(np.asarray(self.radius), "radius", "R of x = c + R u: the rule decides u")

    def _middles(self) -> list[Value]:
        assert self.scales is not None
        return [self._constant(o, "origin", "c of x = c + R u: the middle of the domain") for o in self.scales.origins]

    def of_loss(self, value: Value) -> Value:
        """Loss f / F."""
        return (
            value
            if self.scales is None
            else self._times(value, 1 / self.scales.loss, "loss_unit", "1/F: the rule minimizes f / F")
        )

    def of_gradient(self, slope: Point) -> Point:
        """Gradient of f / F towards u."""
        if self.scales is None or self.scales.radius == self.scales.loss:
            return slope
        factor = np.asarray(self.scales.radius / self.scales.loss)
        return self._constant(factor, "gradient_unit", "R/F, for the gradient of f / F towards u") * slope

    def of_loss_hessian(self, matrix: Value) -> Value:
        """Second derivatives of f / F towards u."""
        if self.scales is None:
            return matrix
        return self._times(
            matrix, self.radius**2 / self.scales.loss, "loss_curvature_unit", "R^2/F, for the Hessian of f / F"
        )

    def of_constraints(self, g: Value) -> Value:
        """Values g_n / G_n of the inequalities, shape (N,)."""
        return (
            g
            if self.scales is None
            else self._times(g, 1 / self.scales.inequalities, "constraint_unit", "1/G: the rule sees g / G")
        )

    def of_equalities(self, h: Value) -> Value:
        """Values h_m / H_m of the equalities, shape (M,)."""
        return (
            h
            if self.scales is None
            else self._times(h, 1 / self.scales.equalities, "equality_unit", "1/H: the rule sees h / H")
        )

    def of_rows(self, rows: Rows) -> Rows:
        """Gradients of g_n / G_n towards u, one a row."""
        return rows if self.scales is None else self._rows(rows, self.scales.inequalities, *_ROWS)

    def of_equality_rows(self, rows: Rows) -> Rows:
        """Gradients of h_m / H_m towards u, one a row."""
        return rows if self.scales is None else self._rows(rows, self.scales.equalities, *_EQUALITY_ROWS)

    def of_weights(self, weights: Value, order: int) -> Value:
        """Weights of the derivatives of that order of the inequalities."""
        if self.scales is None:
            return weights
        words = _ROWS if order == 1 else ("curvature_unit", f"R^{order}/G, for second derivatives of g / G towards u")
        return self._times(weights, self.scales.radius**order / self.scales.inequalities, *words)

    def of_equality_weights(self, weights: Value) -> Value:
        """Weights of the equalities' gradients in the units of u, shape (M,)."""
        if self.scales is None:
            return weights
        return self._times(weights, self.scales.radius / self.scales.equalities, *_EQUALITY_ROWS)

    def _rows(self, rows: Rows, sizes: Floats, name: str, why: str) -> Rows:
        assert self.scales is not None
        factor = self.scales.radius / sizes
        return Rows(tuple(self._times(m, factor.reshape(-1, *(1,) * (m.ndim - 1)), name, why) for m in rows.blocks))

    def _times(self, value: Value, factor: float | Floats, name: str, why: str) -> Value:
        """The product; one number where all factors agree."""
        array = np.asarray(factor, dtype=np.float64)
        if not array.size or bool((array == 1).all()):
            return value
        if bool((array == array.flat[0]).all()):
            array = array.ravel()[:1].reshape(())
        return self._constant(array, name, why) * value

    def _constant(self, array: Floats, name: str, why: str) -> Value:
        return self.t.constant(array if array.ndim == 0 else np.ascontiguousarray(array), name, why)
