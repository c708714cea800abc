"""Prices of violations: what the model states after `penalty`, what the setting gives, else in slopes that come.

    price_n = weight sqrt(sum_t |grad f_t(x_t)|^2 / sum_t |grad g_t^n(x_t)|^2)

A unit of violation then costs `weight` times what it saves at most, however wide the declared ranges are: a margin pays until one round in
`weight` is broken. A price of round t may hang on round t, for the losses with violations at their prices are only seen after the decision.
"""

from __future__ import annotations

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.theory.objective import stated_prices
from oco.dsl.magnitudes import TINY

LOSS_SLOPES, LIMIT_SLOPES = "F", "G"
FARTHEST = 1e4
"""Factor by which a price that follows slopes may leave the one in declared ranges."""
MOST_SLOPES = 100_000
"""Entries of the constraints' slopes together, beyond which prices are in declared ranges."""


def follows_slopes(p: Problem) -> bool:
    """True where a constraint states no penalty and none is given: its price follows the slopes that come."""
    own = stated_prices(p.spec.canonical.inequalities)
    few = own.size * p.spec.canonical.size <= MOST_SLOPES
    return bool((own == 0.0).any()) and few and not p.spec.settings["penalty"].given


def no_slopes(p: Problem) -> State:
    """State before the first round; empty where no price follows slopes."""
    zero = {LOSS_SLOPES: p.tracer.lift(0.0), LIMIT_SLOPES: p.tracer.zeros((p.constraint_count,))}
    return zero if follows_slopes(p) else {}


def slopes_after(p: Problem, state: State, x: Point) -> State:
    """Sums of the squared slopes of the loss, and of each constraint (N,), with those at the decision that was played."""
    if not follows_slopes(p):
        return {}
    t = p.tracer
    p.note("prices in slopes of the loss for slopes of the constraints, as they came")
    of_loss = t.name("slope", array(state, LOSS_SLOPES) + p.gradient(x).squared_norm())
    of_limits = t.name("slopes", array(state, LIMIT_SLOPES) + p.constraint_gradients(x).squared_norms())
    return {LOSS_SLOPES: of_loss, LIMIT_SLOPES: of_limits}


def prices_of(p: Problem, slopes: State) -> Value:
    """Price of a unit of violation of each constraint, shape (N,), in units of the rule."""
    if not p.constraint_count:
        return p.tracer.zeros((0,))
    t, scales, stated = p.tracer, p.spec.scales, stated_prices(p.spec.canonical.inequalities)
    if scales is not None:
        stated = stated * scales.inequalities / scales.loss
    own = t.full(1.0, stated.shape) * p.setting("penalty")
    if slopes:
        F, G = array(slopes, LOSS_SLOPES), array(slopes, LIMIT_SLOPES)
        followed = p.setting("weight") * t.sqrt(F / t.maximum(G, TINY))
        cut = t.maximum(t.minimum(followed, FARTHEST * own), own / FARTHEST)
        own = t.where(t.and_(G > 0.0, F > 0.0), cut, own)
    if p.spec.settings["penalty"].given or not stated.any():
        return t.name("price", own)
    price = t.constant(stated, "price", "penalties that the model states, of g / G in units of the loss")
    return price if stated.all() else t.where(price > 0.0, price, own)
