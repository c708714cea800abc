"""Supantha & Sinha (ALT 2026): dynamic regret and hard violation where no decision satisfies the constraints of all rounds.

    z_t = P_{X_t}(x_t),  X_t = {x in X: g_t(x) <= 0},    d_t = grad f_t(x_t) + L (x_t - z_t) / |x_t - z_t|  (the second part where
    |x_t - z_t| > delta),    S_t = S_{t-1} + |d_t|^2,    x_{t+1} = P_X(x_t - eta_t d_t),    eta_t = D_s / sqrt(2 S_t).

Theorem. Let every X_t be non-empty, D the diameter of X, L > G >= |grad f_t|, G_n >= |grad g_t^n|, and for a path P

    R(P) = ((D^2 + 2 D P) / D_s + D_s) / sqrt(2) (G + L) sqrt(T).

For all u_t in X_t of path sum_{t>1} |u_t - u_{t-1}| <= P, and where the best decisions of the rounds have a path of at most P*,

    sum_t f_t(x_t) - f_t(u_t) <= R(P),
    sum_t sum_n [g_t^n(x_t)]_+ <= sum_n G_n (R(P*) + L delta T) / (L - G);

where one u is in all X_t the last sum is at most sum_n G_n (R(0) + F T + L delta T) / L, F the range of the loss.

Proof. d_t is a subgradient at x_t of the convex F_t = f_t + L [dist(., X_t) - delta]_+, and F_t(u_t) = f_t(u_t). Gradient descent has
sum <d_t, x_t - u_t> <= D^2 / (2 eta_T) + sum_{t>1} (|x_t - u_t|^2 - |x_t - u_{t-1}|^2) / (2 eta_{t-1}) + sum eta_t |d_t|^2 / 2, where the
middle is at most D P / eta_T, and sum |d_t|^2 / sqrt(S_t) <= 2 sqrt(S_T): together R(P), since |d_t| <= G + L. So

    sum_t f_t(x_t) - f_t(u_t) + L sum_t [dist(x_t, X_t) - delta]_+ <= R(P),

which is the first bound. For the best decisions u*_t of the rounds f_t(u*_t) <= f_t(z_t) <= f_t(x_t) + G dist(x_t, X_t), so that
(L - G) sum_t dist(x_t, X_t) <= R(P*) + L delta T, and g_t^n(x_t) <= g_t^n(z_t) + G_n |x_t - z_t|. For one u, f_t(x_t) - f_t(u) >= -F.

The path is that of the rounds' own best decisions: nothing is asked of them together. With D_s = sqrt(D^2 + 2 D P) for a known P, R(P) is
sqrt(2) (G + L) sqrt((D^2 + 2 D P) T). Static regret and violation are both O(T^(3/4)) for L = G (1 + T^(1/4)).
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
    PROJECTION,
    ROUNDS,
    SOME_INEQUALITY,
)
from oco.compiler.algorithms.vaze_sinha2025 import largest_multiplier
from oco.compiler.algorithms.wang_wan_zhang2025 import LIPSCHITZ_CONSTRAINTS
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.lowering.significance import significant
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.moves import path_length
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

NEAR = 1e-9
"""delta, as a share of D_s: a distance below it is that of rounded projections, and has no direction."""


class DistancePenalty:
    """Gradient descent on f_t + L dist(., X_t)."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "S": p.tracer.lift(0.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, D = p.tracer, point(state, "x"), p.setting("D")
        g = t.name("g", p.constraints(x))
        p.note("z: the projection of x onto the domain cut by this round's constraints")
        caps = t.full(1.0, (p.constraint_count,)) * p.setting("Q")
        z = penalized_step(p, x, x * 0.0, t.lift(0.5), caps, g).named(t, "z")
        away = x - z
        far = t.name("far", t.sqrt(away.squared_norm()))
        outside = t.and_(t.max(g) > 0.0, far > NEAR * D)
        pull = t.name("pull", t.where(outside, p.setting("L") / t.maximum(far, SMALLEST), 0.0))
        d = significant(t, p.gradient(x) + pull * away).named(t, "d")
        S = t.name("S", array(state, "S") + d.squared_norm())
        eta = t.name("eta", D / t.sqrt(2.0 * t.maximum(S, SMALLEST)))
        return {"x": p.domain.project(x - eta * d), "S": S}


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "D": Default("domain.diameter.l2", "diameter of the domain"),
        "L": Default("2 * loss.lipschitz.l2", "2 G: a unit of distance costs more than it saves"),
        **largest_multiplier(s),
    }


def _static_settings(s: Situation) -> Mapping[str, Default]:
    price = Default("loss.lipschitz.l2 * (1 + T**(1/4))", "G (1 + T^(1/4)): both bounds grow alike")
    return {**_settings(s), "L": price}


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    steep = number(settings, "L", s.horizon or 1) > needed(s, "loss.lipschitz.l2")
    return [*constant_settings(s, settings), *([] if steep else ["L must exceed the bound of the loss's gradient"])]


MOST = "c * (G + L) * sqrt(T)"


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    diameter = needed(s, "domain.diameter.l2")

    def reach(rounds: Rounds, horizon: int) -> Floats:
        guess = max(number(settings, "D", horizon), SMALLEST)
        return np.asarray(((diameter**2 + 2 * diameter * path_length(s, rounds.n)) / guess + guess) / np.sqrt(2))

    def near(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(NEAR * number(settings, "D", horizon))

    quantities = (
        Quantity(
            "c", "c", "((D^2 + 2 D P) / D_s + D_s) / sqrt(2), with the path P of the rounds' best decisions", reach
        ),
        Quantity("G", "G", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        Quantity("L", "L", "price of a unit of distance", scheduled(settings, "L")),
        Quantity("slopes", r"\sum_n G_n", "slopes of the constraints", float(needed_bounds(s, "lipschitz.l2").sum())),
        Quantity("near", r"\delta", "distance that counts as none", near),
        Quantity("F", "F", "range of the loss", s.loss_range or 0.0),
        ROUNDS,
    )
    moves = s.canonical.measure is Measure.DYNAMIC
    rate = "T**(1/2 + V_x)" if moves else "T**(3/4)"
    above = "0" if moves else "F * T"
    violation = f"slopes * ({MOST} + {above} + L * near * T) / {'(L - G)' if moves else 'L'}"
    bounds = (
        Bound(f"{s.canonical.measure} regret", rate, MOST, quantities, s.loss_range),
        Bound("hard violation", rate, violation, quantities, s.violation_range),
    )
    theorem = "Supantha & Sinha 2026, with the constants of the module"
    return Guarantee(theorem, s.horizon, *bounds, remarks=comparator_remarks(s))


_BASIC = (
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    LIPSCHITZ_CONSTRAINTS,
    FEASIBLE_COMPARATOR,
)

DISTANCE_PENALTY = Algorithm(
    name="distance-penalty",
    plays="x",
    title="gradient descent on losses and distances to each round's set",
    cite="Supantha & Sinha 2026",
    rule=DistancePenalty,
    adapts=True,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, FUNCTIONS_SEEN, GRADIENTS_SEEN, PROJECTION, EXACT_STEP),
    theorems=(
        Theorem(
            name="no common feasible decision",
            measures=frozenset({Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_settings,
            free=(Free("D", 0.001, 1000), Free("L", 0.51, 1000)),
            positive=("D", "L", "Q"),
            guarantee=_guarantee,
            rates={"dynamic regret": "T**(1/2 + V_x)", "hard violation": "T**(1/2 + V_x)"},
            checks=_checks,
        ),
        Theorem(
            name="one feasible decision",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(horizon_known("The number of rounds T is known."), *_BASIC),
            settings=_static_settings,
            free=(Free("D", 0.001, 1000), Free("L", 0.51, 1000)),
            positive=("D", "L", "Q"),
            guarantee=_guarantee,
            rates={"static regret": "T**(3/4)", "hard violation": "T**(3/4)"},
            checks=_checks,
        ),
    ),
    cost="one projection, and one onto the domain under the round's constraints",
    cost_rank=2,
    symbols={"x": "the decision of this round", "S": "sum of the squared gradients"},
)
