"""Linear minimisation over a bounded polyhedron { w : G w <= h } by pivoting from vertex to vertex, over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

PIVOT = 1e-11
"""Multipliers and rates within this of zero count as zero (rows and costs have norm about one)."""


def cheapest_vertex(t: Tracer, c: Value, G: Floats, h: Floats, start: Floats) -> Value:
    """A vertex that minimizes <c, w>, from the vertex of the d rows `start`; Bland's rule (Math. Oper. Res. 2, 1977) against cycles.

    A vertex is the solution of d independent rows G_W w = h_W. The multipliers of c = -G_W' lam tell the row to leave: the first with
    lam < 0; along the edge that it opens, the first row to become tight enters.
    """
    rows = t.constant(G, "G", "rows of the inequalities G w <= h, of norm one")
    right = t.constant(h, "h", "right sides of G w <= h")
    m, d = G.shape
    largest = t.max(t.abs(c))
    cost = c / t.where(largest > 0.0, largest, 1.0)

    def multipliers(W: Value) -> tuple[Value, Value]:
        N = t.gather(rows, W)
        return N, t.solve(N.T, -cost)

    def improvable(W: Value, passes: Value) -> Value:
        return t.and_(t.min(multipliers(W)[1]) < -PIVOT, passes < 50 * (m + d))

    def pivot(W: Value, passes: Value) -> tuple[Value, Value]:
        N, lam = multipliers(W)
        slot = t.argmin(t.where(lam < -PIVOT, W, m))
        leaving = t.to_float(t.iota(d) == slot)
        edge = t.solve(N, -leaving)
        rate = rows @ edge
        opening = t.and_(rate > PIVOT, t.scatter_add(t.ones((d,)), W, shape=(m,)) == 0.0)
        slack = t.maximum(right - rows @ t.solve(N, t.gather(right, W)), 0.0)
        ratio = t.where(opening, slack / t.where(opening, rate, 1.0), np.inf)
        return t.put(W, t.argmin(ratio), slot), passes + 1

    basis = t.constant(start, "W", "rows that are tight at the first vertex")
    W = t.while_(improvable, pivot, (basis, t.lift(0)))[0]
    return t.solve(t.gather(rows, W), t.gather(right, W))
