"""The step of COLDQ: argmin over x in X of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+, solved exactly through its dual.

Q [g]_+ is the largest of lambda g over 0 <= lambda <= Q, so the step is the maximum over that box of the concave

    D(lambda) = min_x  <c, x - y> + alpha |x - y|^2 + <lambda, g(x)>,    grad D(lambda) = g(x(lambda)).

x(lambda) is a projection where g is affine, and one monotone equation an entry where g is separable and X a box. D is maximized by
Newton's method on the free multipliers with the generalized Hessian of D (semismooth, so it ends in finitely many steps where D is
piecewise quadratic), a line search along the clipped step, and the scaled gradient where that promises more. Since the objective is
2 alpha-strongly convex, alpha |x(lambda) - x*|^2 is at most the duality gap; the search ends when the promised gain is below
alpha (TOLERANCE diameter)^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.points import Point, Rows
from oco.compiler.problem import Problem
from oco.compiler.structure import Structure

TOLERANCE = 1e-12
"""Error of the decision, as a share of the domain's diameter, at which the search ends."""
MAX_STEPS = 200
MAX_HALVINGS = 60
RIDGE = 1e-13
"""Keeps the Newton system solvable where rows are dependent: a share of each row's greatest curvature."""


class Response(Protocol):
    """The minimizer x(lambda) of the Lagrangian. `track` is what travels with it from one lambda to the next; its last point is x."""

    def start(self) -> list[Point]: ...

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]: ...

    def constraints(self, x: Point) -> Value: ...

    def rows(self, x: Point) -> Rows: ...

    def curvature(self, multipliers: Value, track: list[Point]) -> Value: ...


def penalized_step(p: Problem, y: Point, c: Point, alpha: Value, Q: Value, g: Value) -> Point:  # noqa: N803
    """The minimizer; g is g(y), shape (N,), as Q is."""
    response: Response = _Affine(p, y, c, alpha, g) if p.structure is Structure.AFFINE else _Separable(p, y, c, alpha)
    diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains))
    enough = alpha * (TOLERANCE * diameter) ** 2

    def dual(multipliers: Value, x: Point, values: Value) -> tuple[Value, Value]:
        """D(lambda), and the size of its terms."""
        move = x - y
        parts = (c.dot(move), alpha * move.squared_norm(), p.tracer.sum(multipliers * values))
        return parts[0] + parts[1] + parts[2], abs(parts[0]) + parts[1] + abs(parts[2])

    return _Ascent(p.tracer, response, Q, alpha, dual, enough).run()


class _Affine:
    """g(x) = g(y) + A (x - y): x(lambda) = P_X(y - (c + A' lambda) / (2 alpha))."""

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, g: Value) -> None:
        self.domain, self.y, self.g = p.domain, y, g
        self.scale = 2.0 * alpha
        self.A = p.constraint_gradients(y)
        self.unpenalized = y - c / self.scale

    def start(self) -> list[Point]:
        v = self.unpenalized
        return [v, self.domain.project(v)]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        v = self.unpenalized - self.A.combine(multipliers) / self.scale
        return [v, self.domain.project(v)]

    def constraints(self, x: Point) -> Value:
        return self.g + self.A.apply(x - self.y)

    def rows(self, x: Point) -> Rows:
        return self.A

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """-D'' = A J A' / (2 alpha), J a Jacobian of the projection."""
        v, x = track
        return self.A.gram(self.domain.project_jacobian(v, x, self.A)) / self.scale


class _Separable:
    """g_n(x) = sum_i phi_{n,i}(x_i) over a box: c_i + 2 alpha (x_i - y_i) + sum_n lambda_n phi_{n,i}'(x_i) = 0, cut to the bounds."""

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value) -> None:
        self.p, self.t, self.y, self.c = p, p.tracer, y, c
        self.scale = 2.0 * alpha
        self.lower, self.upper = p.domain.bounds()

    def start(self) -> list[Point]:
        return [self.p.domain.project(self.y - self.c / self.scale)]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Newton's method in every entry at once, kept between the points where the left side was negative and positive."""
        t, n = self.t, len(self.y.blocks)
        widths = self.upper - self.lower
        outside = widths.map(lambda w: w + 1.0)
        size = max(float(abs(b).max()) for d in self.p.domain.domains for b in (d.lower, d.upper))

        def unsettled(*state: Value) -> Value:
            return t.and_(state[-2] > 1e-14 * size, state[-1] < MAX_STEPS)

        def improve(*state: Value) -> tuple[Value, ...]:
            x, lo, hi = (Point(tuple(state[k * n : (k + 1) * n])) for k in range(3))
            slope, bend = self.equation(multipliers, x)
            lo = slope.map(lambda s, a, b: t.where(s <= 0.0, a, b), x, lo)
            hi = slope.map(lambda s, a, b: t.where(s >= 0.0, a, b), x, hi)
            newton = self.p.domain.clip(x - slope.map(lambda s, b: s / b, bend))
            middle = self.p.domain.clip(0.5 * (lo + hi))
            following = newton.map(lambda y, m, a, b: t.where(t.and_(y > a, y < b), y, m), middle, lo, hi)
            moved = _largest(t, [t.max(abs(b)) for b in (following - x).blocks])
            return (*following.blocks, *lo.blocks, *hi.blocks, moved, state[-1] + 1)

        x = near[-1]
        begin = (*x.blocks, *(self.lower - outside).blocks, *(self.upper + outside).blocks, t.lift(math.inf), t.lift(0))
        return [Point(t.while_(unsettled, improve, begin)[:n])]

    def equation(self, multipliers: Value, x: Point) -> tuple[Point, Point]:
        """The left side of the equation of each entry, and its derivative, which is at least 2 alpha."""
        slope = self.c + self.scale * (x - self.y) + self.p.constraint_combination(x, multipliers)
        bend = self.p.curvature_of_combination(x, multipliers).map(lambda b: b + self.scale)
        return slope, bend

    def constraints(self, x: Point) -> Value:
        return self.p.constraints(x)

    def rows(self, x: Point) -> Rows:
        return self.p.constraint_gradients(x)

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """-D'' = J S J', S the inverse slopes of the equations that hold; entries at a bound or at a kink do not move."""
        (x,) = track
        slope, bend = self.equation(multipliers, x)
        widths = self.upper - self.lower
        moves = slope.map(lambda s, b, w: self.t.where(abs(s) <= 1e-9 * w * b, 1.0 / b, 0.0), bend, widths)
        rows = self.rows(x)
        return rows.gram(rows.scale(moves))


class _Ascent:
    """Maximizes D over the box [0, Q]. The state: lambda, g = grad D, the next step and its promise, a count, the track."""

    def __init__(
        self,
        t: Tracer,
        response: Response,
        Q: Value,  # noqa: N803
        alpha: Value,
        dual: Callable[[Value, Point, Value], tuple[Value, Value]],
        enough: Value,
    ) -> None:
        self.t, self.response, self.Q, self.alpha = t, response, Q, alpha
        self.dual, self.enough = dual, enough
        self.blocks = 0

    def run(self) -> Point:
        t = self.t
        track = self.response.start()
        self.blocks = len(track[-1].blocks)
        multipliers = t.zeros(self.Q.shape)
        g = self.response.constraints(track[-1])
        step, promise = self.direction(multipliers, g, track)
        begin = (multipliers, g, step, promise, t.lift(0), *self.flat(track))

        def unfinished(lam: Value, g: Value, step: Value, promise: Value, count: Value, *track: Value) -> Value:
            return t.and_(promise > self.enough, count < MAX_STEPS)

        def ascend(lam: Value, g: Value, step: Value, promise: Value, count: Value, *track: Value) -> tuple[Value, ...]:
            lam, g, points = self.search(lam, g, step, promise, self.points(track))
            step, promise = self.direction(lam, g, points)
            return (lam, g, step, promise, count + 1, *self.flat(points))

        found = t.while_(unfinished, ascend, begin)
        return self.points(found[5:])[-1]

    def direction(self, lam: Value, g: Value, track: list[Point]) -> tuple[Value, Value]:
        """The clipped Newton step or the clipped scaled gradient step, whichever promises the greater gain <g, step>."""
        t = self.t
        count = self.Q.shape[0]
        steepest = self.response.rows(track[-1]).squared_norms() / (2.0 * self.alpha)
        free = t.not_(t.or_(t.and_(lam <= 0.0, g <= 0.0), t.and_(lam >= self.Q, g >= 0.0)))
        ridge = RIDGE * steepest + 1e-290
        bend = self.response.curvature(lam, track)
        newton = self.clipped(lam, self.solved(bend, free, g, ridge))
        gradient = self.clipped(lam, g / (count * steepest + 1e-290))
        promised, safe = t.sum(g * newton), t.sum(g * gradient)
        better = promised >= safe
        return t.where(better, newton, gradient), t.where(better, promised, safe)

    def solved(self, bend: Value, free: Value, g: Value, ridge: Value) -> Value:
        """The Newton step of the free multipliers; zero for the others."""
        t = self.t
        wanted = t.where(free, g, 0.0)
        if self.Q.shape[0] == 1:
            return wanted / (t.reshape(bend, (1,)) + ridge)
        both = t.to_float(free)
        system = bend * t.outer(both, both) + t.diag(t.where(free, ridge, 1.0))
        return t.solve(system, wanted)

    def clipped(self, lam: Value, step: Value) -> Value:
        """The step from lambda, cut so that it ends in [0, Q]."""
        return self.t.minimum(self.t.maximum(lam + step, 0.0), self.Q) - lam

    def search(self, lam: Value, g: Value, step: Value, promise: Value, track: list[Point]) -> tuple[Value, Value, list[Point]]:
        """Shorten the step until D does not fall and its slope at the end is not far below zero."""
        t = self.t
        value, _ = self.dual(lam, track[-1], g)

        def reached(share: Value, near: list[Point]) -> tuple[Value, list[Point]]:
            points = self.response.at(lam + share * step, near)
            return self.response.constraints(points[-1]), points

        def too_far(share: Value, g: Value, tries: Value, *flat: Value) -> Value:
            found, size = self.dual(lam + share * step, self.points(flat)[-1], g)
            falls = found < value - 1e-13 * size
            return t.and_(t.or_(falls, t.sum(g * step) < -0.5 * promise), tries < MAX_HALVINGS)

        def shorten(share: Value, g: Value, tries: Value, *flat: Value) -> tuple[Value, ...]:
            end = t.sum(g * step)
            secant = promise / t.maximum(promise - end, promise)
            share = share * t.minimum(t.maximum(secant, 0.1), 0.5)
            g, points = reached(share, self.points(flat))
            return (share, g, tries + 1, *self.flat(points))

        g, points = reached(t.lift(1.0), track)
        share, g, _, *flat = t.while_(too_far, shorten, (t.lift(1.0), g, t.lift(0), *self.flat(points)))
        return lam + share * step, g, self.points(tuple(flat))

    def flat(self, track: list[Point]) -> tuple[Value, ...]:
        return tuple(b for point in track for b in point.blocks)

    def points(self, flat: tuple[Value, ...]) -> list[Point]:
        n = self.blocks
        return [Point(tuple(flat[k : k + n])) for k in range(0, len(flat), n)]


def _largest(t: Tracer, parts: list[Value]) -> Value:
    found = parts[0]
    for part in parts[1:]:
        found = t.maximum(found, part)
    return found
