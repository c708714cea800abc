"""x(lambda) of the dual of a penalized step (see `penalty`) for constraints g_n(x) = sum_i phi_{n,i}(x_i) over a box: each entry solves

    c_i + 2 alpha (x_i - y_i) + sum_n lambda_n phi_{n,i}'(x_i) = 0,

cut to its bounds. Where the decision enters through one function f of each entry alone, f(z_i) with z_i affine in x_i, and f has a
closed proximal point (`dsl/atoms/proximal.py`), that is the solution, and where it enters through kinks (`kinked_functions`); else Newton's
method in every entry at once, kept between brackets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.entry_functions import EntryFunctions
from oco.compiler.lowering.kinked_functions import KinkedFunctions
from oco.compiler.lowering.points import Point, Rows, Structured, call_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.prover.terms.kinks import smooth
from oco.compiler.proximal.entry_bounds import EntryBounds
from oco.compiler.proximal.response import MAX_STEPS
from oco.compiler.proximal.smooth_response import stream_names

FLAT = Tolerance(1e-9)
"""Slope at an entry that moves, as a share of the change of the slope over its range."""
ROUNDING = Tolerance(1e-14)
"""A move of every entry that is no more than this share of its greatest bound ends Newton's method."""
AT_KINKS = 20
"""Turns expected where slopes jump: two where none is met, fifty where a jump is bracketed by bisection until moves are rounding."""
CLOSED_DOC = "argmin_x <c, x - y> + alpha |x - y|^2 + <lam, g(x)> over the box: the proximal point of each entry."
NEWTON_DOC = "argmin_x <c, x - y> + alpha |x - y|^2 + <lam, g(x)> over the box, entry by entry: Newton's method between brackets."


class SeparableResponse:
    """g_n(x) = sum_i phi_{n,i}(x_i) over a box: c_i + 2 alpha (x_i - y_i) + sum_n lambda_n phi_{n,i}'(x_i) = 0, cut to the bounds."""

    bounds: EntryBounds | None = None

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, round_: Value, *data: Value) -> None:
        self.p = Problem(p.tracer, p.spec, dict(zip(stream_names(p), data)), round_)
        self.y, self.c, self.alpha = y, c, alpha
        self.parts: tuple[Structured, ...] = (y, c, alpha, round_, *data)
        self.words = ("y", "c", "alpha", "round", *stream_names(p))

    @property
    def is_smooth(self) -> bool:
        """True if the constraints have no kinks."""
        return all(smooth(c.expr) for c in self.p.spec.canonical.inequalities)

    @property
    def ends(self) -> tuple[Point, Point] | None:
        """The least and the greatest point of the box, between which the slope of a convex function of an entry increases."""
        low, high = (self.p.domain.of_bounds(f, full=True) for f in (lambda lo, hi: lo, lambda lo, hi: hi))
        return (low, high) if self.is_smooth else None

    def over(self, *parts: Structured) -> SeparableResponse:
        """Response of the same form from other values."""
        return SeparableResponse(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        """Track at multipliers 0."""
        centre = (self.y - self.c / (2.0 * self.alpha)).map(lambda b: self.p.tracer.word("proximal_center", b))
        return [self.p.domain.project(centre).named(self.p.tracer, "x")]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Track at multipliers lambda, shape (N,), by Newton's method from a track near it."""
        t = self.p.tracer
        functions = self.p.spec.entry_functions
        if functions is None:

            def newton(multipliers: Value, near: Point, *parts: Structured) -> tuple[Value, ...]:
                return self.over(*parts).entries(multipliers, near).blocks

            result = call_over(
                t, "response", newton, multipliers, near[-1], *self.parts, doc=NEWTON_DOC, words=self.words
            )
        else:

            def closed(multipliers: Value, *parts: Structured) -> tuple[Value, ...]:
                return self.over(*parts).closed(functions, multipliers).blocks

            result = call_over(t, "response", closed, multipliers, *self.parts, doc=CLOSED_DOC, words=self.words)
        return [Point(result).named(t, "x")]

    def closed(self, functions: EntryFunctions | KinkedFunctions, multipliers: Value) -> Point:
        """The proximal point of every entry, cut to its bounds."""
        kinked, scale = isinstance(functions, KinkedFunctions), 2.0 * self.alpha
        nearest: Callable[..., Point] = self.p.kinked_point if kinked else self.p.proximal_point
        return self.p.domain.clip(nearest(functions, self.y, self.c, scale, multipliers))

    def entries(self, multipliers: Value, near: Point) -> Point:
        """Newton's method in every entry at once, kept between points where the left side was negative and positive."""
        t, n = self.p.tracer, len(near.blocks)
        outside = [
            self.p.domain.of_bounds(f, full=True) for f in (lambda a, b: 2 * a - b - 1, lambda a, b: 2 * b - a + 1)
        ]
        least = self.p.domain.of_bounds(lambda lo, hi: ROUNDING * np.maximum(abs(lo), abs(hi)))

        def not_converged(*state: Value) -> Value:
            return t.and_(state[-2], state[-1] < MAX_STEPS)

        def improve(*state: Value) -> tuple[Value, ...]:
            x, below, above = (Point(tuple(state[k * n : (k + 1) * n])) for k in range(3))
            slope, second_derivative = self.equation(multipliers, x)
            below = slope.map(lambda s, a, b: t.where(s <= 0.0, a, b), x, below)
            above = slope.map(lambda s, a, b: t.where(s >= 0.0, a, b), x, above)
            newton = self.p.domain.clip(x - slope.map(lambda s, b: s / b, second_derivative))
            middle = self.p.domain.clip(0.5 * (below + above))
            inside = newton.map(lambda y, a, b: t.and_(y > a, y < b), below, above)
            # A move of rounding may end on a bracket, and has to end the search all the same.
            inside = inside.map(lambda i, y, z, m: t.or_(i, abs(y - z) <= m), newton, x, least)
            following = inside.map(t.where, newton, middle)
            moved = reduce(t.or_, [t.any(b) for b in (following - x).map(lambda d, m: abs(d) > m, least).blocks])
            return (*following.blocks, *below.blocks, *above.blocks, moved, state[-1] + 1)

        begin = (*near.blocks, *outside[0].blocks, *outside[1].blocks, t.lift(True), t.lift(0))
        turns = None if self.is_smooth else AT_KINKS
        return Point(t.while_(not_converged, improve, begin, turns=turns)[:n])

    def equation(self, multipliers: Value, x: Point) -> tuple[Point, Point]:
        """The left side of the equation of each entry, and its derivative, which is at least 2 alpha."""
        scale = self.p.tracer.word("twice_alpha", 2.0 * self.alpha)
        slope = self.c + scale * (x - self.y) + self.p.constraint_combination(x, multipliers)
        return slope, self.second_derivative(multipliers, x)

    def second_derivative(self, multipliers: Value, x: Point) -> Point:
        """Derivative of the left side of the equation of each entry."""
        scale = self.p.tracer.word("twice_alpha", 2.0 * self.alpha)
        return self.p.curvature_of_combination(x, multipliers).map(lambda b: b + scale)

    def constraints(self, x: Point) -> Value:
        """Values of the constraints at x, shape (N,)."""
        return self.p.constraints(x)

    def slopes(self, x: Point) -> Rows:
        """Gradients of the constraints at x, one a row."""
        return self.p.constraint_gradients(x)

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """J S J', S the inverse slopes of the equations that hold; entries at a bound or at a kink do not move."""
        (x,) = track
        rows = self.p.constraint_gradients(x)
        return rows.gram(rows.scale(self.mobility(multipliers, x)))

    def mobility(self, multipliers: Value, x: Point) -> Point:
        """Move of each entry of the minimizer x for a unit of slope: 0 at a bound or at a kink."""
        where = self.p.tracer.where
        if self.is_smooth:  # then an entry between its bounds solves its equation
            return self.between_bounds(x, self.second_derivative(multipliers, x))
        slope, second_derivative = self.equation(multipliers, x)
        widths = self.p.domain.of_bounds(lambda lo, hi: hi - lo)
        return slope.map(lambda s, b, w: where(abs(s) <= FLAT * w * b, 1.0 / b, 0.0), second_derivative, widths)

    def between_bounds(self, x: Point, second_derivative: Point) -> Point:
        """Move of each entry that is between its bounds for a unit of slope, and 0 of others."""
        t = self.p.tracer
        bounds = (self.p.domain.of_bounds(f) for f in (lambda lo, hi: lo, lambda lo, hi: hi))
        return x.map(lambda v, b, lo, hi: t.where(t.and_(v > lo, v < hi), 1.0 / b, 0.0), second_derivative, *bounds)
