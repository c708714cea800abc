"""Mahdavi, Jin & Yang 2012, "Trading regret for efficiency: online convex optimization with long term constraints".

The paper has fixed constraints; its proof uses only that the comparator satisfies those of every round. `weight` c is ours: the method on
the constraints c g_k, which say the same; the paper has c = 1, so that its step fits one unit of the constraints only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR, PROJECTION, ROUNDS, SOME_INEQUALITY, sizes, unknown
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.algorithms.wei2020 import MEAN_CONSTRAINTS
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
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
    inequalities_have,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.statements import Measure


class Mahdavi:
    """Gradient descent in x and ascent in lambda on f_t(x) + sum_k lambda_k g_k(x) - delta eta |lambda|^2 / 2.

    With weighted constraints c g_k lambda_k is c times the paper's multiplier, and its step c^2 times as large.
    """

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "lam": p.tracer.zeros((p.constraint_count,))}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, lam, eta = point(state, "x"), array(state, "lam"), p.setting("eta")
        following = p.domain.project(x - eta * (p.gradient(x) + p.constraint_combination(x, lam)))
        p.note("lambda_k = [lambda_k + eta (c^2 g_k(x_t) - delta eta lambda_k)]_+")
        ascent = p.setting("weight") ** 2 * p.constraints(x) - p.setting("delta") * eta * lam
        return {"x": following, "lam": p.tracer.maximum(lam + eta * ascent, 0.0)}


# The two sides of the descent are bounded by |grad_x|^2 <= (m+1) G^2 (1 + |lambda|^2) and |grad_lambda|^2 <= 2 (m D^2 + delta^2 eta^2
# |lambda|^2). Where delta >= (m+1) G^2 + 2 delta^2 eta^2 the terms in |lambda_t|^2 cancel, and for every lambda >= 0
#
#   Regret + <lambda, sum_t g_t(x_t)> - (delta eta T + 1/eta) |lambda|^2 / 2 <= R^2 / (2 eta) + eta T ((m+1) G^2 + 2 m D^2) / 2.
#
# lambda = 0 gives the regret; the best lambda, with Regret >= -F T, the l2 norm of the violations. Of the constraints c g_k the violation
# is c times as large, G the larger of the loss's slope and c times the constraints', and c D takes the place of D.
REGRET = "R**2 / (2*eta) + eta * T * (K + 2*E) / 2"
VIOLATION = f"sqrt(m) / c * sqrt(2 * (delta*eta*T + 1/eta) * (F*T + {REGRET}))"


def _squares(s: Situation, weight: float = 1.0) -> tuple[float, float]:
    """(m + 1) G^2 and m D^2, with G the slope of losses and weighted constraints and D the size of the weighted constraints."""
    slope = max(needed(s, "loss.lipschitz.l2"), weight * float(needed_bounds(s, "lipschitz.l2").max(initial=0.0)))
    return (s.constraints + 1) * slope**2, s.constraints * (weight * float(sizes(s).max(initial=0.0))) ** 2


def _settings(s: Situation) -> Mapping[str, Default]:
    missing = unknown(s, "lipschitz.l2", "bound")
    step = least = missing
    if not missing:
        slope, m = float(needed_bounds(s, "lipschitz.l2").max(initial=0.0)), s.constraints
        K = f"{m + 1} * max({needed(s, 'loss.lipschitz.l2')!r}, weight * {slope!r})**2"
        step = f"domain.diameter.l2 / sqrt(({K} + {2 * _squares(s)[1]!r} * weight**2) * T)"
        least = f"(1 - sqrt(max(1 - 8 * {K} * eta**2, 0))) / (4 * eta**2)"
    return {
        "weight": Default(1, "1: what the constraints are multiplied by"),
        "eta": Default(step, "R / sqrt(((m+1) G^2 + 2 m D^2) T)"),
        "delta": Default(least, "the least with delta >= (m+1) G^2 + 2 delta^2 eta^2"),
    }


def _regularized(delta: float, eta: float, K: float) -> bool:
    return delta * (1 + 1e-9) >= K + 2 * delta**2 * eta**2


def _long_enough(s: Situation) -> Objection | None:
    """eta of the theorem must leave some delta."""
    if unknown(s, "lipschitz.l2", "bound") or s.number("domain.diameter.l2") is None:
        return None
    K, E = _squares(s)
    diameter = needed(s, "domain.diameter.l2")
    needs = math.ceil(8 * K * diameter**2 / (K + 2 * E)) if K > 0 else 1
    if s.horizon is None or s.horizon >= needs:
        return None
    return Objection(f"its settings exist for T >= {needs} only", f"write `horizon T = {needs}`")


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    weight = number(settings, "weight", s.horizon or 1)
    K, E = _squares(s, weight)
    assert s.loss_range is not None

    def regularization(rounds: Rounds, horizon: int) -> float:
        eta, delta = number(settings, "eta", horizon), number(settings, "delta", horizon)
        return delta if _regularized(delta, eta, K) else math.inf

    quantities = (
        Quantity("R", "R", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("m", "m", "number of constraints", float(s.constraints)),
        Quantity("c", "c", "weight of the constraints", weight),
        Quantity("F", "F", "range of the loss", s.loss_range),
        Quantity("K", "(m+1) G^2", "slopes of losses and constraints", K),
        Quantity("E", "m D^2", "sizes of the constraints", E),
        Quantity("eta", r"\eta", "step", scheduled(settings, "eta")),
        Quantity("delta", r"\delta", "regularization of the multipliers", regularization),
        ROUNDS,
    )
    regret = Bound("static regret", "sqrt(T)", REGRET, quantities, s.loss_range)
    violation = Bound("soft violation", "T**(3/4)", VIOLATION, quantities, s.violation_range)
    remarks = comparator_remarks(s)
    return Guarantee("Mahdavi, Jin & Yang 2012", s.horizon, regret, violation, remarks=remarks)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result, T = constant_settings(s, settings), s.horizon or 1
    delta, eta, weight = (number(settings, n, T) for n in ("delta", "eta", "weight"))
    if not weight > 0:
        return [*result, "weight must be positive"]
    holds = _regularized(delta, eta, _squares(s, weight)[0])
    return result if holds else [*result, "delta must be at least (m+1) G^2 + 2 delta^2 eta^2"]


LIPSCHITZ = inequalities_have("lipschitz.l2", "Losses and constraints are G-Lipschitz.", "the gradient")
BOUNDED = inequalities_have("bound", "The constraints are bounded by D.", "the size")

MAHDAVI = Algorithm(
    name="mahdavi",
    plays="x",
    multipliers=("lam",),
    title="primal-dual gradient descent with regularized multipliers",
    cite="Mahdavi, Jin & Yang 2012",
    rule=Mahdavi,
    baseline=True,
    requirements=(SOME_INEQUALITY, MEAN_INEQUALITIES_ONLY, GRADIENTS_SEEN, PROJECTION),
    theorems=(
        Theorem(
            name="regret and soft violation",
            moves=True,
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            hypotheses=(
                MEAN_CONSTRAINTS,
                CONVEX_LOSS,
                inequalities_convex("Each g_k is convex in the decision."),
                horizon_known("The number of rounds T is known."),
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                BOUNDED,
                LIPSCHITZ,
                FEASIBLE_COMPARATOR,
                Hypothesis(
                    "T is large enough that some delta >= (m+1) G^2 + 2 delta^2 eta^2.", _long_enough, last=True
                ),
            ),
            settings=_settings,
            free=(Free("eta"), Free("weight")),
            positive=("weight", "eta", "delta"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "soft violation": "T**(3/4)"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round", "lam": "the multiplier of each constraint"},
)
