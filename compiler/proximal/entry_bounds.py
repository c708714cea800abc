"""Rows of penalized steps that bound one entry of the decision each, such as `x <= b`: they need no multiplier (see `penalty`).

Over a box, with g_n(x) = g_n(y) + a (x_i - y_i) for the rows n of an entry i, the minimizer of a function that is convex in x_i under
the penalties Q [g_n]_+ of one row lies between its minimizers without the penalty, u, and with all of its slope, u - Q a / (2 alpha),
and there as near to the kink k = y_i - g_n(y) / a as it can be. With kinks k_1 <= ... <= k_K and slopes d_0 <= ... <= d_K of the
penalties between them it is the median of the kinks and of u - d_j / (2 alpha) (Li & Osher, Commun. Math. Sci. 7, 2009).
So the step has the multipliers of the other rows alone, however many bounds there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import entries_alone
from oco.dsl.records import dataclass

Ints = np.ndarray[Any, Any]
MOST_LAYERS = 16
"""Rows on one entry that need no multiplier: they are put in order by comparing each with each."""


@dataclass(frozen=True, eq=False)
class BoundingRows:
    """Places of the rows among all N, shape (K,), and of the entry that each bounds in the flattened decisions, shape (K,).

    `labels` are the indices of their inequalities; `layers` number the rows of each entry from 0, shape (K,).
    """

    labels: tuple[int, ...]
    rows: Ints
    entries: Ints
    layers: Ints

    def of_layer(self, layer: int) -> BoundingRows:
        """The rows of one layer: no two of them on the same entry."""
        own = self.layers == layer
        return BoundingRows(self.labels, self.rows[own], self.entries[own], self.layers[own])

    def apart(self, count: int) -> bool:
        """True where these are all of so many rows, no two of them on the same entry."""
        return self.depth == 1 and self.rows.size == count

    @property
    def depth(self) -> int:
        """The most rows on one entry."""
        return int(self.layers.max()) + 1


@lru_cache(maxsize=16)
def bounding_rows(canonical: Canonical) -> BoundingRows | None:
    """Inequalities of which every row depends on one entry of the decisions, at most `MOST_LAYERS` on the same; None without any."""
    sizes = {b.name: b.domain.size for b in canonical.blocks}
    taken, start = np.zeros(canonical.size, dtype=np.int64), 0
    labels: list[int] = []
    rows: list[Ints] = []
    entries: list[Ints] = []
    layers: list[Ints] = []
    for k, c in enumerate(canonical.inequalities):
        own = entries_alone(c.expr, sizes)
        layer = None if own is None else taken[own] + _earlier(own)
        if own is not None and layer is not None and int(layer.max()) < MOST_LAYERS:
            np.maximum.at(taken, own, layer + 1)
            labels.append(k)
            rows.append(start + np.arange(c.size))
            entries.append(own)
            layers.append(layer)
        start += c.size
    return BoundingRows(tuple(labels), *map(np.concatenate, (rows, entries, layers))) if labels else None


def _earlier(entries: Ints) -> Ints:
    """For each place, how many before it hold the same entry."""
    order = np.argsort(entries, kind="stable")
    ordered = entries[order]
    results = np.empty_like(entries)
    results[order] = np.arange(entries.size) - np.searchsorted(ordered, ordered)
    return results


@dataclass(frozen=True, eq=False)
class Layer:
    """For each entry one row: the value at y, the slope a and the weight Q, all 0 where it has none."""

    value: Point
    slope: Point
    weight: Point

    def kink(self, y: Point) -> Point:
        """Point at which the row of each entry is 0; any where its slope is 0."""
        t = y.blocks[0].tracer
        return y - self.value.map(lambda g, a: g / t.where(t.eq(a, 0.0), 1.0, a), self.slope)

    @property
    def price(self) -> Point:
        """Slope of the penalty where the row is positive."""
        return self.slope.map(lambda a, q: a * q, self.weight)


class EntryBounds:
    """Rows that bound entries, in layers of at most one row an entry; `parts` are the three points of each layer."""

    def __init__(self, *parts: Point) -> None:
        self.parts: tuple[Structured, ...] = parts
        self.layers = [Layer(*parts[k : k + 3]) for k in range(0, len(parts), 3)]

    def nearest(self, u: Point, y: Point, double: Value) -> tuple[Point, Point]:
        """argmin of alpha |v - u|^2 under the penalties, `double` being 2 alpha, and the truth of where it moves with u."""
        t = double.tracer
        if len(self.layers) > 1:
            return self._median(u, y, double)
        far = u - self.layers[0].price / double
        kink = self.layers[0].kink(y)
        v = kink.map(lambda k, a, b: t.minimum(t.maximum(k, t.minimum(a, b)), t.maximum(a, b)), u, far)
        return v, v.map(lambda x, a, b: t.or_(t.eq(x, a), t.eq(x, b)), u, far)

    def _median(self, u: Point, y: Point, double: Value) -> tuple[Point, Point]:
        """The median of kinks and of u less the slopes between them, block by block."""
        t: Tracer = u.blocks[0].tracer
        kinks = [layer.kink(y).blocks for layer in self.layers]
        prices = [layer.price.blocks for layer in self.layers]
        places: list[Value] = []
        moves: list[Value] = []
        for k, at in enumerate(u.blocks):
            rows: list[tuple[Value, ...]] = [
                (kink[k], t.maximum(p[k], 0.0), t.maximum(-p[k], 0.0)) for kink, p in zip(kinks, prices)
            ]
            rows = _by_kink(t, rows)
            rising, falling = [r for _, r, _ in rows], [f for _, _, f in rows]
            v = at + _sum(falling) / double
            lines = [v]
            for j in range(len(rows)):
                slope = _sum(rising[: j + 1])
                slope = slope if j + 1 == len(rows) else slope - _sum(falling[j + 1 :])
                lines.append(at - slope / double)
                v = t.maximum(lines[-1], t.minimum(rows[j][0], v))
            places.append(v)
            moves.append(reduce(t.or_, [t.eq(v, line) for line in lines]))
        return Point(tuple(places)), Point(tuple(moves))

    @property
    def slopes(self) -> Point:
        """Size of the slope that the rows add in each entry, at most."""
        return reduce(lambda a, b: a + b, [layer.price.map(abs) for layer in self.layers])

    def penalty(self, move: Point) -> Value:
        """sum_n Q_n [g_n]_+ at y + move."""
        t = move.blocks[0].tracer
        sums: list[Value] = []
        for layer in self.layers:
            paid = layer.value.map(lambda g, a, m, q: q * t.maximum(g + a * m, 0.0), layer.slope, move, layer.weight)
            sums += [t.sum(b) for b in paid.blocks]
        return _sum(sums)


def _by_kink(t: Tracer, rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Rows in the order of what they begin with, entry by entry: neighbours change places until none is to."""
    rows = list(rows)
    for last in range(len(rows) - 1, 0, -1):
        for j in range(last):
            one, other = rows[j], rows[j + 1]
            swap = one[0] > other[0]
            rows[j] = tuple(t.where(swap, b, a) for a, b in zip(one, other))
            rows[j + 1] = tuple(t.where(swap, a, b) for a, b in zip(one, other))
    return rows


def _sum(values: Sequence[Value]) -> Value:
    return reduce(lambda a, b: a + b, values)


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
