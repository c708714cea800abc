"""Rows of penalized steps that bound one entry of the decision each, such as `x <= b`: they need no multiplier (see `penalty`).

Over a box, with g_n(x) = g_n(y) + a (x_i - y_i) and no other such row on the entry i, the minimizer of a function that is convex in x_i
under the penalty Q [g_n]_+ lies between its minimizers without the penalty, u, and with all of its slope, u - Q a / (2 alpha), and there as
near to the kink y_i - g_n(y) / a as it can be. So the step has the multipliers of the other rows alone, however many bounds there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import entries_alone

Ints = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class BoundingRows:
    """Places of the rows among all N, shape (K,), and of the entry that each bounds in the flattened decisions, shape (K,).

    `labels` are the indices of their inequalities.
    """

    labels: tuple[int, ...]
    rows: Ints
    entries: Ints


@lru_cache(maxsize=16)
def bounding_rows(canonical: Canonical) -> BoundingRows | None:
    """Inequalities of which every row depends on one entry of the decisions, no two of them on the same; None where there are none."""
    sizes = {b.name: b.domain.size for b in canonical.blocks}
    taken, start = np.zeros(canonical.size, dtype=bool), 0
    labels: list[int] = []
    rows: list[Ints] = []
    entries: list[Ints] = []
    for k, c in enumerate(canonical.inequalities):
        own = entries_alone(c.expr, sizes)
        if own is not None and not taken[own].any() and len(np.unique(own)) == own.size:
            taken[own] = True
            labels.append(k)
            rows.append(start + np.arange(c.size))
            entries.append(own)
        start += c.size
    return BoundingRows(tuple(labels), np.concatenate(rows), np.concatenate(entries)) if labels else None


@dataclass(frozen=True, eq=False)
class EntryBounds:
    """For each entry its row: the value at y, the slope a and the weight Q, all 0 where it has none."""

    value: Point
    slope: Point
    weight: Point

    @property
    def parts(self) -> tuple[Structured, ...]:
        """The points that it is made of."""
        return (self.value, self.slope, self.weight)

    def nearest(self, u: Point, y: Point, double: Value) -> tuple[Point, Point]:
        """argmin of alpha |v - u|^2 under the penalties, `double` being 2 alpha, and the truth of where it moves with u."""
        t = double.tracer
        far = u - self._price / double
        kink = y - self.value.map(lambda g, a: g / t.where(t.eq(a, 0.0), 1.0, a), self.slope)
        v = kink.map(lambda k, a, b: t.minimum(t.maximum(k, t.minimum(a, b)), t.maximum(a, b)), u, far)
        return v, v.map(lambda x, a, b: t.or_(t.eq(x, a), t.eq(x, b)), u, far)

    @property
    def _price(self) -> Point:
        return self.slope.map(lambda a, q: a * q, self.weight)

    @property
    def reach(self) -> Point:
        """Size of the slope that the rows add in each entry, at most."""
        return self._price.map(abs)

    def penalty(self, move: Point) -> Value:
        """sum_i Q_i [g_i]_+ at y + move."""
        t = self.value.blocks[0].tracer
        paid = self.value.map(lambda g, a, m, q: q * t.maximum(g + a * m, 0.0), self.slope, move, self.weight)
        sums: list[Value] = [t.sum(b) for b in paid.blocks]
        return reduce(lambda a, b: a + b, sums)


def over_entries(values: Value, rows: BoundingRows, shapes: tuple[tuple[int, ...], ...]) -> Point:
    """A number of each row, of shape (N,), at the entry that the row bounds; 0 elsewhere."""
    t, sizes = values.tracer, [int(np.prod(s, dtype=np.int64)) for s in shapes]
    starts = np.cumsum([0, *sizes])
    blocks: list[Value] = []
    for start, size, shape in zip(starts, sizes, shapes):
        inside = (rows.entries >= start) & (rows.entries < start + size)
        own, places = rows.rows[inside], rows.entries[inside] - start
        if not own.size:
            blocks.append(t.zeros(shape))
            continue
        part = values if own.size == values.shape[0] and bool((np.diff(own) == 1).all()) else values[_index(own)]
        whole = own.size == size and bool((places == np.arange(size)).all())
        blocks.append(t.reshape(part if whole else t.scatter_add(part, places, shape=(size,)), shape))
    return Point(tuple(blocks))


def _index(places: Ints) -> Any:
    """A slice where the places follow each other."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == places.size else places
