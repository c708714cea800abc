"""Optimistic gradient descent (Rakhlin & Sridharan, COLT 2013) with steps that follow the errors of the predictions.

    x_t = P_t(y_t - eta_t m_t),    y_{t+1} = P_t(y_t - eta_{t+1} g_t),    eta_t = D / sqrt(2 (S_{t-1} + M_{t-1}^2))

m_t: gradient at y_t of the round as predicted, zero before the first error; g_t = grad f_t(x_t); e_t = |g_t - m_t|, the largest so far M_t;
S_t = sum_{i <= t} min(e_i, M_{i-1})^2 (cut as by Cutkosky, COLT 2019). P_t: projection onto the domain cut by round t's known constraints.

Theorem. For every u in all these sets, with D the diameter of the domain,

    sum_t f_t(x_t) - f_t(u) <= D (sqrt(2 (S_T + M_T^2)) + M_T).

Proof. <g_t, x_t - u> = <g_t - m_t, x_t - y_{t+1}> + <m_t, x_t - y_{t+1}> + <g_t, y_{t+1} - u>. By the two projections the second is at most
(|y_t - y_{t+1}|^2 - |x_t - y_{t+1}|^2) / (2 eta_t), the third (|y_t - u|^2 - |y_{t+1} - u|^2 - |y_t - y_{t+1}|^2) / (2 eta_{t+1}). As
eta_{t+1} <= eta_t the moves |y_t - y_{t+1}| cancel; with d = |x_t - y_{t+1}| <= D what is left of the round is at most
e_t d - d^2 / (2 eta_t) <= eta_t min(e_t, M_{t-1})^2 / 2 + D (M_t - M_{t-1}). The first sums to at most D sqrt(S_T) / sqrt(2), as
S_{t-1} + M_{t-1}^2 >= S_t; the second to D M_T; the distances to u to at most D^2 / (2 eta_{T+1}) = D sqrt(S_T + M_T^2) / sqrt(2).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, NO_CONSTRAINTS
from oco.compiler.algorithms.common import AVERAGED, PROJECTION
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.predicted_round import as_predicted, data_of, predicted_of, stated_value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
from oco.compiler.lowering.significance import significant
from oco.compiler.proximal.known_point import nearest_known, rows_known
from oco.compiler.proximal.known_step import kept_after, kept_at_start
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    constant_settings,
    needed,
    scheduled,
)
from oco.dsl.expressions import Kind, names
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Feedback, Measure

MULTIPLIERS = "mu"


class Optimistic:
    """`x` is the decision, `y` the point that steps on gradients lead to, `m` the predicted gradient."""

    def init(self, p: Problem, start: Point) -> State:
        t, canonical = p.tracer, p.spec.canonical
        seen = {"seen": t.zeros((predicted_of(canonical).size,))} if predicted_of(canonical).size else {}
        mu = {MULTIPLIERS: t.zeros((rows_known(canonical),))} if canonical.known else {}
        own: State = {"x": start, "y": start, "m": start * 0.0, "S": t.lift(0.0), "M": t.lift(0.0)}
        return joined(own, seen, mu, kept_at_start(p, start))

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, from its predicted gradient."""
        t, y, S, M = p.tracer, point(state, "y"), array(state, "S"), array(state, "M")
        p.note("the gradient of the round as predicted")
        own = as_predicted(p, _predicted(p, state), t.zeros((p.constraint_count,)))
        m = own.gradient(y).map(lambda g: t.where(M > 0.0, g, 0.0)).named(t, "m")
        x, mu = _projected(p, y - _step(p, S, M) * m, state)
        return {**state, "x": x, "m": m, **mu}

    def update(self, p: Problem, state: State) -> State:
        t, x, y, M = p.tracer, point(state, "x"), point(state, "y"), array(state, "M")
        g = significant(t, p.gradient(x)).named(t, "g")
        error = t.name("error", t.sqrt((g - point(state, "m")).squared_norm()))
        least = t.minimum(error, M)
        S, M = t.name("S", array(state, "S") + least * least), t.name("M", t.maximum(M, error))
        following, mu = _projected(p, y - _step(p, S, M) * g, state)
        seen = {"seen": data_of(p)} if predicted_of(p.spec.canonical).size else {}
        return {**state, "x": following, "y": following, "S": S, "M": M, **seen, **mu, **kept_after(p, x)}


def _step(p: Problem, S: Value, M: Value) -> Value:
    t = p.tracer
    return t.name("eta", p.setting("D") / t.sqrt(2.0 * t.maximum(S + M * M, TINY)))


def _projected(p: Problem, v: Point, state: State) -> tuple[Point, State]:
    """Projection onto the domain cut by the known constraints of the round, and the multipliers of these."""
    if not p.spec.canonical.known:
        return p.domain.project(v), {}
    x, mu = nearest_known(p, v, array(state, MULTIPLIERS))
    return x, {MULTIPLIERS: mu}


def _predicted(p: Problem, state: State) -> list[Value]:
    """Data of the round as the model predicts them, stream by stream; of those without a prediction, those of the round before."""
    own, parts, at = dict(p.spec.canonical.predictions), list[Value](), 0
    for name, size in predicted_of(p.spec.canonical).streams.items():
        parts.append(stated_value(p, own[name]) if name in own else array(state, "seen")[at : at + size])
        at += size
    return parts


# The theorem.


def _predictable(s: Situation) -> Objection | None:
    in_loss = set(names(s.canonical.objective, Kind.STREAM))
    if in_loss & {n for n, _ in s.canonical.predictions} or in_loss & set(s.canonical.context):
        return None
    fix = "state what is known of a stream of the loss: `predict price = last(price)`, or of contexts"
    return Objection("nothing is known of the loss of a round before its decision", fix)


def _full(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.FULL:
        return None
    message = f"{s.canonical.feedback} feedback does not give the loss as a function, of which it predicts the gradient"
    return Objection(message, "write `feedback full`")


PREDICTABLE = Hypothesis("Something is known of the loss before the decision.", _predictable)
FULL = Hypothesis("The loss is revealed as a function.", _full)


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")

    def squares(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(rounds.last * (2 * slope) ** 2)

    guess = scheduled(settings, "D")
    squared = r"\sum_t \|\nabla f_t(x_t) - m_t\|^2"
    largest = r"\max_t \|\nabla f_t(x_t) - m_t\|"
    words = "squared errors of the predicted gradients: at most (2 G)^2 a round, little where predictions are good"

    def reach(rounds: Rounds, horizon: int) -> Floats:
        own = guess(rounds, horizon).last
        return np.asarray((own + diameter**2 / own) / 2)

    quantities = (
        Quantity("reach", "(D_s + D^2 / D_s)/2", "D where the setting D_s is D", reach),
        Quantity("D", "D", "diameter of the domain", diameter),
        Quantity("P", squared, words, squares),
        Quantity("E", largest, "largest error of a predicted gradient, at most 2 G", 2 * slope),
    )
    bound = Bound("static regret", "sqrt(T)", "reach * sqrt(2 * (P + E**2)) + D * E", quantities, s.loss_range)
    return Guarantee("Rakhlin & Sridharan 2013, with the steps of this module", s.horizon, bound)


OPTIMISTIC = Algorithm(
    name="optimistic",
    title="optimistic gradient descent",
    cite="Rakhlin & Sridharan 2013",
    rule=Optimistic,
    adapts=True,
    reads=Feedback.FULL,
    requirements=(PROJECTION, PREDICTABLE, AVERAGED, FULL),
    theorems=(
        Theorem(
            name="errors of predictions",
            moves=True,
            measures=frozenset({Measure.STATIC}),
            hypotheses=(NO_CONSTRAINTS, CONVEX_LOSS, BOUNDED_DOMAIN, BOUNDED_GRADIENT),
            settings=lambda s: {"D": Default("domain.diameter.l2", "diameter of the domain")},
            positive=("D",),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)"},
            checks=constant_settings,
        ),
    ),
    prepares=lambda canonical: True,
    predicts=True,
    cost="two projections",
    symbols={
        "x": "the decision of this round",
        "y": "where the steps on gradients lead",
        "m": "the gradient of this round as predicted",
        "S": "squared errors of the predicted gradients, each cut to the largest before it",
        "M": "largest error of a predicted gradient",
        "seen": "data of the round before",
    },
)
