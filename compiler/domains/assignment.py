"""The assignment problem over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.ir.trace import Tracer, Values
from oco.compiler.ir.value import Value

NONE = -1
"""Stands for no row and no column."""


def cheapest_assignment(t: Tracer, cost: Value) -> tuple[Value, Value]:
    """A permutation matrix X that minimizes <cost, X>, and the reduced costs: cost - a 1' - 1 b' >= 0, zero where X is one.

    Rows, then columns are reduced by their least entries, rows in turn take the first free column that costs nothing; the others are placed
    by shortest augmenting paths (Jonker & Volgenant, Computing 38, 1987), O(n^3). The order of all choices is fixed: the first of equals.
    """
    n = cost.shape[0]
    largest = t.max(t.abs(cost))
    unit = t.where(largest > 0.0, largest, 1.0)
    scaled = cost / unit
    scaled = scaled - t.reshape(t.min(scaled, axis=1), (n, 1))
    scaled = scaled - t.min(scaled, axis=0)

    def take(i: Value, row: Value, placed: Value) -> Values:
        fits = t.and_(t.gather(scaled, i) <= 0.0, t.eq(row, NONE))
        result, j = t.any(fits), t.argmax(t.to_int(fits))
        return t.put(row, t.where(result, i, t.gather(row, j)), j), t.put(placed, result, i)

    def place(i: Value, b: Value, row: Value) -> Values:
        return t.if_(t.gather(placed, i), lambda: (b, row), lambda: _augment(t, scaled, i, b, row))

    row, placed = t.for_(n, take, (t.full(NONE, (n,)), t.full(False, (n,))))
    b, row = t.for_(n, place, (t.zeros((n,)), row))
    X = t.put(t.zeros((n, n)), 1.0, row, t.iota(n))
    a = t.put(t.zeros((n,)), t.gather(scaled, row, t.iota(n)) - b, row)
    reduced = t.maximum(scaled - t.reshape(a, (n, 1)) - b, 0.0)
    return X, t.where(X > 0.0, 0.0, reduced) * unit


def _augment(t: Tracer, cost: Value, first: Value, b: Value, row: Value) -> tuple[Value, Value]:
    """The potentials of the columns and the rows placed in them, with row `first` placed too.

    Dijkstra's method finds the nearest empty column; a step from row i to column j costs cost[i, j] - b[j] less what row i pays where it
    is. `near` are distances of columns that are not reached yet, infinite for those that are; `way` are the columns before each.
    """
    n = row.size

    def occupied(j: Value, *_: Value) -> Value:
        return t.not_(t.gather(row, j) == NONE)

    def grow(j: Value, near: Value, way: Value, barred: Value, distance: Value) -> Values:
        i, far = t.gather(row, j), t.gather(near, j)
        near, barred, distance = t.put(near, np.inf, j), t.put(barred, -np.inf, j), t.put(distance, far, j)
        through = t.gather(cost, i) - barred + (far - (t.gather(cost, i, j) - t.gather(b, j)))
        way, near = t.where(through < near, j, way), t.minimum(near, through)
        return t.argmin(near), near, way, barred, distance

    near = t.gather(cost, first) - b
    start = (t.argmin(near), near, t.full(NONE, (n,)), b, t.full(np.inf, (n,)))
    j, near, way, _, distance = t.while_(occupied, grow, start)
    b = b + t.minimum(distance - t.gather(near, j), 0.0)

    def inside(j: Value, row: Value) -> Value:
        return t.not_(t.gather(way, j) == NONE)

    def shifted(j: Value, row: Value) -> Values:
        before = t.gather(way, j)
        return before, t.put(row, t.gather(row, before), j)

    j, row = t.while_(inside, shifted, (j, row))
    return b, t.put(row, first, j)
