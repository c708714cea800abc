"""Ferreira, Soares & Xavier 2026, "CLASP: convex losses and squared penalties": each step is projected onto the round's own set.

    x_{t+1} = P_{X_t}(x_t - eta_t grad f_t(x_t)),    X_t = {x in X: g_t(x) <= 0}

Theorem. For u_t in X_t the regret is that of gradient descent with the same steps. Let D be the diameter of X, G >= |grad f_t|,
G_n >= |grad g_t^n|, and z_t in X_t of path P, zero where one decision satisfies the constraints of all rounds. If eta_t does not increase,

    sum_t |x_{t+1} - x_t|^2 <= D^2 + 2 D P + 2 G D sum_t eta_t =: M,
    sum_t [g_t^n(x_t)]_+^2 <= G_n^2 M,    sum_t sum_n [g_t^n(x_t)]_+ <= sum_n G_n sqrt(T M),

and the last sum is at most sum_n sup |g^n| + sum_{t>1} max_x |g_t(x) - g_{t-1}(x)|_1 whatever the steps. The squares are O(sqrt(T)) for
eta_t = D / (G sqrt(t)), and O(log T), as the regret is, for mu-strongly convex losses and eta_t = 1 / (mu t).

Proof. The projection is firmly non-expansive: with y = x_t - eta_t grad f_t, |x_{t+1} - z_t|^2 <= |y - z_t|^2 - |y - x_{t+1}|^2, that is

    |x_{t+1} - z_t|^2 <= |x_t - z_t|^2 - |x_{t+1} - x_t|^2 - 2 eta_t <grad f_t, x_{t+1} - z_t>,

which sums to the first bound. x_{t+1} is in X_t, so [g_t^n(x_t)]_+ <= G_n |x_{t+1} - x_t|, and [g_{t+1}^n(x_{t+1})]_+ is at most
g_{t+1}^n - g_t^n there. The third bound is Cauchy's and Schwarz's.
"""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    STRONGLY_CONVEX,
    gradient_regret,
    gradient_steps,
    strong_steps,
)
from oco.compiler.algorithms.common import (
    EXACT_STEP,
    FEASIBLE_COMPARATOR,
    FUNCTIONS_SEEN,
    SOME_INEQUALITY,
    constraints_are_fixed,
)
from oco.compiler.algorithms.penalized import drift
from oco.compiler.algorithms.vaze_sinha2025 import largest_multiplier
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting
from oco.compiler.theory.theorems import (
    Bound,
    Free,
    Guarantee,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    inequalities_convex,
    inequalities_have,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.statements import Feedback, Measure

SQUARES = "the squares of a constraint's violations sum to at most G_n^2 (D^2 + 2 D P + 2 G D sum_t eta_t)"


class Clasp:
    """Q is a multiplier that no projection reaches, so that the penalized step is one."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x = p.tracer, point(state, "x")
        p.note("the projection of x - eta grad f onto the domain cut by this round's constraints")
        caps = t.full(1.0, (p.constraint_count,)) * p.setting("Q")
        return {"x": penalized_step(p, x, p.setting("eta") * p.gradient(x), t.lift(0.5), caps, p.constraints(x))}


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    return {**gradient_steps(s), **largest_multiplier(s)}


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    return {**strong_steps(s), **largest_multiplier(s)}


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1000
    result = constant_settings(s, {"Q": settings["Q"]})
    falls = scheduled(settings, "eta")(Rounds.of(T), T).inverse.nondecreasing
    return result if falls else [*result, "eta must not increase"]


def _guarantee(s: Situation, settings: Mapping[str, Setting], mu: float, rate: str) -> Guarantee:
    eta = scheduled(settings, "eta")
    quantities = (
        Quantity("sum_g", r"\sum_n \sup |g^n|", "sizes of the constraints", float(needed_bounds(s, "bound").sum())),
        drift(s, lambda n, T: 0.5 * eta(n, T).inverse),
    )
    varying = "sqrt(T * log(T))" if rate == "log(T)" else "T**(3/4)"
    violation = Bound(
        "hard violation",
        "1" if constraints_are_fixed(s) else varying,
        "sum_g + drift",
        quantities,
        s.violation_range,
        note=SQUARES,
    )
    regret = gradient_regret(s, settings, mu, rate)
    return Guarantee("Ferreira, Soares & Xavier 2026", s.horizon, regret, violation, remarks=comparator_remarks(s))


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    return _guarantee(s, settings, 0.0, "T**(1/2 + V_x)" if s.canonical.measure is Measure.DYNAMIC else "sqrt(T)")


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    return _guarantee(s, settings, needed(s, "loss.strong_convexity.l2"), "log(T)")


_BASIC = (
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    inequalities_have("bound", "The constraints are bounded.", "the size"),
    FEASIBLE_COMPARATOR,
)

CLASP = Algorithm(
    name="clasp",
    plays="x",
    title="gradient steps projected onto each round's own set",
    cite="Ferreira, Soares & Xavier 2026",
    rule=Clasp,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, FUNCTIONS_SEEN, GRADIENTS_SEEN, EXACT_STEP),
    theorems=(
        Theorem(
            name="strongly convex losses",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*_BASIC, STRONGLY_CONVEX),
            settings=_strong_settings,
            free=(Free("eta", 0.001, 1000),),
            positive=("eta", "Q"),
            guarantee=_strong_guarantee,
            rates={"static regret": "log(T)", "hard violation": "sqrt(T * log(T))"},
            checks=_checks,
        ),
        Theorem(
            name="convex losses",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_convex_settings,
            free=(Free("eta"),),
            positive=("eta", "Q"),
            guarantee=_convex_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)", "hard violation": "T**(3/4)"},
            checks=_checks,
        ),
    ),
    cost="one projection onto the domain under the round's constraints",
    cost_rank=2,
    symbols={"x": "the decision of this round"},
)
