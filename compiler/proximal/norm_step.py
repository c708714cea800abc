"""The step in the norm of a matrix: argmin over x in X of <c, x - y> + alpha |x - y|^2 + <x - y, A (x - y)> / 2, A positive semidefinite.

It is the generalised projection of y - (2 alpha I + A)^-1 c in that norm (Hazan, Agarwal & Kale 2007), found as in `smooth_response`, with
A in the place of the constraints' second derivatives.
"""

from __future__ import annotations

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, call_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.smooth_response import SmoothResponse

FURTHER = 1e-9
"""Share of a value by which another is lower than it for certain, whatever rounding does."""
SHORTEST = 1e-3
"""Share of Newton's move below which the step along the gradient is taken: its point is as good there."""
STEP_DOC = "argmin over the domain of <c, x - y> + alpha |x - y|^2 + <x - y, A (x - y)> / 2: Newton's method on x = P(x - grad / L)."


class NormStep(SmoothResponse):
    """The step, for A of shape (d, d) over the flattened decisions."""

    def __init__(self, p: Problem, y: Point, c: Point, alpha: Value, A: Value) -> None:
        super().__init__(p, y, c, alpha, p.tracer.lift(0))
        self.A, self.parts = A, (y, c, alpha, A)

    @property
    def least_curvature(self) -> Value:
        """Bound of all second derivatives: the Frobenius norm of A beside 2 alpha."""
        return self.t.name("L", 2.0 * self.alpha + self.t.sqrt(self.t.sum(self.A * self.A)))

    def hessian(self, multipliers: Value, x: Point) -> Value:
        return self.A

    def slope(self, multipliers: Value, x: Point) -> Point:
        move = x - self.y
        return self.c + 2.0 * self.alpha * move + self.shaped(self.A @ self.flat(move))

    def is_better(self, newton: Point, step: Point, left: Value, residual: Value) -> Value:
        """True where the residual halves, or the step of Newton's method is lower than that along the gradient: where A has eigenvalues of
        many sizes, residuals say little before the border that the minimizer lies on is found.
        """
        lower, higher = self._value(newton), self._value(step)
        halved = super().is_better(newton, step, left, residual)
        return self.t.or_(halved, lower < higher - FURTHER * abs(higher))

    def newton_step(self, multipliers: Value, x: Point, slope: Point, step: Point, L: Value) -> Point:
        """Newton's step, or the half, a quarter, ... of its move, the first that is better than the step along the gradient."""
        t, n, residual = self.t, len(x.blocks), self.t.sqrt((step - x).squared_norm())
        move = self.newton_move(multipliers, x, slope, step, L)

        def too_long(*state: Value) -> Value:
            near = Point(state[:n])
            better = self.is_better(near, step, self.residual(multipliers, near, L), residual)
            return t.and_(t.not_(better), state[n] > SHORTEST)

        def halved(*state: Value) -> tuple[Value, ...]:
            share = 0.5 * state[n]
            return (*self.p.domain.project(x + share * move).blocks, share)

        return Point(t.while_(too_long, halved, (*self.p.domain.project(x + move).blocks, t.lift(1.0)))[:n])

    def _value(self, x: Point) -> Value:
        move = x - self.y
        v = self.flat(move)
        return self.c.dot(move) + self.alpha * move.squared_norm() + 0.5 * self.t.sum(v * (self.A @ v))

    def solved(self) -> Point:
        """The minimizer; the search begins at y."""

        def solve(y: Point, c: Point, alpha: Value, A: Value) -> tuple[Value, ...]:
            own = NormStep(self.p, y, c, alpha, A)
            return own.minimizer(self.t.zeros((0,)), y).blocks

        return Point(call_over(self.t, "norm_step", solve, *self.parts, doc=STEP_DOC)).named(self.t, "x")
