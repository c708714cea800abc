"""x(lambda) of the dual of a penalized step (see `penalty`) for separable constraints over boxes cut by one affine row each.

With a price theta of the row <a, x> <= b, or = b, each entry solves

    c_i + theta a_i + 2 alpha (x_i - y_i) + sum_n lambda_n phi_{n,i}'(x_i) = 0,

cut to its bounds, as over the box (`separable_response`). <a, x(theta)> - b does not increase in theta: its root is the price, 0 where an
inequality is slack. It is found by Newton's method between prices at which all entries are at one end or the other of what the row
sees, -s_i / a_i for the slopes s_i there, with bisection where Newton's step is not between those that were tried (a continuous
quadratic knapsack in the quadratic case: Brucker, Oper. Res. Lett. 3, 1984; Patriksson, Eur. J. Oper. Res. 185, 2008). Blocks have one
price each, searched together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.domains.properties import AffineRow
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured, call_over
from oco.compiler.proximal.response import MAX_STEPS
from oco.compiler.proximal.separable_response import SeparableResponse
from oco.dsl.magnitudes import TINY

MET = Tolerance(1e-15)
"""Part of the sum of the largest sizes of its terms by which a row may be missed."""
ROUNDING = Tolerance(1e-15)
"""A move of the price that is no more than this share of it ends the search."""
ROW_DOC = (
    "argmin_x <c, x - y> + alpha |x - y|^2 + <lam, g(x)> over a box cut by a row, and the price of the row: Newton's method on the price, "
    "between brackets."
)


class RowResponse(SeparableResponse):
    """The track: the prices of the rows, a number a block, 0 where it has none, and x."""

    def over(self, *parts: Structured) -> RowResponse:
        """Response of the same form from other values."""
        return RowResponse(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        """Track at multipliers 0."""
        x = super().start()[-1]
        none = self.p.tracer.zeros((self.p.constraint_count,))
        return [self.guessed(none, x, *self.brackets(none)).named(self.p.tracer, "theta"), x]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Track at multipliers lambda, shape (N,), by a search that begins next to a track near it."""
        t, n = self.p.tracer, len(self.y.blocks)

        def solve(multipliers: Value, near: Point, *parts: Structured) -> tuple[Value, ...]:
            return self.over(*parts).searched(multipliers, near)

        result = call_over(t, "row_response", solve, multipliers, near[-1], *self.parts, doc=ROW_DOC, words=self.words)
        return [Point(result[:n]).named(t, "theta"), Point(result[n:]).named(t, "x")]

    def searched(self, multipliers: Value, near: Point) -> tuple[Value, ...]:
        """Prices and x, block by block."""
        t, n = self.p.tracer, len(near.blocks)
        low, high = self.brackets(multipliers)
        theta = self.guessed(multipliers, near, low, high).named(t, "theta")
        # A price that was tried is no step, or Newton's method goes to and fro between two at kinks; these ends have not been tried.
        low, high = low.map(lambda a: a - ROUNDING * abs(a) - TINY), high.map(lambda b: b + ROUNDING * abs(b) + TINY)

        def at_rounding(v: Value, w: Value) -> Value:
            return abs(v - w) <= ROUNDING * abs(v)

        def unfinished(*state: Value) -> Value:
            residual = Point(state[4 * n : 5 * n])
            missed = reduce(t.or_, [abs(e) > m for e, m in zip(residual.blocks, self.allowed_residuals)])
            return t.and_(t.and_(missed, state[-2]), state[-1] < MAX_STEPS)

        def improve(*state: Value) -> tuple[Value, ...]:
            theta, low, high, x, residual = (Point(state[k * n : (k + 1) * n]) for k in range(5))
            low = residual.map(lambda e, a, b: t.where(e >= 0.0, a, b), theta, low)
            high = residual.map(lambda e, a, b: t.where(e <= 0.0, a, b), theta, high)
            curvatures = self.squares(self.moves(multipliers, theta, x))
            newton = self.signed(theta + residual.map(lambda e, b: e / t.maximum(b, TINY), curvatures))
            inside = newton.map(lambda v, w, a, b: t.or_(t.and_(v > a, v < b), at_rounding(v, w)), theta, low, high)
            middle = self.signed(low.map(lambda a, b: 0.5 * (a + b), high))
            following = inside.map(t.where, newton, middle).named(t, "theta")
            steps = following.map(lambda v, w: t.not_(at_rounding(v, w)), theta)
            x = self.priced(following).at(multipliers, [x])[-1]
            own = (following, low, high, x, self.residual(following, x))
            return (*_flat(own), reduce(t.or_, steps.blocks), state[-1] + 1)

        x = self.priced(theta).at(multipliers, [near])[-1]
        begin = (*_flat((theta, low, high, x, self.residual(theta, x))), t.lift(True), t.lift(0))
        result = t.while_(unfinished, improve, begin)
        return (*result[:n], *result[3 * n : 4 * n])

    def priced(self, theta: Point) -> SeparableResponse:
        """Response over the box, with the rows at these prices."""
        c = self.c.map(lambda c, a, price: c + price * a, self.weights, theta)
        return SeparableResponse(self.p, self.y, c, *self.parts[2:])  # type: ignore[arg-type]

    def residual(self, theta: Point, x: Point) -> Point:
        """Residual <a, x> - b of each block; 0 of an inequality that is slack at the price 0."""
        t, results = self.p.tracer, list[Value]()
        for row, a, price, b in zip(self.rows, self.weights.blocks, theta.blocks, x.blocks):
            if row is None:
                results.append(t.lift(0.0))
                continue
            over = t.sum(a * b) - row.total
            results.append(over if row.equal else t.where(price > 0.0, over, t.maximum(over, 0.0)))
        return Point(tuple(results))

    def brackets(self, multipliers: Value) -> tuple[Point, Point]:
        """Prices below and above those of the rows: at these no entry is between its bounds."""
        t = self.p.tracer
        lower, upper = (self.p.domain.of_bounds(f, full=True) for f in (lambda lo, hi: lo, lambda lo, hi: hi))
        slopes = [self.equation(multipliers, x)[0] for x in (lower, upper)]
        ends: list[list[Value]] = [[], []]
        for k, row in enumerate(self.rows):
            if row is None:
                ends[0].append(t.lift(0.0))
                ends[1].append(t.lift(0.0))
                continue
            a = row.weights
            inverse = _constant(t, np.divide(-1.0, a, out=np.zeros_like(a), where=a != 0), "inverse")
            both = [inverse * s.blocks[k] for s in slopes]
            ends[0].append(t.min(reduce(t.minimum, both)))
            ends[1].append(t.max(reduce(t.maximum, both)))
        return self.signed(Point(tuple(ends[0]))), self.signed(Point(tuple(ends[1])))

    def guessed(self, multipliers: Value, x: Point, low: Point, high: Point) -> Point:
        """Prices at which the entries of x between their bounds would move least, within the brackets."""
        t = self.p.tracer
        slope, second = self.equation(multipliers, x)
        moves = self.between_bounds(x, second)
        pulls = slope.map(lambda s, a, m: t.sum(s * a * m), self.weights, moves)
        guess = pulls.map(
            lambda p, q, a, b: t.where(q > 0.0, -p / t.maximum(q, TINY), 0.5 * (a + b)), self.squares(moves), low, high
        )
        return guess.map(lambda v, a, b: t.minimum(t.maximum(v, a), b), low, high)

    def moves(self, multipliers: Value, theta: Point, x: Point) -> Point:
        """Move of each entry for a unit of slope: 0 at a bound or at a kink."""
        return self.priced(theta).mobility(multipliers, x)

    def squares(self, moves: Point) -> Point:
        """sum_i a_i^2 moves_i of each block."""
        return moves.map(lambda m, a: self.p.tracer.sum(a * a * m), self.weights)

    def signed(self, theta: Point) -> Point:
        """Prices of equalities as they are, those of inequalities at least 0, and 0 where there is no row."""
        t = self.p.tracer
        parts = zip(theta.blocks, self.rows)
        return Point(tuple(t.lift(0.0) if row is None else v if row.equal else t.maximum(v, 0.0) for v, row in parts))

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """J S J', S the moves of the entries less their part along the rows that bind."""
        t, (theta, x) = self.p.tracer, track
        rows, moves = self.p.constraint_gradients(x), self.moves(multipliers, theta, x)
        result = rows.gram(rows.scale(moves))
        squares = self.squares(moves)
        for k, row in enumerate(self.rows):
            if row is None:
                continue
            m = rows.blocks[k] * (moves.blocks[k] * self.weights.blocks[k])
            along = t.sum(t.reshape(m, (m.shape[0], m.size // m.shape[0])), axis=1)
            share = t.where(squares.blocks[k] > 0.0, 1.0 / t.maximum(squares.blocks[k], TINY), 0.0)
            share = share if row.equal else t.where(theta.blocks[k] > 0.0, share, 0.0)
            result = result - t.outer(along * share, along)
        return result

    # The rows.

    @cached_property
    def rows(self) -> tuple[AffineRow | None, ...]:
        """The row of each block."""
        return tuple(d.row for d in self.p.domain.domains)

    @property
    def weights(self) -> Point:
        """Weights a, block by block: a number where its entries agree, 0 where there is no row."""
        t = self.p.tracer
        return Point(tuple(t.lift(0.0) if row is None else _constant(t, row.weights, "a") for row in self.rows))

    @cached_property
    def allowed_residuals(self) -> tuple[float, ...]:
        """Residual of each row at which the search ends."""
        sizes = [np.maximum(abs(d.lower), abs(d.upper)) for d in self.p.domain.domains]
        return tuple(
            0.0 if row is None else MET * float(np.sum(abs(row.weights) * size)) for row, size in zip(self.rows, sizes)
        )


def _constant(t: Tracer, array: Floats, name: str) -> Value:
    """A number where all entries agree."""
    if bool((array == array.flat[0]).all()):
        return t.lift(float(array.flat[0]))
    return t.constant(array, name, "of the row of the domain")


def _flat(points: Sequence[Point]) -> tuple[Value, ...]:
    return tuple(b for point in points for b in point.blocks)
