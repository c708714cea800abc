"""Projection on a domain cut by affine rows, by Newton's method on the multipliers, over the step IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains.base import Domain
from oco.compiler.domains.norms import Floats

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

SETTLED = 1e-13
MAX_STEPS = 100
MAX_REPEATS = 10
RIDGE = 1e-10


def project_on_cut(t: Tracer, base: Domain, C: Floats, r: Floats, inequalities: int, v: Value, scale: float) -> Value:
    """argmin |x - v|_2 over x in `base` with C x <= r in the first rows (`inequalities` many) and C x = r in the others, |rows| = 1.

    x = P(v - C' lam) with lam the maximizer of the dual, lam >= 0 for inequalities; semismooth Newton steps on the rows that are tight or
    have a multiplier (Qi & Sun, Math. Program. 58, 1993), with P and its Jacobian those of the base. A far point is projected repeatedly.
    """
    dual = _Dual(t, base, C, r, inequalities, scale)
    flat = base.flat(t, v)

    def outside(x: Value, repeats: Value) -> Value:
        return t.and_(dual.violation(x) > 1e-12 * scale, repeats < MAX_REPEATS)

    def again(x: Value, repeats: Value) -> tuple[Value, Value]:
        return dual.solve(x), repeats + 1

    first = dual.solve(flat)
    return base.shaped(t, t.while_(outside, again, (first, t.lift(0)))[0])


class _Dual:
    """The dual of one projection: rows, their kinds, and the steps on the multipliers."""

    def __init__(self, t: Tracer, base: Domain, C: Floats, r: Floats, inequalities: int, scale: float) -> None:
        self.t, self.base, self.scale, self.count = t, base, scale, len(r)
        self.C = t.constant(C, "C", "rows of the cut, of norm one")
        self.r = t.constant(r, "r", "right sides of the cut")
        free = np.arange(len(r)) >= inequalities
        self.free = t.constant(free, "equality", "which rows are equalities")

    def point(self, v: Value, lam: Value) -> Value:
        return self.base.flat(self.t, self.base.project(self.t, self.base.shaped(self.t, v - lam @ self.C)))

    def violation(self, x: Value) -> Value:
        t = self.t
        over = self.C @ x - self.r
        return t.max(t.where(self.free, t.abs(over), over))

    def value(self, v: Value, lam: Value, x: Value) -> Value:
        t = self.t
        return t.sum((x - v) ** 2) * 0.5 + t.sum(lam * (self.C @ x - self.r))

    def clip(self, lam: Value) -> Value:
        return self.t.where(self.free, lam, self.t.maximum(lam, 0.0))

    def residual(self, lam: Value, x: Value) -> Value:
        t = self.t
        return t.max(t.abs(self.clip(lam + (self.C @ x - self.r)) - lam))

    def solve(self, v: Value) -> Value:
        t = self.t

        def unsettled(lam: Value, x: Value, steps: Value) -> Value:
            return t.and_(self.residual(lam, x) > SETTLED * self.scale, steps < MAX_STEPS)

        def newton(lam: Value, x: Value, steps: Value) -> tuple[Value, Value, Value]:
            slope = self.C @ x - self.r
            d = self._direction(v, lam, x, slope)
            lam = self._search(v, lam, x, d, slope)
            return lam, self.point(v, lam), steps + 1

        start = t.zeros((self.count,))
        return t.while_(unsettled, newton, (start, self.point(v, start), t.lift(0)))[1]

    def _direction(self, v: Value, lam: Value, x: Value, slope: Value) -> Value:
        """Newton's direction on the rows that are in play; ascent along the slope is left to the ridge where C J C' is singular."""
        t = self.t
        base, rows = self.base, self.base.shaped_rows(t, self.C)
        J = base.rows(t, base.project_jacobian(t, base.shaped(t, v - lam @ self.C), base.shaped(t, x), rows))
        active = t.to_float(t.or_(self.free, t.or_(lam > 0.0, slope > 0.0)))
        H = (J @ self.C.T) * t.outer(active, active) + t.diag((1.0 - active) + RIDGE)
        return t.solve(H, slope * active)

    def _search(self, v: Value, lam: Value, x: Value, d: Value, slope: Value) -> Value:
        """The longest of 1, 1/2, 1/4, ... at which the dual grows enough (Armijo along the clipped path)."""
        t = self.t
        start = self.value(v, lam, x)
        noise = 1e-14 * (t.abs(start) + self.scale * self.scale)

        def too_long(s: Value) -> Value:
            moved = self.clip(lam + s * d)
            gain = self.value(v, moved, self.point(v, moved)) - start
            return t.and_(gain + noise < 1e-4 * t.sum(slope * (moved - lam)), s > 1e-14)

        (s,) = t.while_(too_long, lambda s: (s * 0.5,), (t.lift(1.0),))
        return self.clip(lam + s * d)
