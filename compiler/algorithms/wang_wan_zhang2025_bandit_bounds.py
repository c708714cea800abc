"""Wang, Wan & Zhang 2025, Theorems 3 and 4: the constants of their proofs for any settings, with what these leave out.

Both begin with gamma beta Regret + Phi(beta Q_T) <= sum_t h_t(x_t) - h_t(x*), where h_t(x) is the surrogate loss at x_t = x: Q_t holds
g_t^+(x_t), so that h_t(x) = gamma beta f_t(x) + Phi'(beta (Q_{t-1} + z)) beta z with z = g_t^+(x), which is convex. From there to the
decision before its perturbation and to the loss averaged over a ball, by the slope L_t of h_t: delta L_t each, and delta L_t D / r to the
shrunk domain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from oco.compiler.algorithms.wang_wan_zhang2025 import (
    largest_slope,
    round_quantities,
    setting_quantities,
)
from oco.compiler.algorithms.wang_yan_liu2025 import comparator_remarks
from oco.compiler.theory.settings import Setting, number
from oco.compiler.theory.theorems import Bound, Guarantee, Quantity, Situation, needed

NOTE = "in expectation, for data that does not answer the perturbations"


class ConvexProof:
    """The constants of the proof of Theorem 3 for any settings, with what it leaves out.

    With G_T = beta G (gamma + Phi'(beta Q_T)) and G_N the last guess,

        gamma beta E[Regret] + E[Phi(beta Q_T)] <= slopes E[G_T] + guesses E[G_N] + rest,      G_N <= 2 G_T + [guess - 2 beta G gamma]_+.

    Left out there: Q_t holds g_t^+(x_t), so that the surrogate loss at a perturbed point is another function of it (`steeper`) and the
    estimates of a block are dependent (the last term of `rest`); (54) drops a factor 2 D of sqrt(epsilon); M bounds f_t, not the
    surrogate (here `size`); a doubled guess begins at y_b, not at the last minimizer; rounds after the last full block.
    """

    def __init__(self, s: Situation, settings: Mapping[str, Setting], T: int) -> None:
        value = {n: number(settings, n, T) for n in settings}
        beta, gamma, rate, guess = (value[n] for n in ("beta", "gamma", "rate", "guess"))
        c, delta, epsilon, G, D, M, r = (value[n] for n in ("c", "delta", "epsilon", "G", "D", "M", "r"))
        K, d = max(1, round(value["K"])), float(s.size)
        sizes = s.inequality_bounds("bound")
        F = float(sizes.max()) if sizes is not None else math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp(rate * beta * F * (K + 1))
            steeper = (1 + rate * beta * F) * growth
            size = beta * (gamma * needed(s, "loss.bound") + rate * np.exp(rate * beta * F * T) * F)
            least = max(guess, beta * G * (gamma + rate))
            eta = c * D / (d * M * T**0.75)
            self.slopes = steeper * (delta * T * (3 + D / r) + T * math.sqrt(epsilon) + D * K)
            self.guesses = (
                2 * D**2 / eta + eta / 2 * T * K * steeper**2 + K * d / delta * size * math.sqrt(epsilon) / least
            )
            dependent = K * d * size / delta * (growth - 1) * steeper
            self.rest = eta / 2 * T * (d**2 * size**2 / (delta**2 * least) + dependent)
            self.rest += self.guesses * max(guess - 2 * beta * G * gamma, 0.0)
            self.weight = self.slopes + 2 * self.guesses
            load = self.weight * beta * G * rate
        self.load = load if math.isfinite(load) else math.inf


CONVEX_REGRET = "G*W + (beta*G*rate*W + R)/(gamma*beta)"
CONVEX_VIOLATION = "N/(rate*beta) * log((1 + beta*gamma*G*W + R + gamma*beta*G*D*n) / (1 - beta*G*rate*W))"


def convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 3; the bound of the violation is one of its expectation, by Jensen's inequality."""
    letters = {"G": "G", "D": "D", "beta": r"\beta", "gamma": r"\gamma", "rate": r"\lambda"}
    proof = cache(lambda T: ConvexProof(s, settings, T))
    quantities = (
        *setting_quantities(settings, letters),
        *round_quantities(s),
        Quantity("W", "W", "weight of the surrogate's slope", lambda n, T: np.asarray(proof(T).weight)),
        Quantity("R", "R", "what does not depend on that slope", lambda n, T: np.asarray(proof(T).rest)),
    )
    shown = s.horizon is not None and proof(s.horizon).load < 1
    regret, violation = (CONVEX_REGRET, CONVEX_VIOLATION) if shown else ("", "")
    return Guarantee(
        "Wang, Wan & Zhang 2025, Theorem 3",
        s.horizon,
        Bound("static regret", "T**(3/4)", regret, quantities, s.loss_range, NOTE),
        Bound("hard violation", "T**(3/4) * log(T)", violation, quantities, s.violation_range, NOTE),
        remarks=remarks(s),
    )


class StrongProof:
    """The constants of the proof of Theorem 4 for any settings: with q = beta Q_T

        gamma beta E[Regret] + E[q^2] <= constant + linear E[q] + load E[q^2].

    In block m follow the leader on l_m(y) = <S_m, y> + lambda K/2 |y - y_m|^2, lambda = gamma beta alpha_f, whose leaders y_m^* move by
    at most (|S_m| + lambda K e) / (lambda K m); L exact Frank-Wolfe steps end within e = 2 D / sqrt(L + 2) of them. By Young's inequality

        sum_m E[l_m(y_m) - l_m(y*)] <= T e L_T + sum_m (3 E|S_m|^2 / (2 lambda K m) + lambda K e^2 / (2 m)),
        E|S_m|^2 <= K (d v / delta)^2 + K^2 L_T^2 + 2 K^3 (d v / delta) beta^2 F G,

    v = beta (gamma M + 2 F q) a bound of |h_t(x_t)|, L_T = beta G (gamma + 2 q + 4 beta F) one of its slope, F one of g_t^+. The last term
    is there because slopes within a block depend on earlier perturbations. The printed proof has M for v, without q: its gamma alone does
    not make the load less than one where d F is large beside delta T^(1/3) G.
    """

    def __init__(self, s: Situation, settings: Mapping[str, Setting], T: int) -> None:
        value = {n: number(settings, n, T) for n in settings if n != "center"}
        beta, gamma, alpha_f, delta, r = (value[n] for n in ("beta", "gamma", "alpha_f", "delta", "r"))
        K, steps, d = max(1, round(value["K"])), max(1, round(value["L"])), float(s.size)
        G, D, M = largest_slope(s), needed(s, "domain.diameter.l2"), needed(s, "loss.bound")
        sizes = s.inequality_bounds("bound")
        F = float(sizes.max()) if sizes is not None else 0.0
        harmonic = 1.0 + math.log(T // K) if T >= K else 0.0  # at least that of all blocks
        weight, far, wide = gamma * beta * alpha_f, 2 * D / math.sqrt(steps + 2), d / delta
        slope = beta * np.array([G * (gamma + 4 * beta * F), 2 * G])
        size = beta * np.array([gamma * M, 2 * F])
        squares = wide**2 * np.convolve(size, size) + K * np.convolve(slope, slope)
        squares[:2] += 2 * K**2 * wide * beta**2 * F * G * size
        result = 1.5 * harmonic / weight * squares
        result[:2] += ((2 + D / r) * delta * T + T * far + K * D) * slope
        result[0] += harmonic * weight * K * far**2 / 2
        self.constant, self.linear, self.load = (float(v) for v in result)
        self.load = self.load if sizes is not None and math.isfinite(self.load) else math.inf


STRONG_REGRET = "(C + B**2 / (4*(1 - A))) / (gamma*beta)"
STRONG_VIOLATION = "N / (2*beta*(1 - A)) * (B + sqrt(B**2 + 4*(1 - A)*(C + gamma*beta*G*D*n)))"


def strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 4: the quadratic inequality above, solved; numbers where its load is less than one and F is centred at the iterates."""
    proof = cache(lambda T: StrongProof(s, settings, T))
    quantities = (
        Quantity("G", "G", "Lipschitz constant of losses and constraints", largest_slope(s)),
        Quantity("D", "D", "diameter of the domain", needed(s, "domain.diameter.l2")),
        *setting_quantities(settings, {"beta": r"\beta", "gamma": r"\gamma"}),
        *round_quantities(s),
        Quantity("A", "A", "weight of the squared queue", lambda n, T: np.asarray(proof(T).load)),
        Quantity("B", "B", "weight of the queue", lambda n, T: np.asarray(proof(T).linear)),
        Quantity("C", "C", "what does not depend on the queue", lambda n, T: np.asarray(proof(T).constant)),
    )
    centred = str(settings["center"].formula) == "iterates"
    shown = centred and s.horizon is not None and proof(s.horizon).load < 1
    regret, violation = (STRONG_REGRET, STRONG_VIOLATION) if shown else ("", "")
    return Guarantee(
        "Wang, Wan & Zhang 2025, Theorem 4",
        s.horizon,
        Bound("static regret", "T**(2/3) * log(T)", regret, quantities, s.loss_range, NOTE),
        Bound("hard violation", "T**(5/6) * log(T)", violation, quantities, s.violation_range, NOTE),
        remarks=remarks(s),
    )


def remarks(s: Situation) -> tuple[str, ...]:
    """Remarks on the comparator, and on gradients that the model reveals in vain."""
    wasted = "it uses the values of what the model reveals, and no gradients"
    return comparator_remarks(s) + (() if s.canonical.feedback.gives_values_alone else (wasted,))
