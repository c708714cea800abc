"""Levels of stores at which values stand: close to each other among those that are used, and out to the ends of the range."""

from __future__ import annotations

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.magnitudes import TINY

OUTER = 5
"""Cells between values on either side of the levels that are used."""


class ValueGrid:
    """Points from `lower` over `first` and `last` to `upper`, all (m, 1), with `inner` cells between the two in the middle."""

    def __init__(self, t: Tracer, ends: tuple[Value, Value], used: tuple[Value, Value], inner: int) -> None:
        (lower, upper), (first, last) = ends, used
        self.t, self.upper, self.count = t, upper, points_of(inner)
        self._parts = ((lower, first, OUTER), (first, last, inner), (last, upper, OUTER))

    @property
    def points(self) -> Value:
        """Levels at which values stand, (m, G), in order."""
        t = self.t
        parts = [a + (b - a) * (t.to_float(t.iota(n)) / float(n)) for a, b, n in self._parts]
        return t.name("stored", t.concat(*parts, self.upper, axis=1))

    def interpolated(self, values: Value, at: Value) -> Value:
        """Values (m, G), linear between the points and constant beyond, at what is in store, (m, P)."""
        t, (m, P), place = self.t, at.shape, self._place(at)
        cell = t.minimum(t.floor(place), float(self.count - 2))
        begins = t.constant(self.count * np.arange(m).reshape(m, 1), "begins", "where the values of a store begin")
        cells = t.reshape(t.to_int(cell) + begins, (m * P,))
        flat = t.reshape(values, (m * self.count,))
        low, high = (t.reshape(flat[i], (m, P)) for i in (cells, cells + 1))
        return low + (place - cell) * (high - low)

    def _place(self, at: Value) -> Value:
        """Cells below levels (m, P), and the part of one beyond them."""
        t = self.t
        shares = [
            float(n) * t.minimum(t.maximum((at - a) / t.maximum(b - a, TINY), 0.0), 1.0) for a, b, n in self._parts
        ]
        return shares[0] + shares[1] + shares[2]


def points_of(inner: int) -> int:
    """Number G of points with so many cells among the levels that are used."""
    return inner + 2 * OUTER + 1
