"""Linear minimisation over a bounded polyhedron { w : G w <= h } by pivoting from vertex to vertex, over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.trace import Tracer, Values
from oco.compiler.ir.value import Value

PIVOT = 1e-11
"""Multipliers and rates within this of zero count as zero (rows and costs have norm about one)."""


MET = 1e-13
"""By how much a tight row may be missed at the vertex in the end."""

REFINEMENTS = 2
"""Steps that bring the vertex and the multipliers from what rank-one changes have left of them to rounding."""


def cheapest_vertex(t: Tracer, c: Value, G: Floats, h: Floats, start: Floats) -> Value:
    """A vertex that minimizes <c, w>, from the vertex of the d rows `start`.

    A vertex is the solution of d independent rows G_W w = h_W. The multipliers of c = -G_W' lam tell the row to leave: that of the
    steepest edge down (Forrest & Goldfarb, Math. Program. 57, 1992), or after a step of length zero the first row with a negative one
    (Bland, Math. Oper. Res. 2, 1977, so that no cycle can arise); along that edge, the first row to become tight enters. The inverse of
    G_W has the edges as its columns; a pivot changes it by a rank of one. Where that has lost digits it is computed afresh.
    """
    rows = t.constant(G, "G", "rows of the inequalities G w <= h, of norm one")
    right = t.constant(h, "h", "right sides of G w <= h")
    m, d = G.shape
    largest = t.max(t.abs(c))
    cost = c / t.where(largest > 0.0, largest, 1.0)

    def improvable(W: Value, edges: Value, w: Value, lam: Value, stalled: Value, passes: Value) -> Value:
        return t.and_(t.min(lam) < -PIVOT, passes < 50 * (m + d))

    def pivot(W: Value, edges: Value, w: Value, lam: Value, stalled: Value, passes: Value) -> tuple[Value, ...]:
        steepness = t.where(lam < -PIVOT, lam / t.sqrt(t.sum(edges * edges, axis=1)), 0.0)
        slot = t.where(stalled, t.argmin(t.where(lam < -PIVOT, W, m)), t.argmin(steepness))
        edge = t.gather(edges, slot)
        rate = -(rows @ edge)
        opening = t.and_(rate > PIVOT, t.scatter_add(t.ones((d,)), W, shape=(m,)) == 0.0)
        slack = t.maximum(right - rows @ w, 0.0)
        ratio = t.where(opening, slack / t.where(opening, rate, 1.0), np.inf)
        entering, length = t.argmin(ratio), t.min(ratio)
        change = edges @ t.gather(rows, entering) - t.to_float(t.iota(d) == slot)
        change = change / -t.gather(rate, entering)
        W, edges = t.put(W, entering, slot), edges - t.outer(change, edge)
        return W, edges, w - length * edge, lam - t.gather(lam, slot) * change, length <= PIVOT, passes + 1

    def settle(W: Value, edges: Value, w: Value, lam: Value, passes: Value, done: Value) -> tuple[Value, ...]:
        W, edges, w, lam, _, after = t.while_(improvable, pivot, (W, edges, w, lam, t.lift(False), passes))
        tight, edge = t.gather(rows, W), t.gather(right, W)
        for _ in range(REFINEMENTS):
            w = w - (tight @ w - edge) @ edges
            lam = lam - edges @ (cost + lam @ tight)
        exact = t.and_(t.max(t.abs(tight @ w - edge)) <= MET, t.min(lam) >= -PIVOT)
        done = t.or_(exact, t.eq(after, passes))

        def afresh() -> Values:
            inverse = t.solve(tight, t.eye(d))
            return inverse.T, inverse @ edge, -(cost @ inverse)

        edges, w, lam = t.if_(done, lambda: (edges, w, lam), afresh)
        return W, edges, w, lam, after, done

    basis = t.constant(start, "W", "rows that are tight at the first vertex")
    inverse = np.linalg.inv(G[start]).T
    edges = t.constant(inverse, "edges", "the edges down from the first vertex, each along all of its rows but one")
    first = (basis, edges, t.gather(right, basis) @ edges, -(edges @ cost), t.lift(0), t.lift(False))
    return t.while_(lambda *state: t.not_(state[-1]), settle, first)[2]
