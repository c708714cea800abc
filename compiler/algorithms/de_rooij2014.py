"""de Rooij, van Erven, Grunwald & Koolen 2014: AdaHedge, weights on K experts whose rate comes from what mixing has cost so far.

    eta_t = ln K / Delta_{t-1},  w_t[k] ~ exp(-eta_t L_{t-1}[k]),  delta_t = <w_t, l_t> + ln <w_t, exp(-eta_t l_t)> / eta_t,
    Delta_t = Delta_{t-1} + delta_t,

with L the losses so far. Where Delta = 0 the weights are those of eta = infinity: equal on the experts that have done best.

Regret. The mix losses sum to at most min_k L_T[k] + ln K / eta_T, since eta_t does not grow (Lemma 2), so the weighted losses exceed the
best expert's by at most Delta_T + ln K / eta_T <= 2 Delta_T. With s_t the range of the entries of l_t, 0 <= delta_t <= s_t, and
delta_t <= eta_t s_t^2 / 8 by Hoeffding's lemma, hence

    Delta_t^2 - Delta_{t-1}^2 = 2 Delta_{t-1} delta_t + delta_t^2 <= (ln K / 4 + 1) s_t^2,    2 Delta_T <= sqrt((4 + ln K) sum_t s_t^2).
"""

from __future__ import annotations

import math

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem

TINY = 1e-290
HUGE = 1e300


def weights(p: Problem, L: Value, gap: Value) -> Value:
    """w_t, shape (K,), of the losses so far (K,) and of Delta_{t-1}."""
    t = p.tracer
    p.note("AdaHedge: weights exp(-eta L), with eta = ln K / Delta")
    z = (-rate(p, L.shape[0], gap)) * (L - t.min(L))
    w = t.exp(z)
    return t.name("w", w / t.sum(w))


def rate(p: Problem, experts: int, gap: Value) -> Value:
    """eta_t of Delta_{t-1}; a huge number in the place of infinity."""
    return math.log(experts) / p.tracer.maximum(gap, TINY)


def mixability_gap(p: Problem, losses: Value, w: Value, gap: Value) -> Value:
    """delta_t >= 0 of the round's losses (K,), its weights (K,) and Delta_{t-1}."""
    t = p.tracer
    eta = rate(p, w.shape[0], gap)
    least = t.min(t.where(w > 0.0, losses, HUGE))
    p.note("delta = <w, l> + ln <w, exp(-eta l)> / eta")
    shares = w @ t.exp(-eta * t.maximum(losses - least, 0.0))
    mixed = least - t.log(t.maximum(shares, TINY)) / eta
    return t.maximum(w @ losses - mixed, 0.0)
