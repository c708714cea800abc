"""de Rooij, van Erven, Grunwald & Koolen 2014: AdaHedge, weights on K experts whose rate comes from what mixing has cost so far.

    eta_t = ln K / Delta_{t-1},  w_t[k] ~ exp(-eta_t L_{t-1}[k]),  delta_t = <w_t, l_t> + ln <w_t, exp(-eta_t l_t)> / eta_t,
    Delta_t = Delta_{t-1} + delta_t,

with L the losses so far. Where Delta = 0 the weights are those of eta = infinity: equal on the experts that have done best.

Regret. The mix losses sum to at most min_k L_T[k] + ln K / eta_T, since eta_t does not grow (Lemma 2), so the weighted losses exceed the
best expert's by at most Delta_T + ln K / eta_T <= 2 Delta_T. With s_t the range of the entries of l_t, 0 <= delta_t <= s_t, and
delta_t <= eta_t s_t^2 / 8 by Hoeffding's lemma, hence

    Delta_t^2 - Delta_{t-1}^2 = 2 Delta_{t-1} delta_t + delta_t^2 <= (ln K / 4 + 1) s_t^2,    2 Delta_T <= sqrt((4 + ln K) sum_t s_t^2).

Delays (AdaHedgeD of Flaspohler et al. 2021, for fixed delays, with constants). Where l_t is known d rounds late, what is played are the
weights v_t ~ exp(-eta_t L_{t-d-1}) with eta_t = ln K / Delta_{t-d-1}, and <v_t, l_t> is what is paid. With w_t ~ exp(-eta_t L_{t-1}) of the
same rate and delta_t = [<v_t, l_t> + ln <w_t, exp(-eta_t l_t)> / eta_t]_+ the first part stands as it is: regret is at most
Delta_T + ln K / eta_T <= 2 Delta_T. With S_t = s_{t-d} + ... + s_{t-1}, KL(v_t | w_t) <= (eta_t S_t)^2 / 8 by Hoeffding's lemma, so by
Pinsker's inequality <v_t - w_t, l_t> <= eta_t s_t S_t / 4; and delta_t <= s_t, Delta_{t-1} <= Delta_{t-d-1} + S_t. Hence

    Delta_t^2 - Delta_{t-1}^2 <= 2 (Delta_{t-d-1} + S_t) delta_t + delta_t^2 <= (ln K / 4 + 1) (s_t^2 + 2 s_t S_t),

and 2 Delta_T <= sqrt((4 + ln K) sum_t (s_t^2 + 2 s_t S_t)), at most sqrt(2 d + 1) times as large as without a delay where s_t <= s.

Weights pi_k exp(-eta_t L_{t-1}[k]) for a distribution pi: with ln(1 / min pi) in the place of ln K all of the above holds. With rates
S / Delta_{t-1} for any S > 0 the regret beside expert k is at most (1 + ln(1 / pi_k) / S) Delta_T, and 2 Delta_T at most
sqrt((4 + S) sum_t s_t^2): the less S is, the longer pi lasts.

The loss of the mean. Where experts decide x^k, l_t[k] = P_t(x^k) for a convex P_t and x_t = sum_k w_t[k] x^k is played, P_t(x_t) stands
for <w_t, l_t> here: delta_t = [P_t(x_t) + ln <w_t, exp(-eta_t l_t)> / eta_t]_+. All of the above holds of what is played, as delta_t is
no more than it was, and where exp(-theta P_t) is concave, delta_t = 0 as soon as eta_t <= theta, by Jensen's inequality (Kivinen & Warmuth
1999): Delta_T <= ln K / theta + max_t s_t, whatever theta is and without knowing it. With eta_t = min(theta, ln K / Delta_{t-1}) it is
0 throughout, and the regret at most ln K / theta (Cesa-Bianchi & Lugosi 2006, Proposition 3.1).
"""

from __future__ import annotations

import math

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.dsl.magnitudes import HUGE, TINY


def weights(p: Problem, L: Value, eta: Value, first: Value | None = None) -> Value:
    """w_t, shape (K,), of the losses so far (K,) and of eta_t; `first`: weights before the first round, where they are not alike."""
    t = p.tracer
    p.note("weights exp(-eta L)")
    w = t.exp(-eta * (L - t.min(L)))
    w = w if first is None else first * w
    return t.name("w", w / t.sum(w))


def rate(p: Problem, size: float, gap: Value, most: Value | float = math.inf) -> Value:
    """eta_t of ln K, the `size`, and of Delta_{t-1}, at most `most`; a huge number in the place of infinity."""
    eta = size / p.tracer.maximum(gap, TINY)
    return eta if most is math.inf else p.tracer.minimum(eta, most)


def mixability_gap(p: Problem, losses: Value, w: Value, eta: Value, paid: Value) -> Value:
    """delta_t >= 0 of the round's losses (K,), its weights (K,), eta_t and what their mean paid."""
    t = p.tracer
    least = t.min(t.where(w > 0.0, losses, HUGE))
    p.note("delta = [P(sum_k w_k x^k) + ln <w, exp(-eta l)> / eta]_+")
    shares = w @ t.exp(-eta * t.maximum(losses - least, 0.0))
    mixed = least - t.log(t.maximum(shares, TINY)) / eta
    return t.maximum(paid - mixed, 0.0)
