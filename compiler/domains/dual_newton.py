"""Projection and linear minimisation on a domain cut by affine rows, by Newton's method on the multipliers, over the step IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains.base import Domain
from oco.compiler.domains.norms import Floats, direction, scaled_norm
from oco.compiler.ir.precision import Tolerance
from oco.dsl.magnitudes import TINY

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

CONVERGED = Tolerance(1e-13)
EPS = float(np.finfo(float).eps)
EPS_GIVING = 100 * EPS
"""Rounding of the dual's gradient for a unit of the multipliers, where rows give way and these are large."""
MAX_STEPS = 100  # Newton's steps after which it ends with the point that it has: about ten are usual
MAX_REPEATS = 10  # halvings of one step
RIDGE = Tolerance(1e-10)
FAR = 1e60
"""A point farther away counts as this far, so that squares of distances stay numbers."""
LONGEST_MOVE = 10.0
"""Longest move of the multipliers by a Newton step, in distances of the point."""
DEPENDENT = Tolerance(1e-9)
"""Eigenvalues of the active rows' Gram matrix up to this part of the greatest count as zero."""

CERTIFIED = Tolerance(1e-11)
"""Tolerance of a linear minimisation, for a cost of length one over a set of size one."""
FIRST_STEP, LONGER, LONGEST_STEP = 1e5, 10.0, 1e11  # of the proximal term, so that systems stay regular


class CutDual:
    """The dual of the projection on { x in `base` : C x <= r in the first rows (`inequalities` many), C x = r in the others }.

    The rows have norm one and `base` has a size of about one; points are flattened. The nearest point to v is x = P(v - C' lam), P the
    projection on `base`, with lam the maximizer of the dual, lam >= 0 for inequalities. Semismooth Newton steps on the rows that are tight
    or have a multiplier find it (Qi & Sun, Math. Program. 58, 1993), with P and its Jacobian those of the base.

    Rows that `give`, a number for all or one for each, may be broken, at the cost of the sum of the squares of what they are broken by,
    each over 2 give: where all give, such an x is always there.
    """

    def __init__(
        self,
        t: Tracer,
        base: Domain,
        C: Floats | Value,
        r: Floats | Value,
        inequalities: int,
        give: float | Floats = 0.0,
    ) -> None:
        self.t, self.base, self.count, self.rigid = t, base, r.shape[0], not np.any(give)
        self.give = t.constant(give, "give", "how far each row gives way") if isinstance(give, np.ndarray) else give
        self.C = t.constant(C, "C", "rows of the cut, of norm one") if isinstance(C, np.ndarray) else C
        self.r = t.constant(r, "r", "right sides of the cut") if isinstance(r, np.ndarray) else r
        free = np.arange(self.count) >= inequalities
        self.free = t.constant(free, "equality", "which rows are equalities")

    def project(self, v: Value) -> Value:
        """The nearest point of the cut set; a far point is projected repeatedly, until rounding leaves it within the cut."""
        return self._within(self.solve(v, self.none)[1])

    def project_jacobian(self, v: Value, M: Value) -> Value:
        """`J M` row by row, M of shape (k, n), J a generalized Jacobian of the projection at v.

        J = B - B C' (C B C')^+ C B over the rows with a multiplier, B the Jacobian of P at v - C' lam: the derivative of
        x = P(v - C' lam), C x = r. A row that is tight without a multiplier counts as away (Han & Sun, J. Optim. Theory Appl. 94, 1997).
        """
        t = self.t
        lam, x = self.solve(v, self.none)
        shifted = v - lam @ self.C
        held = t.to_float(t.or_(self.free, lam > 0.0))
        rows, moved = (self._base_rows(shifted, x, m) for m in (self.C, M))
        values, Q = t.eigh((rows @ self.C.T) * t.outer(held, held))
        kept = values > DEPENDENT * t.max(values)
        inverse = (Q * t.where(kept, 1.0 / t.where(kept, values, 1.0), 0.0)) @ Q.T
        return moved - (moved @ self.C.T * held) @ inverse @ (rows * t.reshape(held, (self.count, 1)))

    def minimise(self, c: Value, centre: Value) -> tuple[Value, Value]:
        """(x, lam) with <c, x> at most `CERTIFIED` |c| above the least value, as the multipliers lam of the rows for c / |c| prove.

        Proximal points x = P(x - s c) from the centre (Rockafellar, SIAM J. Control Optim. 14, 1976) with steps s that grow: among several
        minimisers one near the centre. What rounding leaves of a long step, one of length one and a projection put right. The least value
        is at least min over `base` of <c + C' lam, x>, less <lam, r>, for lam the multipliers of a step over its length: of the long step,
        or of that of length one, which are exact at a minimiser, where those of the long one still differ by a distance over its length.
        """
        t = self.t
        unit = direction(t, c)

        def uncertain(x: Value, lam: Value, value: Value, bound: Value, step: Value, last: Value) -> Value:
            return t.and_(value - bound > CERTIFIED, step < LONGEST_STEP)

        def proximal(x: Value, lam: Value, value: Value, bound: Value, step: Value, last: Value) -> tuple[Value, ...]:
            def corrected(k: Value, y: Value, price: Value, near: Value) -> tuple[Value, Value, Value]:
                length = t.where(k == 0, step, t.where(k == 1, 1.0, 0.0))
                mu, y = self.solve(y - length * unit, length * price)
                return y, t.where(k == 0, mu / step, price), t.where(k == 1, mu, near)

            y, price, near = t.for_(3, corrected, (x, last, last))
            first, second = self._least(unit, price), self._least(unit, near)
            proof, least = t.where(second > first, near, price), t.maximum(first, second)
            result = t.sum(unit * y)
            better, higher = result < value, least > bound
            best = t.where(better, y, x), t.where(higher, proof, lam)
            return *best, t.minimum(result, value), t.maximum(least, bound), step * LONGER, price

        start = (centre, self.none, t.lift(np.inf), t.lift(-np.inf), t.lift(FIRST_STEP), self.none)
        x, lam, *_ = t.while_(uncertain, proximal, start)
        return x, lam

    def _least(self, unit: Value, price: Value) -> Value:
        """Lower bound of <unit, x> over the cut set that the multipliers `price` prove."""
        t, base = self.t, self.base
        cost = unit + price @ self.C
        return t.sum(cost * base.flat(t, base.lmo(t, base.shaped(t, cost)))) - t.sum(price * self.r)

    @property
    def none(self) -> Value:
        """No multipliers."""
        return self.t.zeros((self.count,))

    def solve(self, v: Value, start: Value) -> tuple[Value, Value]:
        """(lam, x) of the projection of v, from a guess for lam. Where the base misses the cut, the search ends with multipliers that prove
        it: the dual is above the objective |x - v|^2 / 2 of every x in the base.
        """
        t = self.t
        u, length, scale = scaled_norm(t, v)
        v = u * t.minimum(scale, FAR / t.maximum(length, 1.0))
        radius = float(self.base.radius)
        most = t.name("most", 0.5 * radius**2 + radius * t.sqrt(t.sum(v * v))) if self.rigid else None

        def not_converged(lam: Value, x: Value, value: Value, noise: Value, steps: Value) -> Value:
            rounding = (EPS if self.rigid else EPS_GIVING) * t.max(t.abs(lam))
            goes_on = t.and_(self._residual(lam, x) > t.maximum(rounding, CONVERGED), steps < MAX_STEPS)
            return goes_on if most is None else t.and_(goes_on, value - noise <= most)

        def newton(lam: Value, x: Value, value: Value, noise: Value, steps: Value) -> tuple[Value, ...]:
            slope = self._slope(lam, x)
            d = self._direction(v, lam, x, slope)
            lam = self._search(v, lam, value, noise, d, slope)
            x = self._point(v, lam)
            return lam, x, *self._value(v, lam, x), steps + 1

        x = self._point(v, start)
        lam, x, *_ = t.while_(not_converged, newton, (start, x, *self._value(v, start, x), t.lift(0)))
        return lam, x

    def _within(self, x: Value) -> Value:
        """x where it is in the cut, or what repeated projections make of it."""
        t = self.t

        def outside(x: Value, repeats: Value) -> Value:
            over = self.C @ x - self.r
            return t.and_(t.max(t.where(self.free, t.abs(over), over)) > Tolerance(1e-12), repeats < MAX_REPEATS)

        def again(x: Value, repeats: Value) -> tuple[Value, Value]:
            return self.solve(x, self.none)[1], repeats + 1

        return t.while_(outside, again, (x, t.lift(0)))[0]

    def _point(self, v: Value, lam: Value) -> Value:
        return self.base.flat(self.t, self.base.project(self.t, self.base.shaped(self.t, v - lam @ self.C)))

    def _base_rows(self, v: Value, x: Value, M: Value) -> Value:
        """`B M` row by row for flattened rows, B the Jacobian of the projection on the base at v, x = P(v)."""
        t, base = self.t, self.base
        return base.rows(t, base.project_jacobian(t, base.shaped(t, v), base.shaped(t, x), base.shaped_rows(t, M)))

    def _value(self, v: Value, lam: Value, x: Value) -> tuple[Value, Value]:
        """The dual less |v|^2 / 2, and how much rounding it may hold."""
        t = self.t
        sides = self.r if self.rigid else self.r + (0.5 * self.give) * lam
        parts = t.sum(x * x) * 0.5, t.sum(x * (v - lam @ self.C)), t.sum(lam * sides)
        return parts[0] - parts[1] - parts[2], Tolerance(1e-14) * (1.0 + t.abs(parts[1]) + t.abs(parts[2]))

    def _slope(self, lam: Value, x: Value) -> Value:
        """Gradient of the dual at lam, with x the point there."""
        over = self.C @ x - self.r
        return over if self.rigid else over - self.give * lam

    def _clip(self, lam: Value) -> Value:
        return self.t.where(self.free, lam, self.t.maximum(lam, 0.0))

    def _residual(self, lam: Value, x: Value) -> Value:
        t = self.t
        slope = self._slope(lam, x)
        return t.max(t.abs(t.where(self.free, slope, t.maximum(slope, -lam))))

    def _direction(self, v: Value, lam: Value, x: Value, slope: Value) -> Value:
        """Newton's direction on the rows that are in play. Where C B C' is singular, ascent along the slope is left to the ridge, or
        taken where rounding leaves a direction without ascent.
        """
        t = self.t
        rows = self._base_rows(v - lam @ self.C, x, self.C)
        active = t.to_float(t.or_(self.free, t.or_(lam > 0.0, slope > 0.0)))
        H = (rows @ self.C.T) * t.outer(active, active)
        H = H if self.rigid else H + t.diag(self.give * active)
        # Far away derivatives are like one over the distance; where they are much less, only rounding is left of them.
        far = 1.0 + t.max(t.abs(v)) + t.max(t.abs(lam))
        ridge = RIDGE * t.maximum(t.max(t.diag(H)), 1.0 / far)
        along = slope * active
        d = t.solve(H + t.diag((1.0 - active) + ridge), along)
        longest = LONGEST_MOVE * far
        rises = t.sum(along * d) > 0.0  # not where H is negative by rounding, of more than the ridge
        d = t.where(rises, d, along * (longest / t.maximum(t.max(t.abs(along)), TINY)))
        return d * (longest / t.maximum(t.max(t.abs(d)), longest))

    def _search(self, v: Value, lam: Value, start: Value, noise: Value, d: Value, slope: Value) -> Value:
        """The longest of 1, 1/2, 1/4, ... at which the dual grows enough from its value at the start (Armijo along the clipped path)."""
        t = self.t

        def too_long(s: Value) -> Value:
            moved = self._clip(lam + s * d)
            gain = self._value(v, moved, self._point(v, moved))[0] - start
            return t.and_(gain + noise < 1e-4 * t.sum(slope * (moved - lam)), s > Tolerance(1e-14))

        (s,) = t.while_(too_long, lambda s: (s * 0.5,), (t.lift(1.0),))
        return self._clip(lam + s * d)
