"""The step in the norm of a matrix: argmin over x in X of <c, x - y> + alpha |x - y|^2 + <x - y, A (x - y)> / 2, A positive semidefinite.

It is the generalised projection of y - (2 alpha I + A)^-1 c in that norm (Hazan, Agarwal & Kale 2007), found as in `smooth_response`, with
A in the place of the constraints' second derivatives.
"""

from __future__ import annotations

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, call_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.smooth_response import SmoothResponse

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

    def solved(self) -> Point:
        """The minimizer; the search begins at y."""

        def solve(y: Point, c: Point, alpha: Value, A: Value) -> tuple[Value, ...]:
            own = NormStep(self.p, y, c, alpha, A)
            return own.minimizer(self.t.zeros((0,)), y).blocks

        return Point(call_over(self.t, "norm_step", solve, *self.parts, doc=STEP_DOC)).named(self.t, "x")
