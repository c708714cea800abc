"""Guo, Liu, Wei & Ying 2022, "Online convex optimization with hard constraints: towards the best of two worlds and beyond": RECOO.

Read in Sinha & Vaze 2024, appendix A.5.2, which quotes the listing.
"""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    path_weight,
)
from oco.compiler.algorithms.common import (
    EXACT_STEP,
    FEASIBLE_COMPARATOR,
    FUNCTIONS_SEEN,
    SOME_INEQUALITY,
    common_comparator,
    constraints_are_fixed,
)
from oco.compiler.algorithms.penalized import STEP_VIOLATION, step_quantities
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
    Quantity,
    Situation,
    Theorem,
    Violation,
    inequalities_convex,
    inequalities_have,
    needed,
    scheduled,
)
from oco.dsl.statements import Feedback, Measure


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
    alpha = scheduled(settings, "alpha")(Rounds.of(T), T)
    return [] if alpha.nondecreasing else ["alpha must not decrease"]


# Guarantees: what the optimality of the step gives (see `penalized`), with penalties of at least eta_t gamma_t. For the regret
# <grad f_t, x_t - x_{t+1}> <= D^2 / (4 alpha_t) + alpha_t |x_t - x_{t+1}|^2, and the right side telescopes.
REGRET = "D**2/4 * inverse + R**2 * last + 2*R*moved"


def _quantities(s: Situation, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    alpha, gamma, eta = (scheduled(settings, n) for n in ("alpha", "gamma", "eta"))
    diameter = needed(s, "domain.diameter.l2")

    def inverse(rounds: Rounds, horizon: int) -> Floats:
        return alpha(rounds, horizon).inverse.sums()

    def moved(rounds: Rounds, horizon: int) -> Floats:
        return path_weight(alpha(rounds, horizon), diameter, path_length(s, horizon))

    def weight(rounds: Rounds, horizon: int) -> Schedule:
        result: Schedule = eta(rounds, horizon) * gamma(rounds, horizon)
        return result

    return (
        Quantity("R", "R", "diameter of the domain", diameter),
        Quantity("D", "D", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        Quantity("last", r"\alpha_T", "last weight of the move", alpha),
        Quantity("inverse", r"\sum_t 1/\alpha_t", "sum of the inverse weights", inverse),
        Quantity("moved", r"\sum_{t>1} \alpha_{t-1} \|x^*_t - x^*_{t-1}\|", "weighted path of the comparators", moved),
        *step_quantities(s, alpha, weight),
    )


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    quantities = _quantities(s, settings)
    dynamic = s.canonical.measure is Measure.DYNAMIC
    regret = Bound(
        f"{s.canonical.measure} regret", "T**(1/2 + V_x)" if dynamic else "sqrt(T)", REGRET, quantities, s.loss_range
    )
    varying = "T**(3/4)" if common_comparator(s) else "T**(3/4) + T**((1 + V_x)/2)"
    rate = "1" if constraints_are_fixed(s) else varying
    violation = Bound("hard violation", rate, STEP_VIOLATION, quantities, s.violation_range)
    return Guarantee("Guo, Liu, Wei & Ying 2022", s.horizon, regret, violation, remarks=comparator_remarks(s))


RECOO = Algorithm(
    name="recoo",
    plays="x",
    title="rectified online optimization",
    cite="Guo, Liu, Wei & Ying 2022",
    rule=Recoo,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(
        SOME_INEQUALITY,
        INEQUALITIES_ONLY,
        FUNCTIONS_SEEN,
        GRADIENTS_SEEN,
        EXACT_STEP,
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
                inequalities_have("bound", "The constraints are bounded.", "the size"),
                FEASIBLE_COMPARATOR,
            ),
            settings=_settings,
            free=(Free("alpha"), Free("gamma"), Free("eta")),
            positive=("alpha", "gamma", "eta"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)", "hard violation": "T**(3/4)"},
            checks=_checks,
        ),
    ),
    cost="one projection onto the domain under the round's constraints",
    cost_rank=2,
    symbols={"x": "the decision of this round", "Q": "the queue of each constraint, before its lower bound eta"},
)
