"""The assignment problem over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value


def cheapest_assignment(t: Tracer, cost: Value) -> tuple[Value, Value]:
    """A permutation matrix X that minimizes <cost, X>, and the reduced costs: cost - a 1' - 1 b' >= 0, zero where X is one.

    Shortest augmenting paths (Kuhn 1955; Jonker & Volgenant 1987), O(n^3). Columns count from 1; column 0 stands for the row to be placed.
    `row[j]` is the row (from 1) placed in column j, 0 if none; `a` and `b` are the potentials of rows and columns.
    """
    n = cost.shape[0]
    largest = t.max(t.abs(cost))
    unit = t.where(largest > 0.0, largest, 1.0)
    scaled = cost / unit

    def place(i: Value, a: Value, b: Value, row: Value) -> tuple[Value, Value, Value]:
        return _augment(t, scaled, a, b, t.put(row, i + 1, 0))

    empty = t.full(0, (n + 1,))
    a, b, row = t.for_(n, place, (t.zeros((n + 1,)), t.zeros((n + 1,)), empty))
    X = t.put(t.zeros((n, n)), 1.0, row[1:] - 1, t.iota(n))
    reduced = t.maximum(scaled - t.reshape(a[1:], (n, 1)) - b[1:], 0.0)
    return X, t.where(X > 0.0, 0.0, reduced) * unit


def _augment(t: Tracer, cost: Value, a: Value, b: Value, row: Value) -> tuple[Value, Value, Value]:
    """Place one more row: grow a tree of tight pairs from column 0 until it reaches an empty column, then shift along the path."""
    size = row.size

    def occupied(j: Value, *_: Value) -> Value:
        return t.not_(t.gather(row, j) == 0)

    def grow(j: Value, a: Value, b: Value, least: Value, way: Value, used: Value) -> tuple[Value, ...]:
        used = t.put(used, True, j)
        i = t.gather(row, j)
        reduced = t.gather(cost, i - 1) - t.gather(a, i) - b[1:]
        slack = t.concat(t.full(np.inf, (1,)), reduced)
        nearer = t.and_(slack < least, t.not_(used))
        way, least = t.where(nearer, j, way), t.where(nearer, slack, least)
        j = t.argmin(t.where(used, np.inf, least))
        step = t.gather(least, j)
        moved = t.where(used, step, 0.0)
        return j, a + t.scatter_add(moved, row, shape=(size,)), b - moved, t.where(used, least, least - step), way, used

    start = (t.lift(0), a, b, t.full(np.inf, (size,)), t.full(0, (size,)), t.full(False, (size,)))
    j, a, b, _, way, _ = t.while_(occupied, grow, start)

    def inside(j: Value, row: Value) -> Value:
        return t.not_(j == 0)

    def shift(j: Value, row: Value) -> tuple[Value, Value]:
        before = t.gather(way, j)
        return before, t.put(row, t.gather(row, before), j)

    return a, b, t.while_(inside, shift, (j, row))[1]
