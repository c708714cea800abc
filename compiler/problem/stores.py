"""Stores: states whose entries are filled and emptied by entries of the decisions, and the value of what a round leaves in them.

    s' = keep s + sum_k rate_k x_k + drift,      lower <= s <= upper

with numbers `keep`, which may change with the round, and `rate`, and a drift of contexts, streams and the round: what is in a battery, a
tank, a warehouse. A flow is one term of these sums; an entry of the decisions has several where it moves several stores, as water from one
reservoir into the next. A drift that is known only afterwards is one where something keeps the range (`store_ranges`). Levels of other
entries are a part of the drift, as of rooms that exchange heat, or tanks one after the other: where their factors are numbers a unit in an
entry brings so much into others (`systems`), and an entry that others move may have no flow of its own. The value of what is left is
concave and piecewise linear,

    V(s') = sum_j slope_j s'_j - sum_k drop_kj [s'_j - knot_kj]_+,      drop_kj >= 0,

so that f(x) - V(s'(x)) is convex in x where f is (`valued`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from oco.compiler.problem.by_round import cycle_of, over_like_rounds, row_of_round, season_of
from oco.compiler.problem.calculus import gradient, hessian_vector, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.margin_predictions import SEASONS
from oco.compiler.problem.state_costs import StateCost, without_state_costs
from oco.compiler.problem.store_forms import (
    NO_ENTRY,
    SHARED_RATES,
    UNMOVED,
    NoStore,
    StoreOfState,
    awaited_store,
    store_of,
)
from oco.compiler.problem.store_ranges import End, outside, with_outside
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, constant, names, rewrite, walk
from oco.dsl.statistics import statistic_of

Floats = np.ndarray[Any, Any]
SLOPE, DROP, KNOT = "_slope_", "_drop", "_knot"
SHORT, OVER = "_short_", "_over_"
KNOTS = 7
"""Kinks of the value of what is left, between what a round can leave at least and at most."""


@lru_cache(maxsize=16)
def stores(canonical: Canonical) -> tuple[StoreOfState, ...]:
    """Stores of a problem."""
    return tuple(s for s in _states(canonical) if isinstance(s, StoreOfState))


def no_stores(canonical: Canonical) -> tuple[NoStore, ...]:
    """States of a problem that are no stores, each with what makes it none, but for those on the way to a store."""
    return tuple(s for s in _states(canonical) if isinstance(s, NoStore))


@lru_cache(maxsize=16)
def _states(canonical: Canonical) -> tuple[StoreOfState | NoStore, ...]:
    canonical = canonical.unscaled or canonical  # what follows a state is in the user's units
    states = [s for s in canonical.streams if s.uncut is not None]
    awaited = _alone(s for s in (awaited_store(canonical, s) for s in states) if s is not None)
    on_the_way = {g.state.name for s in awaited.values() if s.pipeline is not None for g in s.pipeline.stages}
    made = _alone_where_scaled(
        [awaited.get(s.name) or store_of(canonical, s) for s in states if s.name not in on_the_way]
    )
    moved = _moved([s for s in made if isinstance(s, StoreOfState)])
    movers = moved - set(awaited)

    def known(s: StoreOfState | NoStore) -> StoreOfState | NoStore:
        if isinstance(s, NoStore):
            return s
        if s.name not in moved:
            return NoStore(s.state, UNMOVED)
        return replace(s, coupled={n: f for n, f in s.coupled.items() if n in movers})

    return tuple(map(known, made))


def _alone_where_scaled(made: Sequence[StoreOfState | NoStore]) -> list[StoreOfState | NoStore]:
    """States of which none is a store whose flows data scale and move other stores, or that others move or that moves others."""
    own = [s for s in made if isinstance(s, StoreOfState)]
    taken, moved = Counter(int(i) for s in own for i in s.entries), _moved(own)
    tied = {n for s in own for n in s.coupled if s.name in moved} | {s.name for s in own if moved & set(s.coupled)}

    def alone(s: StoreOfState | NoStore) -> StoreOfState | NoStore:
        if isinstance(s, NoStore) or not s.changing:
            return s
        shared = s.name in tied or any(taken[int(i)] > 1 for i in s.entries if i != NO_ENTRY)
        return NoStore(s.state, SHARED_RATES) if shared else s

    return list(map(alone, made))


def _moved(made: Sequence[StoreOfState]) -> set[str]:
    """Names of those of which decisions move an entry, at once or through others of them."""
    moved = {s.name for s in made if (s.entries != NO_ENTRY).any()}
    while more := {s.name for s in made if s.name not in moved and moved & set(s.coupled)}:
        moved |= more
    return moved


def move_each_other(own: Sequence[StoreOfState]) -> bool:
    """True where levels of entries of these stores move others of them."""
    return any(s.coupled.keys() & {o.name for o in own} for s in own)


def move_unlike_stores(own: Sequence[StoreOfState]) -> bool:
    """True where a flow moves several entries of stores that keep different parts of what is in them."""
    if not own or not moved_beside(own).any():
        return False
    keep = np.concatenate(over_like_rounds([s.keep for s in own]), axis=1)[:, filled_by_flows(own)]
    entries = np.concatenate([s.entries for s in own])
    together = (entries[:, None] == entries) & (entries != NO_ENTRY)
    return bool((together & (keep[:, :, None] != keep[:, None, :]).any(axis=0)).any())


def systems(own: Sequence[StoreOfState]) -> Floats:
    """A of s' = A s + ..., for the entries of all stores, numbered one after the other: a table by the round, (P, m, m)."""
    begins = np.cumsum([0, *(s.size for s in own)])
    at = {s.name: slice(int(a), int(a) + s.size) for s, a in zip(own, begins)}
    m = int(begins[-1])
    parts = [np.zeros((1, m, m))]
    for s in own:
        for name, factors in ((s.name, s.keep[:, :, None] * np.eye(s.size)), *s.coupled.items()):
            if name in at:
                parts.append(np.zeros((len(factors), m, m)))
                parts[-1][:, at[s.name], at[name]] += factors
    return np.asarray(sum(over_like_rounds(parts)))


def filled_by_flows(own: Sequence[StoreOfState]) -> Floats:
    """Store entry, numbered over all stores, that each flow of all stores moves, (F,)."""
    before = np.cumsum([0, *(s.size for s in own)])
    return np.concatenate([a + s.filled for a, s in zip(before, own)]) if own else np.zeros(0, dtype=np.int64)


def moved_beside(own: Sequence[StoreOfState]) -> Floats:
    """Flows into each other store entry beside one of 1 into its own, (F, m)."""
    filled = filled_by_flows(own)
    entries, rate = (np.concatenate([getattr(s, n) for s in own]) for n in ("entries", "rate"))
    beside = np.zeros((filled.size, sum(s.size for s in own)))
    for k, (entry, place) in enumerate(zip(entries, filled, strict=True)):
        others = (entries == entry) & (filled != place) & (entry != NO_ENTRY)
        beside[k, filled[others]] = rate[others] / rate[k]
    return beside


def _alone(awaited: Iterable[StoreOfState]) -> dict[str, StoreOfState]:
    """Stores that decisions fill rounds later, by name: those whose orders go to no other."""
    own = list(awaited)
    taken = Counter(int(i) for s in own for i in s.entries)
    return {s.name: s for s in own if all(taken[int(i)] == 1 for i in s.entries)}


def slope_name(store: StoreOfState) -> str:
    """Name of the stream with the value of a unit that is left, at the least that is left, of the shape of the state."""
    return f"{SLOPE}{store.name}"


def knot_names(store: StoreOfState, k: int) -> tuple[str, str]:
    """Names of the streams with a kink, and with the drop of the value of a unit beyond it."""
    return f"{KNOT}{k}_{store.name}", f"{DROP}{k}_{store.name}"


def is_kink_of_value(node: Expr) -> bool:
    """True for [s' - knot]_+, at a knot of the value of what is left."""
    knots = (n for n in names(node, Kind.STREAM) if n.startswith(KNOT))
    return isinstance(form_of(node), forms.Extreme) and next(knots, None) is not None


def cut_names(store: StoreOfState) -> tuple[str, str]:
    """Names of the streams with the value of a unit that is missing at the lower end, and of one that is beyond the upper end."""
    return f"{SHORT}{store.name}", f"{OVER}{store.name}"


@lru_cache(maxsize=16)
def valued(canonical: Canonical) -> Canonical:
    """Problem with f(x) - V(s'(x)) in the place of the loss f, with s' as it is after the cut where nothing else keeps the range.

    Costs of the level that the next round begins with are part of V, as they are.
    """
    # The kinks of V are none of the loss, with which predictions of the streams would have to move: `unscaled` is the problem without them.
    total, own = (
        reduce(algebra.add, (_left(s) for s in stores(canonical))),
        _with_outside(canonical, outside),
    )
    for store, costs in zip(stores(canonical), state_costs(canonical), strict=True):
        if store.pipeline is not None:
            continue
        left = algebra.broadcast(store.following, store.shape)
        for cost in (c for c in costs if not c.left):
            total = algebra.sub(total, _summed(cost.a_round_later(canonical).at(left)))
    moving = None if own.moving is None else algebra.sub(own.moving, total)
    return replace(
        own, objective=algebra.sub(own.objective, total), moving=moving, unscaled=canonical.unscaled or canonical
    )


@lru_cache(maxsize=16)
def without_outside(canonical: Canonical) -> Canonical:
    """Problem whose loss pays nothing for what is missing in stores, or too much, nor for levels alone: what filling one costs."""
    result = _with_outside(canonical, lambda s, end: constant(np.zeros(s.shape)))
    for store in stores(canonical):
        own, moving = (
            None if e is None else without_state_costs(result, store.state, e, store.pipeline is None)[0]
            for e in (result.objective, result.moving)
        )
        assert own is not None
        result = replace(result, objective=own, moving=moving)
    return result


@lru_cache(maxsize=16)
def state_costs(canonical: Canonical) -> tuple[tuple[StateCost, ...], ...]:
    """Costs of the level of each store alone, but for those of what is outside its range."""
    inside = _with_outside(canonical, lambda s, end: constant(np.zeros(s.shape)))
    loss = inside.objective if inside.moving is None else inside.moving
    return tuple(without_state_costs(inside, s.state, loss, s.pipeline is None)[1] for s in stores(canonical))


def _with_outside(canonical: Canonical, by: Callable[[StreamRange, End], Expr]) -> Canonical:
    """Problem with other expressions for what is outside the range of stores, where the loss pays for it."""
    own, moving = canonical.objective, canonical.moving
    for store in stores(canonical):
        s = store.state
        for end in (e for e, p in ((End.LOWER, store.ends.paid), (End.UPPER, store.ends.charged)) if p.any()):
            own = with_outside(canonical, s, end, own, by(s, end))
            moving = None if moving is None else with_outside(canonical, s, end, moving, by(s, end))
    return replace(canonical, objective=own, moving=moving)


def _left(store: StoreOfState) -> Expr:
    """V of what a round leaves in a store, or orders for it."""
    left = algebra.broadcast(store.moved, store.shape)

    def own(name: str) -> Name:
        return Name(name, Kind.STREAM, shape=store.shape)

    total = _summed(algebra.mul(own(slope_name(store)), left))
    for k in range(KNOTS):
        knot, drop = map(own, knot_names(store, k))
        total = algebra.sub(total, _summed(algebra.mul(drop, call("pos", algebra.sub(left, knot)))))
    if store.pipeline is not None:
        return total
    short, over = map(own, cut_names(store))
    if store.ends.paid.any() or store.ends.free.any():
        total = algebra.add(total, _summed(algebra.mul(short, outside(store.state, End.LOWER))))
    if store.ends.wasted.any():
        upper = row_of_round(store.ends.uppers.reshape(-1, *store.shape))
        total = algebra.sub(total, _summed(algebra.mul(over, call("pos", algebra.sub(left, upper)))))
    return total


def _summed(e: Expr) -> Expr:
    return e if e.shape == () else call("sum", e)


def value_of_state(canonical: Canonical, store: StoreOfState) -> Expr:
    """Derivative of the loss towards a store, of its shape."""
    loss = canonical.objective if canonical.moving is None else canonical.moving

    def swapped(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.kind not in (Kind.STREAM, Kind.DECISION):
            return node
        return replace(node, kind=Kind.DECISION if node.name == store.name else Kind.STREAM)

    return algebra.broadcast(gradient(rewrite(loss, swapped), (store.name,))[store.name], store.shape)


@lru_cache(maxsize=16)
def diagonal_curvature(canonical: Canonical) -> dict[str, Expr]:
    """Sums of the rows of the loss's second derivative, by decision and of its shape: the diagonal where the loss is separable."""
    ones = {b.name: constant(np.ones(b.shape)) for b in canonical.blocks}
    rows = hessian_vector(without_outside(canonical).objective, ones)
    return {b.name: algebra.broadcast(rows[b.name], b.shape) for b in canonical.blocks}


@lru_cache(maxsize=16)
def has_curvature(canonical: Canonical) -> bool:
    """True where the loss has a second derivative that is not 0."""
    return any(names(e) or np.any(evaluate(e, {})) for e in diagonal_curvature(canonical).values())


@lru_cache(maxsize=16)
def has_kinks(canonical: Canonical) -> bool:
    """True where the loss's slope jumps somewhere in the decisions, as that of a price for either direction of a flow does at 0."""
    bare = without_outside(canonical)
    slopes = gradient(bare.objective, tuple(b.name for b in bare.blocks)).values()
    steps = (n for g in slopes for n in walk(g) if isinstance(n, Call) and names(n, Kind.DECISION))
    return any(_is_flat(n) for n in steps)


def _is_flat(expr: Expr) -> bool:
    """True where the derivative towards the decisions is 0 everywhere, though they stand in it."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    towards = vector_jacobian(expr, weights, names(expr, Kind.DECISION))
    return all(isinstance(e, Constant) and not e.value.array.any() for e in towards.values())


@lru_cache(maxsize=16)
def season_by_round(canonical: Canonical) -> int:
    """Rounds of the longest season that loss and stores read by the round, as in `tariff[(t - 1) % 24]`, or that streams are predicted by,
    as in `season(price, 24)`, and that comes twice; else 1. None is looked for where nothing is left in stores. What factors of levels are
    read by counts up to the longest usual season: a store that begins anew each month is no reason why prices should repeat themselves.
    """
    own, most = stores(canonical), (canonical.horizon or math.inf) / 2
    loss = canonical.objective if canonical.moving is None else canonical.moving
    read = (loss, *(s.following for s in own))
    lengths = list(_seasons_in(_without_levels(e, {s.name for s in own}) for e in read))
    lengths += [k for k in _seasons_in(read) if k <= max(SEASONS)]
    statistics = (statistic_of(n) for p in canonical.model.predictions for n in names(p.value))
    lengths += [int(s.number) for s in statistics if s is not None and s.kind == "season"]
    return max((k for k in lengths if k <= most), default=1) if own else 1


@lru_cache(maxsize=16)
def is_known_ahead(canonical: Canonical, season: int) -> bool:
    """True where loss or drifts of stores hang on the number of the round otherwise than by a season of so many rounds, as by `price[t]`:
    what they are in rounds to come has to be read from the model.
    """
    own, loss = stores(canonical), canonical.objective if canonical.moving is None else canonical.moving
    read = (_without_levels(e, {s.name for s in own}) for e in (loss, *(s.following for s in own)))
    cycle = cycle_of(canonical.horizon, *read) if own else 1
    return cycle is None or season % cycle != 0


def _without_levels(expr: Expr, levels: Set[str]) -> Expr:
    """Expression where these states are 0, without the products of which they are factors."""

    def without(node: Expr) -> Expr:
        is_level = isinstance(node, Name) and node.name in levels
        zeros = (isinstance(c, Constant) and not c.value.array.any() for c in node.children)
        is_zero = is_level or (isinstance(form_of(node), forms.Bilinear) and any(zeros))
        return constant(np.zeros(known(node.shape))) if is_zero else node

    return rewrite(expr, without)


def _seasons_in(exprs: Iterable[Expr]) -> Iterator[int]:
    """Lengths of the seasons that expressions read by the round."""
    return (season_of(*n.children) for e in exprs for n in walk(e) if form_of(n) is forms.REMAINDER)
