"""Boxes cut by one affine row: lo <= x <= hi with <a, x> <= c or <a, x> = c, for any weights a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from oco.compiler.domains.base import Domain, Halfspaces
from oco.compiler.domains.budget_multiplier import Shifts
from oco.compiler.domains.cut_sets import CutPolyhedron, CutSet
from oco.compiler.domains.greedy_allocation import filled
from oco.compiler.domains.norms import Floats, exact_sum
from oco.compiler.domains.properties import AffineRow
from oco.compiler.domains.vertices import not_whole
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

SMALL = 64
"""Entries up to which the set is treated as any polyhedron but for its projection and linear minimisation."""


@dataclass(frozen=True, eq=False)
class BoxCut:
    """The row in the entries y = sign x, |sign| = 1, in which its weights are not negative: lo <= y <= hi, <weights, y> <= or = total.

    It is scaled to max weights = 1. Entries without weight are free of it.
    """

    sign: Floats
    weights: Floats
    lo: Floats
    hi: Floats
    total: float
    equality: bool

    @classmethod
    def of(cls, box: Domain, rows: Halfspaces) -> BoxCut:
        """Row of a box that one inequality or equality cuts."""
        equality = bool(len(rows.f))
        a, total = (rows.E[0], rows.f[0]) if equality else (rows.A[0], rows.b[0])
        largest = float(np.max(np.abs(a)))
        sign = np.where(a < 0, -1.0, 1.0)
        low, high = box.lower.ravel(), box.upper.ravel()
        ends = np.where(sign > 0, low, -high), np.where(sign > 0, high, -low)
        return cls(sign, np.abs(a) / largest, *ends, float(total) / largest, equality)

    @property
    def scale(self) -> float:
        """Largest absolute value of an end of the box; at least the smallest normal number."""
        return max(float(np.max(np.abs(self.lo))), float(np.max(np.abs(self.hi))), float(np.finfo(float).tiny))

    @property
    def least(self) -> float:
        """Least value of <weights, y> over the box, rounded once."""
        return exact_sum(self.weights * self.lo)

    @property
    def most(self) -> float:
        """Greatest value of <weights, y> over the box, rounded once."""
        return exact_sum(self.weights * self.hi)

    @property
    def way(self) -> float:
        """Largest change of theta while an entry goes from one bound to the other."""
        counts = self.weights > 0
        with np.errstate(over="ignore"):
            return float(np.max((self.hi - self.lo)[counts] / self.weights[counts]))

    @property
    def counts(self) -> bool:
        """True where the row limits the number of some entries of 0 and 1."""
        of_row = self.weights > 0
        alike = bool((self.sign[of_row] == self.sign[of_row][0]).all())
        return alike and bool((self.weights[of_row] == 1).all()) and self.total == round(self.total)

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest number of entries of 1, of a row that counts them."""
        of_row = self.weights > 0
        if self.sign[of_row][0] < 0:
            return -self.total, -self.total if self.equality else float(of_row.sum())
        return self.total if self.equality else 0.0, self.total

    def over(self, shape: tuple[int, ...]) -> AffineRow:
        """The row in the entries x, of an array of this shape."""
        return AffineRow((self.sign * self.weights).reshape(shape), self.total, self.equality)

    def _constants(self, t: Tracer) -> tuple[Value, ...]:
        why = "of the box and its row"
        arrays = {"sign": self.sign, "weights": self.weights, "lo": self.lo, "hi": self.hi}
        return tuple(t.constant(array, name, f"{name} {why}") for name, array in arrays.items())

    def project(self, t: Tracer, v: Value) -> Value:
        """x = clip(v - theta a), where theta is 0 or makes the row hold with equality: a mean over the entries between their bounds."""
        sign, weights, lo, hi = self._constants(t)

        y = sign * v

        def met() -> Value:
            path = Shifts(t, lo, hi, self.total, self.scale, weights, self.way)
            return path.met(y, (t.sum(weights * y) - self.total) / float(np.sum(self.weights**2)))

        if self.equality:
            return sign * met()
        inside = t.minimum(t.maximum(y, lo), hi)
        return sign * t.if_(t.sum(weights * inside) <= self.total, lambda: inside, met)[0]

    def project_jacobian(self, t: Tracer, v: Value, x: Value, M: Value) -> Value:
        """Rows of the identity over the entries between their bounds, without their part along a where the row binds."""
        sign, weights, lo, hi = self._constants(t)
        y = sign * x
        free = t.to_float(t.and_(y > lo, y < hi))
        a = free * weights * sign
        binds = (
            1.0 if self.equality else t.to_float(t.sum(weights * t.minimum(t.maximum(sign * v, lo), hi)) > self.total)
        )
        squares = t.sum(a * a)
        along = (M @ a) * (binds / t.where(squares > 0.0, squares, 1.0))
        return M * free - t.outer(along, a)

    def lmo(self, t: Tracer, c: Value) -> Value:
        """Room is filled in the order of the cost for each unit of the total, where that is a gain or the total has to be met."""
        sign, weights, lo, hi = self._constants(t)
        cost = sign * c
        counts = weights > 0.0
        prices = t.where(counts, cost / t.where(counts, weights, 1.0), np.inf)
        wanted = counts if self.equality else t.and_(counts, cost < 0.0)
        room = t.where(wanted, weights * (hi - lo), 0.0)
        amount = filled(t, prices, room, max(self.total - self.least, 0.0))
        x = t.minimum(lo + amount / t.where(counts, weights, 1.0), hi)
        return sign * t.where(counts, x, t.where(cost < 0.0, hi, lo))


class CutByRow(Domain):
    """Projection, linear minimisation and extreme points of a box `base` that one row cuts."""

    base: Domain
    rows_added: Halfspaces

    @cached_property
    def _row(self) -> BoxCut:
        return BoxCut.of(self.base, self.rows_added)

    @property
    def row(self) -> AffineRow:
        return self._row.over(self.shape)

    def project(self, t: Tracer, v: Value) -> Value:
        return self.shaped(t, self._row.project(t, self.flat(t, v)))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        rows = self._row.project_jacobian(t, self.flat(t, v), self.flat(t, p), self.rows(t, M))
        return self.shaped_rows(t, rows)

    def lmo(self, t: Tracer, c: Value) -> Value:
        return self.shaped(t, self._row.lmo(t, self.flat(t, c)))

    @property
    def fractional(self) -> str:
        of_box = not_whole(self, self.base.lower, self.base.upper)
        if of_box or self._row.counts:
            return of_box
        return f"{self} has extreme points whose entries are not 0 and 1: its row limits no number of entries"

    @property
    def vertex_draws(self) -> int:
        return 1 + self.size

    def vertex(self, t: Tracer, x: Value, u: Value) -> Value:
        """Entries of the row by one draw, so that their number is the sum of x, rounded down or up; the others each by its own."""
        r, flat = self._row, self.flat(t, x)
        least, most = r.limits
        own = t.constant((r.weights > 0).astype(np.float64), "counted", "1 for the entries that the row counts")
        sums = t.cumsum(own * t.minimum(t.maximum(flat, 0.0), 1.0))
        last = t.minimum(t.maximum(sums[self.size - 1], least), most)
        ends = t.where(sums < sums[self.size - 1], t.minimum(sums, last), last)
        starts = t.concat(t.zeros((1,)), ends[: self.size - 1])
        among = t.floor(ends - u[0]) > t.floor(starts - u[0])
        return self.shaped(t, t.to_float(t.where(own > 0.0, among, u[1:] < flat)))


@dataclass(frozen=True, eq=False)
class SmallBoxRow(CutByRow, CutPolyhedron):
    """The set as a polyhedron, with the projection and the linear minimisation of its row."""

    projection_cost: ClassVar[str] = "O(n) for each of a few passes"
    lmo_cost: ClassVar[str] = "O(n)"

    rows_added: Halfspaces = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class BoxRow(CutByRow, CutSet):
    """Box cut by one row, with many entries: values without a closed form are bounded by those of the box."""

    lmo_cost: ClassVar[str] = "O(n)"

    @property
    def projection_cost(self) -> str:  # type: ignore[override]
        return "O(n) for each of a few passes"

    @property
    def expensive(self) -> Mapping[str, str]:
        return {}

    @property
    def bounds_only(self) -> frozenset[str]:
        return super().bounds_only - {"hull", "support"}

    def support(self, c: Floats) -> float:
        return exact_sum((c * self.lmo_array(-c)).ravel())

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each entry, the others being where they leave it most room."""
        r = self._row
        weights = np.where(r.weights > 0, r.weights, 1.0)
        high = np.where(r.weights > 0, np.minimum(r.hi, r.lo + max(r.total - r.least, 0.0) / weights), r.hi)
        low = r.lo
        if r.equality:
            low = np.where(r.weights > 0, np.maximum(r.lo, r.hi - max(r.most - r.total, 0.0) / weights), r.lo)
        ends = np.where(r.sign > 0, low, -high), np.where(r.sign > 0, high, -low)
        return ends[0].reshape(self.shape), ends[1].reshape(self.shape)

    @property
    def lower(self) -> Floats:
        return self._hull[0]

    @property
    def upper(self) -> Floats:
        return self._hull[1]

    @cached_property
    def _inner(self) -> tuple[Floats, float]:
        """The box less rho on all sides, and the row less rho |weights|; from its cheapest corner towards the middle."""
        r = self._row
        slack = 1e-9 * r.scale * exact_sum(r.weights)
        if r.total < r.least - slack or (r.equality and r.total > r.most + slack):
            raise fail("OCO410", f"{self} is empty: the row leaves no entry room")
        length = 0.0 if r.equality else float(np.linalg.norm(r.weights))
        rho = min(float(np.min(r.hi - r.lo)) / 2, (r.total - r.least) / (exact_sum(r.weights) + length))
        rho = min(rho, (r.most - r.total) / exact_sum(r.weights)) if r.equality else rho
        if rho <= 1e-9 * r.scale:
            raise fail("OCO410", f"{self} holds no interior point of {self.base}", hint="write the set itself")
        room = r.hi - r.lo - 2 * rho
        lack, whole = r.total - rho * length - exact_sum(r.weights * (r.lo + rho)), exact_sum(r.weights * room)
        share = lack / whole if whole > 0 else 0.0
        y = r.lo + rho + (share if r.equality else min(max(share, 0.0), 0.5)) * room
        return (r.sign * y).reshape(self.shape), rho
