"""The step of COLDQ: argmin over x in X of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+, solved exactly through its dual.

Q [g]_+ is the largest of lambda g over 0 <= lambda <= Q, so the step is the maximum over that box of the concave

    D(lambda) = min_x  <c, x - y> + alpha |x - y|^2 + <lambda, g(x)>,    grad D(lambda) = g(x(lambda)).

x(lambda) is a projection where g is affine (rows of single entries over a box keep no multiplier: `entry_bounds` where they are
affine, `entry_search` where all rows are of single entries), one monotone equation an entry where g is separable and X a box, and the
fixed point of a projected gradient step where g is smooth; where it is the largest of such pieces see `kinked_step`. D is maximized by
Newton's method on the free multipliers with the generalized Hessian of D (semismooth, so it ends in finitely many steps where D is
piecewise quadratic) and a line search along it. Each multiplier is cut at its own bound where D rises enough that way, else all where
the first one meets a bound (Bertsekas, SIAM J. Control Optim. 20, 1982). Since the objective is 2 alpha-strongly convex,
alpha |x(lambda) - x*|^2 is at most the duality gap; the search ends when the promised gain is below alpha (TOLERANCE diameter)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured, call_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.structure import Structure, separable_over_box, separable_under_rows
from oco.compiler.prover.epigraph import Epigraph, Floats, lifted
from oco.compiler.proximal.affine_response import AffineResponse
from oco.compiler.proximal.cut_ascent import cut_ascent
from oco.compiler.proximal.entry_bounds import bounding_rows
from oco.compiler.proximal.entry_search import entry_search
from oco.compiler.proximal.kinked_step import KinkedStep
from oco.compiler.proximal.noise import beyond_rounding, most_rounded
from oco.compiler.proximal.response import MAX_STEPS, Response
from oco.compiler.proximal.row_response import RowResponse
from oco.compiler.proximal.separable_response import SeparableResponse
from oco.compiler.proximal.smooth_response import SmoothResponse, data_of_constraints, stream_names
from oco.dsl.magnitudes import TINY

TOLERANCE = Tolerance(1e-12)
"""Error of the decision, as a share of the domain's diameter, at which the search ends."""
MAX_TRIES = 100  # halvings of a step of the multipliers
RIDGE = Tolerance(1e-13)
"""Keeps the Newton system solvable where rows are dependent: a share of each row's own curvature."""
FLAT = Tolerance(1e-14)
"""Rounding error of a row's curvature, as a share of what it would be without the domain."""
NOISE_OF_D = Tolerance(1e-13)
"""Rounding error of D, as a share of the size of its terms."""

BY_NEWTON = "by Newton's method on its dual"
STEP_DOC = f"argmin over the domain of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+, {BY_NEWTON}."
IMPLICIT_DOC = f"argmin over the domain of <c, x - y> + h_0(x) + alpha |x - y|^2 + sum_n Q_n [h_n(x)]_+, {BY_NEWTON}."
NEAREST_DOC = "argmin over the domain of |x - y|^2 / 2 + sum_n Q_n [g_n(x)]_+, by Newton's method on its dual, and the multipliers."
KINKED_DOC = "argmin over the domain of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+: proximal points of the epigraph of kinks in g."
ASCENT_DOC = "Newton's step of the multipliers, cut at the bounds [0, Q], and the gain that the whole of it promises."
ALONG_DOC = "Along the step, at this share of it: the dual's value, the size of its terms, its slope, the constraints, the decision."
SEARCH_DOC = "Along the step: all of it where the dual still rises at its end, else a point where it has risen and its slope is small."


def penalized_step(p: Problem, y: Point, c: Point, alpha: Value, Q: Value, g: Value) -> Point:
    """The minimizer; g is g(y), shape (N,), as Q is."""
    t, y, c = p.tracer, y.named(p.tracer, "y"), c.named(p.tracer, "c")
    if (result := lifted(p.spec.canonical)) is not None:
        return _kinked_step(p, result, y, c, alpha, Q, fixed=False)
    response = _response(p, y, c, alpha, lambda: g)
    if p.structure is Structure.AFFINE and p.domain.is_entrywise and (rows := bounding_rows(p.spec.canonical)):
        response, Q = AffineResponse.bounded(p, y, c, alpha, g, Q, rows)
        if not Q.shape[0]:
            return response.start()[-1]

    alone = bounding_rows(p.spec.canonical) if isinstance(response, SeparableResponse) else None

    def step(Q: Value, *parts: Structured) -> tuple[Value, ...]:
        own = response.over(*parts)
        if isinstance(own, SeparableResponse) and alone is not None and alone.apart(p.constraint_count):
            return entry_search(p, own, Q, alone).blocks
        return _Ascent(p, own, Q).run()[1].blocks

    return Point(call_over(t, "penalized_step", step, Q, *response.parts, doc=STEP_DOC, words=response.words))


def implicit_step(p: Problem, y: Point, c: Point, alpha: Value, Q: Value, kinks: slice = slice(0)) -> Point:
    """argmin over the domain of <c, x - y> + h_0(x) + alpha |x - y|^2 + sum_{n > 0} Q_n [h_n(x)]_+, the rows h without kinks or separable
    over boxes, which may be cut by an affine row each.

    Q      (N + 1,), the first entry 1: the multiplier of h_0, which stays
    kinks  rows of which most stay on the side where y is: the search may begin with Q_n, their multiplier then, where h_n(y) > 0
    """
    t, y, c = p.tracer, y.named(p.tracer, "y"), c.named(p.tracer, "c")
    response = _response(p, y, c, alpha, lambda: p.constraints(y), rows=True)
    rows = np.arange(Q.shape[0])
    fixed, likely = rows < 1, np.isin(rows, rows[kinks])

    def within(x: Point) -> Point:
        return x if p.domain.is_entrywise else p.domain.project(x)

    def step(Q: Value, *parts: Structured) -> tuple[Value, ...]:
        own = response.over(*parts)
        if fixed.all():
            return within(own.at(Q, own.start())[-1]).blocks
        firsts = [t.where(t.constant(fixed, "fixed", "multipliers that are given"), Q, 0.0)]
        if likely.any():
            beyond = t.and_(t.constant(likely, "kinks", "rows that are kinks"), own.constraints(own.y) > 0.0)
            firsts.append(t.where(beyond, Q, firsts[0]))
        return within(_Ascent(p, own, Q, fixed).run(*firsts)[1]).blocks

    return Point(call_over(t, "implicit_step", step, Q, *response.parts, doc=IMPLICIT_DOC, words=response.words))


def nearest_step(p: Problem, y: Point, Q: Value, first: Value) -> tuple[Point, Value]:
    """Minimizer of |x - y|^2 / 2 + sum_n Q_n [g_n(x)]_+ and multipliers, from those of `first` where no kink is lifted."""
    t, y, half = p.tracer, y.named(p.tracer, "y"), p.tracer.lift(0.5)
    if lifted(p.spec.canonical) is not None:
        return penalized_step(p, y, y * 0.0, half, Q, p.constraints(y)), first
    response = _response(p, y, y * 0.0, half, lambda: p.constraints(y))

    def step(Q: Value, first: Value, *parts: Structured) -> tuple[Value, ...]:
        lam, x = _Ascent(p, response.over(*parts), Q).run(t.minimum(first, Q))
        return (lam, *x.blocks)

    given = (Q, first, *response.parts)
    lam, *blocks = call_over(t, "nearest_step", step, *given, doc=NEAREST_DOC, words=response.words)
    return Point(tuple(blocks)), lam


def weighted_step(p: Problem, y: Point, c: Point, alpha: Value, weights: Value) -> Point:
    """argmin over the domain of <c, x> + alpha |x - y|^2 + sum_n weights_n g_n(x), for weights that are not negative."""
    if p.structure is Structure.AFFINE:
        return p.domain.project(y - (c + p.constraint_combination(y, weights)) / (2.0 * alpha))
    if (result := lifted(p.spec.canonical)) is not None:
        return _kinked_step(p, result, y.named(p.tracer, "y"), c.named(p.tracer, "c"), alpha, weights, fixed=True)
    response = _nonlinear(p)(p, y.named(p.tracer, "y"), c.named(p.tracer, "c"), alpha, *data_of_constraints(p))
    return response.at(weights, response.start())[-1]


def _kinked_step(
    p: Problem, epigraph: Epigraph, y: Point, c: Point, alpha: Value, weights: Value, fixed: bool
) -> Point:
    """Either step under constraints with kinks; `fixed`: the weights are the multipliers, else bounds of them."""
    held = np.arange(p.constraint_count + len(epigraph.owner)) < (p.constraint_count if fixed else 0)

    def solve(p: Problem, y: Point, c: Point, alpha: Value, caps: Value, first: Value) -> tuple[Value, Point]:
        response = _response(p, y, c, alpha, lambda: p.constraints(y))
        return _Ascent(p, response, caps, held if fixed else None).run(first)

    def step(weights: Value, y: Point, c: Point, alpha: Value, round_: Value, *data: Value) -> tuple[Value, ...]:
        own = Problem(p.tracer, p.spec, dict(zip(stream_names(p), data)), round_)
        first = p.tracer.concat(
            weights if fixed else p.tracer.zeros(weights.shape), p.tracer.zeros((len(epigraph.owner),))
        )
        return KinkedStep(own, epigraph, y, c, alpha, solve).run(weights, first).blocks

    given: tuple[Structured, ...] = (weights, y, c, alpha, *data_of_constraints(p))
    return Point(call_over(p.tracer, "penalized_step", step, *given, doc=KINKED_DOC, words=stream_names(p)))


def _response(p: Problem, y: Point, c: Point, alpha: Value, g: Callable[[], Value], rows: bool = False) -> Response:
    """x(lambda) under constraints without kinks; g() is their values at y. `rows`: functions are convex beyond the rows of the domain."""
    if p.structure is Structure.AFFINE:
        return AffineResponse(p, y, c, alpha, g(), p.constraint_gradients(y).named(p.tracer, "A"))
    if rows and not p.domain.is_entrywise and separable_under_rows(p.structure, p.domain.domains):
        return RowResponse(p, y, c, alpha, *data_of_constraints(p))
    return _nonlinear(p)(p, y, c, alpha, *data_of_constraints(p))


def _nonlinear(p: Problem) -> type[SeparableResponse] | type[SmoothResponse]:
    """Entry by entry for separable constraints over a box, else by Newton's method on all entries."""
    return SeparableResponse if separable_over_box(p.structure, p.domain.domains) else SmoothResponse


class _Ascent:
    """Maximizes D over the box [0, Q]; `fixed` multipliers stay. State: lambda, g = grad D, next step, its promise, a count, the track."""

    def __init__(self, p: Problem, response: Response, Q: Value, fixed: Floats | None = None) -> None:
        self.p, self.t, self.response, self.Q, self.fixed = p, p.tracer, response, Q, fixed
        self.blocks = len(response.y.blocks)

    def run(self, *firsts: Value) -> tuple[Value, Point]:
        """The multipliers and the minimizer, from those of these multipliers whose dual value is highest, or from none."""
        t, response = self.t, self.response
        t.note(f"the gain at which each entry of the decision is within {TOLERANCE:g} of its width")
        enough = t.name("enough", response.alpha * (TOLERANCE * self.p.domain.least_width) ** 2)
        lam, dual_value, g, *flat = reduce(self.higher, [self.state_at(first) for first in firsts or (None,)])
        track = self.points(tuple(flat))
        most = most_rounded(self.p, response, self.Q)
        begin = (lam, dual_value, g, *self.ascent(lam, g, track, most), t.lift(0), *_flat(track))

        def unfinished(
            lam: Value, dual_value: Value, g_x: Value, step: Value, promise: Value, count: Value, *track: Value
        ) -> Value:
            return t.and_(promise > enough, count < MAX_STEPS)

        def ascend(
            lam: Value, dual_value: Value, g_x: Value, step: Value, promise: Value, count: Value, *track: Value
        ) -> tuple[Value, ...]:
            reached, dual_value, g_x, points = self.search(lam, dual_value, t.sum(g_x * step), step, self.points(track))
            t.note("rounding has the last word where no multiplier moves")
            count = t.where(t.any(t.not_(t.eq(reached, lam))), count + 1, MAX_STEPS)
            return (reached, dual_value, g_x, *self.ascent(reached, g_x, points, most), count, *_flat(points))

        lam, *result = t.while_(unfinished, ascend, begin)
        return lam, self.points(tuple(result[5:]))[-1]

    def state_at(self, first: Value | None) -> tuple[Value, ...]:
        """State at these multipliers, None for 0: lambda, D, g and the track."""
        t, response = self.t, self.response
        lam = t.name("lam", t.zeros(self.Q.shape) if first is None else first)
        track = response.start() if first is None else response.at(lam, response.start())
        g = t.name("g_x", response.constraints(track[-1]))
        move = (track[-1] - response.y).map(lambda b: t.word("move", b))
        dual_value = response.c.dot(move) + response.alpha * move.squared_norm()
        if response.bounds is not None:
            dual_value = dual_value + response.bounds.penalty(move)
        dual_value = t.name("dual_value", dual_value if first is None else dual_value + t.sum(lam * g))
        return (lam, dual_value, g, *_flat(track))

    def higher(self, one: tuple[Value, ...], other: tuple[Value, ...]) -> tuple[Value, ...]:
        """The state with the higher dual value."""
        better = self.t.name("better", other[1] > one[1])
        return tuple(self.t.where(better, b, a) for a, b in zip(one, other))

    def ascent(self, lam: Value, g: Value, track: list[Point], most: Value | None) -> tuple[Value, ...]:
        """The next step, and the gain that ends the search where it is too small."""
        bound = () if most is None else (most,)

        def run(lam: Value, g_x: Value, Q: Value, *rest: Structured) -> tuple[Value, Value]:
            points, own, parts = rest[: len(track)], rest[len(track) :][: len(bound)], rest[len(track) + len(bound) :]
            again = _Ascent(self.p, self.response.over(*parts), Q, self.fixed)
            return again.direction(lam, g_x, list(points), *(own or [None]))  # type: ignore[arg-type]

        given = (lam, g, self.Q, *track, *bound, *self.response.parts)
        key = (self, most is None)
        return call_over(self.t, "ascent_step", run, *given, doc=ASCENT_DOC, words=self.response.words, key=key)

    def direction(self, lam: Value, g: Value, track: list[Point], most: Value | None) -> tuple[Value, Value]:
        """Newton step, each multiplier as far as its bound or all as far as the first bound, and what the whole of it promises."""
        t = self.t
        t.note("what is no more than rounding of g(x) counts as zero")
        g = t.name("g_x", beyond_rounding(self.p, self.response, lam, g, track[-1], most))
        hessian = t.name("bend", self.response.curvature(lam, track))
        newton = t.name("newton", self.newton(lam, g, hessian, self.ridge(hessian, track[-1])))
        promise = t.name("promise", t.sum(g * newton))
        bound = t.name("bound", t.where(newton < 0.0, 0.0, self.Q))
        room = t.word("room", bound - lam)
        return cut_ascent(t, g, newton, room, promise), promise

    def ridge(self, hessian: Value, x: Point) -> Value:
        """Ridge added to the diagonal of the curvature, shape (N,). A row along which projections onto a curved domain do not move has a
        curvature of rounding, of either sign: there the ridge is above that."""
        t, own = self.t, self.own(hessian)
        ridge = RIDGE * own + TINY
        if self.p.domain.is_entrywise:
            return ridge
        flat = FLAT * self.response.slopes(x).squared_norms() / (2.0 * self.response.alpha)
        return t.name("ridge", t.where(own <= flat, 2.0 * flat + TINY, ridge))

    def own(self, hessian: Value) -> Value:
        """The diagonal of the curvature, shape (N,)."""
        if (count := self.Q.shape[0]) == 1:
            return self.t.reshape(hessian, (1,))
        return self.t.sum(hessian * self.t.diag(self.t.full(1.0, (count,))), axis=1)

    def newton(self, lam: Value, g: Value, hessian: Value, ridge: Value) -> Value:
        """The Newton step of the free multipliers. One at a bound that the step would push out is held too, and the rest solved again."""
        t, count = self.t, self.Q.shape[0]
        low, high = t.name("low", lam <= 0.0), t.name("high", lam >= self.Q * (1.0 - 1e-15))
        held = t.name("held", t.or_(t.and_(low, g <= 0.0), t.and_(high, g >= 0.0)))
        if self.fixed is not None:
            held = t.or_(held, t.constant(self.fixed, "fixed", "multipliers that are given"))
        if count == 1:
            return t.where(held, 0.0, g / (t.reshape(hessian, (1,)) + ridge))

        def not_converged(newton: Value, held: Value, again: Value) -> Value:
            return again

        def solve(newton: Value, held: Value, again: Value) -> tuple[Value, Value, Value]:
            free = t.name("free", t.to_float(t.not_(held)))
            newton = t.solve(hessian * t.outer(free, free) + t.diag(t.where(held, 1.0, ridge)), free * g)
            outward = t.or_(t.and_(low, newton < 0.0), t.and_(high, newton > 0.0))
            blocked = t.and_(t.not_(held), outward)
            return newton, t.or_(held, blocked), t.any(blocked)

        result, _, _ = t.while_(not_converged, solve, (t.zeros((count,)), held, t.not_(t.all(held))))
        return result

    def search(
        self, lam: Value, dual_value: Value, slope: Value, step: Value, track: list[Point]
    ) -> tuple[Value, Value, Value, list[Point]]:
        """The line search: lambda, D, g and the track at its end."""

        def run(lam: Value, dual_value: Value, slope: Value, step: Value, *rest: Structured) -> tuple[Value, ...]:
            points, parts = rest[: len(track)], rest[len(track) :]
            result = _LineSearch(self, self.response.over(*parts), lam, step)
            return result.run(dual_value, self.t.name("promise", slope), list(points))  # type: ignore[arg-type]

        given = (lam, dual_value, slope, step, *track, *self.response.parts)
        result = call_over(self.t, "line_search", run, *given, doc=SEARCH_DOC, words=self.response.words)
        return result[0], result[1], result[2], self.points(result[3:])

    def points(self, flat: tuple[Value, ...]) -> list[Point]:
        return [Point(tuple(flat[k : k + self.blocks])) for k in range(0, len(flat), self.blocks)]


class _LineSearch:
    """Along lambda + share step, 0 < share <= 1: the whole step where D still rises at its end, else a point where D has risen and its
    slope is small. Between a rise and a fall by the secant of the slope, kept a tenth away from both ends."""

    def __init__(self, ascent: _Ascent, response: Response, lam: Value, step: Value) -> None:
        self.t, self.points, self.response = ascent.t, ascent.points, response
        self.lam, self.step = lam, step

    def run(self, dual_value: Value, promise: Value, track: list[Point]) -> tuple[Value, ...]:
        """From the dual's value and slope at lambda: lambda, D, g and the track at the end."""
        t = self.t

        def not_converged(
            share: Value, tries: Value, low: Value, high: Value, rise: Value, fall: Value, *result: Value
        ) -> Value:
            reached, size, slope = result[:3]
            too_far = t.word("too_far", t.or_(reached < dual_value - NOISE_OF_D * size, slope < -0.5 * promise))
            too_short = t.word("too_short", t.and_(slope > 0.5 * promise, high <= 1.0))
            return t.word("unfinished", t.and_(t.or_(too_far, too_short), tries < MAX_TRIES))

        def again(
            share: Value, tries: Value, low: Value, high: Value, rise: Value, fall: Value, *result: Value
        ) -> tuple[Value, ...]:
            slope = result[2]
            rises = t.word("rises", slope > 0.0)
            low, rise = t.where(rises, share, low), t.where(rises, slope, rise)
            high, fall = t.where(rises, high, share), t.where(rises, fall, slope)
            width = t.word("width", high - low)
            secant = low + width * (rise / t.maximum(rise - fall, TINY))
            secant = t.word("secant", secant)
            share = t.minimum(t.maximum(secant, low + 0.1 * width), high - 0.1 * width)
            return (share, tries + 1, low, high, rise, fall, *self.at(share, self.points(result[4:])))

        whole = self.at(t.lift(1.0), track)
        begin = (t.lift(1.0), t.lift(0), t.lift(0.0), t.lift(2.0), promise, -promise, *whole)
        share, _, _, _, _, _, dual_value, _, _, g, *flat = t.while_(not_converged, again, begin)
        *before, x = self.points(tuple(flat))
        named = [*(p.named(t, "u") for p in before), x.named(t, "x")]
        lam = t.name("lam", t.maximum(self.lam + share * self.step, 0.0))
        return (lam, t.name("dual_value", dual_value), t.name("g_x", g), *_flat(named))

    def at(self, share: Value, near: list[Point]) -> tuple[Value, ...]:
        """There: D, the size of its terms, its slope along the step, g, and the track."""

        def run(share: Value, lam: Value, step: Value, *rest: Structured) -> tuple[Value, ...]:
            points, parts = rest[: len(near)], rest[len(near) :]
            response = self.response.over(*parts)
            lam = t.name("lam", lam + t.name("share", share) * step)
            result = response.at(lam, list(points))  # type: ignore[arg-type]
            g = t.name("g_x", response.constraints(result[-1]))
            dual_value, size = dual(t, response, lam, result[-1], g)
            return (
                t.name("dual_value", dual_value),
                t.name("size", size),
                t.name("slope", t.sum(g * step)),
                g,
                *_flat(result),
            )

        t = self.t
        given = (share, self.lam, self.step, *near, *self.response.parts)
        return call_over(t, "along", run, *given, doc=ALONG_DOC, words=self.response.words, key=self)


def dual(t: Tracer, response: Response, lam: Value, x: Point, g: Value) -> tuple[Value, Value]:
    """D(lambda), and the size of its terms."""
    move = x - response.y
    move = move.map(lambda b: t.word("move", b))
    parts = (
        t.word("linear_part", response.c.dot(move)),
        t.word("squared_part", response.alpha * move.squared_norm()),
        t.word("price_of_constraints", t.sum(lam * g)),
    )
    dual_value, size = parts[0] + parts[1] + parts[2], abs(parts[0]) + parts[1] + abs(parts[2])
    if response.bounds is None:
        return dual_value, size
    penalty = response.bounds.penalty(move)
    return dual_value + penalty, size + penalty


def _flat(track: list[Point]) -> tuple[Value, ...]:
    return tuple(b for point in track for b in point.blocks)
