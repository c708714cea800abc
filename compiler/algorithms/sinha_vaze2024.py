"""Sinha & Vaze 2024, "Optimal algorithms for online convex optimization with adversarial constraints".

Hard violation of constraints that an adversary changes; several constraints are one: g_t = max_n g_t^n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    STRONGLY_CONVEX,
)
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR, PROJECTION, ROUNDS, SOME_INEQUALITY, unknown
from oco.compiler.algorithms.wang_wan_zhang2025 import LIPSCHITZ_CONSTRAINTS, largest_slope
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.lowering.significance import significant
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    ANY_LENGTH,
    Bound,
    Floats,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    horizon_known,
    inequalities_convex,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.statements import Feedback, Measure


class SinhaVaze:
    """A gradient step on the loss and the violation, weighted by a potential, with a step size that adapts.

    Convex: on beta f_t + rate_t exp(W_t) beta_g g_t^+, W_t = W_{t-1} + rate_t beta_g g_t^+(x_t), with AdaGrad's step; the paper has one
    rate, so that exp(W) - 1 = exp(rate Q) - 1 with the queue Q. Strongly convex: on V beta f_t + 2 Q_t beta g_t^+,
    Q_t = Q_{t-1} + beta g_t^+(x_t), with the step 1 / (V beta alpha_f t).
    """

    def init(self, p: Problem, start: Point) -> State:
        zero = p.tracer.lift(0.0)
        return {"x": start, "Q": zero} if _strong(p) else {"x": start, "W": zero, "S": zero}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        return self._strongly_convex(p, state) if _strong(p) else self._convex(p, state)

    def _strongly_convex(self, p: Problem, state: State) -> State:
        t, x, beta, V = p.tracer, point(state, "x"), p.setting("beta"), p.setting("V")
        g, slope = p.worst_constraint(x)
        Q = t.name("Q", array(state, "Q") + beta * t.maximum(g, 0.0))
        slope = (beta * t.to_float(g > 0.0)) * slope
        p.note("the gradient of V beta f + Phi'(Q) beta g^+ with Phi'(q) = 2 q, over its modulus of strong convexity")
        d = (V * beta * p.gradient(x) + (2.0 * Q) * slope).named(t, "d")
        eta = t.name("eta", 1.0 / (V * beta * p.setting("alpha_f") * p.t))
        return {"x": p.domain.project(x - eta * d), "Q": Q}

    def _convex(self, p: Problem, state: State) -> State:
        t, x, before = p.tracer, point(state, "x"), array(state, "W")
        weight = p.setting("rate") * p.setting("beta_g")
        g, slope = p.worst_constraint(x)
        W = t.name("W", before + weight * t.maximum(g, 0.0))
        slope = (weight * t.to_float(g > 0.0)) * slope
        p.note("the gradient of beta f + rate exp(W) beta g^+, in units of exp(W)")
        d = significant(t, p.setting("beta") * t.exp(-W) * p.gradient(x) + slope).named(t, "d")
        p.note("the sum of |d|^2 in the same units, and AdaGrad's step, which has no units")
        S = t.name("S", array(state, "S") * t.exp(2.0 * (before - W)) + d.squared_norm())
        eta = t.name("eta", p.setting("D") / t.sqrt(2.0 * t.maximum(S, SMALLEST)))
        return {"x": p.domain.project(x - eta * d), "W": W, "S": S}


def _strong(p: Problem) -> bool:
    """True if all settings of the strongly convex case are there, not only one of them beside those of the other."""
    return {"V", "alpha_f"} <= p.spec.settings.keys()


# Settings and guarantees.


SLOPE = "Lipschitz constant of losses and constraints"


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    return {
        "G": Default(unknown(s, "lipschitz.l2") or largest_slope(s), SLOPE),
        "D": Default("domain.diameter.l2", "diameter of the domain"),
        "beta": Default("1 / (2 * G * D)", "1/(2 G D)"),
        "beta_g": Default("beta", "one scale for the losses and the constraints"),
        "rate": Default("1 / (2 * sqrt(T))", "1/(2 sqrt(T))"),
    }


def _anytime_settings(s: Situation) -> Mapping[str, Default]:
    falling = Default(
        "1 / (2 * sqrt(2 * t) * (1 + log(t)))", "1/(2 sqrt(2 t) (1 + log t)): the squares sum to 1/4 at most"
    )
    return {**_convex_settings(s), "rate": falling}


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    return {
        "G": Default(unknown(s, "lipschitz.l2") or largest_slope(s), SLOPE),
        "alpha_f": Default("loss.strong_convexity.l2", "modulus of strong convexity"),
        "beta": Default(1, "1"),
        "V": Default("8 * G**2 * (log(T) + 1) / alpha_f", "8 G^2 log(T e) / alpha_f"),
    }


# Convex: exp(W) - 1 grows by at most rate_t exp(W_t) beta_g g_t^+(x_t), and AdaGrad's regret for the surrogate losses is at most
# (D^2 / D_s + D_s) sqrt(sum |d_t|^2 / 2) where it uses D_s for the diameter, |d_t| <= S (1 + rate_t exp(W_t)) with S the larger of
# beta G_f and beta_g G_g, and (1 + a)^2 <= 2 + 2 a^2. Constraints may have a scale beta_g of their own, since beta_g g / beta is a
# constraint as good as g. W does not fall, whatever the rates. So with c = S (D^2 / D_s + D_s), which is 1 with the paper's settings,
# e = exp(W_T), r = sqrt(sum rate_t^2), and -Regret <= F T:
#
#   beta Regret + e - 1 <= c (sqrt(T) + r e),      of use while c r < 1: it is 1/2,
#
# and where rates do not grow, rate_T beta_g sum_t g_t^+(x_t) <= W_T = log e. With rate_t = 1/(2 sqrt(T)) the paper's 2 G D (sqrt(T) + 1)
# and 4 G D sqrt(T) log(2 (1 + 2 T)) follow. With rate_t = 1/(2 sqrt(2 t) (1 + log t)), whose squares sum to 1/4 at most, as those of
# 1 / (sqrt(t) (1 + log t)) sum to 1 + 1, no number of rounds is needed: the regret is at most 2 G D (sqrt(T) + 1/2) again, the violation
# O(sqrt(T) log^2 T). Sarkar & Sinha (arXiv 2510.22579) let a potential change with the rounds, too; here each violation keeps the rate of
# its round. All this bounds the violation of max_n g^n, hence of each g^n.
CONVEX_REGRET = "c * (sqrt(T) + r) / beta"
ANYTIME_VIOLATION = "sqrt(T) * log(T)**2"
CONVEX_VIOLATION = "N / (beta_g * rate) * log((1 + c*sqrt(T) + beta*F*T) * widened)"

# Strongly convex: gradient descent with steps 1 / (V beta alpha_f t) has regret at most sum |d_t|^2 / (2 V beta alpha_f t) for the
# surrogate losses, and |d_t|^2 <= 2 beta^2 G^2 (V^2 + 4 Q_t^2). So with k = beta G^2 sum_t 1/t / (V alpha_f), which is at most 1/8 with
# the paper's V:
#
#   V beta Regret + Q_T^2 <= k (V^2 + 4 Q_T^2),         of use while 4 k < 1.
STRONG_REGRET = "k * V / beta"
STRONG_VIOLATION = "N / beta * sqrt((k * V**2 + V*beta*F*T) * widened)"


def _widened(kept: Floats) -> Floats:
    """1 / kept where that is positive, else infinite."""
    return np.asarray(np.divide(1.0, kept, out=np.full(kept.shape, np.inf), where=kept > 0))


def _quantities(s: Situation, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    assert s.loss_range is not None
    return (
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("F", "F", "range of the loss", s.loss_range),
        Quantity("beta", r"\beta", "scale of losses and constraints", scheduled(settings, "beta")),
        ROUNDS,
    )


def _convex_bounds(s: Situation, settings: Mapping[str, Setting]) -> tuple[Bound, Bound]:
    """Bounds of regret and violation for any beta, beta_g, D_s and rates that do not grow."""

    def weight(horizon: int) -> float:
        return _weight(s, settings, horizon)

    quantities = (
        *_quantities(s, settings),
        Quantity("beta_g", r"\beta_g", "scale of the constraints", scheduled(settings, "beta_g")),
        Quantity("c", "c", "max(beta G_f, beta_g G_g) (D^2 / D_s + D_s)", lambda n, T: weight(T)),
        Quantity("rate", r"\lambda", "rate of the last round", scheduled(settings, "rate")),
        Quantity("r", "r", "sqrt(sum_t lambda_t^2)", lambda n, T: _length_of_rates(settings, n, T)),
        Quantity(
            "widened", r"w", "1 / (1 - c r)", lambda n, T: _widened(1 - weight(T) * _length_of_rates(settings, n, T))
        ),
    )
    return (
        Bound("static regret", "sqrt(T)", CONVEX_REGRET, quantities, s.loss_range),
        Bound("hard violation", "sqrt(T) * log(T)", CONVEX_VIOLATION, quantities, s.violation_range),
    )


def _length_of_rates(settings: Mapping[str, Setting], rounds: Rounds, horizon: int) -> Floats:
    """sqrt(sum_t rate_t^2) after the last round of each stretch."""
    rate = scheduled(settings, "rate")(rounds, horizon)
    return np.asarray(np.sqrt((rate * rate).sums()))


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1 for any beta, beta_g, rate and D_s."""
    bounds = _convex_bounds(s, settings)
    return Guarantee("Sinha & Vaze 2024, Theorem 1", s.horizon, *bounds, remarks=comparator_remarks(s))


def _anytime_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1 with a rate of each round."""
    regret, violation = _convex_bounds(s, settings)
    violation = replace(violation, rate=ANYTIME_VIOLATION)
    return Guarantee(
        "Sinha & Vaze 2024, Theorem 1, with falling rates", s.horizon, regret, violation, remarks=comparator_remarks(s)
    )


def _weight(s: Situation, settings: Mapping[str, Setting], horizon: int) -> float:
    """c: the largest slope of beta f and beta_g g times D^2 / D_s + D_s, D_s the setting and D the diameter."""
    guess, diameter = number(settings, "D", horizon), needed(s, "domain.diameter.l2")
    losses = number(settings, "beta", horizon) * needed(s, "loss.lipschitz.l2")
    constraints = number(settings, "beta_g", horizon) * float(np.max(needed_bounds(s, "lipschitz.l2")))
    return float(max(losses, constraints) * (diameter**2 / guess + guess))


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 2 for any beta and V."""
    slope = largest_slope(s)

    def share(rounds: Rounds, horizon: int) -> Floats:
        scale = slope**2 * number(settings, "beta", horizon) / number(settings, "V", horizon)
        return np.asarray(scale / number(settings, "alpha_f", horizon) * rounds.t.inverse.sums())

    quantities = (
        *_quantities(s, settings),
        Quantity("V", "V", "weight of the loss", scheduled(settings, "V")),
        Quantity("k", "k", "beta G^2 sum_t 1/t / (V alpha_f)", share),
        Quantity("widened", "w", "1 / (1 - 4 k)", lambda n, T: _widened(1 - 4 * share(n, T))),
    )
    bounds = (
        Bound("static regret", "log(T)", STRONG_REGRET, quantities, s.loss_range),
        Bound("hard violation", "sqrt(T * log(T))", STRONG_VIOLATION, quantities, s.violation_range),
    )
    return Guarantee("Sinha & Vaze 2024, Theorem 2", s.horizon, *bounds, remarks=comparator_remarks(s))


def _convex_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    T = s.horizon or 1
    small = _weight(s, settings, T) * number(settings, "rate", T) * np.sqrt(T) < 1
    return result if small else [*result, "max(beta G_f, beta_g G_g) (D^2 / D_s + D_s) rate sqrt(T) must be below 1"]


def _anytime_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, {name: v for name, v in settings.items() if name != "rate"})
    if result:
        return result
    T = s.horizon or ANY_LENGTH
    rounds = Rounds.of(T)
    result += [] if scheduled(settings, "rate")(rounds, T).inverse.nondecreasing else ["rate must not grow"]
    small = _weight(s, settings, T) * _length_of_rates(settings, rounds, T)[-1] < 1
    return (
        result if small else [*result, "max(beta G_f, beta_g G_g) (D^2 / D_s + D_s) sqrt(sum rate^2) must be below 1"]
    )


def _strong_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    T = s.horizon or 1
    scale = number(settings, "beta", T) * largest_slope(s) ** 2 / number(settings, "V", T)
    small = 4 * scale / number(settings, "alpha_f", T) * float(Rounds.of(T).t.inverse.sums()[-1]) < 1
    result += [] if small else ["4 beta G^2 log(T e) / (V alpha_f) must be below 1"]
    true = number(settings, "alpha_f", T) <= needed(s, "loss.strong_convexity.l2") * (1 + 1e-12)
    return result if true else [*result, "alpha_f must not exceed the modulus of strong convexity"]


def _horizon_unknown(s: Situation) -> Objection | None:
    known = Objection(
        "its rates fall with the rounds, for a number of rounds that is unknown", "write `horizon T unknown`"
    )
    return None if s.horizon is None else known


_ANYTIME = (
    Hypothesis("The number of rounds is unknown.", _horizon_unknown),
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    LIPSCHITZ_CONSTRAINTS,
    FEASIBLE_COMPARATOR,
)
_BASIC = (horizon_known("The number of rounds T is known."), *_ANYTIME[1:])

SINHA_VAZE = Algorithm(
    name="sinha-vaze",
    plays="x",
    title="gradient descent on losses and violations weighted by a potential",
    cite="Sinha & Vaze 2024",
    rule=SinhaVaze,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, GRADIENTS_SEEN, PROJECTION),
    theorems=(
        Theorem(
            name="Theorem 2",
            moves=True,
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*_BASIC, STRONGLY_CONVEX),
            settings=_strong_settings,
            free=(Free("beta"), Free("V")),
            positive=("beta", "V", "alpha_f"),
            guarantee=_strong_guarantee,
            rates={"static regret": "log(T)", "hard violation": "sqrt(T * log(T))"},
            checks=_strong_settings_hold,
        ),
        Theorem(
            name="Theorem 1",
            moves=True,
            accepts=("alpha_f", "V"),
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_convex_settings,
            free=(Free("beta"), Free("beta_g"), Free("rate"), Free("D", 0.001, 1000)),
            positive=("D", "beta", "beta_g", "rate"),
            guarantee=_convex_guarantee,
            rates={"static regret": "sqrt(T)", "hard violation": "sqrt(T) * log(T)"},
            checks=_convex_settings_hold,
        ),
        Theorem(
            name="Theorem 1, with falling rates",
            moves=True,
            accepts=("alpha_f", "V"),
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=_ANYTIME,
            settings=_anytime_settings,
            free=(Free("beta"), Free("beta_g"), Free("rate"), Free("D", 0.001, 1000)),
            positive=("D", "beta", "beta_g", "rate"),
            guarantee=_anytime_guarantee,
            rates={"static regret": "sqrt(T)", "hard violation": ANYTIME_VIOLATION},
            checks=_anytime_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={
        "x": "the decision of this round",
        "Q": "the violation so far times the scale of constraints",
        "W": "the violations so far times the scale of constraints and the rates of their rounds",
        "S": "sum of the squared gradients, over exp(2 W)",
    },
)
