"""Rule of `hedged`: the experts, their weights, and what is known before the decision (see `hedged`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from oco.compiler.algorithms.de_rooij2014 import mixability_gap, weights
from oco.compiler.algorithms.predictions import Predictions, places
from oco.compiler.ir.value import Value
from oco.compiler.lowering.known_step import left_at_first, left_to_next, nearest_known, rows_known
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.predicted_round import after, as_predicted, predicted_of
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, rows
from oco.compiler.problem.canonical import Canonical
from oco.compiler.proximal.penalty import implicit_step, penalized_step
from oco.compiler.theory.objective import stated_prices

GRADIENTS = ((0.1, 1.0), (1.0, 1.0))
"""Factors c of AdaGrad's step and r of the prices of the gradient experts; the theorem is of the one with 1 and 1."""
SOLVED = (*product((0, 1), (0.3, 3.0), (0.75, 0.9, 0.98, 0.995, 1.0)), *product((2,), (3.0,), (0.75, 0.9, 0.98, 0.995)))
"""Experts that solve the next round: the average, its place in `FORGETTING`; the reach as a factor of AdaGrad's step; the quantile."""
FOLLOWING = tuple(product((3.0, 30.0), (0.5, 0.75, 0.9, 0.98, 0.995)))
"""Reach and quantile of the experts that solve the round on each of the other predictions: of the season, of the contexts."""
REACH, NO_MARGIN = 3.0, 2.0
"""Reach of the experts that solve the round at a quantile of the stated distribution, and the mark that they learn no margin."""
KEPT = (1.0, 0.99)
"""Share of the losses so far that is kept each round by each of the weightings of the experts, which are weighed in turn."""
ROUNDING = 1e-12
"""Share of what weightings have paid within which they are alike: rounding is not to choose between them."""
MARGIN_RATE = 0.05
LARGE = 1e4
"""Largest multiplier of a constraint as predicted, in units of the loss's slope times the diameter over the size of a constraint."""
TINY = 1e-290
MULTIPLIERS, LAST = "mu", "x_last"
Body = Callable[..., tuple[Value, ...]]
Solved = tuple[tuple[int, float, float], ...]


def solving(canonical: Canonical, season: int) -> Solved:
    """Experts that solve the next round: the row of the prediction, the reach, the quantile. Where the loss charges moves, the last of
    them, as many as `SOLVED`, solve it as if they cost nothing: what a move costs now later rounds may earn.
    """
    blind = SOLVED if canonical.moving is not None else ()
    if not predicted_of(canonical).size:
        return (*SOLVED, *blind)
    _, seasonal, stated, regression = places(canonical, season)
    followed = ((row, c, q) for row in (*seasonal, *regression) for c, q in FOLLOWING)
    return (*SOLVED, *followed, *((row, REACH, NO_MARGIN) for row in stated), *blind)


def expert_count(canonical: Canonical, season: int) -> int:
    """Number of experts."""
    return len(GRADIENTS) + len(solving(canonical, season))


def is_informed(canonical: Canonical) -> bool:
    """True where a round has something that is known before its decision, contexts or what rounds leave to the next."""
    return bool(canonical.known or canonical.context or canonical.carried)


class Hedged:
    """`x` has the decision of each expert: the gradients, then the rounds solved again, whose predictions, margins and errors follow."""

    def init(self, p: Problem, start: Point) -> State:
        t, N, canonical = p.tracer, p.constraint_count, p.task.canonical
        season = p.whole("season")
        count, solved = expert_count(canonical, season), len(solving(canonical, season))
        return {
            "x": repeated(t, start, count),
            "L": t.zeros((len(KEPT), count)),
            "gap": t.zeros((len(KEPT),)),
            "L_of": t.zeros((len(KEPT),)),
            "gap_of": t.lift(0.0),
            "S": t.zeros((count,)),
            "margin": t.zeros((solved, N)),
            "error": t.zeros((solved, N)),
            **Predictions(p).init(),
            **({MULTIPLIERS: t.zeros((count, rows_known(canonical)))} if canonical.known else {}),
            **({LAST: repeated(t, start, count)} if canonical.moving is not None else {}),
            **left_at_first(p, start),
        }

    def decide(self, p: Problem, state: State) -> Point:
        return rows(state, "x").combine(Weighting(p, state).combined)

    def prepare(self, p: Problem, state: State) -> State:
        """State with the experts' decisions of this round, once its contexts are known, within the known constraints."""
        predictions = Predictions(p)
        state = {**state, **predictions.prepared(state)}
        p.note("the round solved on predictions of the data, with margins")
        state = {**state, **_solved(p, state, predictions, following=False)}
        return {**state, **_within_known(p, state)} if p.task.canonical.known else state

    def update(self, p: Problem, state: State) -> State:
        t, x, weighting = p.tracer, rows(state, "x"), Weighting(p, state)
        played = x.combine(weighting.combined)
        canonical, predictions = p.task.canonical, Predictions(p)
        last = rows(state, LAST) if canonical.moving is not None else x
        solved = solving(canonical, predictions.season)
        prices, was = _prices(p), predictions.before(state)
        losses, S = t.zeros((x.count,)), array(state, "S")
        p.note("what each expert that solved the round paid, and the errors of its constraints as predicted")
        begin = (losses, array(state, "margin"), array(state, "error"))
        losses, margin, error = t.for_(len(solved), _judged(p, x, last, prices, was, solved), begin)
        p.note("gradients on the penalised loss")
        losses, S, *blocks = t.for_(len(GRADIENTS), _gradient_expert(p, last, prices), (losses, S, *x.blocks))
        after = {
            **state,
            "x": Rows(tuple(blocks)),
            **weighting.after(losses),
            "S": S,
            "margin": margin,
            "error": error,
            **predictions.update(state, was),
            **({LAST: x} if canonical.moving is not None else {}),
            **left_to_next(p, played),
        }
        if is_informed(canonical):
            return after
        p.note("the next round solved on predictions of the data, with margins")
        return {**after, **_solved(p, after, predictions, following=True)}


def gap_to_best(state: Mapping[str, Any]) -> float:
    """Penalised loss less that of the best expert, at most, in the units of the rule, from the values of a state.

    The weighting that forgets nothing pays 2 Delta at most beside the best expert (`de_rooij2014`), and the weights of the weightings
    Delta + ln 2 / eta beside that one.
    """
    among, between = float(np.asarray(state["gap"])[KEPT.index(1.0)]), float(state["gap_of"])
    return 2.0 * among + between + max(between, ROUNDING * float(np.max(np.abs(state["L_of"]))))


class Weighting:
    """Weights of the experts by their losses, with `KEPT` of them each round, and weights of these weightings by theirs."""

    def __init__(self, p: Problem, state: State) -> None:
        self.p, self.L, self.gap = p, array(state, "L"), array(state, "gap")
        self.L_of, self.gap_of = array(state, "L_of"), array(state, "gap_of")
        self.of_experts = [weights(p, self.L[i], self.gap[i]) for i in range(len(KEPT))]
        t = p.tracer
        self.gap_held = t.maximum(self.gap_of, ROUNDING * t.max(abs(self.L_of)))
        self.of_weightings = weights(p, self.L_of, self.gap_held)

    @property
    def combined(self) -> Value:
        """Weights of the experts, shape (K,)."""
        return self.of_weightings @ self.p.tracer.stack(*self.of_experts)

    def after(self, losses: Value) -> State:
        """State after the losses (K,) of a round."""
        p, t = self.p, self.p.tracer
        kept = t.constant(np.array(KEPT), "kept", "share of the losses that stays")
        gaps = [mixability_gap(p, losses, w, self.gap[i]) for i, w in enumerate(self.of_experts)]
        paid = t.stack(*(w @ losses for w in self.of_experts))
        return {
            "L": t.reshape(kept, (len(KEPT), 1)) * self.L + losses,
            "gap": kept * self.gap + t.stack(*gaps),
            "L_of": self.L_of + paid,
            "gap_of": self.gap_of + mixability_gap(p, paid, self.of_weightings, self.gap_held),
        }


def _prices(p: Problem) -> Value:
    """Price of a unit of violation of each constraint, shape (N,), in units of the rule."""
    scales, stated = p.task.scales, stated_prices(p.task.canonical.inequalities)
    if scales is not None:
        stated = stated * scales.inequalities / scales.loss
    own = p.setting("penalty")
    if p.task.settings["penalty"].given or not stated.any():
        return p.tracer.full(1.0, stated.shape) * own
    price = p.tracer.constant(stated, "price", "penalties that the model states, of g / G in units of the loss")
    return price if stated.all() else p.tracer.where(price > 0.0, price, own)


def _penalised(p: Problem, x: Point, g: Value, prices: Value) -> Value:
    """P_t(x) of the values g = g_t(x)."""
    return p.loss(x) + p.tracer.sum(prices * p.tracer.maximum(g, 0.0))


def _gradient_expert(p: Problem, last: Rows, prices: Value) -> Body:
    """Body of the loop over the gradient experts: losses, S, and the decisions block by block."""
    t, D = p.tracer, p.setting("D")
    sizes = t.constant(np.array([c for c, _ in GRADIENTS]), "steps", "factors of the steps")
    factors = t.constant(np.array([r for _, r in GRADIENTS]), "factors", "factors of the prices")

    def one(k: Value, losses: Value, S: Value, *blocks: Value) -> tuple[Value, ...]:
        x = Rows(blocks).row(k)
        g = t.name("g", p.constraints(x))
        slope = p.gradient(x) + p.constraint_combination(x, factors[k] * prices * t.to_float(g > 0.0))
        total = t.name("total", S[k] + slope.squared_norm())
        eta = t.name("eta", sizes[k] * D / t.sqrt(2.0 * t.maximum(total, TINY)))
        following = p.domain.project(x - eta * slope)
        losses = t.put(losses, _penalised(after(p, last.row(k)), x, g, prices), k)
        return (losses, t.put(S, total, k), *Rows(blocks).replaced(k, following).blocks)

    return one


def _judged(p: Problem, x: Rows, last: Rows, prices: Value, was: Value | None, solved: Solved) -> Body:
    """Body of the loop over the experts that solved the round: losses, margins, errors."""
    t, first, none = p.tracer, len(GRADIENTS), p.tracer.zeros((p.constraint_count,))
    place = t.constant(np.array([i for i, _, _ in solved]), "place", "the prediction that each expert takes")
    quantiles = t.constant(np.array([q for _, _, q in solved]), "quantile")
    ends = t.constant(_begun(p, solved), "begun", "rounds after which predictions count as made")

    def one(k: Value, losses: Value, margins: Value, errors: Value) -> tuple[Value, ...]:
        own = x.row(k + first)
        g = t.name("g", p.constraints(own))
        moved = after(p, last.row(k + first))
        losses = t.put(losses, _penalised(moved, own, g, prices), k + first)
        predicted = as_predicted(moved, None if was is None else was[place[k]], none)
        changed = _margin(p, g - predicted.constraints(own), margins[k], errors[k], quantiles[k])
        counts = p.played > ends[k]
        margin, error = (t.where(counts, a, b) for a, b in zip(changed, (margins[k], errors[k])))
        return losses, t.put(margins, margin, k), t.put(errors, error, k)

    return one


def _begun(p: Problem, solved: Solved) -> np.ndarray[Any, Any]:
    """Rounds after which each prediction is one: a season's after the first of its seasons."""
    season = p.whole("season")
    _, seasonal, *_ = places(p.task.canonical, season)
    return np.array([season + 0.5 if i in seasonal else 0.5 for i, _, _ in solved])


def _solved(p: Problem, state: State, predictions: Predictions, following: bool) -> State:
    """Decisions of the experts that solve the round, or the `following` one, with the sums of their squared slopes."""
    t, N, D, first = p.tracer, p.constraint_count, p.setting("D"), len(GRADIENTS)
    canonical = p.task.canonical
    solved, margins = solving(canonical, predictions.season), array(state, "margin")
    data = array(state, "predicted") if predictions.size else None
    place = t.constant(np.array([i for i, _, _ in solved]), "place", "the prediction that each expert takes")
    sizes = t.constant(np.array([c for _, c, _ in solved]), "reach", "factors of the steps")
    caps = t.full(1.0, (N,)) * p.setting("Q")
    implicit = [predicted_of(c).whole is not None for c in (canonical.played, canonical)]
    weights = t.concat(t.ones((1,)), caps) if any(implicit) else caps
    begun = p.played > 1.5

    def solve(k: Value, whole: bool, moved: Callable[[Point], Problem], S: Value, *blocks: Value) -> tuple[Value, ...]:
        j = k + first
        x = Rows(blocks).row(j)
        row, margin = None if data is None else data[place[k]], margins[k]
        own = as_predicted(moved(x), row, margin, following)
        slope = own.gradient(x)
        total = t.name("total", S[j] + slope.squared_norm())
        alpha = t.name("alpha", t.sqrt(2.0 * t.maximum(total, TINY)) / (2.0 * sizes[k] * D))
        if whole:
            step = implicit_step(as_predicted(moved(x), row, margin, following, whole=True), x, alpha, weights)
        else:
            step = penalized_step(own, x, slope, alpha, caps, own.constraints(x))
        if not following:
            step, total = step.map(lambda a, b: t.where(begun, a, b), x), t.where(begun, total, S[j])
        return (t.put(S, total, j), *Rows(blocks).replaced(j, step).blocks)

    blind = len(SOLVED) if canonical.moving is not None else 0
    aware = len(solved) - blind
    begin = (array(state, "S"), *rows(state, "x").blocks)
    S, *blocks = t.for_(aware, lambda k, *now: solve(k, implicit[0], lambda x: after(p, x), *now), begin)
    if blind:
        S, *blocks = t.for_(blind, lambda k, *now: solve(k + aware, implicit[1], lambda x: p, *now), (S, *blocks))
    return {"S": S, "x": Rows(tuple(blocks))}


def _within_known(p: Problem, state: State) -> State:
    """Decisions of all experts moved to the nearest points that satisfy the known constraints of the round."""
    t, x, mu = p.tracer, rows(state, "x"), array(state, MULTIPLIERS)

    def one(k: Value, mu: Value, *blocks: Value) -> tuple[Value, ...]:
        moved, multipliers = nearest_known(p, Rows(blocks).row(k), mu[k])
        return (t.put(mu, multipliers, k), *Rows(blocks).replaced(k, moved).blocks)

    p.note("each expert within the known constraints")
    mu, *blocks = t.for_(mu.shape[0], one, (mu, *x.blocks))
    return {MULTIPLIERS: mu, "x": Rows(tuple(blocks))}


def _margin(p: Problem, e: Value, margin: Value, error: Value, quantile: Value) -> tuple[Value, Value]:
    """Margin and largest error after the error e of each constraint, (N,)."""
    t = p.tracer
    error = t.name("error", t.maximum(error, abs(e)))
    rises = t.to_float(e > margin) - (1.0 - quantile)
    quick = t.maximum(MARGIN_RATE, 1.0 / t.sqrt(p.played))
    followed = margin + quick * error * rises
    followed = t.where(quantile > 0.9995, t.maximum(margin, e), followed)
    return t.name("margin", t.where(quantile > 1.5, margin, followed)), error
