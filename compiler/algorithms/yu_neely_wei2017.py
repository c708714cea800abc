"""Yu, Neely & Wei 2017, "Online convex optimization with stochastic constraints": drift plus penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import PROJECTION, SLATER, SOME_INEQUALITY
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY
from oco.compiler.algorithms.wei2020 import IID_CONSTRAINTS, MEAN_CONSTRAINTS, euclidean_guarantee
from oco.compiler.ir.symbolic_form import exact, product
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.settings import Default, Setting
from oco.compiler.theory.theorems import (
    Free,
    Guarantee,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    horizon_known,
    inequalities_convex,
    inequalities_have,
)
from oco.dsl.statements import Measure


class DriftPlusPenalty:
    """The rule of the paper; `tighten` is added to every constraint (Hutchinson & Alizadeh 2025 compare with it so)."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "Q": p.tracer.zeros((p.constraint_count,))}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, Q = point(state, "x"), array(state, "Q")
        p.note("argmin <V grad f + sum_k Q_k grad g_k, x - x_t> + alpha |x - x_t|^2")
        direction = p.setting("V") * p.gradient(x) + p.constraint_combination(x, Q)
        following = p.domain.project(x - direction / (2.0 * p.setting("alpha")))
        p.note("Q_k = max(Q_k + g_k(x_t) + <grad g_k(x_t), x_{t+1} - x_t>, 0)")
        there = p.linearized_constraints(x, following)
        return {"x": following, "Q": p.tracer.maximum(Q + there + p.setting("tighten"), 0.0)}


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "V": Default("sqrt(T)", "sqrt(T), Yu, Neely & Wei 2017"),
        "alpha": Default("T", "T, Yu, Neely & Wei 2017"),
        "tighten": Default(0, "none"),
    }


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """The rule is Algorithm 1 of Wei, Yu & Neely 2020 with D(x, y) = |x - y|^2 / 2 and twice the alpha; its proofs hold for any alpha."""
    alpha = settings["alpha"]
    doubled = replace(
        alpha, formula=product((exact(2), alpha.formula)), value=None if alpha.value is None else 2 * alpha.value
    )
    message = "Yu, Neely & Wei 2017, with the constants of Wei, Yu & Neely 2020, Theorem 3.1, for 2 alpha"
    return euclidean_guarantee(s, {"V": settings["V"], "alpha": doubled}, message)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    return result if settings["tighten"].value == 0 else [*result, "tighten must be 0"]


DPP = Algorithm(
    name="dpp",
    plays="x",
    title="drift plus penalty",
    cite="Yu, Neely & Wei 2017",
    rule=DriftPlusPenalty,
    baseline=True,
    requirements=(SOME_INEQUALITY, MEAN_INEQUALITIES_ONLY, GRADIENTS_SEEN, PROJECTION),
    theorems=(
        Theorem(
            name="expected regret and violation",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            expected=True,
            hypotheses=(
                MEAN_CONSTRAINTS,
                IID_CONSTRAINTS,
                CONVEX_LOSS,
                inequalities_convex("Each g_k is convex in the decision."),
                horizon_known("The number of rounds T is known."),
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                inequalities_have("bound", "The constraints are bounded.", "the size"),
                inequalities_have("lipschitz.l2", "The constraints are Lipschitz.", "the gradient"),
                SLATER,
            ),
            settings=_settings,
            free=(Free("V"), Free("alpha")),
            positive=("V", "alpha"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "soft violation": "sqrt(T)"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round", "Q": "the queue of each constraint"},
)
