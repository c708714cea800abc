"""Prices of constraints on average, by gradient ascent on the dual with AdaGrad's steps.

    lambda <- [lambda + D/2 e_t / (h_t sqrt(min(t, L)))] cut to [0, cap],   L = T - t + 1,
    e_t = g_t(x_t) + (sum_{i <= t} g_i(x_i) + 4 h_t) / L,   h_t^2 = sum_{i <= t} g_i(x_i)^2 / t

at the decisions x that were played: what a round uses beyond the constraint, and what is used too much so far spread over the rounds that
are left, with four rounds of the usual size h in reserve; L and the second part of e only where T is known. Steps are small beside D: a
price that the nights move to 0 forgets what they leave. In the second half they grow as fewer rounds are left to make up for others.

A unit of such a constraint costs lambda in a round, whether it is broken or not: rounds make up for each other, also where the constraint
is the same in all of them, for the loss is not. D, the guess of the size of a multiplier, is the slope of the loss for the slope of the
constraint, sqrt(sum_t |grad f_t(x_t)|^2 / sum_t |grad g_t(x_t)|^2), as they came: what a unit saves. It is at most the cap, which is the
stated penalty, which no multiplier exceeds, or the largest multiplier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.canonical import Canonical
from oco.dsl.expressions import changes
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Timing

PRICE, SQUARES, USED = "lambda", "squares", "used"
LOSS_SLOPES, LIMIT_SLOPES = "F_lambda", "G_lambda"
STEP = 0.5
RESERVE = 4.0
"""Rounds of the usual size h that are kept in reserve: the last rounds are not to use too much."""
Bools = np.ndarray[Any, Any]


def averaged(canonical: Canonical) -> Bools:
    """True for each entry of the inequalities that binds on average, (N,)."""
    own = [c.timing is Timing.ON_AVERAGE for c in canonical.inequalities for _ in range(c.size)]
    return np.array(own, dtype=bool)


def varies_on_average(canonical: Canonical) -> bool:
    """True where some constraint binds so and changes from round to round: whether its price holds it only shows in rounds."""
    return any(c.timing is Timing.ON_AVERAGE and changes(c.expr) for c in canonical.inequalities)


def is_drawn_on_average(canonical: Canonical) -> bool:
    """True where some constraint does and all data are drawn from stated distributions."""
    return varies_on_average(canonical) and all(s.distribution is not None for s in canonical.revealed)


def prices_at_start(p: Problem) -> State:
    """State before the first round: nothing has a price."""
    if not averaged(p.spec.canonical).any():
        return {}
    zeros = {n: p.tracer.zeros((p.constraint_count,)) for n in (PRICE, SQUARES, USED, LIMIT_SLOPES)}
    return {**zeros, LOSS_SLOPES: p.tracer.lift(0.0)}


def priced_after(p: Problem, state: State, x: Point, caps: Value) -> State:
    """State after the decision x of a round. caps (N,)."""
    on_average = averaged(p.spec.canonical)
    if not on_average.any():
        return {}
    t, g = p.tracer, p.constraints(x)
    used, squares, error = t.name("used", array(state, USED) + g), t.name("squares", array(state, SQUARES) + g * g), g
    size, rounds = t.name("size", t.sqrt(t.maximum(squares, TINY) / p.played)), p.played
    if p.spec.horizon is not None:
        left = t.maximum(float(p.spec.horizon) - p.played, 0.0) + 1.0
        error, rounds = t.name("error", g + (used + RESERVE * size) / left), t.minimum(rounds, left)
    F = t.name("F", array(state, LOSS_SLOPES) + p.gradient(x).squared_norm())
    G = t.name("G", array(state, LIMIT_SLOPES) + p.constraint_gradients(x).squared_norms())
    guess = t.minimum(t.sqrt(F / t.maximum(G, TINY)), caps)
    moved = array(state, PRICE) + STEP * guess * error / (size * t.sqrt(rounds))
    price = t.minimum(t.maximum(moved, 0.0), caps)
    own = {PRICE: t.name("lambda", t.where(_mask(p, on_average), price, 0.0)), SQUARES: squares, USED: used}
    return {**own, LOSS_SLOPES: F, LIMIT_SLOPES: G}


def paid_for(p: Problem, state: State, g: Value, prices: Value) -> Value:
    """Costs of the values g of the constraints, (N,): violations at their prices, and constraints on average at theirs."""
    hard = prices * p.tracer.maximum(g, 0.0)
    on_average = averaged(p.spec.canonical)
    return p.tracer.where(_mask(p, on_average), array(state, PRICE) * g, hard) if on_average.any() else hard


def slopes_of(p: Problem, state: State, g: Value, prices: Value) -> Value:
    """Weights (N,) of the gradients of the constraints in the slope of what they cost."""
    hard = prices * p.tracer.to_float(g > 0.0)
    on_average = averaged(p.spec.canonical)
    return p.tracer.where(_mask(p, on_average), array(state, PRICE), hard) if on_average.any() else hard


def caps_beside(p: Problem, caps: Value) -> Value:
    """Largest multipliers (N,) of the constraints that a step meets: none of those that have a price."""
    on_average = averaged(p.spec.canonical)
    return p.tracer.where(_mask(p, on_average), 0.0, caps) if on_average.any() else caps


def _mask(p: Problem, on_average: Bools) -> Value:
    return p.tracer.constant(on_average, "on_average", "constraints that bind on average")
