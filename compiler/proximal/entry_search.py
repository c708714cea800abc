"""The penalized step where every row depends on one entry of the decision, no two on the same (see `penalty`).

Over a box the step falls apart: x_i minimizes h_i(x_i) + Q_n [g_n(x_i)]_+ for its row n, with h_i strictly convex. Let u_i be the
minimizer without the penalty and w_i that with all of it, of h_i + Q_n g_n. Where g_n(u_i) <= 0 the step is u_i, where g_n(w_i) >= 0 it
is w_i, else the point between them at which g_n is 0; g_n is convex, so there is one. It is bracketed by bisection, all entries at once.
"""

from __future__ import annotations

from functools import reduce

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.entry_bounds import BoundingRows, over_entries
from oco.compiler.proximal.response import HALVINGS
from oco.compiler.proximal.separable_response import SeparableResponse

SHARE = Tolerance(1e-13)
"""Share of the width of the narrowest entry at which the search ends."""


def entry_search(p: Problem, response: SeparableResponse, Q: Value, rows: BoundingRows) -> Point:
    """The minimizer, where `rows` are all rows of the problem and none of them share an entry."""
    t, shapes = p.tracer, tuple(b.shape for b in response.y.blocks)

    def value(x: Point) -> Point:
        return over_entries(response.constraints(x), rows, shapes)

    free = response.start()[-1].named(t, "u")
    bound = response.at(Q, [free])[-1].named(t, "w")
    at_free, at_bound = value(free), value(bound)
    between = at_free.map(lambda a, b: t.and_(a > 0.0, b < 0.0), at_bound)
    enough = SHARE * p.domain.least_width

    def unfinished(*state: Value) -> Value:
        above, below = _halves(state[:-1])
        gaps = above.map(lambda a, b, c: t.where(c, abs(a - b), 0.0), below, between)
        widest = reduce(t.maximum, [t.max(g) for g in gaps.blocks])
        return t.and_(widest > enough, state[-1] < HALVINGS)

    def halve(*state: Value) -> tuple[Value, ...]:
        above, below = _halves(state[:-1])
        middle = above.map(lambda a, b: a + 0.5 * (b - a), below)
        broken = value(middle).map(lambda g: g > 0.0)
        return (
            *broken.map(t.where, middle, above).blocks,
            *broken.map(t.where, below, middle).blocks,
            state[-1] + 1,
        )

    t.note("rows that are kept between no penalty and all of it: where they are 0")
    *ends, _ = t.while_(unfinished, halve, (*free.blocks, *bound.blocks, t.lift(0)))
    _, kept = _halves(tuple(ends))
    outer = at_free.map(lambda g, a, b: t.where(g > 0.0, b, a), free, bound)
    return between.map(t.where, kept, outer).named(t, "x")


def _halves(blocks: tuple[Value, ...]) -> tuple[Point, Point]:
    """Two points from their blocks, one after the other."""
    half = len(blocks) // 2
    return Point(tuple(blocks[:half])), Point(tuple(blocks[half:]))
