"""Guo, Liu, Wei & Ying 2022, "Online convex optimization with hard constraints: towards the best of two worlds and beyond": RECOO.

Read in Sinha & Vaze 2024, appendix A.5.2, which quotes the listing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm, State, array, point
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    path_length,
    path_weight,
)
from oco.compiler.algorithms.common import FUNCTIONS_SEEN, SOME_INEQUALITY, constraints_are_fixed, sizes, slopes
from oco.compiler.algorithms.wang_yan_liu2025 import (
    FEASIBLE_COMPARATOR,
    INEQUALITIES_ONLY,
    comparator_conditions,
    constraint_variation,
)
from oco.compiler.penalty import penalized_step
from oco.compiler.points import Point
from oco.compiler.problem import Problem
from oco.compiler.settings import Default, Setting, schedule
from oco.compiler.structure import solver_objection
from oco.compiler.theorems import (
    Bound,
    Floats,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    inequalities_convex,
    inequalities_know,
    needed,
    scheduled,
)
from oco.dsl.model import Measure


class Recoo:
    """Q holds the queue before its lower bound eta_t is applied, so that the bound of round t is asked for in round t."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "Q": p.tracer.zeros((p.constraint_count,))}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x = p.tracer, point(state, "x")
        alpha, gamma = p.setting("alpha"), p.setting("gamma")
        p.note("Q(t) = max(Q(t-1) + gamma_{t-1} [g_{t-1}(x_t)]_+, eta_t), Q(1) = eta_1")
        Q = t.name("Q", t.maximum(array(state, "Q"), p.setting("eta")))
        p.note("argmin <grad f, x - x_t> + alpha |x - x_t|^2 + sum_n Q_n gamma [g_n(x)]_+")
        following = penalized_step(p, x, p.gradient(x), alpha, gamma * Q, p.constraints(x))
        p.note("the violation of this round's constraints by the next decision")
        return {"x": following, "Q": Q + gamma * t.maximum(p.constraints(following), 0.0)}


def _settings(s: Situation) -> Mapping[str, Default]:
    where = "quoted in Sinha & Vaze 2024, A.5.2"
    return {
        "alpha": Default("sqrt(t)", f"sqrt(t), {where}"),
        "gamma": Default("t**(1/2 + 1/100)", f"t^(1/2 + eps) with eps = 0.01, {where}"),
        "eta": Default("sqrt(t)", f"sqrt(t), {where}"),
    }


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1000
    alpha, gamma, eta = (schedule(settings[n].formula, T, T) for n in ("alpha", "gamma", "eta"))
    found = [] if (alpha > 0).all() and (np.diff(alpha) >= 0).all() else ["alpha must be positive and not decrease"]
    return found + ([] if (gamma > 0).all() and (eta > 0).all() else ["gamma and eta must be positive"])


# Guarantees. The step is optimal and 2 alpha-strongly convex, so for every z with g_t(z) <= 0
#
#   <grad f_t(x_t), x_{t+1} - z> + alpha_t |x_{t+1} - x_t|^2 + Q(t) gamma_t g_t^+(x_{t+1})
#       <= alpha_t (|z - x_t|^2 - |z - x_{t+1}|^2).                                                                           (*)
#
# Regret: <grad f, x_t - x_{t+1}> <= D^2 / (4 alpha_t) + alpha_t |x_t - x_{t+1}|^2, and the right side telescopes to
# R^2 alpha_T + 2 R sum_{t>1} alpha_{t-1} |z_t - z_{t-1}|.
# Violation: (*) divided by Q(t) gamma_t >= eta_t gamma_t bounds sum_t g_t^+(x_{t+1}); (*) divided by alpha_t bounds the squared moves
# sum_t |x_{t+1} - x_t|^2, and so by Cauchy and Schwarz the moves. Between g_t(x_{t+1}) and g_{t+1}(x_{t+1}) lies the variation of the
# constraints, between g_t(x_{t+1}) and g_t(x_t) their slope times the move: the smaller one counts.

REGRET = "D**2/4 * inverse + R**2 * last + 2*R*moved"
VIOLATION = "sum_g + D*R * penalties + weighted + min(sqrt(N) * changed, L * moves)"


def _quantities(s: Situation, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    alpha, gamma, eta = (scheduled(settings, n) for n in ("alpha", "gamma", "eta"))
    slope, diameter = needed(s, "loss.lipschitz.l2"), needed(s, "domain.diameter.l2")
    bounds = sizes(s)

    def path(rounds: int) -> float:
        """Of a sequence that satisfies each round's constraints: one common point has none."""
        known = s.number("path_length")
        worst = diameter * max(rounds - 1, 0)
        return 0.0 if s.holds("feasible.common") else worst if known is None else min(known, worst)

    def inverse(rounds: int, horizon: int) -> Floats:
        return np.cumsum(1 / alpha(rounds, horizon))

    def moved(rounds: int, horizon: int) -> Floats:
        return path_weight(alpha(rounds, horizon), diameter, path_length(s, horizon))

    def penalties(rounds: int, horizon: int) -> Floats:
        return np.cumsum(1 / (eta(rounds, horizon) * gamma(rounds, horizon)))

    def weighted(rounds: int, horizon: int) -> Floats:
        """sum_t b_t (|z_t - x_t|^2 - |z_t - x_{t+1}|^2) with b = alpha / (eta gamma)."""
        b = alpha(rounds, horizon) / (eta(rounds, horizon) * gamma(rounds, horizon))
        growth = np.cumsum(np.maximum(np.diff(b, prepend=0.0), 0.0))
        walked = np.minimum(diameter * (np.cumsum(b) - b), path(horizon) * np.maximum.accumulate(b))
        return np.asarray(diameter**2 * growth + 2 * diameter * walked)

    def moves(rounds: int, horizon: int) -> Floats:
        squares = slope * diameter * inverse(rounds, horizon) + diameter**2 + 2 * diameter * path(horizon)
        t = np.arange(1.0, rounds + 1)
        return np.minimum(np.sqrt(t * squares), diameter * t)

    changed = ("changed", r"\sum_{t>1} \max_x \|g_t(x) - g_{t-1}(x)\|", "variation of the constraints")
    return (
        Quantity("R", "R", "diameter of the domain", diameter),
        Quantity("D", "D", "bound of the gradient of the loss", slope),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("L", r"\sum_n L_n", "slopes of the constraints", slopes(s).sum()),
        Quantity("sum_g", r"\sum_n \sup g^n", "sizes of the constraints", float(bounds.sum())),
        Quantity("last", r"\alpha_T", "last weight of the move", alpha),
        Quantity("inverse", r"\sum_t 1/\alpha_t", "sum of the inverse weights", inverse),
        Quantity("moved", r"\sum_{t>1} \alpha_{t-1} \|x^*_t - x^*_{t-1}\|", "weighted path of the comparators", moved),
        Quantity("penalties", r"\sum_t 1/(\eta_t \gamma_t)", "sum of the inverse penalties", penalties),
        Quantity("weighted", r"\sum_t b_t (\|z_t - x_t\|^2 - \|z_t - x_{t+1}\|^2)", "telescoped distances", weighted),
        Quantity("moves", r"\sum_t \|x_{t+1} - x_t\|", "moves of the decision", moves),
        Quantity(*changed, lambda n, T: constraint_variation(s, bounds, n, T)),
    )


def _exact_step(s: Situation) -> Objection | None:
    return solver_objection(s.canonical)


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    quantities = _quantities(s, settings)
    dynamic = s.canonical.measure is Measure.DYNAMIC
    regret = Bound(
        f"{s.canonical.measure} regret", "T**(1/2 + V_x)" if dynamic else "sqrt(T)", REGRET, quantities, s.loss_range
    )
    varying = "T**(3/4)" if s.holds("feasible.common") else "T**(3/4) + T**((1 + V_x)/2)"
    rate = "1" if constraints_are_fixed(s) else varying
    violation = Bound("hard violation", rate, VIOLATION, quantities, float(sizes(s).sum()))
    return Guarantee("Guo, Liu, Wei & Ying 2022", s.horizon, regret, violation, conditions=comparator_conditions(s))


RECOO = Algorithm(
    name="recoo",
    title="rectified online optimization",
    cite="Guo, Liu, Wei & Ying 2022",
    rule=Recoo,
    baseline=True,
    requirements=(
        SOME_INEQUALITY,
        INEQUALITIES_ONLY,
        FUNCTIONS_SEEN,
        GRADIENTS_SEEN,
        Hypothesis("The step can be solved exactly.", _exact_step),
    ),
    theorems=(
        Theorem(
            name="regret and hard violation",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=(
                BOUNDED_DOMAIN,
                CONVEX_LOSS,
                BOUNDED_GRADIENT,
                inequalities_convex("Each g_t^n is convex in the decision."),
                inequalities_know("bound", "The constraints are bounded.", "the size"),
                inequalities_know("lipschitz.l2", "The constraints are Lipschitz.", "the gradient"),
                FEASIBLE_COMPARATOR,
            ),
            settings=_settings,
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)", "hard violation": "T**(3/4)"},
            checks=_checks,
        ),
    ),
    cost="one projection onto the domain under the round's constraints",
    cost_rank=2,
    symbols={"x": "the decision of this round", "Q": "the queue of each constraint, before its lower bound eta"},
)
