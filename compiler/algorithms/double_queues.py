"""Double queues with an adaptive step: the penalties of COLDQ (Wang, Yan & Liu 2025) beside the potential of Sinha & Vaze 2024.

    Z_t = Z_{t-1} + h_t,    d_t = grad f_t(x_t) + w sum_n e^{rho Z_t^n} 1[h_t^n > 0] grad g_t^n(x_t),    S_t = S_{t-1} + |d_t|^2,
    x_{t+1} = argmin over X of <d_t, x - x_t> + sqrt(S_t / 2) / D_s |x - x_t|^2 + sum_n Q_t^n [g_t^n(x)]_+,
    Q_t = max((1 - eta) Q_{t-1} + h_t, gamma),    S_0 = (10^-6 G)^2,    h_t^n = g_t^n(x_t) where that is above e, else 0.

e = 10^-9 L D_s: a step ends on the edge of a constraint that stands still, where rounding decides of its sign and so of the slope.

Theorem. Let u in X satisfy every constraint of every round, D the diameter of X, G_n >= |grad g_t^n|, F the range of the loss and
c = (D^2 / D_s + D_s) / sqrt(2). If kappa = c rho max_n G_n sqrt(T + 10^-12) < 1, then with M = c (G + w sum_n G_n) sqrt(T + 10^-12)

    sum_t f_t(x_t) - f_t(u) <= M,
    sum_t sum_n [g_t^n(x_t)]_+ <= N / rho log(1 + rho (M + F T) / (N w (1 - kappa))) + N e T,
    sum_t sum_n [g_t^n(x_t)]_+ <= (M + F T) / gamma + sum_n sup |g^n| + sum_{t>1} max_x |g_t(x) - g_{t-1}(x)|_1.

Proof. With a_t = sqrt(S_t / 2) / D_s the step's objective is 2 a_t-strongly convex and u costs no penalty, so

    <d_t, x_{t+1} - u> + sum_n Q_t^n [g_t^n(x_{t+1})]_+ <= a_t (|u - x_t|^2 - |u - x_{t+1}|^2 - |x_t - x_{t+1}|^2),

and <d_t, x_t - x_{t+1}> <= |d_t|^2 / (4 a_t) + a_t |x_t - x_{t+1}|^2. Summed, as a_t does not decrease and
sum |d_t|^2 / sqrt(S_t) <= 2 sqrt(S_T),

    sum_t <d_t, x_t - u> + sum_{t,n} Q_t^n [g_t^n(x_{t+1})]_+ <= D^2 a_T + D_s sqrt(S_T / 2) = c sqrt(S_T).

By convexity, with h_t = Z_t - Z_{t-1}, <d_t, x_t - u> >= f_t(x_t) - f_t(u) + w sum_n e^{rho Z_t^n} h_t^n, of which the second part sums
to at least w / rho sum_n (e_n - 1), e_n = e^{rho Z_T^n}. And |d_t| <= G + w sum_n G_n e_n. So, R the regret,

    R + w / rho sum_n (e_n - 1) + gamma sum_{t,n} [g_t^n(x_{t+1})]_+ <= M + kappa w / rho sum_n (e_n - 1).

The first bound follows from kappa < 1; the second with -R <= F T, [g_t]_+ <= h_t + e and the concavity of the logarithm; the third
with the change of g_t to g_{t+1} at x_{t+1}. So the violation is the smaller of O(sqrt(T) log T) and of O(T^{V_g}), V_g unknown, without
Slater's condition.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import (
    EXACT_STEP,
    FEASIBLE_COMPARATOR,
    FUNCTIONS_SEEN,
    ROUNDS,
    SOME_INEQUALITY,
    constraints_are_fixed,
    unknown,
)
from oco.compiler.algorithms.penalized import constraint_variation
from oco.compiler.algorithms.wang_wan_zhang2025 import LIPSCHITZ_CONSTRAINTS
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.proximal.penalty import penalized_step
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
    inequalities_have,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.statements import Feedback, Measure

FIRST = 1e-6
"""sqrt(S_0), as a share of G: a round without a gradient leaves the decision where it is."""
EDGE = 1e-9
"""Violations that count at least, as a share of the largest slope times the diameter."""


class DoubleQueues:
    """d_t and S_t are kept in units of e^{rho max_n Z_t^n}, which is never formed."""

    def init(self, p: Problem, start: Point) -> State:
        t, first = p.tracer, FIRST * p.setting("G")
        Q = t.full(1.0, (p.constraint_count,)) * p.setting("gamma")
        return {"x": start, "Z": t.zeros((p.constraint_count,)), "Q": Q, "S": t.lift(1.0) * (first * first)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, rate = p.tracer, point(state, "x"), p.setting("rate")
        g = t.name("g", p.constraints(x))
        broken = t.name("h", t.where(g > EDGE * p.setting("L") * p.setting("D"), g, 0.0))
        Z = t.name("Z", array(state, "Z") + broken)
        Q = t.name("Q", t.maximum((1.0 - p.setting("eta")) * array(state, "Q") + broken, p.setting("gamma")))
        before, most = t.max(array(state, "Z")), t.name("most", t.max(Z))
        unit = t.name("unit", t.exp(-rate * most))
        p.note("the gradient of f + w sum_n e^(rate Z_n) [g_n]_+, in units of e^(rate max Z)")
        weights = p.setting("weight") * t.exp(rate * (Z - most)) * t.to_float(broken > 0.0)
        d = (unit * p.gradient(x) + p.constraint_combination(x, weights)).named(t, "d")
        S = t.name("S", array(state, "S") * t.exp(2.0 * rate * (before - most)) + d.squared_norm())
        alpha = t.name("alpha", t.sqrt(0.5 * t.maximum(S, SMALLEST)) / p.setting("D"))
        p.note("argmin <d, x - x_t> + sqrt(S / 2) / D |x - x_t|^2 + sum_n Q_n [g_n(x)]_+, in the same units")
        return {"x": penalized_step(p, x, d, alpha, unit * Q, g), "Z": Z, "Q": Q, "S": S}


def _steepest(s: Situation) -> float:
    """Largest slope of a constraint; 1 where none depends on the decision."""
    return float(needed_bounds(s, "lipschitz.l2").max()) or 1.0


def _settings(s: Situation) -> Mapping[str, Default]:
    missing = unknown(s, "lipschitz.l2")
    return {
        "G": Default(missing or "loss.lipschitz.l2", "bound of the gradient of the loss"),
        "L": Default(missing or _steepest(s), "bound of the gradients of the constraints"),
        "D": Default("domain.diameter.l2", "diameter of the domain"),
        "weight": Default("G / L", "a unit of the constraints' slopes weighs as one of the loss's"),
        "rate": Default("1 / (2 * sqrt(2) * D * L * sqrt(T + 1))", "kappa is 1/2"),
        "epsilon": Default(0.5, "as of COLDQ, section 6"),
        "gamma": Default("epsilon * weight * T", "epsilon w T: the second violation bound is one number"),
        "eta": Default("1 / T", "1/T, as of COLDQ, Corollary 1"),
    }


def _reach(s: Situation, settings: Mapping[str, Setting], horizon: int) -> float:
    guess, diameter = number(settings, "D", horizon), needed(s, "domain.diameter.l2")
    return float((diameter**2 / guess + guess) / np.sqrt(2))


def _kappa(s: Situation, settings: Mapping[str, Setting], rounds: Floats, horizon: int) -> Floats:
    slope = float(needed_bounds(s, "lipschitz.l2").max())
    return np.asarray(_reach(s, settings, horizon) * number(settings, "rate", horizon) * slope * np.sqrt(rounds))


# M in the formulas.
MOST = "c * (G + weight * L) * sqrt(T + 1e-12)"
BY_POTENTIAL = f"N / rate * log(1 + rate * ({MOST} + F*T) * widened / (N * weight)) + N*edge*T"
BY_PENALTY = f"({MOST} + F*T) / gamma + sum_g + sqrt(N) * changed"


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    assert s.loss_range is not None

    def widened(rounds: Rounds, horizon: int) -> Floats:
        left = 1 - _kappa(s, settings, rounds.last + 1e-12, horizon)
        return np.asarray(np.divide(1.0, left, out=np.full(left.shape, np.inf), where=left > 0))

    def edge(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(EDGE * number(settings, "L", horizon) * number(settings, "D", horizon))

    quantities = (
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("F", "F", "range of the loss", s.loss_range),
        Quantity("G", "G", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        Quantity("L", r"\sum_n G_n", "slopes of the constraints", float(needed_bounds(s, "lipschitz.l2").sum())),
        Quantity("c", "c", "(D^2 / D_s + D_s) / sqrt(2)", lambda n, T: np.asarray(_reach(s, settings, T))),
        Quantity("weight", "w", "weight of the constraints", scheduled(settings, "weight")),
        Quantity("rate", r"\rho", "rate of the potential", scheduled(settings, "rate")),
        Quantity("gamma", r"\gamma", "least penalty", scheduled(settings, "gamma")),
        Quantity("edge", "e", "violations that count at least", edge),
        Quantity("widened", r"\omega", "1 / (1 - kappa)", widened),
        Quantity("sum_g", r"\sum_n \sup |g^n|", "sizes of the constraints", float(needed_bounds(s, "bound").sum())),
        Quantity(
            "changed",
            r"\sum_{t>1} \max_x \|g_t(x) - g_{t-1}(x)\|",
            "variation of the constraints",
            lambda n, T: constraint_variation(s, n, T),
        ),
        ROUNDS,
    )
    rate = "1" if constraints_are_fixed(s) else "T**min(V_g, 1/2) * log(T)"
    bounds = (
        Bound("static regret", "sqrt(T)", MOST, quantities, s.loss_range),
        Bound("hard violation", rate, f"min({BY_POTENTIAL}, {BY_PENALTY})", quantities, s.violation_range),
    )
    return Guarantee("double queues", s.horizon, *bounds, remarks=comparator_remarks(s))


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1
    result = constant_settings(s, settings)
    result += [] if number(settings, "eta", T) <= 1 else ["eta must lie between 0 and 1"]
    small = _kappa(s, settings, np.asarray(T + 1e-12), T) < 1
    return result if small else [*result, "kappa = c rate max_n G_n sqrt(T) must be below 1"]


DOUBLE_QUEUES = Algorithm(
    name="double-queues",
    plays="x",
    multipliers=("Q",),
    title="penalties with a least length, beside a potential of the violation so far",
    cite="Wang, Yan & Liu 2025; Sinha & Vaze 2024; derived in the module",
    rule=DoubleQueues,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, FUNCTIONS_SEEN, GRADIENTS_SEEN, EXACT_STEP),
    theorems=(
        Theorem(
            name="convex losses",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(
                horizon_known("The number of rounds T is known."),
                BOUNDED_DOMAIN,
                CONVEX_LOSS,
                BOUNDED_GRADIENT,
                inequalities_convex("Each g_t^n is convex in the decision."),
                inequalities_have("bound", "The constraints are bounded.", "the size"),
                LIPSCHITZ_CONSTRAINTS,
                FEASIBLE_COMPARATOR,
            ),
            settings=_settings,
            free=(Free("weight"), Free("rate"), Free("D", 0.001, 1000), Free("epsilon")),
            positive=("D", "weight", "rate", "gamma", "eta"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "hard violation": "T**min(V_g, 1/2) * log(T)"},
            checks=_checks,
        ),
    ),
    cost="one projection onto the domain under the round's constraints",
    cost_rank=2,
    symbols={
        "x": "the decision of this round",
        "Z": "the violation of each constraint so far",
        "Q": "the penalty of each constraint",
        "S": "sum of the squared gradients, over exp(2 rate max Z)",
    },
)
