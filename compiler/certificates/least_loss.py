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

from oco.compiler.certificates.sums import CURVE, CertificateSums
from oco.compiler.domains.affine import in_units
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.ir.value import Value

MOST_STEPS = 60
LONGEST, SHORTEST = 1e8, 1e-8
MOST_IDLE = 10
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
    t, domain = sums.t, sums.form.domain
    radius = float(domain.radius) or 1.0
    unit = in_units(domain, np.zeros(()), radius)
    constrained = sums.constraints_at(state, rounds, start)
    count = 0 if constrained is None else constrained[0].shape[0]
    first_slope = sums.loss_at(state, rounds, start)[1]
    scale = t.maximum(t.sqrt(first_slope @ first_slope) * radius, 1e-300)
    most = sums.most_loss(state)
    longest = _longest(sums, state, scale, radius)

    def proved(y: Value, mu: Value) -> tuple[Value, Value]:
        """Lower bound at y with these multipliers, and its rounding."""
        F, w, slack = sums.loss_at(state, rounds, y)
        held = sums.constraints_at(state, rounds, y)
        if held is not None:
            g, slopes, sizes = held
            F, w, slack = F + mu @ g, w + mu @ slopes, slack + abs(mu) @ sizes
        vertex = domain.flat(t, domain.lmo(t, domain.shaped(t, w)))
        part = EVALUATION + ADDITION * rounds
        return F + w @ (vertex - y), part * (slack + abs(w) @ sums.bounds)

    def step(y: Value, sigma: Value) -> tuple[Value, Value]:
        """Proximal step of length sigma and its multipliers, in the user's units."""
        slope = sums.loss_at(state, rounds, y)[1] / scale
        v = y / radius - slope * (sigma * radius)
        at = y
        if sums.form.bent is not None:
            at = sums.bent_step(state, rounds, y, slope, 0.5 / (sigma * radius * radius))
        held = sums.constraints_at(state, rounds, at)
        if held is None:
            return domain.flat(t, unit.project(t, unit.shaped(t, v))) * radius, t.zeros((0,))
        g, slopes, _ = held
        norms = t.sqrt(t.sum(slopes * slopes, axis=1))
        norms = t.where(norms > 0.0, norms, 1.0)
        C, r = slopes / t.reshape(norms, (count, 1)), (slopes @ at - g) / (norms * radius)
        dual = CutDual(t, unit, C, r, count - sums.free)
        lam, z = dual.solve(v, dual.none)
        return z * radius, lam * scale / (sigma * radius) / norms

    def on_the_way(*values: Value) -> Value:
        best, idle, k = values[3], values[-2], values[-1]
        return t.and_(t.and_(idle < MOST_IDLE, k < MOST_STEPS), best <= most)

    def search(
        y: Value, sigma: Value, bound: Value, best: Value, best_y: Value, mu: Value, slack: Value, idle: Value, k: Value
    ) -> tuple[Value, ...]:
        z, own = step(y, sigma)
        value, rounding = proved(z, own)
        result = value - rounding
        finite = t.and_(t.isfinite(result), t.isfinite(t.sum(own)) if count else t.lift(True))
        better = t.and_(finite, result > best)
        grown = t.minimum(sigma * 4.0, longest)
        following = t.where(better, grown, t.maximum(sigma * 0.5, SHORTEST))
        gained = t.and_(better, result - best > rounding)
        return (
            t.where(finite, z, y),
            following,
            t.where(better, value, bound),
            t.where(better, result, best),
            t.where(better, z, best_y),
            t.where(better, own, mu),
            t.where(better, rounding, slack),
            t.where(gained, 0, idle + 1),
            k + 1,
        )

    none = t.zeros((count,))
    value, rounding = proved(start, none)
    sigma = t.minimum(1.0, longest)
    begin = (start, sigma, value, value - rounding, start, none, rounding, t.lift(0), t.lift(0))
    _, _, bound, _, y, mu, slack, _, _ = t.while_(on_the_way, search, begin)
    return LeastLoss(bound, most, slack, y, mu)


def _longest(sums: CertificateSums, state: Mapping[str, Value], scale: Value, radius: float) -> Value:
    """Longest step: one over the greatest curvature where the loss is quadratic."""
    t = sums.t
    if CURVE not in state:
        return t.lift(LONGEST)
    H = state[CURVE]
    bend = t.max(abs(H)) if H.ndim == 1 else t.max(t.sum(abs(H), axis=1))
    return t.minimum(scale / t.maximum(bend * radius * radius, 1e-300), LONGEST)
