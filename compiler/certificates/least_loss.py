"""Lower bound of a convex function under constraints, from one linear minimisation, over the step IR.

For any y in the domain, any mu >= 0 and w = grad F(y) + sum_n mu_n grad G_n(y), convexity gives for every u of the domain with G(u) <= 0

    F(u) >= F(y) + <mu, G(y)> + <w, u - y> >= F(y) + <mu, G(y)> - <w, y> + min over the domain of <w, .>.

So no solver has to be trusted: y and mu come from a search, the bound from one linear minimisation. At the best u with its multipliers the
bound is F(u) itself. The search takes proximal steps y <- argmin <grad F(y), u> + |u - y|^2 / (2 sigma) over the domain cut by the
constraints (Rockafellar, SIAM J. Control Optim. 14, 1976), which are linearised at y, or at the step's own end where an exact step is
at hand (`proximal.penalty`); their multipliers are mu, and sigma grows while the bound does.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.domains.affine import in_units
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

MOST_STEPS = 200  # steps of the search, which gains little after them: the bound is one after every step
LONGEST, SHORTEST = 1e8, 1e-8  # of a step, in units of the set
MOST_IDLE = 12
"""Steps in a row that gain no more than rounding, after which the search ends."""
EVALUATION = 2.0**-32
"""Part of the magnitudes of all terms that is taken off for the rounding of each term and of the linear minimisation."""
ADDITION = 2.0**-52
"""Part of the magnitudes that is taken off for each addition to a sum."""


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """Lower bound and its rounding (`slack`), from the point y (d,) with the multipliers (n,).

    `most` is no less than the loss of any decision: a lower bound above it proves that none satisfies the constraints.
    """

    bound: Value
    most: Value
    slack: Value
    y: Value
    multipliers: Value


class Summed(Protocol):
    """Problem of which a lower bound is wanted: a convex function of u (d,) in a domain, and what every u in question satisfies."""

    @property
    def t(self) -> Tracer:
        """Tracer of the program."""

    @property
    def domain(self) -> Domain:
        """Set of all u."""

    @property
    def free(self) -> int:
        """Number of constraints, the last ones, whose multipliers may have any sign."""

    @property
    def curved(self) -> bool:
        """True where the function is neither affine nor of a known Hessian."""

    @property
    def steady(self) -> bool:
        """True where steps of one over the known curvature go on whatever the bound does, which rises and rests on the way."""

    @property
    def bounds(self) -> Value:
        """Greatest magnitude of each entry of u, (d,)."""

    def loss_at(self, y: Value) -> tuple[Value, Value, Value]:
        """Value at y, gradient (d,) and magnitude of the terms."""

    def constraints_at(self, y: Value) -> tuple[Value, Value, Value] | None:
        """Values (n,), gradients (n, d) and magnitudes (n,) at y; None where there are no constraints."""

    def most_loss(self) -> Value:
        """Upper bound of the function; infinite where none is known."""

    def curvature(self) -> Value | None:
        """Upper bound of the curvature; None where none is known."""

    def nonlinear_step(self, y: Value, c: Value, alpha: Value) -> Value | None:
        """argmin over the domain and the constraints of <c, u> + alpha |u - y|^2; None where no exact step is at hand."""
        ...


def least_loss(
    problem: Summed, rounds: Value, start: Value, steps: int = MOST_STEPS, idle: int = MOST_IDLE
) -> LeastLoss:
    """Lower bound of a function that so many rounds add up to, from a search that begins at `start` (d,).

    steps, idle  the most steps of the search, and the most in a row that gain nothing
    """
    return _BoundSearch(problem, rounds, start, steps, idle).run()


class _BoundSearch:
    """Proximal steps from `start`, with the best bound on the way. `scale` is the slope there times the radius of the domain."""

    def __init__(self, problem: Summed, rounds: Value, start: Value, steps: int, idle: int) -> None:
        t = problem.t
        self.t, self.problem, self.rounds, self.start = t, problem, rounds, start
        self.steps, self.domain = steps, problem.domain
        self.radius = float(self.domain.radius) or 1.0
        self.unit = in_units(self.domain, np.zeros(()), self.radius)
        held = problem.constraints_at(start)
        self.count = 0 if held is None else held[0].shape[0]
        self.idle = (
            steps if problem.steady and held is None else idle
        )  # with constraints steps cost more, and go farther
        slope = problem.loss_at(start)[1]
        self.scale = t.maximum(t.sqrt(slope @ slope) * self.radius, TINY)
        self.most = problem.most_loss()
        self.longest = self._longest()

    def run(self) -> LeastLoss:
        """Best bound of all steps."""
        t, none = self.t, self.t.zeros((self.count,))
        value, rounding = self.proved(self.start, none)
        begin = (self.start, t.minimum(1.0, self.longest), value, self.start, none, rounding, t.lift(0), t.lift(0))
        _, _, bound, y, mu, slack, _, _ = t.while_(self.goes_on, self.next, begin)
        return LeastLoss(bound, self.most, slack, y, mu)

    def goes_on(
        self, y: Value, sigma: Value, bound: Value, best: Value, mu: Value, slack: Value, idle: Value, k: Value
    ) -> Value:
        """True until steps gain nothing, or the bound shows that no decision satisfies the constraints."""
        t = self.t
        return t.and_(t.and_(idle < self.idle, k < self.steps), bound - slack <= self.most)

    def next(
        self, y: Value, sigma: Value, bound: Value, best: Value, mu: Value, slack: Value, idle: Value, k: Value
    ) -> tuple[Value, ...]:
        """Step from y; a longer one follows where the bound rose and the loss bends little along it, else a shorter one.

        A step along which the loss bends by more than the proximal term (`relative_change` > 1) may overshoot and is not taken.
        """
        t = self.t
        z, own = self.step(y, sigma)
        value, rounding = self.proved(z, own)
        result, before = value - rounding, bound - slack
        relative_change = self.relative_change(y, z, sigma)
        finite = t.and_(t.isfinite(result), t.isfinite(t.sum(own)) if self.count else t.lift(True))
        better = t.and_(finite, result > before)
        gained = t.and_(better, result - before > rounding)
        longer = t.where(relative_change < 0.25, t.minimum(sigma * 4.0, self.longest), sigma)
        shorter = t.where(t.and_(relative_change < 0.5, self.problem.curved), sigma, t.maximum(sigma * 0.5, SHORTEST))
        if self.problem.steady:
            longer = shorter = self.longest
        return (
            t.where(t.and_(finite, relative_change <= 1.0), z, y),
            t.where(better, longer, shorter),
            t.where(better, value, bound),
            t.where(better, z, best),
            t.where(better, own, mu),
            t.where(better, rounding, slack),
            t.where(gained, 0, idle + 1),
            k + 1,
        )

    def relative_change(self, y: Value, z: Value, sigma: Value) -> Value:
        """Change of the loss from y to z beyond its slope at y, over the proximal term; 0 for an affine loss."""
        t = self.t
        if not self.problem.curved:
            return t.lift(0.0)
        (F, slope, size), (G, _, _) = (self.problem.loss_at(u) for u in (y, z))
        beyond = t.maximum(G - F - slope @ (z - y) - ADDITION * size, 0.0)
        return beyond * 2.0 * sigma * self.radius**2 / (self.scale * t.maximum((z - y) @ (z - y), TINY))

    def proved(self, y: Value, mu: Value) -> tuple[Value, Value]:
        """Lower bound at y with these multipliers, and its rounding."""
        t, domain = self.t, self.domain
        F, w, slack = self.problem.loss_at(y)
        held = self.problem.constraints_at(y)
        if held is not None:
            g, slopes, sizes = held
            F, w, slack = F + mu @ g, w + mu @ slopes, slack + abs(mu) @ sizes
        vertex = domain.flat(t, domain.lmo(t, domain.shaped(t, w)))
        part = EVALUATION + ADDITION * self.rounds
        return F + w @ (vertex - y), part * (slack + abs(w) @ self.problem.bounds)

    def step(self, y: Value, sigma: Value) -> tuple[Value, Value]:
        """Proximal step of length sigma and its multipliers, in the user's units."""
        t, problem, radius, unit = self.t, self.problem, self.radius, self.unit
        slope = problem.loss_at(y)[1] / self.scale
        v = y / radius - slope * (sigma * radius)
        exact = problem.nonlinear_step(y, slope, 0.5 / (sigma * radius * radius))
        at = y if exact is None else exact
        held = problem.constraints_at(at)
        if held is None:
            return self.domain.flat(t, unit.project(t, unit.shaped(t, v))) * radius, t.zeros((0,))
        g, slopes, _ = held
        norms = t.sqrt(t.sum(slopes * slopes, axis=1))
        norms = t.where(norms > 0.0, norms, 1.0)
        C, r = slopes / t.reshape(norms, (self.count, 1)), (slopes @ at - g) / (norms * radius)
        dual = CutDual(t, unit, C, r, self.count - problem.free)
        lam, z = dual.solve(v, dual.none)
        return z * radius, lam * self.scale / (sigma * radius) / norms

    def _longest(self) -> Value:
        """Longest step: one over the greatest curvature, where that is known."""
        curvature = self.problem.curvature()
        if curvature is None:
            return self.t.lift(LONGEST)
        return self.t.minimum(self.scale / self.t.maximum(curvature * self.radius * self.radius, TINY), LONGEST)
