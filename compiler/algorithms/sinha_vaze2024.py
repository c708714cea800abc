"""Sinha & Vaze 2024, "Optimal algorithms for online convex optimization with adversarial constraints".

Hard violation of constraints that an adversary changes; several constraints are one: g_t = max_n g_t^n.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
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
    """A gradient step on V beta f_t + Phi'(Q_t) beta g_t^+, Q_t = Q_{t-1} + beta g_t^+(x_t), with a step size that adapts.

    Convex: Phi(q) = exp(rate q) - 1, V = 1, AdaGrad's step. Strongly convex: Phi(q) = q^2, step 1 / (V beta alpha_f t).
    """

    def init(self, p: Problem, start: Point) -> State:
        begin: State = {"x": start, "Q": p.tracer.lift(0.0)}
        return begin if _strong(p) else {**begin, "S": p.tracer.lift(0.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, beta = p.tracer, point(state, "x"), p.setting("beta")
        scale = beta if _strong(p) else p.setting("beta_g")
        g, slope = p.worst_constraint(x)
        Q = t.name("Q", array(state, "Q") + scale * t.maximum(g, 0.0))
        slope = (scale * t.to_float(g > 0.0)) * slope
        if _strong(p):
            V = p.setting("V")
            p.note(
                "the gradient of V beta f + Phi'(Q) beta g^+ with Phi'(q) = 2 q, over its modulus of strong convexity"
            )
            d = (V * beta * p.gradient(x) + (2.0 * Q) * slope).named(t, "d")
            eta = t.name("eta", 1.0 / (V * beta * p.setting("alpha_f") * p.t))
            return {"x": p.domain.project(x - eta * d), "Q": Q}
        rate, before = p.setting("rate"), array(state, "Q")
        p.note("the gradient of beta f + Phi'(Q) beta g^+ with Phi'(q) = rate exp(rate q), in units of exp(rate Q)")
        d = (beta * t.exp(-rate * Q) * p.gradient(x) + rate * slope).named(t, "d")
        p.note("the sum of |d|^2 in the same units, and AdaGrad's step, which has no units")
        S = t.name("S", array(state, "S") * t.exp(2.0 * rate * (before - Q)) + d.squared_norm())
        eta = t.name("eta", p.setting("D") / t.sqrt(2.0 * t.maximum(S, SMALLEST)))
        return {"x": p.domain.project(x - eta * d), "Q": Q, "S": S}


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


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    return {
        "G": Default(unknown(s, "lipschitz.l2") or largest_slope(s), SLOPE),
        "alpha_f": Default("loss.strong_convexity.l2", "modulus of strong convexity"),
        "beta": Default(1, "1"),
        "V": Default("8 * G**2 * (log(T) + 1) / alpha_f", "8 G^2 log(T e) / alpha_f"),
    }


# Convex: the potential grows by at most Phi'(Q_t) beta g_t^+(x_t), and AdaGrad's regret for the surrogate losses is at most
# (D^2 / D_s + D_s) sqrt(sum |d_t|^2 / 2) where it uses D_s for the diameter, |d_t| <= S (1 + Phi'(Q_t)) with S the larger of beta G_f and
# beta_g G_g, and (1 + a)^2 <= 2 + 2 a^2. Constraints may have a scale beta_g of their own, since beta_g g / beta is a constraint as good as
# g. So with c = S (D^2 / D_s + D_s), which is 1 with the paper's settings, e = exp(rate Q_T), and -Regret <= F T:
#
#   beta Regret + e - 1 <= c sqrt(T) (1 + rate e),      of use while c rate sqrt(T) < 1: it is 1/2.
#
# The paper's 2 G D (sqrt(T) + 1) and 4 G D sqrt(T) log(2 (1 + 2 T)) follow. It bounds the violation of max_n g^n, hence of each g^n.
CONVEX_REGRET = "c * sqrt(T) * (1 + rate) / beta"
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


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1 for any beta, beta_g, rate and D_s."""

    def weight(horizon: int) -> float:
        return _weight(s, settings, horizon)

    def kept(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(1 - weight(horizon) * number(settings, "rate", horizon) * np.sqrt(rounds.last))

    quantities = (
        *_quantities(s, settings),
        Quantity("beta_g", r"\beta_g", "scale of the constraints", scheduled(settings, "beta_g")),
        Quantity("c", "c", "max(beta G_f, beta_g G_g) (D^2 / D_s + D_s)", lambda n, T: weight(T)),
        Quantity("rate", r"\lambda", "rate of the potential", scheduled(settings, "rate")),
        Quantity("widened", r"w", "1 / (1 - c lambda sqrt(T))", lambda n, T: _widened(kept(n, T))),
    )
    bounds = (
        Bound("static regret", "sqrt(T)", CONVEX_REGRET, quantities, s.loss_range),
        Bound("hard violation", "sqrt(T) * log(T)", CONVEX_VIOLATION, quantities, s.violation_range),
    )
    return Guarantee("Sinha & Vaze 2024, Theorem 1", s.horizon, *bounds, remarks=comparator_remarks(s))


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


def _strong_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    T = s.horizon or 1
    scale = number(settings, "beta", T) * largest_slope(s) ** 2 / number(settings, "V", T)
    small = 4 * scale / number(settings, "alpha_f", T) * float(Rounds.of(T).t.inverse.sums()[-1]) < 1
    result += [] if small else ["4 beta G^2 log(T e) / (V alpha_f) must be below 1"]
    true = number(settings, "alpha_f", T) <= needed(s, "loss.strong_convexity.l2") * (1 + 1e-12)
    return result if true else [*result, "alpha_f must not exceed the modulus of strong convexity"]


_BASIC = (
    horizon_known("The number of rounds T is known."),
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    LIPSCHITZ_CONSTRAINTS,
    FEASIBLE_COMPARATOR,
)

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
    ),
    cost="one projection",
    symbols={
        "x": "the decision of this round",
        "Q": "the violation so far times the scale of constraints",
        "S": "sum of the squared gradients, over exp(2 rate Q)",
    },
)
