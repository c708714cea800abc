"""Rule of `hedged`: the experts, their weights, and what is known before the decision (see `hedged`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.algorithms.dual_prices import DualPrices
from oco.compiler.algorithms.experts import Solved, blind, gradients, is_informed, sampled, solving
from oco.compiler.algorithms.learned_margins import followed
from oco.compiler.algorithms.loss_steps import beside, decided_beside, is_curved, points_after, points_at_start
from oco.compiler.algorithms.penalties import no_slopes, prices_of, slopes_after
from oco.compiler.algorithms.predictions import Predictions, places
from oco.compiler.algorithms.rehearsal import ROUNDS, is_whole, rehearsed
from oco.compiler.algorithms.row_multipliers import charged_for_rows, has_rows
from oco.compiler.algorithms.stored_value import GOLDEN
from oco.compiler.algorithms.value_left import ValueLeft
from oco.compiler.algorithms.weighting import Weighting, nothing_paid
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.predicted_round import (
    Samples,
    after,
    as_predicted,
    kink_prices,
    parts_of,
    positions,
    problem_of,
)
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, flattened, joined, of_form, rows
from oco.compiler.lowering.significance import beside_terms, significant
from oco.compiler.proximal.known_beside import beside_known, coupling
from oco.compiler.proximal.known_point import nearest_known, rows_known
from oco.compiler.proximal.known_step import kept_after, kept_at_start
from oco.compiler.proximal.penalty import implicit_step, penalized_step
from oco.dsl.magnitudes import TINY

LARGE = 1e4
"""Largest multiplier of a constraint as predicted, in units of the loss's slope times the diameter over the size of a constraint."""
PARTLY = ("x", "margin", "error")
"""State that a rehearsal leaves: decisions, and margins, which hang on the constraints' data alone."""
REHEARSED = (*PARTLY, "S")
"""State that it leaves where distributions of the loss's data are stated too."""
ASIDE = 1e-9
"""Part of the way to a point with other shares of the widths in each entry by which slopes are taken beside a decision that ends in kinks:
of a step on a whole loss, whose slope counts as a size alone, or where stores have a value, of which nothing is promised.
"""
AT_CENTRE = Tolerance(1e-9)
"""Share of a width within which a start is the middle of the domain."""
MULTIPLIERS, LAST = "mu", "x_last"
Floats = np.ndarray[Any, Any]


class Hedged:
    """`x` has the decision of each expert: the gradients, then the rounds solved again, whose predictions, margins and errors follow."""

    def init(self, p: Problem, start: Point) -> State:
        first, data = self.begun(p, start), _rounds_before(p)
        return _after_rehearsal(self, p, first, start, data) if data else first

    def begun(self, p: Problem, start: Point) -> State:
        """State in which nothing has been seen, with all decisions at `start`."""
        value = ValueLeft(p)
        first = value.init()
        p = value.viewed(first)
        t, N, canonical = p.tracer, p.constraint_count, p.spec.canonical
        season = p.whole("season")
        solved = len(solving(canonical, season, is_curved(p)))
        count = len(gradients(canonical)) + solved
        return joined(
            {"x": repeated(t, start, count)},
            nothing_paid(p, count),
            {"S": t.zeros((count,))},
            {"margin": t.zeros((solved, N)), "error": t.zeros((solved, N))} if N and solved else {},
            DualPrices(p).init(),
            points_at_start(p, start),
            Predictions(p).init(),
            {MULTIPLIERS: t.zeros((count, rows_known(canonical)))} if canonical.known else {},
            {LAST: repeated(t, start, count)} if canonical.moving is not None else {},
            no_slopes(p),
            kept_at_start(p, start),
            first,
        )

    def decide(self, p: Problem, state: State) -> Point:
        return rows(state, "x").combine(Weighting(p, state).combined)

    def prepare(self, p: Problem, state: State) -> State:
        """State with the experts' decisions of this round, once its contexts are known, within the known constraints."""
        value = ValueLeft(p)
        state = {**state, **value.prepared(state)}
        p = value.viewed(state)
        predictions = Predictions(p)
        state = {**state, **predictions.prepared(state)}
        if solving(p.spec.canonical, predictions.season, is_curved(p)):
            p.note("the round solved on predictions of the data, with margins")
            state = {**state, **_solved(p, state, predictions, following=False)}
        return {**state, **_within_known(p, state)} if p.spec.canonical.known else state

    def update(self, p: Problem, state: State) -> State:
        return _called(self, p, state) if _rounds_before(p) else self.following(p, state)

    def following(self, p: Problem, state: State) -> State:
        """State after a round."""
        given, value = p, ValueLeft(p)
        p = value.viewed(state)
        t, x, weighting = p.tracer, rows(state, "x"), Weighting(p, state)
        played = x.combine(weighting.combined)
        canonical, predictions = p.spec.canonical, Predictions(p)
        solved = solving(canonical, predictions.season, is_curved(p))
        slopes, was = slopes_after(given, state, played), predictions.before(state)
        prices = prices_of(p, slopes)
        learned: State = {}
        if solved:
            p.note("what each expert that solved the round paid, and the errors of its constraints as predicted")
            paid, learned = _judged(p, state, prices, predictions.counted(state, was), solved)
        p.note("gradients on the penalised loss")
        losses, S, blocks = _gradient_experts(p, state, prices)
        losses = t.concat(losses, paid) if solved else losses
        after = {
            **state,
            "x": blocks,
            **weighting.after(losses, _paid_by_means(p, state, weighting.means, prices) if is_curved(p) else None),
            "S": S,
            **learned,
            **DualPrices(given).update(state, played, prices),
            **_value_after(value, p, state, played, prices),
            **points_after(p, state),
            **predictions.update(state, was),
            **({LAST: x} if canonical.moving is not None else {}),
            **slopes,
            **kept_after(p, played),
        }
        if is_informed(canonical) or not solved:
            return after
        p.note("the next round solved on predictions of the data, with margins")
        return {**after, **_solved(p, after, predictions, following=True)}


def _rounds_before(p: Problem) -> Mapping[str, Floats]:
    """Rounds that are rehearsed; none where settings hang on the round, or no margin is learned."""
    timed = any("t" in v.symbols for v in p.spec.settings.values())
    return {} if timed or positions(p.spec.canonical) else rehearsed(p.spec.canonical)


def _called(rule: Hedged, p: Problem, state: State) -> State:
    """State after a round, by a function of the program that rehearsed rounds call too."""
    streams, opened = list(p.seen), list(p.constants)
    ends = np.cumsum((len(flattened(state)), len(streams), len(opened)))
    round_, turn = (p.round, ()) if p.turn is None else (p.turn.own, (p.turn.number, p.turn.observed))

    def learned(round_: Value, *values: Value) -> list[Value]:
        own, seen, more, turn = (values[a:b] for a, b in pairwise((0, *ends, len(values))))
        round_problem = Problem(p.tracer, p.spec, dict(zip(streams, seen)), round_, constants=dict(zip(opened, more)))
        round_problem = round_problem.in_turn(p.ahead, *turn) if turn else round_problem
        return flattened(rule.following(round_problem, of_form(state, own)))

    assert round_ is not None
    names = [f"{n}_{i}" for n, v in state.items() for i, _ in enumerate(flattened({n: v}))]
    parts = zip((*names, *streams, *opened), (*flattened(state), *p.seen.values(), *p.constants.values()), strict=True)
    given = [*(p.tracer.name(n, v) for n, v in parts), *turn]
    key = rule, p.spec, tuple(streams), tuple(opened), tuple(state)
    return of_form(state, p.tracer.call("learned", learned, round_, *given, doc="State after a round.", key=key))


def _after_rehearsal(rule: Hedged, p: Problem, first: State, start: Point, data: Mapping[str, Floats]) -> State:
    """First state with the decisions, slopes and margins that rehearsed rounds lead to, unless somebody chose the start."""
    t = p.tracer
    table = {n: t.constant(v, f"rehearsed_{n}", "rounds drawn as the model states") for n, v in data.items()}

    def turn(k: Value, *values: Value) -> list[Value]:
        seen = {n: table[n][k] for n in (s.name for s in p.spec.canonical.streams) if n in table}
        own = Problem(t, p.spec, seen, k + 1, constants=p.constants)
        own = own if p.turn is None else own.in_turn(p.ahead, p.turn.number + k * p.ahead, k)
        state = of_form(first, values)
        return flattened(rule.update(own, rule.prepare(own, state) if is_informed(p.spec.canonical) else state))

    p.note("rounds are rehearsed; of what they taught, weights and predictions go")
    after = of_form(first, t.for_(ROUNDS, turn, flattened(first)))
    away = [t.any(abs(a - b) > AT_CENTRE * p.domain.least_width) for a, b in zip(start.blocks, p.centre().blocks)]
    chosen = reduce(t.or_, away)
    names = REHEARSED if is_whole(p.spec.canonical) else PARTLY
    before, later = ({n: state[n] for n in names} for state in (first, after))
    return {**first, **of_form(before, [t.where(chosen, a, b) for a, b in zip(flattened(before), flattened(later))])}


def _value_after(value: ValueLeft, valued: Problem, state: State, played: Point, prices: Value) -> State:
    """State with the value of what rounds leave in stores, after one that `value` was made for; `valued` is its view."""
    if not value.stores:
        return {}

    def slope(p: Problem, x: Point) -> Point:
        return DualPrices(p).slope(state, x, _constraints(p, x), prices)

    cost = slope(value.filling(), played)
    if has_rows(valued):
        cost = cost + charged_for_rows(valued, played, partial(slope, valued))
    return value.update(state, played, cost)


def _constraints(p: Problem, x: Point) -> Value | None:
    """g_t(x), shape (N,); None without constraints."""
    return p.tracer.name("g", p.constraints(x)) if p.constraint_count else None


def _last(p: Problem, state: State) -> list[Value]:
    """Decisions of the experts in the round before, block by block, where the loss is about them; else none."""
    return list(rows(state, LAST).blocks) if p.spec.canonical.moving is not None else []


def _gradient_experts(p: Problem, state: State, prices: Value) -> tuple[Value, Value, Rows]:
    """Losses of the gradient experts, and S and the decisions of all with theirs after the round."""
    t, D, x, S, own = p.tracer, p.setting("D"), rows(state, "x"), array(state, "S"), gradients(p.spec.canonical)
    count = len(own)
    sizes = t.constant(np.array([c for c, _ in own]), "steps", "factors of the steps")
    factors = t.constant(np.array([r for _, r in own]), "factors", "factors of the prices")

    last, has_values = _last(p, state), bool(ValueLeft(p).stores)

    def one(size: Value, factor: Value, S: Value, *rest: Value) -> tuple[Value, ...]:
        before, own = Point(rest[: len(last)]), Point(rest[len(last) :])
        g = _constraints(p, own)
        at = _off_kinks(p, own) if has_values else own
        slope = DualPrices(p).slope(state, at, g if at is own else _constraints(p, at), factor * prices)
        slope = significant(t, slope)
        total = t.name("total", S + slope.squared_norm())
        eta = t.name("eta", size * D / t.sqrt(2.0 * t.maximum(total, TINY)))
        return (
            DualPrices(after(p, before)).penalised(state, own, g, prices),
            total,
            *p.domain.project(own - eta * slope).blocks,
        )

    losses, total, *moved = t.map_(one, sizes, factors, S[:count], *(b[:count] for b in (*last, *x.blocks)))
    return losses, t.concat(total, S[count:]), Rows(tuple(t.concat(m, b[count:]) for m, b in zip(moved, x.blocks)))


def _paid_by_means(p: Problem, state: State, weights: Value, prices: Value) -> Value:
    """P_t of the experts' mean by each row of the weights (means, K), shape (means,)."""
    t, last = p.tracer, _last(p, state)
    p.note("what the means of the experts paid")
    means = Rows((*last, *rows(state, "x").blocks)).weighted(weights).blocks

    def one(*blocks: Value) -> tuple[Value, ...]:
        before, own = Point(blocks[: len(last)]), Point(blocks[len(last) :])
        return (DualPrices(after(p, before)).penalised(state, own, _constraints(p, own), prices),)

    (paid,) = t.map_(one, *means)
    return paid


def _judged(p: Problem, state: State, prices: Value, was: Value | None, solved: Solved) -> tuple[Value, State]:
    """Losses of the experts that solved the round, and their margins and errors after it."""
    t, N, first = p.tracer, p.constraint_count, len(gradients(p.spec.canonical))
    last, decided = ([b[first:] for b in blocks] for blocks in (_last(p, state), rows(state, "x").blocks))
    if not N:

        def paid(*x: Value) -> tuple[Value, ...]:
            moved = DualPrices(after(p, Point(x[: len(last)])))
            return (moved.penalised(state, Point(x[len(last) :]), None, prices),)

        (losses,) = t.map_(paid, *last, *decided)
        return losses, {}
    quantiles = t.constant(np.array([q for _, _, q in solved]), "quantile")
    ends = t.constant(_begun(p, solved), "begun", "rounds after which predictions count as made")
    data, none = _rows_of(p, was, solved), t.zeros((N,))
    before = len(next(iter(_rounds_before(p).values()), ()))

    def one(margin: Value, error: Value, quantile: Value, end: Value, *rest: Value) -> tuple[Value, ...]:
        rest, own = rest[: -len(decided)], Point(rest[-len(decided) :])
        g = t.name("g", p.constraints(own))
        moved = after(p, Point(rest[len(data) :]))
        predicted = as_predicted(moved, rest[: len(data)], none)
        changed = followed(p, g - predicted.constraints(own), margin, error, quantile, before)
        counts = p.played > end
        return (
            DualPrices(moved).penalised(state, own, g, prices),
            *(t.where(counts, a, b) for a, b in zip(changed, (margin, error))),
        )

    given = [array(state, "margin"), array(state, "error"), quantiles, ends, *data, *last, *decided]
    losses, margin, error = t.map_(one, *given)
    return losses, {"margin": margin, "error": error}


def _rows_of(p: Problem, predicted: Value | None, solved: Solved) -> list[Value]:
    """Predictions that each expert takes, (experts, size) of each stream."""
    place = p.tracer.constant(np.array([i for i, _, _ in solved]), "place", "the prediction that each expert takes")
    return [] if predicted is None else [part[place] for part in parts_of(p, predicted)]


def _begun(p: Problem, solved: Solved) -> np.ndarray[Any, Any]:
    """Rounds after which each prediction is one: a season's after the first of its days, or of its seasons."""
    season = p.whole("season")
    _, seasonal, _, shifted, *_ = places(p.spec.canonical, season)
    waiting = {*seasonal, *shifted} if season > 1 else set()
    first = Predictions(p).profiles.waiting
    return np.array([first + 0.5 if i in waiting else 0.5 for i, _, _ in solved])


def _solved(p: Problem, state: State, predictions: Predictions, following: bool) -> State:
    """Decisions of the experts that solve the round, or the `following` one, with the sums of their squared slopes."""
    t, N, D, canonical = p.tracer, p.constraint_count, p.setting("D"), p.spec.canonical
    x, S, first = rows(state, "x"), array(state, "S"), len(gradients(canonical))
    solved = solving(canonical, predictions.season, is_curved(p))
    made = array(state, "predicted") if predictions.size else None
    data = _rows_of(p, predictions.counted(state, made), solved)
    sizes = t.constant(np.array([c for _, c, _ in solved]), "reach", "factors of the steps")
    caps = DualPrices(p).caps_beside(t.full(1.0, (N,)) * p.setting("Q")) if N else t.zeros((0,))
    priced, known = DualPrices(p).some, coupling(canonical)
    begun = p.begun

    def solve(
        samples: Samples | None, moved: Callable[[Point], Problem], size: Value, before: Value, *rest: Value
    ) -> list[Value]:
        margin, rest = (rest[0], rest[1:]) if N else (caps, rest)
        row, y = rest[: len(data)], Point(rest[len(data) :])
        predicted = problem_of(moved(y).spec.canonical, samples)
        has_whole = predicted.whole is not None
        own = as_predicted(moved(y), row, margin, following, samples=samples)
        slope = own.gradient(_off_kinks(p, y) if has_whole else y)
        charged = DualPrices(own).charged(state, y) if priced else y * 0.0
        slope, terms = beside_terms(t, slope + charged if priced else slope)
        total = t.name("total", before + slope.squared_norm())
        # Where a whole loss is flat up to rounding, the step stays near y: in units of its terms, whose rounding then moves nothing.
        seen = t.where(total > 0.0, total, terms) if has_whole else total
        alpha = t.name("alpha", t.maximum(t.sqrt(2.0 * seen) / (2.0 * size * D), math.sqrt(TINY)))
        if has_whole:
            own = as_predicted(moved(y), row, margin, following, True, samples)
        parts = [t.ones((1,))] * has_whole + [caps] * bool(N)
        prices = [t.name("prices", kink_prices(own, predicted, y))] if predicted.prices else []
        kinks, parts = _places_after(parts, prices), [*parts, *prices]
        if known:
            own, firm = beside_known(own, known, y, slope, alpha)
            parts.append(firm)
        weights = t.concat(*parts) if len(parts) > 1 else parts[0] if parts else caps
        if has_whole:
            step = implicit_step(own, y, charged, alpha, weights, kinks)
        elif parts:
            step = penalized_step(own, y, slope, alpha, weights, own.constraints(y))
        else:
            step = p.domain.project(y - slope / (2.0 * alpha))
        if not following:
            step, total = step.map(lambda a, b: t.where(begun, a, b), y), t.where(begun, total, before)
        return [total, *step.blocks]

    margins = [array(state, "margin")] if N else []
    nearest = len(solved) - len(beside(canonical, is_curved(p)))
    still = nearest - len(blind(canonical))
    aware = still - len(sampled(canonical, predictions.season))
    nearby = _last(p, state) or x.blocks  # in turn, the round before was another learner's
    given = [sizes, S[first:], *margins, *data, *(b[first:] for b in nearby)]
    moving: Callable[[Point], Problem] = partial(after, p)
    samples = predictions.samples(state) if aware < still else None
    groups = ((None, moving, 0, aware), (samples, moving, aware, still), (None, lambda y: p, still, nearest))
    parts = [t.map_(partial(solve, s, m), *(part[a:b] for part in given)) for s, m, a, b in groups if a < b]
    if nearest < len(solved):
        parts.append(decided_beside(p, state, [part[nearest:] for part in given[1:]], following))
    total, *blocks = (t.concat(before[:first], *moved) for before, *moved in zip((S, *x.blocks), *parts))
    return {"S": total, "x": Rows(tuple(blocks))}


def _places_after(before: Sequence[Value], own: Sequence[Value]) -> slice:
    """Places of the entries of some vectors that stand behind those of others."""
    first, count = (sum(part.shape[0] for part in parts) for parts in (before, own))
    return slice(first, first + count)


def _off_kinks(p: Problem, y: Point) -> Point:
    """Point of the domain next to y, at no kink where y is at one: rounding would choose the slope there."""
    blocks = []
    for d, b in zip(p.spec.domains, y.blocks, strict=True):
        shares = 0.25 + 0.5 * np.modf(GOLDEN * np.arange(1, d.size + 1) ** 2)[0].reshape(d.shape)
        there = d.project_array(d.lower + shares * (d.upper - d.lower))
        blocks.append(b + ASIDE * (p.tracer.constant(there, "aside", "towards which slopes are taken") - b))
    return Point(tuple(blocks))


def _within_known(p: Problem, state: State) -> State:
    """Decisions of all experts moved to the nearest points that satisfy the known constraints of the round."""
    t, mu = p.tracer, array(state, MULTIPLIERS)

    def one(mu: Value, *x: Value) -> tuple[Value, ...]:
        moved, multipliers = nearest_known(p, Point(x), mu)
        return (multipliers, *moved.blocks)

    p.note("each expert within the known constraints")
    mu, *blocks = t.map_(one, mu, *rows(state, "x").blocks)
    return {MULTIPLIERS: mu, "x": Rows(tuple(blocks))}
