"""x(lambda) of the dual of a penalized step (see `penalty`) for affine constraints g(x) = g(y) + A (x - y)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.entry_bounds import BoundingRows, EntryBounds, over_entries


class AffineResponse:
    """x(lambda) = P_X(y - (c + A' lambda) / (2 alpha)), moved towards the kinks of `bounds`. The track: the point before that, and x."""

    ends = None

    def __init__(
        self,
        p: Problem,
        y: Point,
        c: Point,
        alpha: Value,
        g: Value,
        A: Rows,
        *bounds: Point,
    ) -> None:
        self.p, self.y, self.c, self.alpha, self.g, self.A = p, y, c, alpha, g, A
        self.bounds = EntryBounds(*bounds) if bounds else None
        self.parts: tuple[Structured, ...] = (y, c, alpha, g, A, *bounds)
        self.words = ("y", "c", "alpha", "g", "A", *("bound" for _ in bounds))

    @classmethod
    def bounded(
        cls, p: Problem, y: Point, c: Point, alpha: Value, g: Value, Q: Value, rows: BoundingRows
    ) -> tuple[AffineResponse, Value]:
        """A response with these rows as bounds, and the weights of the rows that are left, which have multipliers."""
        t, count = p.tracer, p.constraint_count
        shapes = tuple(b.shape for b in p.spec.canonical.blocks)
        named: list[Point] = []
        for k in range(rows.depth):
            layer = rows.of_layer(k)
            ones = np.zeros(count)
            ones[layer.rows] = 1.0
            mask = t.ones((count,)) if ones.all() else t.constant(ones, "bounding", "1 for rows that bound an entry")
            slope = p.constraint_combination(y, mask)
            bounds = (over_entries(g, layer, shapes), slope, over_entries(Q, layer, shapes))
            names = ("bound_at_y", "bound_slope", "bound_weight")
            named += [b.named(t, name) for b, name in zip(bounds, names)]
        left = np.setdiff1d(np.arange(count), rows.rows)
        if not left.size:
            none = Rows(tuple(t.zeros((0, *s)) for s in shapes))
            return cls(p, y, c, alpha, t.zeros((0,)), none, *named), t.zeros((0,))
        return cls(p, y, c, alpha, g[left], _rows_left(p, rows, left, y).named(t, "A"), *named), Q[left]

    def over(self, *parts: Structured) -> AffineResponse:
        """Response of the same form from other values."""
        return AffineResponse(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        """Track at multipliers 0."""
        return self.track(self.c)

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Track at multipliers lambda, shape (N,)."""
        return self.track(self.c + self.A.combine(multipliers))

    def track(self, slope: Point) -> list[Point]:
        """Track for the slope c + A' lambda."""
        t = self.p.tracer
        u = (self.y - slope / (2.0 * self.alpha)).named(t, "u")
        v = u if self.bounds is None else self.bounds.nearest(u, self.y, 2.0 * self.alpha)[0]
        return [u, self.p.domain.project(v).named(t, "x")]

    def constraints(self, x: Point) -> Value:
        """Linearized constraints g + A (x - y), shape (N,)."""
        return self.g + self.A.apply(x - self.y)

    def slopes(self, x: Point) -> Rows:
        """Gradients of the constraints, one a row: A."""
        return self.A

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """A J A' / (2 alpha), J a Jacobian of x in the point before it."""
        u, x = track
        double = 2.0 * self.alpha
        if self.bounds is None:
            return self.A.gram(self.p.domain.project_jacobian(u, x, self.A)) / double
        v, moves = self.bounds.nearest(u, self.y, double)
        rows = self.p.domain.project_jacobian(v, x, self.A)
        return self.A.gram(rows.scale(moves.map(self.p.tracer.to_float))) / double


def _rows_left(p: Problem, rows: BoundingRows, left: np.ndarray[tuple[int], np.dtype[np.int64]], y: Point) -> Rows:
    """Gradients of the rows that bound no entry alone: of their inequalities, or of the feedback where that gives them."""
    if not p.constraints_known:
        return Rows(tuple(m[left] for m in p.constraint_gradients(y).blocks))
    kept = tuple(c for k, c in enumerate(p.spec.canonical.inequalities) if k not in rows.labels)
    scales = p.spec.scales
    scales = None if scales is None else replace(scales, inequalities=scales.inequalities[left])
    spec = replace(p.spec, canonical=replace(p.spec.canonical, inequalities=kept), scales=scales)
    return Problem(p.tracer, spec, p.seen, p.round).constraint_gradients(y)
