"""Lower bound of the loss of every fixed decision, from the sums of a certificate, over the step IR.

For any y in the domain, any mu >= 0 and w = grad F(y) + sum_n mu_n grad G_n(y), convexity gives for every u of the domain with G(u) <= 0

    F(u) >= F(y) + <mu, G(y)> + <w, u - y> >= F(y) + <mu, G(y)> - <w, y> + min over the domain of <w, .>.

So no solver has to be trusted: y and mu come from a search, the bound from one linear minimisation. At the best u with its multipliers the
bound is F(u) itself. The search takes proximal steps y <- argmin <grad F(y), u> + |u - y|^2 / (2 sigma) over the domain cut by the
constraints (Rockafellar, SIAM J. Control Optim. 14, 1976), which are linearised at y, or at the step's own end where an exact step is
at hand (`proximal.penalty`); their multipliers are mu, and sigma grows while the bound does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oco.compiler.certificates.form import HessianForm
from oco.compiler.certificates.sums import CURVE, CertificateSums
from oco.compiler.domains.affine import in_units
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.ir.value import Value

MOST_STEPS = 200
LONGEST, SHORTEST, TINY = 1e8, 1e-8, 1e-290
MOST_IDLE = 12
"""Steps in a row that gain no more than rounding, after which the search ends."""
EVALUATION = 2.0**-32
"""Part of the magnitudes of all terms that is taken off for the rounding of each term and of the linear minimisation."""
ADDITION = 2.0**-52
"""Part of the magnitudes that is taken off for each addition to a sum."""


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """Lower bound and its rounding (`slack`), from the point y (d,) with the multipliers (n,).

    `most` is no less than the loss of any fixed decision: a lower bound above it proves that none satisfied the constraints.
    """

    bound: Value
    most: Value
    slack: Value
    y: Value
    multipliers: Value


def least_loss(sums: CertificateSums, state: Mapping[str, Value], rounds: Value, start: Value) -> LeastLoss:
    """Lower bound of F over the domain and its constraints, from a search that begins at `start` (d,)."""
    return _Search(sums, state, rounds, start).run()


class _Search:
    """Proximal steps from `start`, with the best bound on the way. `scale` is the slope there times the radius of the domain."""

    def __init__(self, sums: CertificateSums, state: Mapping[str, Value], rounds: Value, start: Value) -> None:
        t, domain = sums.t, sums.form.domain
        self.t, self.sums, self.state, self.rounds, self.start, self.domain = t, sums, state, rounds, start, domain
        self.radius = float(domain.radius) or 1.0
        self.unit = in_units(domain, np.zeros(()), self.radius)
        held = sums.constraints_at(state, rounds, start)
        self.count = 0 if held is None else held[0].shape[0]
        slope = sums.loss_at(state, rounds, start)[1]
        self.scale = t.maximum(t.sqrt(slope @ slope) * self.radius, TINY)
        self.most = sums.most_loss(state)
        self.longest = self._longest()
        self.curved = sums.form.curvature is HessianForm.MEAN

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
        return t.and_(t.and_(idle < MOST_IDLE, k < MOST_STEPS), bound - slack <= self.most)

    def next(
        self, y: Value, sigma: Value, bound: Value, best: Value, mu: Value, slack: Value, idle: Value, k: Value
    ) -> tuple[Value, ...]:
        """Step from y; a longer one follows where the bound rose and the loss bends little along it, else a shorter one.

        A step along which the loss bends by more than the proximal term (`bends` > 1) may overshoot and is not taken.
        """
        t = self.t
        z, own = self.step(y, sigma)
        value, rounding = self.proved(z, own)
        result, before = value - rounding, bound - slack
        bends = self.bends(y, z, sigma)
        finite = t.and_(t.isfinite(result), t.isfinite(t.sum(own)) if self.count else t.lift(True))
        better = t.and_(finite, result > before)
        gained = t.and_(better, result - before > rounding)
        longer = t.where(bends < 0.25, t.minimum(sigma * 4.0, self.longest), sigma)
        shorter = t.where(t.and_(bends < 0.5, self.curved), sigma, t.maximum(sigma * 0.5, SHORTEST))
        return (
            t.where(t.and_(finite, bends <= 1.0), z, y),
            t.where(better, longer, shorter),
            t.where(better, value, bound),
            t.where(better, z, best),
            t.where(better, own, mu),
            t.where(better, rounding, slack),
            t.where(gained, 0, idle + 1),
            k + 1,
        )

    def bends(self, y: Value, z: Value, sigma: Value) -> Value:
        """Change of the loss from y to z beyond its slope at y, over the proximal term; 0 for an affine loss."""
        t = self.t
        if not self.curved:
            return t.lift(0.0)
        (F, slope, size), (G, _, _) = (self.sums.loss_at(self.state, self.rounds, u) for u in (y, z))
        beyond = t.maximum(G - F - slope @ (z - y) - ADDITION * size, 0.0)
        return beyond * 2.0 * sigma * self.radius**2 / (self.scale * t.maximum((z - y) @ (z - y), TINY))

    def proved(self, y: Value, mu: Value) -> tuple[Value, Value]:
        """Lower bound at y with these multipliers, and its rounding."""
        t, sums, domain = self.t, self.sums, self.domain
        F, w, slack = sums.loss_at(self.state, self.rounds, y)
        held = sums.constraints_at(self.state, self.rounds, y)
        if held is not None:
            g, slopes, sizes = held
            F, w, slack = F + mu @ g, w + mu @ slopes, slack + abs(mu) @ sizes
        vertex = domain.flat(t, domain.lmo(t, domain.shaped(t, w)))
        part = EVALUATION + ADDITION * self.rounds
        return F + w @ (vertex - y), part * (slack + abs(w) @ sums.bounds)

    def step(self, y: Value, sigma: Value) -> tuple[Value, Value]:
        """Proximal step of length sigma and its multipliers, in the user's units."""
        t, sums, radius, unit = self.t, self.sums, self.radius, self.unit
        slope = sums.loss_at(self.state, self.rounds, y)[1] / self.scale
        v, at = y / radius - slope * (sigma * radius), y
        if sums.form.bent is not None:
            at = sums.bent_step(self.state, self.rounds, y, slope, 0.5 / (sigma * radius * radius))
        held = sums.constraints_at(self.state, self.rounds, at)
        if held is None:
            return self.domain.flat(t, unit.project(t, unit.shaped(t, v))) * radius, t.zeros((0,))
        g, slopes, _ = held
        norms = t.sqrt(t.sum(slopes * slopes, axis=1))
        norms = t.where(norms > 0.0, norms, 1.0)
        C, r = slopes / t.reshape(norms, (self.count, 1)), (slopes @ at - g) / (norms * radius)
        dual = CutDual(t, unit, C, r, self.count - sums.free)
        lam, z = dual.solve(v, dual.none)
        return z * radius, lam * self.scale / (sigma * radius) / norms

    def _longest(self) -> Value:
        """Longest step: one over the greatest curvature where the loss is quadratic."""
        t = self.t
        if CURVE not in self.state:
            return t.lift(LONGEST)
        H = self.state[CURVE]
        bend = t.max(abs(H)) if H.ndim == 1 else t.max(t.sum(abs(H), axis=1))
        return t.minimum(self.scale / t.maximum(bend * self.radius * self.radius, TINY), LONGEST)
