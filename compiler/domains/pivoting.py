"""Linear minimisation over a bounded polyhedron { w : G w <= h } by pivoting from vertex to vertex, over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.trace import Tracer, Values
from oco.compiler.ir.value import Value

PIVOT = 1e-11
"""Multipliers and rates within this of zero count as zero (rows and costs have norm about one)."""


MET = 1e-12
"""By how much the vertex may break a row in the end."""

REFINEMENTS = 2
"""Steps that bring the vertex and the multipliers from what rank-one changes have left of them to rounding."""


def cheapest_vertex(t: Tracer, c: Value, G: Floats, h: Floats, start: Floats) -> Value:
    """A vertex that minimizes <c, w>, from the vertex of the d rows `start`.

    Pivots go down as long as an edge does. Then rounding is taken out, and rows that it had hidden are met by dual pivots. Where rank-one
    changes have lost digits, all begins again from factors computed afresh.
    """
    basis = t.constant(start, "W", "rows that are tight at the first vertex")
    inverse = np.linalg.inv(G[start]).T
    edges = t.constant(inverse, "edges", "the edges at the first vertex, each along all of its rows but one")
    simplex = _Simplex(t, c, G, h)

    def step(W: Value, edges: Value, w: Value, lam: Value, passes: Value, done: Value) -> Values:
        W, edges, w, lam, _, after = t.while_(
            simplex.improvable, simplex.down, (W, edges, w, lam, t.lift(False), passes)
        )
        w, lam = simplex.refined(W, edges, w, lam)
        W, edges, w, lam, after = t.while_(simplex.outside, simplex.inwards, (W, edges, w, lam, after))
        w, lam = simplex.refined(W, edges, w, lam)
        exact = t.and_(simplex.violation(w) <= MET, t.min(lam) >= -PIVOT)
        done = t.or_(exact, t.eq(after, passes))
        edges, w, lam = t.if_(done, lambda: (edges, w, lam), lambda: simplex.afresh(W))
        return W, edges, w, lam, after, done

    first = (basis, edges, t.gather(simplex.right, basis) @ edges, -(edges @ simplex.cost), t.lift(0), t.lift(False))
    return t.while_(lambda *state: t.not_(state[-1]), step, first)[2]


class _Simplex:
    """The simplex method for the inequalities G w <= h.

    A vertex w is the solution of the d independent rows W, G_W w = h_W. The rows of `edges`, the transposed inverse of G_W, point up its
    edges; lam are the multipliers of cost = -G_W' lam. A pivot changes `edges` by a rank of one.
    """

    def __init__(self, t: Tracer, c: Value, G: Floats, h: Floats) -> None:
        self.t = t
        self.m, self.d = G.shape
        self.rows = t.constant(G, "G", "rows of the inequalities G w <= h, of norm one")
        self.right = t.constant(h, "h", "right sides of G w <= h")
        largest = t.max(t.abs(c))
        self.cost = c / t.where(largest > 0.0, largest, 1.0)

    def violation(self, w: Value) -> Value:
        return self.t.max(self.rows @ w - self.right)

    def improvable(self, W: Value, edges: Value, w: Value, lam: Value, stalled: Value, passes: Value) -> Value:
        return self.t.and_(self.t.min(lam) < -PIVOT, passes < 50 * (self.m + self.d))

    def down(self, W: Value, edges: Value, w: Value, lam: Value, stalled: Value, passes: Value) -> Values:
        """Down the steepest edge (Forrest & Goldfarb, Math. Program. 57, 1992), up to the first row in the way.

        After a step of length zero it is the edge of the first row that has one (Bland, Math. Oper. Res. 2, 1977): no cycle can arise.
        """
        t = self.t
        steepness = t.where(lam < -PIVOT, lam / t.sqrt(t.sum(edges * edges, axis=1)), 0.0)
        slot = t.where(stalled, t.argmin(t.where(lam < -PIVOT, W, self.m)), t.argmin(steepness))
        rate = -(self.rows @ t.gather(edges, slot))
        opening = t.and_(rate > PIVOT, t.scatter_add(t.ones((self.d,)), W, shape=(self.m,)) == 0.0)
        slack = t.maximum(self.right - self.rows @ w, 0.0)
        ratio = t.where(opening, slack / t.where(opening, rate, 1.0), np.inf)
        row, length = t.argmin(ratio), t.min(ratio)
        return *self._replaced(W, edges, w, lam, slot, row, length), length <= PIVOT, passes + 1

    def outside(self, W: Value, edges: Value, w: Value, lam: Value, passes: Value) -> Value:
        return self.t.and_(self.violation(w) > MET, passes < 50 * (self.m + self.d))

    def inwards(self, W: Value, edges: Value, w: Value, lam: Value, passes: Value) -> Values:
        """The row broken most becomes tight, in the place of one whose multiplier allows it (dual simplex method)."""
        t = self.t
        broken = self.rows @ w - self.right
        row = t.argmax(broken)
        rate = edges @ t.gather(self.rows, row)
        gives = rate > PIVOT
        slot = t.argmin(t.where(gives, t.maximum(lam, 0.0) / t.where(gives, rate, 1.0), np.inf))
        length = t.max(broken) / t.gather(rate, slot)
        replaced = t.if_(
            t.any(gives), lambda: self._replaced(W, edges, w, lam, slot, row, length), lambda: (W, edges, w, lam)
        )
        return *replaced, t.where(t.any(gives), passes + 1, 50 * (self.m + self.d))

    def _replaced(
        self, W: Value, edges: Value, w: Value, lam: Value, slot: Value, row: Value, length: Value
    ) -> tuple[Value, Value, Value, Value]:
        """W, edges, w and lam with `row` in a slot of W, at the other end of that slot's edge."""
        t = self.t
        edge, rate = t.gather(edges, slot), edges @ t.gather(self.rows, row)
        change = (rate - t.to_float(t.iota(self.d) == slot)) / t.gather(rate, slot)
        edges = edges - t.outer(change, edge)
        return t.put(W, row, slot), edges, w - length * edge, lam - t.gather(lam, slot) * change

    def refined(self, W: Value, edges: Value, w: Value, lam: Value) -> tuple[Value, Value]:
        """The vertex and the multipliers without what rank-one changes have left in them."""
        tight, edge = self.t.gather(self.rows, W), self.t.gather(self.right, W)
        for _ in range(REFINEMENTS):
            w = w - (tight @ w - edge) @ edges
            lam = lam - edges @ (self.cost + lam @ tight)
        return w, lam

    def afresh(self, W: Value) -> Values:
        t = self.t
        inverse = t.solve(t.gather(self.rows, W), t.eye(self.d))
        return inverse.T, inverse @ t.gather(self.right, W), -(self.cost @ inverse)
