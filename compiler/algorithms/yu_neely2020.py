"""Yu & Neely 2020, "A low complexity algorithm with O(sqrt(T)) regret and O(1) constraint violations for online convex optimization with
long term constraints". The queue is quoted in Qiu & Wei 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
)
from oco.compiler.algorithms.common import (
    EXACT_STEP,
    FIXED_CONSTRAINTS,
    FUNCTIONS_SEEN,
    PROJECTION,
    ROUNDS,
    SLATER,
    SOME_INEQUALITY,
    margin_note,
    sizes,
    slater_margin,
    slopes,
    unknown,
)
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY
from oco.compiler.algorithms.wei2020 import MEAN_CONSTRAINTS
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.proximal.penalty import weighted_step
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
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
    scheduled,
)
from oco.dsl.statements import Measure


class YuNeely:
    """The queue takes this round's violation first; the step then weighs the constraints themselves, not their linearisations."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "Q": p.tracer.zeros((p.constraint_count,))}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, gamma = p.tracer, point(state, "x"), p.setting("gamma")
        g = t.name("g", gamma * p.constraints(x))
        p.note("Q_k = max(-gamma g_k(x_t), Q_k + gamma g_k(x_t))")
        Q = t.name("Q", t.maximum(-g, array(state, "Q") + g))
        p.note("argmin <grad f, x> + sum_k (Q_k + gamma g_k(x_t)) gamma g_k(x) + alpha |x - x_t|^2")
        return {"x": weighted_step(p, x, p.gradient(x), p.setting("alpha"), (Q + g) * gamma), "Q": Q}


def _settings(s: Situation) -> Mapping[str, Default]:
    missing = unknown(s, "lipschitz.l2")
    weight = missing or f"({float(np.linalg.norm(slopes(s)))!r}**2 + 1) * sqrt(T) / 2"
    return {
        "gamma": Default("T**(1/4)", "T^(1/4)"),
        "alpha": Default(weight, "(beta^2 + 1) sqrt(T) / 2, beta the slope of g"),
    }


# Guarantees. With w_k = Q_k(t+1) + gamma g_k(x_t) >= 0 the step is optimal and 2 alpha-strongly convex, so for every z in the domain
#
#   <grad f_t(x_t), x_{t+1} - z> + gamma <w, g(x_{t+1}) - g(z)> + alpha |x_{t+1} - x_t|^2 <= alpha (|z - x_t|^2 - |z - x_{t+1}|^2),  (*)
#
# and the queue grows by |Q(t+2)|^2 - |Q(t+1)|^2 <= 2 gamma <Q(t+1), g(x_{t+1})> + 2 gamma^2 |g(x_{t+1})|^2.                     (**)
#
# Regret: z = x*, <g(x_t), g(x_{t+1})> = (|g(x_t)|^2 + |g(x_{t+1})|^2 - |g(x_t) - g(x_{t+1})|^2) / 2, and the squares of the queue
# telescope: |Q(2)| = gamma |g(x_1)|, |Q(T+2)| >= gamma |g(x_{T+1})|. What is left is D^2 / (4 (alpha - gamma^2 beta^2 / 2)) a round.
# Violation: z a Slater point of margin s. By (*) and (**) |Q(t+1)|^2 / 2 + alpha |z - x_t|^2 grows by at most
# C = D R + gamma^2 s sum_k sup |g_k| + gamma^4 G^2 beta^2 / (4 alpha) a round, and falls where |Q| > C / (gamma s).
REGRET = "T * D**2 * widened / 4 + alpha * R**2"
GROWTH = "(D*R + gamma**2 * s * S + widest)"
VIOLATION = f"sqrt(N) / gamma * sqrt(max(({GROWTH} / (gamma * s))**2 + 2*{GROWTH}, gamma**2 * G**2) + 2 * alpha * R**2)"


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    bounds = sizes(s)
    slope, diameter = needed(s, "loss.lipschitz.l2"), needed(s, "domain.diameter.l2")
    beta, G = float(np.linalg.norm(slopes(s))), float(np.linalg.norm(bounds))

    def widened(horizon: int) -> float:
        kept = number(settings, "alpha", horizon) - number(settings, "gamma", horizon) ** 2 * beta**2 / 2
        return 1 / kept if kept > 0 else math.inf

    def drift(horizon: int) -> float:
        gamma, alpha = number(settings, "gamma", horizon), number(settings, "alpha", horizon)
        return gamma**4 * G**2 * beta**2 / (4 * alpha)

    quantities = (
        Quantity("R", "R", "diameter of the domain", diameter),
        Quantity("D", "D", "bound of the gradient of the loss", slope),
        Quantity("G", "G", "bound of the constraints together", G),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("S", "S", "sum of the bounds of the constraints", float(bounds.sum())),
        Quantity("s", "s", "Slater margin", slater_margin(s)),
        Quantity("alpha", r"\alpha", "weight of the move", scheduled(settings, "alpha")),
        Quantity("gamma", r"\gamma", "scale of the constraints", scheduled(settings, "gamma")),
        Quantity("widened", "w", "1 / (alpha - gamma^2 beta^2 / 2)", lambda n, T: widened(T)),
        Quantity(
            "widest", r"\frac{\gamma^4 G^2 \beta^2}{4 \alpha}", "growth of the queue by moves", lambda n, T: drift(T)
        ),
        ROUNDS,
    )
    regret = Bound("static regret", "sqrt(T)", REGRET, quantities, s.loss_range)
    violation = Bound(
        "soft violation", "1", VIOLATION, quantities, s.violation_range, f"by the Slater point{margin_note(s)}"
    )
    return Guarantee("Yu & Neely 2020", s.horizon, regret, violation)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result, T = constant_settings(s, settings), s.horizon or 1
    least = number(settings, "gamma", T) ** 2 * float(np.linalg.norm(slopes(s))) ** 2 / 2
    return result if number(settings, "alpha", T) > least else [*result, "alpha must exceed gamma^2 beta^2 / 2"]


YU_NEELY = Algorithm(
    name="yu-neely",
    plays="x",
    title="virtual queues for long-term constraints",
    cite="Yu & Neely 2020",
    rule=YuNeely,
    baseline=True,
    requirements=(
        SOME_INEQUALITY,
        MEAN_INEQUALITIES_ONLY,
        FUNCTIONS_SEEN,
        GRADIENTS_SEEN,
        PROJECTION,
        EXACT_STEP,
    ),
    theorems=(
        Theorem(
            name="regret and soft violation",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            hypotheses=(
                FIXED_CONSTRAINTS,
                MEAN_CONSTRAINTS,
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
            free=(Free("gamma"), Free("alpha")),
            positive=("gamma", "alpha"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "soft violation": "1"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round", "Q": "the queue of each constraint"},
)
