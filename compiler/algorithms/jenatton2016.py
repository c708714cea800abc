"""Jenatton, Huang & Archambeau 2016, "Adaptive algorithms for online convex optimization with long-term constraints".

Several constraints are one: g = max_k g_k. The paper has a fixed one; its proof uses only that the comparator satisfies each round's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR, PROJECTION, ROUNDS, SOME_INEQUALITY, sizes, unknown
from oco.compiler.algorithms.mahdavi2012 import BOUNDED, LIPSCHITZ
from oco.compiler.algorithms.wang_wan_zhang2025 import largest_slope
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.algorithms.wei2020 import MEAN_CONSTRAINTS
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.schedule import Rounds, Schedule
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
    inequalities_convex,
    needed,
)
from oco.dsl.statements import Measure


class Jenatton:
    """Gradient descent in x and ascent in lambda on f_t(x) + lambda g(x) - theta_t lambda^2 / 2, with steps of their own."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "lam": p.tracer.lift(0.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, lam = p.tracer, point(state, "x"), array(state, "lam")
        R, G = p.setting("R"), p.setting("G")
        p.note("eta_t = R / (G t^b), theta_t = 6 R G / t^b, mu_t = 1 / (theta_t (t + 1))")
        power = t.name("power", p.t ** p.setting("b"))
        eta, theta = t.name("eta", R / (G * power)), t.name("theta", 6.0 * R * G / power)
        mu = t.name("mu", 1.0 / (theta * (p.t + 1.0)))
        g, slope = p.worst_constraint(x)
        following = p.domain.project(x - eta * (p.gradient(x) + lam * slope))
        return {"x": following, "lam": t.maximum(lam + mu * (g - theta * lam), 0.0)}


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "R": Default("domain.radius", "the decisions lie in a ball of radius R about 0"),
        "G": Default(unknown(s, "lipschitz.l2") or largest_slope(s), "Lipschitz constant of losses and constraints"),
        "b": Default("1/2", "1/2: regret O(sqrt(T)), violation O(T^(3/4))"),
    }


# With theta_t - 2 mu_t theta_t^2 >= 2 eta_t G^2 for t > 1 (lambda_1 = 0) the terms in lambda_t^2 cancel, and
# 1/mu_t - 1/mu_{t-1} <= theta_t, so for every lambda >= 0, with Delta the diameter and D = sup |g|,
#
#   Regret + lambda sum_t g_t(x_t) - (theta_1 + sum_t theta_t) lambda^2 / 2
#       <= Delta^2 / (2 eta_T) + G^2 sum_t eta_t + D^2 sum_t mu_t.
#
# lambda = 0 gives the regret; the best lambda, with Regret >= -F T, the violation of max_k g_k, hence of each g_k.
REGRET = "Delta**2 * last / 2 + G**2 * steps + D**2 * ascents"
VIOLATION = f"N * sqrt(2 * thetas * (F*T + {REGRET}))"


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    assert s.loss_range is not None

    def inverse_steps(rounds: Rounds, horizon: int) -> Schedule:
        R, G, b = (number(settings, name, horizon) for name in ("R", "G", "b"))
        results: Schedule = (
            G / R if R > 0 else math.inf
        ) * rounds.t**b  # R = 0: a domain of one point, which no step leaves
        return results

    def thetas(rounds: Rounds, horizon: int) -> Schedule:
        results: Schedule = 6 * number(settings, "G", horizon) ** 2 / inverse_steps(rounds, horizon)
        return results

    def ascents(rounds: Rounds, horizon: int) -> Floats:
        results: Schedule = 1 / (thetas(rounds, horizon) * (rounds.t + 1.0))
        return results.sums()

    def regularization(rounds: Rounds, horizon: int) -> Floats:
        theta = thetas(rounds, horizon)
        return np.asarray(theta.last[0] + theta.sums())

    quantities = (
        Quantity("Delta", r"\Delta", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("F", "F", "range of the loss", s.loss_range),
        Quantity("G", "G", "slope of losses and constraints", largest_slope(s)),
        Quantity("D", "D", "size of the constraints", float(sizes(s).max())),
        Quantity("last", r"1/\eta_T", "last inverse step", inverse_steps),
        Quantity("steps", r"\sum_t \eta_t", "sum of the steps", lambda n, T: inverse_steps(n, T).inverse.sums()),
        Quantity("ascents", r"\sum_t \mu_t", "sum of the multiplier's steps", ascents),
        Quantity("thetas", r"\theta_1 + \sum_t \theta_t", "regularization of the multiplier", regularization),
        ROUNDS,
    )
    b = number(settings, "b", s.horizon or 1)
    regret = Bound("static regret", f"T**{max(b, 1 - b)!r}", REGRET, quantities, s.loss_range)
    violation = Bound("soft violation", f"T**{1 - b / 2!r}", VIOLATION, quantities, s.violation_range)
    remarks = comparator_remarks(s)
    return Guarantee("Jenatton, Huang & Archambeau 2016", s.horizon, regret, violation, remarks=remarks)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result, T = constant_settings(s, settings), s.horizon or 1
    R, G, b = (number(settings, name, T) for name in ("R", "G", "b"))
    result += [] if R > 0 else ["R must be positive"]
    result += [] if largest_slope(s) * (1 - 1e-12) <= G else ["G must bound the slopes of losses and constraints"]
    return result if 0 < b < 1 else [*result, "b must lie between 0 and 1"]


JENATTON = Algorithm(
    name="jenatton",
    plays="x",
    multipliers=("lam",),
    title="adaptive primal-dual gradient descent",
    cite="Jenatton, Huang & Archambeau 2016",
    rule=Jenatton,
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
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                BOUNDED,
                LIPSCHITZ,
                FEASIBLE_COMPARATOR,
            ),
            settings=_settings,
            free=(Free("R"), Free("b", 0.05, 0.95, "value")),
            positive=("R", "G"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "soft violation": "T**(3/4)"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round", "lam": "the multiplier"},
)
