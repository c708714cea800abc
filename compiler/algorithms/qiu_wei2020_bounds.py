"""The proofs of Qiu & Wei 2020, Lemmas 5.3 to 5.5 and B.3 to B.5, in numbers, before their constants are gathered.

Summed over a stretch of delta rounds, Lemma 5.2 at a Slater point of margin sigma gives

    (|Q(t + delta)|^2 - |Q(t)|^2) / 2 <= C(delta) + alpha D - (sigma delta - pull L_g) gamma |Q(t)|_1,

so that a queue beyond 4 (C + alpha D) / (sigma delta gamma) falls over the stretch, where sigma delta >= 2 pull L_g; in between it grows
by gamma G a round. alpha is affine in the largest queue, hence a fixed point. Over all rounds, at x*, the same lemma gives the regret:
the terms in xi_t cancel against alpha_t, the divergences telescope to alpha_{T+1} D.
"""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.theory.guarantees import Floats
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class ProofSymbols:
    """The symbols of the proofs at a horizon. `squared_diameter` bounds |x - y|^2, `divergence` D(z, .) at the point where it is taken."""

    eta: float
    gamma: float
    L_f: float
    L_g: float
    G: float
    H: float
    F: float
    K: int
    V: float
    sigma: float
    squared_diameter: float
    divergence: float
    mixing: float
    """Amount that mixing adds to each unit of alpha over one round: nu (log d + 2 nu)."""
    factor: float
    """2 in Theorem 4.1, 3 in Theorem 6.1: rho alpha is factor times xi and its kin."""
    rho: float

    @property
    def base(self) -> float:
        """alpha without its queue, (21) and (52)."""
        smoothnesses = self.eta * self.L_f**2 + self.gamma**2 * (2 * self.L_g * self.G + self.H**2)
        return (self.factor * smoothnesses + 2 / self.eta) / self.rho

    @property
    def per_queue(self) -> float:
        """Growth of alpha with |Q|_2: |Q|_1 <= sqrt(K) |Q|_2."""
        return self.factor / self.rho * math.sqrt(self.K) * self.gamma * self.L_g

    def slack(self, delta: Floats) -> Floats:
        """C-bar of (28) and (60), as a function of the length of a stretch."""
        G, sigma = self.G, self.sigma
        pull = self.factor / 2 * self.squared_diameter
        squares = pull * (self.L_g * G + self.H**2) + (G**2 + sigma * delta**2 * G) / 2 + sigma * delta * G
        return np.asarray(
            squares * self.gamma**2
            + (pull * self.L_f**2 + self.V / 2) * self.eta
            + self.F * math.sqrt(self.squared_diameter) * delta
        )

    def queue(self, horizon: int) -> float:
        """The bound of |Q(t)|_2: (33) and (64) for the best stretch that the proof allows, at most gamma (T + 1) G."""
        trivial = self.gamma * (horizon + 1) * self.G
        # (34) prints 2 sqrt(K) L_g R^2 / (rho sigma delta) where 2 * 4 belongs; here the share of alpha is taken as it is.
        delta = np.unique(np.round(np.geomspace(1, max(horizon, 1), 400)))
        per_alpha = self.divergence + delta * self.mixing
        share = self.per_queue * 4 * per_alpha / (self.sigma * delta * self.gamma)
        allowed = (share < 1) & (self.sigma * delta >= self.factor * self.squared_diameter * self.L_g)
        if not allowed.any():
            return trivial
        delta, per_alpha, share = delta[allowed], per_alpha[allowed], share[allowed]
        step = self.sigma * delta * self.gamma
        free = 4 * self.slack(delta) / step + 3 * delta * self.gamma * self.G
        alpha = (self.base + self.per_queue * free) / (1 - share)
        return min(trivial, float((free + 4 * per_alpha * alpha / step).min()))

    def last_alpha(self, horizon: int) -> float:
        """Upper bound of alpha in the last round, (21) and (52) with the bound of the queue."""
        return self.base + self.per_queue * self.queue(horizon)

    def regret(self, horizon: int) -> float:
        """Lemmas 5.4 and B.5."""
        start = (
            self.factor
            / 2
            * self.squared_diameter
            * (self.eta * self.L_f**2 + self.gamma**2 * (2 * self.L_g * self.G + self.H**2))
        )
        alpha = self.last_alpha(horizon) * (self.divergence + horizon * self.mixing)
        return self.eta / 2 * self.V + start + 1.5 * self.gamma**2 * self.G**2 + alpha

    def violation(self, horizon: int) -> float:
        """Lemma 5.5 for each constraint, summed: |Q|_1 <= sqrt(K) |Q|_2."""
        return math.sqrt(self.K) * self.queue(horizon) / self.gamma
