"""x(lambda) of the dual of a penalized step (see `penalty`) for smooth convex constraints over any domain with a projection:

    x(lambda) = argmin over X of phi(x) = <c, x - y> + alpha |x - y|^2 + <lambda, g(x)>.

It is the fixed point x = P(x - grad phi(x) / L), found by Newton's method on that equation with a generalized Jacobian J of the projection,
kept to where it halves the residual; else a projected gradient step is taken, whose L grows until phi is no more curved along it. Since
phi is 2 alpha-strongly convex, |x - x(lambda)| <= (1 + L/(2 alpha)) |x - P(x - grad phi(x) / L)|: the search ends when that certificate is
below TOLERANCE of the domain's diameter, or where rounding lets the residual fall no further.

A Newton step solves one system of the size of the decision, so decisions have at most `MAX_DENSE_ORDER` entries.
"""

from __future__ import annotations

import math

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, Structured, call_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.entry_bounds import EntryBounds
from oco.compiler.proximal.response import HALVINGS, MAX_STEPS
from oco.dsl.expressions import Kind, names

TOLERANCE = Tolerance(1e-12)
# Keeps the Newton system regular where rounding takes 2 alpha / L for 0; a shorter step is judged like any other.
RIDGE = Tolerance(1e-14)
RESPONSE_DOC = (
    "argmin over the domain of <c, x - y> + alpha |x - y|^2 + <lam, g(x)>: Newton's method on x = P(x - grad / L), with "
    "projected gradient steps where it does not halve the residual."
)


def data_of_constraints(p: Problem) -> tuple[Value, ...]:
    """The round, then the streams that the constraints use, in the order of `stream_names`."""
    return (p.t if p.round is None else p.round, *(p.seen[n] for n in stream_names(p)))


def stream_names(p: Problem) -> list[str]:
    """Names of the streams in the inequalities, each once."""
    results = [n for c in p.spec.canonical.inequalities for n in names(c.expr, Kind.STREAM)]
    return list(dict.fromkeys(results))


class SmoothResponse:
    """The track is x alone."""

    bounds: EntryBounds | None = None
    ends = None

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, round_: Value, *data: Value) -> None:
        self.p = Problem(p.tracer, p.spec, dict(zip(stream_names(p), data)), round_)
        self.t = p.tracer
        self.y, self.c, self.alpha = y, c, alpha
        self.parts: tuple[Structured, ...] = (y, c, alpha, round_, *data)
        self.words = ("y", "c", "alpha", "round", *stream_names(p))
        self.size = p.spec.canonical.size
        self.diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains))

    def over(self, *parts: Structured) -> SmoothResponse:
        """Response of the same form from other values."""
        return SmoothResponse(self.p, *parts)  # type: ignore[arg-type]

    def start(self) -> list[Point]:
        """Track at multipliers 0."""
        return [self.p.domain.project(self.y - self.c / (2.0 * self.alpha)).named(self.t, "x")]

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Track at multipliers lambda, shape (N,), from a track near it."""

        def solve(multipliers: Value, near: Point, *parts: Structured) -> tuple[Value, ...]:
            return self.over(*parts).minimizer(multipliers, near).blocks

        result = call_over(
            self.t, "response", solve, multipliers, near[-1], *self.parts, doc=RESPONSE_DOC, words=self.words
        )
        return [Point(result).named(self.t, "x")]

    def minimizer(self, multipliers: Value, near: Point) -> Point:
        """The fixed point, from the decision `near`."""
        t, n = self.t, len(near.blocks)
        least = Tolerance(1e-16) * self.diameter

        def not_converged(*state: Value) -> Value:
            error = state[-3] * (1.0 + state[-2] / (2.0 * self.alpha))
            goes_on = t.and_(error > TOLERANCE * self.diameter, state[-3] > least)
            return t.and_(goes_on, state[-1] < MAX_STEPS)

        def improve(*state: Value) -> tuple[Value, ...]:
            x, L = Point(state[:n]), state[-2]
            slope = self.slope(multipliers, x)
            step, L = self.gradient_step(multipliers, x, slope, L)
            newton = self.newton_step(multipliers, x, slope, step, L)
            residual = t.sqrt((step - x).squared_norm())
            left = self.residual(multipliers, newton, L)
            better = t.name("better", self.is_better(newton, step, left, residual))
            following = newton.map(lambda a, b: t.where(better, a, b), step)
            left = t.where(better, left, self.residual(multipliers, step, L))
            stuck = t.and_(t.not_(better), left >= residual)
            return (*following.blocks, left, L, t.where(stuck, MAX_STEPS, state[-1] + 1))

        begin = (*near.blocks, t.lift(math.inf), self.least_curvature, t.lift(0))
        return Point(t.while_(not_converged, improve, begin)[:n])

    def is_better(self, newton: Point, step: Point, left: Value, residual: Value) -> Value:
        """True where the point of Newton's method, with the residual `left`, is taken in the place of the step along the gradient."""
        return left <= 0.5 * residual

    @property
    def least_curvature(self) -> Value:
        """L with which the search begins."""
        return 2.0 * self.alpha

    def hessian(self, multipliers: Value, x: Point) -> Value:
        """Hessian of <lambda, g> at x, shape (d, d)."""
        return self.p.hessian_of_combination(x, multipliers)

    def slope(self, multipliers: Value, x: Point) -> Point:
        """grad phi(x)."""
        return self.c + 2.0 * self.alpha * (x - self.y) + self.p.constraint_combination(x, multipliers)

    def residual(self, multipliers: Value, x: Point, L: Value) -> Value:
        """|x - P(x - grad phi(x) / L)|."""
        return self.t.sqrt((x - self.p.domain.project(x - self.slope(multipliers, x) / L)).squared_norm())

    def gradient_step(self, multipliers: Value, x: Point, slope: Point, L: Value) -> tuple[Point, Value]:
        """P(x - grad phi(x) / L), with L so large that the slope changes by no more than L times the step along it."""
        t, n = self.t, len(x.blocks)

        def too_small(*state: Value) -> Value:
            move = Point(state[:n]) - x
            change = (self.slope(multipliers, Point(state[:n])) - slope).dot(move)
            room = state[-2] * move.squared_norm() * (1.0 + 1e-9)
            return t.and_(change > room, state[-1] < HALVINGS)

        def doubled(*state: Value) -> tuple[Value, ...]:
            larger = 2.0 * state[-2]
            return (*self.p.domain.project(x - slope / larger).blocks, larger, state[-1] + 1)

        begin = (*self.p.domain.project(x - slope / L).blocks, L, t.lift(0))
        result = t.while_(too_small, doubled, begin)
        return Point(result[:n]), result[-2]

    def newton_step(self, multipliers: Value, x: Point, slope: Point, step: Point, L: Value) -> Point:
        """Newton's step from x on x - P(x - grad phi(x) / L) = 0, where P of that point is `step`."""
        return self.p.domain.project(x + self.newton_move(multipliers, x, slope, step, L))

    def newton_move(self, multipliers: Value, x: Point, slope: Point, step: Point, L: Value) -> Point:
        """Newton's move on that equation, which may leave the domain."""
        matrix, _ = self.linearised(multipliers, x, x - slope / L, step, L)
        return self.shaped(self.t.solve(matrix, self.flat(step - x)))

    def linearised(self, multipliers: Value, x: Point, v: Point, p: Point, L: Value) -> tuple[Value, Value]:
        """I - J (I - H / L) plus `RIDGE` I, and J: both (d, d). J is symmetric.

        Written as I - J + J H / L, so that its least eigenvalue 2 alpha / L is not lost beside 1 where J is the identity.
        """
        t = self.t
        rows = Rows(tuple(self.split(t.eye(self.size))))
        J = self.matrix(self.p.domain.project_jacobian(v, p, rows))
        hessian = self.hessian(multipliers, x) + 2.0 * self.alpha * t.eye(self.size)
        return (1.0 + RIDGE) * t.eye(self.size) - J + J @ hessian / L, J

    def constraints(self, x: Point) -> Value:
        """Values of the constraints at x, shape (N,)."""
        return self.p.constraints(x)

    def slopes(self, x: Point) -> Rows:
        """Gradients of the constraints at x, one a row."""
        return self.p.constraint_gradients(x)

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """G (I - J (I - H / L))^-1 J G' / L, the derivative of -g(x(lambda)) by the implicit function theorem; any L gives the same."""
        t, (x,) = self.t, track
        H = self.hessian(multipliers, x)
        L = t.name("L", 2.0 * self.alpha + t.sqrt(t.sum(H * H)))
        slope = self.slope(multipliers, x)
        matrix, J = self.linearised(multipliers, x, x - slope / L, x, L)
        G = self.matrix(self.p.constraint_gradients(x))
        return G @ t.solve(matrix, J @ G.T) / L

    # Points as vectors.

    def flat(self, x: Point) -> Value:
        """Entries of all decisions as one vector, shape (d,)."""
        return x.flat()

    def matrix(self, rows: Rows) -> Value:
        """Rows over the entries of all decisions, shape (N, d)."""
        parts = [self.t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in rows.blocks]
        return parts[0] if len(parts) == 1 else self.t.concat(*parts, axis=1)

    def shaped(self, v: Value) -> Point:
        """Point of the decisions' shapes from a vector, shape (d,)."""
        return self.y.of_flat(v)

    def split(self, matrix: Value) -> list[Value]:
        """The columns of each decision, as rows of points."""
        start, result = 0, []
        for b in self.y.blocks:
            part = self.t.slice(matrix, (0, start), (matrix.shape[0], start + b.size))
            result.append(self.t.reshape(part, (matrix.shape[0], *b.shape)))
            start += b.size
        return result
