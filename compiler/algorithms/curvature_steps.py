"""Second-order steps with the loss's own curvature, for losses that are curved through data: l(a_t @ x + b_t) with data in a_t, as those of
linear and logistic regression. There the mean of losses is not the loss of mean data, and gradient steps take their size from the domain.

    A_t = rho A_{t-1} + B_t,   E_t = max(rho E_{t-1}, diag B_t),   M_t = A_t + delta diag E_t,
    x_{t+1} = argmin over X of <grad f_t(x_t), u> + |u - x_t|^2_{M_t} / 2,   |v|^2_M = <v, M v>,

with B_t = hess f_t(x_t) where f_t is quadratic. That is recursive least squares with forgetting rho within X, and for other losses next to
the extended Kalman filter of a static state (Ollivier 2018). The ridge delta E is in units of the curvature that came, entry by entry, so
that neither units of the entries nor the size of X matter, and fades as A does. Several rho decide side by side, rho = 1 among them.

Where f_t is not quadratic B_t = hess f_t(x_t) + c g g', g = grad f_t(x_t), with the least c among 0 and c_0 4^k, c_0 = 1 / (D |g|), with

    f_t(x_{t+1}) <= f_t(x_t) + <g, s> + <s, B_t s> / 2,   s = x_{t+1} - x_t:

Newton steps on exp(z) or on a logistic loss far from its minimum go beyond all bounds otherwise. An entry without curvature so far moves
by gradients, with D / (|g| sqrt(t)) as the size of a step.

Theorem. Let all f_t be convex quadratics, f_t(x) = |F_t x - y_t|^2 + <c_t, x> + const., rho = 1, and x_1, u in X. Then

    sum_t f_t(x_t) - f_t(u) <= <d, E_T d> delta / 2 + (sum_t <g_t, M_t^-1 g_t>) / 2,   d_i = max_t |x_t - u|_i,

and where each f_t is (a_t @ x - y_t)^2 with |a_t @ x_t - y_t| <= r, the last term is at most

    r^2 (n ln(1 + T / delta) + sum_i ln(E_T,i / E_1,i)),   E_1,i the first curvature of an entry, n the number of entries.

Proof. f_t(x_t) - f_t(u) = <g_t, x_t - u> - |x_t - u|^2_{B_t} / 2. The step, a generalised projection, gives <g_t, x_t - u> <=
<g_t, M_t^-1 g_t> / 2 + (|x_t - u|^2_{M_t} - |x_{t+1} - u|^2_{M_t}) / 2. As M_t - M_{t-1} = B_t + delta diag(E_t - E_{t-1}), the distances
add up to at most sum_t |x_t - u|^2_{B_t} / 2, which cancels, and delta sum_i E_T,i d_i^2 / 2. With B = 2 a a' and g = 2 r_t a,
<g, M^-1 g> / 2 = r_t^2 <2 a, M^-1 a>, and <2 a, M^-1 a> = 1 - det(M - B) / det M is at most the logarithm of their ratio (Azoury &
Warmuth 2001, Theorem 4.6; Vovk 2001 for the forecaster that knows a_t). In units of E_t that logarithm is Phi_t - Psi_t, with Phi_t =
ln det(I + E_t^-1 A_t / delta) and Psi_t the same of A_{t-1}, no less than Phi_{t-1} - sum_i ln(E_t,i / E_t-1,i). So the sum is at most
Phi_T + sum_i ln(E_T,i / E_1,i), and Phi_T <= n ln(1 + T / delta) as no entry of E_T^-1 A_T on the diagonal is more than T.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.compiler.problem.stores import stores
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS, FLAT_KINDS
from oco.compiler.proximal.norm_step import NormStep
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names, walk

FORGETTING = (1.0, 0.99, 0.97, 0.9)
"""rho of the steps: all rounds, and memories of about 100, 30 and 10 rounds."""
RIDGE = 0.03
"""delta: the ridge in units of the largest curvature of an entry. From a tenth to three times of it losses change by about a hundredth."""
GROWTH, TRIES = 4.0, 40
"""Factor by which c grows, and how often: from steps as long as the domain to 10^-24 of that."""
ROOM = 1e-12
"""Share of the loss within which it is as large as its bound, up to rounding."""
UNSEEN = 1e-200
"""Curvature of an entry that counts as none: sums of it would lose all digits."""
CURVATURES, CURVATURE_SCALES = "H", "h"
_WEIGHTS = "_weights"
SYMBOLS = {
    CURVATURES: "A, sums of the loss's second derivatives at these points, of which a part is forgotten",
    CURVATURE_SCALES: "E, the largest second derivatives of each entry, which fade alike",
}
"""State that is kept, by name."""


@lru_cache(maxsize=16)
def curved_through_data(canonical: Canonical) -> bool:
    """True where the loss is convex by composition and curved in affine functions of the decisions whose slopes are data, and nothing but
    the loss is learned.
    """
    learned = canonical.equalities or any(not c.known for c in canonical.inequalities) or stores(canonical)
    if learned or canonical.moving is not None or canonical.size > MAX_DENSE_ORDER:
        return False
    setting = ProofContext(canonical.unscaled or canonical)
    loss = setting.simplify(setting.canonical.objective)
    if setting.composition(loss) not in CONVEX_KINDS:
        return False
    decisions = tuple(b.name for b in canonical.blocks)
    return any(_is_curved_through_data(setting, n, decisions) for n in walk(loss) if isinstance(n, Call))


def _is_curved_through_data(setting: ProofContext, node: Call, decisions: tuple[str, ...]) -> bool:
    """True where a call is curved, its arguments are affine, and their slopes are data."""
    moving = [a for a in node.args if setting.depends(a)]
    if not moving or setting.composition(node) in FLAT_KINDS:
        return False
    if any(setting.composition(a) not in FLAT_KINDS for a in moving):
        return False
    slopes = [d for a in moving for d in _slopes(a, decisions)]
    if not any(n != _WEIGHTS for d in slopes for n in names(d, Kind.STREAM)):
        return False
    return any(
        not (isinstance(s, Constant) and not np.any(s.value.array))
        for d in _slopes(node, decisions)
        for s in _slopes(d, decisions)
    )


def _slopes(expr: Expr, decisions: tuple[str, ...]) -> list[Expr]:
    """Derivatives of the entries' weighted sum."""
    weights = Name(_WEIGHTS, Kind.STREAM, shape=expr.shape)
    return list(vector_jacobian(expr, weights, decisions).values())


def steps_at_start(p: Problem) -> State:
    """State before the first round."""
    count, d = len(FORGETTING), p.spec.canonical.size
    return {CURVATURES: p.tracer.zeros((count, d, d)), CURVATURE_SCALES: p.tracer.zeros((count, d))}


def steps_after(p: Problem, state: State, points: Rows) -> tuple[Rows, State]:
    """Points, a row for each rho, after a round, and the curvatures."""
    t, canonical = p.tracer, p.spec.canonical
    exact = degree(canonical.objective, p.spec.decisions) <= 2
    kept = t.constant(np.array(FORGETTING), "rho", "share of the curvature that stays")

    def one(rho: Value, A: Value, E: Value, *x: Value) -> tuple[Value, ...]:
        step = CurvatureStep(p, Point(x), rho * A, rho * E)
        moved, B = step.moved(t.lift(0.0)) if exact else step.checked()
        return step.summed(B), step.scales(B), *moved.blocks

    p.note("steps in the norm of the loss's curvature")
    A, E, *moved = t.map_(one, kept, array(state, CURVATURES), array(state, CURVATURE_SCALES), *points.blocks)
    return Rows(tuple(moved)), {CURVATURES: A, CURVATURE_SCALES: E}


class CurvatureStep:
    """The step from x with what is kept of A and E, shapes (d, d) and (d,)."""

    def __init__(self, p: Problem, x: Point, A: Value, E: Value) -> None:
        self.p, self.t, self.x, self.A, self.E = p, p.tracer, x, A, E
        self.slope = p.gradient(x).named(self.t, "slope")
        self.g = self.t.name("g", self.slope.flat())
        self.hessian = self.t.name("hessian", p.loss_hessian(x))
        self.length = self.t.sqrt(self.slope.squared_norm())

    def checked(self) -> tuple[Point, Value]:
        """Step with the least c with which the loss is no more than its bound there, and B."""
        t, n = self.t, len(self.x.blocks)
        first = 1.0 / (self.p.domain.diameter * t.where(self.length > 0.0, self.length, 1.0))
        here = t.name("here", self.p.loss(self.x))

        def too_long(*state: Value) -> Value:
            s = Point(state[:n]) - self.x
            v = s.flat()
            bound = here + self.slope.dot(s) + 0.5 * t.sum(v * (self._curvature(state[n]) @ v))
            return t.and_(self.p.loss(Point(state[:n])) > bound + ROOM * abs(here), state[n + 1] < TRIES)

        def shorter(*state: Value) -> tuple[Value, ...]:
            c = t.maximum(first, GROWTH * state[n])
            return (*self.moved(c)[0].blocks, c, state[n + 1] + 1)

        result = t.while_(too_long, shorter, (*self.moved(t.lift(0.0))[0].blocks, t.lift(0.0), t.lift(0)))
        return Point(result[:n]), self._curvature(result[n])

    def moved(self, c: Value) -> tuple[Point, Value]:
        """Point after the step, and B."""
        t, B = self.t, self._curvature(c)
        E = self.scales(B)
        gradients = self.length * t.sqrt(self.p.played) / self.p.domain.diameter
        ridge = t.where(E > UNSEEN, RIDGE * E, t.where(gradients > 0.0, gradients, 1.0))
        M = t.name("M", self.summed(B) + t.diag(ridge))
        sizes = t.name("sizes", 1.0 / t.sqrt(t.sum(M * t.eye(self.g.size), axis=1)))
        move = sizes * t.solve(M * t.outer(sizes, sizes), sizes * self.g)
        free = self.x - self.x.of_flat(move)
        within = self.p.domain.project(free)
        outside = t.any(t.stack(*(t.any(t.not_(t.eq(a, b))) for a, b in zip(free.blocks, within.blocks))))

        def projected() -> tuple[Value, ...]:
            least = t.min(ridge)
            return NormStep(self.p, self.x, self.slope, 0.5 * least, M - least * t.eye(self.g.size)).solved().blocks

        return Point(t.if_(outside, projected, lambda: free.blocks)), B

    def summed(self, B: Value) -> Value:
        """A after the round."""
        return self.A + B

    def scales(self, B: Value) -> Value:
        """E after the round."""
        return self.t.maximum(self.E, self.t.sum(B * self.t.eye(self.g.size), axis=1))

    def _curvature(self, c: Value) -> Value:
        return self.hessian + c * self.t.outer(self.g, self.g)
