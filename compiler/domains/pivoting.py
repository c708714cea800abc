"""Linear minimisation over a bounded polyhedron { w : G w <= h } by pivoting from vertex to vertex, over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

PIVOT = 1e-11
"""Multipliers and rates within this of zero count as zero (rows and costs have norm about one)."""


def cheapest_vertex(t: Tracer, c: Value, G: Floats, h: Floats, start: Floats) -> Value:
    """A vertex that minimizes <c, w>, from the vertex of the d rows `start`.

    A vertex is the solution of d independent rows G_W w = h_W. The multipliers of c = -G_W' lam tell the row to leave: that of the most
    negative one, or after a step of length zero the first row with a negative one (Bland, Math. Oper. Res. 2, 1977, so that no cycle
    can arise); along the edge that it opens, the first row to become tight enters.
    """
    rows = t.constant(G, "G", "rows of the inequalities G w <= h, of norm one")
    right = t.constant(h, "h", "right sides of G w <= h")
    m, d = G.shape
    largest = t.max(t.abs(c))
    cost = c / t.where(largest > 0.0, largest, 1.0)

    def at(W: Value) -> tuple[Value, Value]:
        inverse = t.solve(t.gather(rows, W), t.eye(d))
        return inverse, -(cost @ inverse)

    def improvable(W: Value, inverse: Value, lam: Value, stalled: Value, passes: Value) -> Value:
        return t.and_(t.min(lam) < -PIVOT, passes < 50 * (m + d))

    def pivot(W: Value, inverse: Value, lam: Value, stalled: Value, passes: Value) -> tuple[Value, ...]:
        slot = t.where(stalled, t.argmin(t.where(lam < -PIVOT, W, m)), t.argmin(lam))
        edge = -(inverse @ t.to_float(t.iota(d) == slot))
        rate = rows @ edge
        opening = t.and_(rate > PIVOT, t.scatter_add(t.ones((d,)), W, shape=(m,)) == 0.0)
        slack = t.maximum(right - rows @ (inverse @ t.gather(right, W)), 0.0)
        ratio = t.where(opening, slack / t.where(opening, rate, 1.0), np.inf)
        W = t.put(W, t.argmin(ratio), slot)
        return W, *at(W), t.min(ratio) <= PIVOT, passes + 1

    basis = t.constant(start, "W", "rows that are tight at the first vertex")
    W = t.while_(improvable, pivot, (basis, *at(basis), t.lift(False), t.lift(0)))[0]
    return t.solve(t.gather(rows, W), t.gather(right, W))
