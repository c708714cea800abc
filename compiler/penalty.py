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
from typing import Protocol

from oco.compiler.ir.value import Value
from oco.compiler.points import Point, Rows, Structured, call_over
from oco.compiler.problem import Problem
from oco.compiler.structure import Structure
from oco.dsl.expressions import Kind, names

TOLERANCE = 1e-12
"""Error of the decision, as a share of the domain's diameter, at which the search ends."""
MAX_STEPS = 200
MAX_SHORTENINGS = 60
RIDGE = 1e-13
"""Keeps the Newton system solvable where rows are dependent: a share of each row's greatest curvature."""
TINY = 1e-290
NOISE = 1e-13
"""Rounding error of D, as a share of the size of its terms."""

STEP_DOC = (
    "argmin over the domain of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+, by Newton's method on its dual."
)
ASCENT_DOC = (
    "The next step of the multipliers within [0, Q], Newton's or the gradient's, and the gain that it promises."
)
SEARCH_DOC = "Search along the step for a point where the dual has risen and its slope is small; the whole step where it still rises there."
RESPONSE_DOC = "argmin_x <c, x - y> + alpha |x - y|^2 + <lam, g(x)> over the box, entry by entry: Newton's method between brackets."


class Response(Protocol):
    """x(lambda) and what the dual needs of it. A track is the points that travel from one lambda to the next; its last one is x.

    `parts` are the values that a response is made of, `over` makes one of the same values in another function.
    """

    parts: tuple[Structured, ...]
    y: Point
    c: Point
    alpha: Value

    def over(self, *parts: Structured) -> Response: ...

    def start(self) -> list[Point]: ...

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]: ...

    def constraints(self, x: Point) -> Value: ...

    def steepest(self, x: Point) -> Value:
        """|grad g_n|^2 / (2 alpha): the curvature of -D in each multiplier where no bound of X holds x back."""
        ...

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """-D'', shape (N, N)."""
        ...


def penalized_step(p: Problem, y: Point, c: Point, alpha: Value, Q: Value, g: Value) -> Point:
    """The minimizer; g is g(y), shape (N,), as Q is."""
    t, y, c = p.tracer, y.named(p.tracer, "y"), c.named(p.tracer, "c")
    response: Response
    if p.structure is Structure.AFFINE:
        rows = p.constraint_gradients(y).named(t, "A")
        response = _Affine(p, y, c, alpha, g, rows)
    else:
        response = _Separable(p, y, c, alpha, *_data_of_constraints(p))

    def step(Q: Value, *parts: Structured) -> tuple[Value, ...]:
        return _Ascent(p, response.over(*parts), Q).run().blocks

    return Point(call_over(t, "penalized_step", step, Q, *response.parts, doc=STEP_DOC))


class _Affine:
    """g(x) = g(y) + A (x - y): x(lambda) = P_X(y - (c + A' lambda) / (2 alpha)). The track: the point before projection, and x."""

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, g: Value, A: Rows) -> None:
        self.p, self.y, self.c, self.alpha, self.g, self.A = p, y, c, alpha, g, A
        self.parts: tuple[Structured, ...] = (y, c, alpha, g, A)

    def over(self, *parts: Structured) -> _Affine:
        return _Affine(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        return self.track(self.c)

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        return self.track(self.c + self.A.combine(multipliers))

    def track(self, slope: Point) -> list[Point]:
        t = self.p.tracer
        u = (self.y - slope / (2.0 * self.alpha)).named(t, "u")
        return [u, self.p.domain.project(u).named(t, "x")]

    def constraints(self, x: Point) -> Value:
        return self.g + self.A.apply(x - self.y)

    def steepest(self, x: Point) -> Value:
        return self.A.squared_norms() / (2.0 * self.alpha)

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """A J A' / (2 alpha), J a Jacobian of the projection."""
        u, x = track
        return self.A.gram(self.p.domain.project_jacobian(u, x, self.A)) / (2.0 * self.alpha)


def _data_of_constraints(p: Problem) -> tuple[Value, ...]:
    """The round, then the streams that the constraints use, in the order of `_stream_names`."""
    return (p.t if p.round is None else p.round, *(p.seen[n] for n in _stream_names(p)))


def _stream_names(p: Problem) -> list[str]:
    found = [n for c in p.task.canonical.inequalities for n in names(c.expr, Kind.STREAM)]
    return list(dict.fromkeys(found))


class _Separable:
    """g_n(x) = sum_i phi_{n,i}(x_i) over a box: c_i + 2 alpha (x_i - y_i) + sum_n lambda_n phi_{n,i}'(x_i) = 0, cut to the bounds."""

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, round_: Value, *data: Value) -> None:
        self.p = Problem(p.tracer, p.task, dict(zip(_stream_names(p), data)), round_)
        self.y, self.c, self.alpha = y, c, alpha
        self.parts: tuple[Structured, ...] = (y, c, alpha, round_, *data)

    def over(self, *parts: Structured) -> _Separable:
        return _Separable(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        return [self.p.domain.project(self.y - self.c / (2.0 * self.alpha)).named(self.p.tracer, "x")]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        def solve(multipliers: Value, near: Point, *parts: Structured) -> tuple[Value, ...]:
            return self.over(*parts).entries(multipliers, near).blocks

        found = call_over(self.p.tracer, "response", solve, multipliers, near[-1], *self.parts, doc=RESPONSE_DOC)
        return [Point(found).named(self.p.tracer, "x")]

    def entries(self, multipliers: Value, near: Point) -> Point:
        """Newton's method in every entry at once, kept between points where the left side was negative and positive."""
        t, n = self.p.tracer, len(near.blocks)
        lower, upper = self.p.domain.bounds()
        beyond = (upper - lower).map(lambda w: w + 1.0)
        size = max(float(abs(b).max()) for d in self.p.domain.domains for b in (d.lower, d.upper))

        def unsettled(*state: Value) -> Value:
            return t.and_(state[-2] > 1e-14 * size, state[-1] < MAX_STEPS)

        def improve(*state: Value) -> tuple[Value, ...]:
            x, below, above = (Point(tuple(state[k * n : (k + 1) * n])) for k in range(3))
            slope, bend = self.equation(multipliers, x)
            below = slope.map(lambda s, a, b: t.where(s <= 0.0, a, b), x, below)
            above = slope.map(lambda s, a, b: t.where(s >= 0.0, a, b), x, above)
            newton = self.p.domain.clip(x - slope.map(lambda s, b: s / b, bend))
            middle = self.p.domain.clip(0.5 * (below + above))
            following = newton.map(lambda y, m, a, b: t.where(t.and_(y > a, y < b), y, m), middle, below, above)
            moved = _largest([t.max(abs(b)) for b in (following - x).blocks])
            return (*following.blocks, *below.blocks, *above.blocks, moved, state[-1] + 1)

        begin = (*near.blocks, *(lower - beyond).blocks, *(upper + beyond).blocks, t.lift(math.inf), t.lift(0))
        return Point(t.while_(unsettled, improve, begin)[:n])

    def equation(self, multipliers: Value, x: Point) -> tuple[Point, Point]:
        """The left side of the equation of each entry, and its derivative, which is at least 2 alpha."""
        scale = 2.0 * self.alpha
        slope = self.c + scale * (x - self.y) + self.p.constraint_combination(x, multipliers)
        bend = self.p.curvature_of_combination(x, multipliers).map(lambda b: b + scale)
        return slope, bend

    def constraints(self, x: Point) -> Value:
        return self.p.constraints(x)

    def steepest(self, x: Point) -> Value:
        return self.p.constraint_gradients(x).squared_norms() / (2.0 * self.alpha)

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """J S J', S the inverse slopes of the equations that hold; entries at a bound or at a kink do not move."""
        (x,) = track
        slope, bend = self.equation(multipliers, x)
        lower, upper = self.p.domain.bounds()
        where = self.p.tracer.where
        moves = slope.map(lambda s, b, w: where(abs(s) <= 1e-9 * w * b, 1.0 / b, 0.0), bend, upper - lower)
        rows = self.p.constraint_gradients(x)
        return rows.gram(rows.scale(moves))


class _Ascent:
    """Maximizes D over the box [0, Q]. The state: lambda, g = grad D, the next step and its promise, a count, the track."""

    def __init__(self, p: Problem, response: Response, Q: Value) -> None:
        self.p, self.t, self.response, self.Q = p, p.tracer, response, Q
        self.blocks = len(response.y.blocks)

    def run(self) -> Point:
        t, response = self.t, self.response
        diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in self.p.domain.domains))
        t.note(f"the gain at which the decision is within {TOLERANCE:g} of the domain's diameter")
        enough = t.name("enough", response.alpha * (TOLERANCE * diameter) ** 2)
        track = response.start()
        lam = t.name("lam", t.zeros(self.Q.shape))
        g = t.name("g_x", response.constraints(track[-1]))
        begin = (lam, g, *self.ascent(lam, g, track), t.lift(0), *_flat(track))

        def unfinished(lam: Value, g_x: Value, step: Value, promise: Value, count: Value, *track: Value) -> Value:
            return t.and_(promise > enough, count < MAX_STEPS)

        def ascend(
            lam: Value, g_x: Value, step: Value, promise: Value, count: Value, *track: Value
        ) -> tuple[Value, ...]:
            lam, g_x, points = self.search(lam, g_x, step, promise, self.points(track))
            return (lam, g_x, *self.ascent(lam, g_x, points), count + 1, *_flat(points))

        return self.points(t.while_(unfinished, ascend, begin)[5:])[-1]

    def ascent(self, lam: Value, g: Value, track: list[Point]) -> tuple[Value, ...]:
        """The clipped Newton step or the clipped scaled gradient step, whichever promises the greater gain <g, step>."""

        def run(lam: Value, g_x: Value, Q: Value, *rest: Structured) -> tuple[Value, Value]:
            points, parts = rest[: len(track)], rest[len(track) :]
            return _Ascent(self.p, self.response.over(*parts), Q).direction(lam, g_x, list(points))  # type: ignore[arg-type]

        return call_over(self.t, "ascent_step", run, lam, g, self.Q, *track, *self.response.parts, doc=ASCENT_DOC)

    def direction(self, lam: Value, g: Value, track: list[Point]) -> tuple[Value, Value]:
        t, count = self.t, self.Q.shape[0]
        steepest = t.name("steepest", self.response.steepest(track[-1]))
        bend = t.name("bend", self.response.curvature(lam, track))
        t.note("multipliers that a bound does not hold")
        free = t.name("free", t.not_(t.or_(t.and_(lam <= 0.0, g <= 0.0), t.and_(lam >= self.Q, g >= 0.0))))
        newton = t.name("newton", self.newton(lam, g, bend, free, RIDGE * steepest + TINY))
        gradient = t.name("gradient", self.clipped(lam, g / (count * steepest + TINY)))
        promised, safe = t.sum(g * newton), t.sum(g * gradient)
        better = promised >= safe
        step = t.name("step", t.where(better, newton, gradient))
        return step, t.name("promise", t.maximum(promised, safe))

    def newton(self, lam: Value, g: Value, bend: Value, free: Value, ridge: Value) -> Value:
        """The Newton step within [0, Q]: multipliers that would leave it stop at their bound, and the others are solved again."""
        t, count = self.t, self.Q.shape[0]
        if count == 1:
            return self.clipped(lam, t.where(free, g, 0.0) / (t.reshape(bend, (1,)) + ridge))

        def unsettled(newton: Value, held: Value, again: Value) -> Value:
            return again

        def solve(newton: Value, held: Value, again: Value) -> tuple[Value, Value, Value]:
            both = t.to_float(t.not_(held))
            system = bend * t.outer(both, both) + t.diag(t.where(held, 1.0, ridge))
            step = t.solve(system, t.where(held, 0.0, g - bend @ t.where(held, newton, 0.0)))
            reached = lam + step
            beyond = t.and_(t.not_(held), t.or_(reached < 0.0, reached > self.Q))
            newton = t.where(held, newton, self.clipped(lam, step))
            held = t.or_(held, beyond)
            return newton, held, t.and_(t.any(beyond), t.not_(t.all(held)))

        held = t.not_(free)
        newton, _, _ = t.while_(unsettled, solve, (t.zeros((count,)), held, t.any(free)))
        return newton

    def clipped(self, lam: Value, step: Value) -> Value:
        """The step from lambda, cut so that it ends in [0, Q]."""
        return self.t.minimum(self.t.maximum(lam + step, 0.0), self.Q) - lam

    def search(
        self, lam: Value, g: Value, step: Value, promise: Value, track: list[Point]
    ) -> tuple[Value, Value, list[Point]]:
        """The line search: lambda, g and the track at its end."""

        def run(lam: Value, g_x: Value, step: Value, promise: Value, *rest: Structured) -> tuple[Value, ...]:
            points, parts = rest[: len(track)], rest[len(track) :]
            inner = _Ascent(self.p, self.response.over(*parts), self.Q)
            return inner.shortened(lam, g_x, step, promise, list(points))  # type: ignore[arg-type]

        found = call_over(
            self.t, "line_search", run, lam, g, step, promise, *track, *self.response.parts, doc=SEARCH_DOC
        )
        return found[0], found[1], self.points(found[2:])

    def shortened(self, lam: Value, g: Value, step: Value, promise: Value, track: list[Point]) -> tuple[Value, ...]:
        t = self.t
        value, _ = self.dual(lam, track[-1], g)
        value = t.name("value", value)

        def reached(lam: Value, near: list[Point]) -> tuple[Value, list[Point]]:
            points = self.response.at(lam, near)
            return t.name("g_x", self.response.constraints(points[-1])), points

        def unsettled(share: Value, g_x: Value, tries: Value, low: Value, high: Value, *rest: Value) -> Value:
            """Too far: D has fallen, or falls steeply. Too short, between a rise and a fall: D still rises steeply."""
            found, size = self.dual(lam + share * step, self.points(rest[2:])[-1], g_x)
            falls = found < value - NOISE * size
            slope = t.sum(g_x * step)
            steep = t.or_(slope < -0.5 * promise, t.and_(slope > 0.5 * promise, high <= 1.0))
            return t.and_(t.or_(falls, steep), tries < MAX_SHORTENINGS)

        def again(share: Value, g_x: Value, tries: Value, low: Value, high: Value, *rest: Value) -> tuple[Value, ...]:
            slope = t.sum(g_x * step)
            rises = slope > 0.0
            low, rise = t.where(rises, share, low), t.where(rises, slope, rest[0])
            high, fall = t.where(rises, high, share), t.where(rises, rest[1], slope)
            t.note("where the secant of the slope meets zero, a tenth away from both ends")
            width = high - low
            secant = low + width * (rise / t.maximum(rise - fall, TINY))
            share = t.minimum(t.maximum(secant, low + 0.1 * width), high - 0.1 * width)
            g_x, points = reached(lam + share * step, self.points(rest[2:]))
            return (share, g_x, tries + 1, low, high, rise, fall, *_flat(points))

        g, points = reached(lam + step, track)
        begin = (t.lift(1.0), g, t.lift(0), t.lift(0.0), t.lift(2.0), promise, -promise, *_flat(points))
        share, g, _, _, _, _, _, *flat = t.while_(unsettled, again, begin)
        return (t.name("lam", lam + share * step), t.name("g_x", g), *_flat(self.named(self.points(tuple(flat)))))

    def dual(self, lam: Value, x: Point, g: Value) -> tuple[Value, Value]:
        """D(lambda), and the size of its terms."""
        move = x - self.response.y
        parts = (self.response.c.dot(move), self.response.alpha * move.squared_norm(), self.t.sum(lam * g))
        return parts[0] + parts[1] + parts[2], abs(parts[0]) + parts[1] + abs(parts[2])

    def named(self, track: list[Point]) -> list[Point]:
        return [*(p.named(self.t, "u") for p in track[:-1]), track[-1].named(self.t, "x")]

    def points(self, flat: tuple[Value, ...]) -> list[Point]:
        return [Point(tuple(flat[k : k + self.blocks])) for k in range(0, len(flat), self.blocks)]


def _flat(track: list[Point]) -> tuple[Value, ...]:
    return tuple(b for point in track for b in point.blocks)


def _largest(parts: list[Value]) -> Value:
    found = parts[0]
    for part in parts[1:]:
        found = found.tracer.maximum(found, part)
    return found
