"""Wang, Yan & Liu 2025, "Doubly-bounded queue for constrained online learning": Algorithm 1 (COLDQ).

Constraints that an adversary changes each round, hard violation, no Slater point.
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
    STRONGLY_CONVEX,
    path_weight,
)
from oco.compiler.algorithms.common import EXACT_STEP, FEASIBLE_COMPARATOR, common_comparator, nothing_to_learn
from oco.compiler.algorithms.penalized import STEP_VIOLATION, constraint_variation, move_quantities, penalty_quantities
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
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
    inequalities_have,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.statements import Feedback, Measure


class Coldq:
    """Algorithm 1. The decision of round t + 1 is made at the end of round t."""

    def init(self, p: Problem, start: Point) -> State:
        p.note("Q_1 = gamma")
        return {"x": start, "Q": p.tracer.full(p.setting("gamma"), (p.constraint_count,))}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, Q = point(state, "x"), array(state, "Q")
        alpha, g = p.setting("alpha"), p.tracer.name("g", p.constraints(x))
        Q = p.tracer.name("Q", queue_update(p, Q, g))
        p.note("P_t: argmin <grad f, x - x_t> + alpha |x - x_t|^2 + sum_n Q_n [g_n(x)]_+")
        return {"x": penalized_step(p, x, p.gradient(x), alpha, Q, g), "Q": Q}


def queue_update(p: Problem, Q: Value, g: Value) -> Value:
    """(8) from the values g of the constraints at the decision."""
    eta, gamma = p.setting("eta"), p.setting("gamma")
    p.note("(8): the doubly bounded queue, for t > 1")
    grown = p.tracer.maximum((1.0 - eta) * Q + p.tracer.maximum(g, 0.0), gamma)
    return p.tracer.where(p.t > 1.0, grown, Q)


# Hypotheses.

_EQUALITY = "`{}` is an equality that binds on average, and the rule is one for inequalities"


def _no_equalities(s: Situation) -> Objection | None:
    for c in s.canonical.equalities:
        return Objection(
            _EQUALITY.format(c.label), f"write `each round` after `{c.label}`: it then means two inequalities"
        )
    return None


def _no_mean_equalities(s: Situation) -> Objection | None:
    for c in s.canonical.equalities:
        return Objection(_EQUALITY.format(c.label), f"write `{c.label}` as two inequalities on average, `<=` and `>=`")
    return None


def _some_constraint(s: Situation) -> Objection | None:
    return (
        None
        if s.constraints or s.equalities
        else Objection(
            f"{nothing_to_learn(s)}: without them it is ogd with eta = 1 / (2 alpha)",
            "add a constraint, or write `using ogd`",
        )
    )


def _constraint_functions_seen(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.FULL:
        return None
    return Objection(
        f"{s.canonical.feedback} feedback does not give each round's constraint as a function, and it needs that",
        "write `feedback full`",
    )


INEQUALITIES_ONLY = Hypothesis("There are inequalities only.", _no_equalities)
MEAN_INEQUALITIES_ONLY = Hypothesis("There are inequalities only.", _no_mean_equalities)
"""Hypothesis of a method that bounds soft violation, which does not take constraints of each round."""
BASIC = (
    Hypothesis("There are constraints g_t^n(x) <= 0.", _some_constraint),
    INEQUALITIES_ONLY,
    Hypothesis("The function g_t is revealed after round t.", _constraint_functions_seen),
    horizon_known("The number of rounds T is known."),
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    inequalities_have("bound", "Assumption 3: |g_t^n(x)| <= G.", "the size"),
    FEASIBLE_COMPARATOR,
)


# Settings.


def path_exponent(s: Situation) -> float:
    """V_x: log_T of the path length where one is known and the model measures dynamic regret, else 0."""
    known = s.number("path_length")
    if s.canonical.measure is Measure.STATIC or known is None or known <= 1 or not s.horizon or s.horizon < 2:
        return 0.0
    return min(1.0, math.log(known) / math.log(s.horizon))


def _queue_settings(corollary: str) -> dict[str, Default]:
    return {
        "epsilon": Default("0.5", "0.5, the experiments of section 6"),
        "eta": Default("1 / T", f"1/T ({corollary})"),
        "gamma": Default("epsilon * T", f"epsilon T ({corollary})"),
    }


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    exponent = {"V_x": Default(path_exponent(s), "log_T of the path length; 0 where none is known")}
    return {
        "alpha": Default("t**((1 - V_x) / 2)", "t^((1 - V_x)/2) (Corollary 1)"),
        **exponent,
        **_queue_settings("Corollary 1"),
    }


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    # Erratum 17: Assumption 4 has mu |y - x|^2 without 1/2, so mu is half the usual modulus.
    modulus = {"mu": Default("loss.strong_convexity.l2 / 2", "half the modulus of strong convexity (Assumption 4)")}
    return {"alpha": Default("mu * t", "mu t (Corollary 2)"), **modulus, **_queue_settings("Corollary 2")}


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Check the conditions of Algorithm 1 on its parameters."""
    T = s.horizon or 1
    alpha, eta = scheduled(settings, "alpha")(Rounds.of(T), T), number(settings, "eta", T)
    result = constant_settings(s, {n: settings[n] for n in ("eta", "gamma")})
    result += [] if alpha.nondecreasing else ["alpha must not decrease"]
    return result + ([] if eta <= 1 else ["eta must lie between 0 and 1"])


# Guarantees.


def quantities(s: Situation, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    """The symbols of Theorems 1 to 3."""
    return (*common_quantities(s, settings), *expert_quantities(s, settings, 1))


def common_quantities(s: Situation, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    """Quantities in which alpha does not occur."""
    greatest = float(needed_bounds(s, "bound").max())
    eta, gamma = (scheduled(settings, n) for n in ("eta", "gamma"))

    def size(rounds: Rounds, horizon: int) -> Floats:
        """G with gamma < G / eta (erratum 19)."""
        return np.asarray(np.maximum(greatest, 2 * eta(rounds, horizon).last * gamma(rounds, horizon).last))

    return (
        Quantity("R", "R", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("D", "D", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        Quantity("G", "G", "bound of the constraints", size),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("T", "T", "rounds", lambda n, T: n.last),
        Quantity("eta", r"\eta", "decay of the queue", eta),
        Quantity("gamma", r"\gamma", "least length of the queue", gamma),
        Quantity(
            "changed",
            r"\sum_{t>1} \max_x \|g_t(x) - g_{t-1}(x)\|",
            "variation of the constraints",
            lambda n, T: constraint_variation(s, n, T),
        ),
        *penalty_quantities(s, gamma),
    )


def expert_quantities(s: Situation, settings: Mapping[str, Setting], m: int) -> tuple[Quantity, ...]:
    """Quantities in which alpha occurs; m is the number of the expert that it may depend on."""

    def alpha(rounds: Rounds, horizon: int) -> Schedule:
        return settings["alpha"].along(rounds, horizon, m)

    diameter = needed(s, "domain.diameter.l2")

    def inverse(rounds: Rounds, horizon: int) -> Floats:
        return alpha(rounds, horizon).inverse.sums()

    def moved(rounds: Rounds, horizon: int) -> Floats:
        return path_weight(alpha(rounds, horizon), diameter, path_length(s, horizon))

    def witness(rounds: Rounds, horizon: int) -> Floats:
        """Theorem 2 holds for any feasible sequence: one common point has no path."""
        known = s.number("path_length")
        worst = diameter * rounds.n if known is None else min(known, diameter * rounds.n)
        path = 0.0 if common_comparator(s) else worst
        return path_weight(alpha(rounds, horizon), diameter, path)

    return (
        Quantity("last", r"\alpha_T", "last weight of the move", alpha),
        Quantity("inverse", r"\sum_t 1/\alpha_t", "sum of the inverse weights", inverse),
        Quantity("moved", r"\sum_{t>1} \alpha_{t-1} \|x^*_t - x^*_{t-1}\|", "weighted path of the comparators", moved),
        Quantity(
            "witness", r"\sum_{t>1} \alpha_{t-1} \|y_t - y_{t-1}\|", "weighted path of a feasible sequence", witness
        ),
        *move_quantities(s, alpha, scheduled(settings, "gamma")),
    )


DYNAMIC_REGRET = "2*R*moved + D**2/4 * inverse + R**2 * last + D*R"
QUEUE_VIOLATION = (
    "G*sqrt(N)/(eta*gamma) * changed + (2*R*witness + D**2/4 * inverse + (D*R + 2*N*G**2)*T + R**2*last)/gamma + N*G"
)
# With Q_t >= gamma the step's optimality alone gives sqrt(N) changed + (2 R witness + D^2/4 inverse + D R T + R^2 last) / gamma + N G, and
# G / (eta gamma) >= 2: the paper's bound of the queue is not needed.
VIOLATION = f"min({QUEUE_VIOLATION}, {STEP_VIOLATION})"
"""Theorem 2, or what the optimality of the step gives with Q_t >= gamma (Lemma 1): it needs no bound of the queue."""


def _violation_bound(s: Situation, quantities: tuple[Quantity, ...]) -> Bound:
    """Theorem 2 and the optimality of the step."""
    fixed = not constraint_variation(s, Rounds.every(2), s.horizon or 2).any()
    varying = "T**min(V_g, 3/4)" if common_comparator(s) else "T**V_g"
    return Bound(
        "hard violation",
        "1" if fixed else varying,
        VIOLATION,
        quantities,
        s.violation_range,
        note="the smaller of Theorem 2 and of what the optimality of each step gives",
    )


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorems 1 and 2."""
    symbols = quantities(s, settings)
    static = s.canonical.measure is Measure.STATIC
    rate = "sqrt(T)" if static else "T**((1 + V_x)/2)"
    regret = Bound(f"{s.canonical.measure} regret", rate, DYNAMIC_REGRET, symbols, s.loss_range)
    return Guarantee(
        "Wang, Yan & Liu 2025, Theorems 1 and 2",
        s.horizon,
        regret,
        _violation_bound(s, symbols),
        remarks=comparator_remarks(s),
    )


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorems 2 and 3. Corollary 2 prints sum 1/t <= log T, which fails; the sum itself stands here."""
    symbols = quantities(s, settings)
    alpha = scheduled(settings, "alpha")
    mu = needed(s, "loss.strong_convexity.l2") / 2

    def growth(rounds: Rounds, horizon: int) -> Floats:
        return alpha(rounds, horizon).growth(mu)

    symbols += (
        Quantity("growth", r"\sum_t [\alpha_t - \alpha_{t-1} - \mu]_+", "growth of the weights beyond mu", growth),
    )
    regret = Bound("static regret", "log(T)", "R**2 * growth + D**2/4 * inverse + D*R", symbols, s.loss_range)
    return Guarantee(
        "Wang, Yan & Liu 2025, Theorems 2 and 3",
        s.horizon,
        regret,
        _violation_bound(s, symbols),
        remarks=comparator_remarks(s),
    )


def comparator_remarks(s: Situation) -> tuple[str, ...]:
    """Remarks on the comparator where some constraint binds on average only."""
    if s.canonical.measure is Measure.STATIC and (loose := s.canonical.revealed_on_average):
        listed = ", ".join(f"`{n}`" for n in loose)
        return (f"the regret is against decisions that satisfy {listed} in every round, not only on average",)
    return ()


COLDQ = Algorithm(
    name="coldq",
    plays="x",
    multipliers=("Q",),
    title="constrained online learning with a doubly bounded queue",
    cite="Wang, Yan & Liu 2025, Algorithm 1",
    rule=Coldq,
    requirements=(EXACT_STEP,),
    theorems=(
        Theorem(
            name="Theorems 2 and 3",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*BASIC, STRONGLY_CONVEX),
            settings=_strong_settings,
            free=(Free("alpha"), Free("epsilon")),
            positive=("alpha", "eta", "gamma"),
            guarantee=_strong_guarantee,
            rates={"static regret": "log(T)", "hard violation": "T**V_g"},
            checks=_settings_hold,
        ),
        Theorem(
            name="Theorems 1 and 2",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=BASIC,
            settings=_convex_settings,
            free=(Free("alpha"), Free("epsilon")),
            positive=("alpha", "eta", "gamma"),
            guarantee=_convex_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**((1 + V_x)/2)", "hard violation": "T**V_g"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection onto the domain under the round's constraints",
    cost_rank=2,
    symbols={"x": "the decision of this round", "Q": "the doubly bounded queue of each constraint"},
)
