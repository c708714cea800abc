"""Stores: states whose entries are filled and emptied by entries of the decisions, and the value of what a round leaves in them.

    s' = keep s + sum_k rate_k x_k + drift,      lower <= s <= upper

with numbers `keep` and `rate`, and a drift of contexts, streams and the round: what is in a battery, a tank, a warehouse. A flow is one
term of these sums; an entry of the decisions has several where it moves several stores, as water from one reservoir into the next. A drift
that is known only afterwards is one where something keeps the range (`store_ranges`). The value of what is left is concave and piecewise
linear,

    V(s') = sum_j slope_j s'_j - sum_k drop_kj [s'_j - knot_kj]_+,      drop_kj >= 0,

so that f(x) - V(s'(x)) is convex in x where f is (`valued`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import gradient, hessian_vector, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.pipelines import Pipeline, decision_ends, pipeline
from oco.compiler.problem.state_costs import StateCost, without_state_costs
from oco.compiler.problem.store_ranges import End, KeptRange, awaited_range, kept_range, outside, with_outside
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, changes, constant, names, rewrite, walk
from oco.dsl.records import dataclass
from oco.dsl.statistics import statistic_of

Floats = np.ndarray[Any, Any]
SLOPE, DROP, KNOT = "_slope_", "_drop", "_knot"
SHORT, OVER = "_short_", "_over_"
KNOTS = 7
"""Kinks of the value of what is left, between what a round can leave at least and at most."""


@dataclass(frozen=True, eq=False)
class StoreOfState:
    """State that is a store, of m entries that are moved by F flows.

    state        the state; s' is what follows it, before it is cut to its range
    ends         range of what is in store, and what keeps it
    keep         factor of s, (m,)
    filled       the entry of the state that each flow moves, in order, (F,)
    entries      the entry of the flattened decisions that each flow is of, (F,)
    rate         its factor, (F,)
    least, most  range of each flow rate x_k, (F,)
    pipeline     way of what is decided to the state where it comes rounds later; None where it is there at once
    """

    state: StreamRange
    ends: KeptRange
    keep: Floats
    filled: Floats
    entries: Floats
    rate: Floats
    least: Floats
    most: Floats
    pipeline: Pipeline | None = None

    @property
    def name(self) -> str:
        """Name of the state."""
        return self.state.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the state."""
        return self.state.shape

    @property
    def following(self) -> Expr:
        """s', before it is cut to its range."""
        assert self.state.uncut is not None
        return self.state.uncut

    @property
    def moved(self) -> Expr:
        """Expression that the value of what is left is of: s', before the cut; rate x_i where there is a pipeline."""
        return self.following if self.pipeline is None else self.pipeline.ordered

    @property
    def size(self) -> int:
        """Number of entries, m."""
        return math.prod(self.shape)

    @property
    def drift(self) -> Expr:
        """s' where nothing is in store or on its way to it, and nothing is decided."""
        own = {self.name, *(() if self.pipeline is None else (stage.state.name for stage in self.pipeline.stages))}

        def empty(node: Expr) -> Expr:
            is_own = isinstance(node, Name) and (node.kind is Kind.DECISION or node.name in own)
            return constant(np.zeros(_known(node))) if is_own else node

        return algebra.broadcast(rewrite(self.following, empty), self.shape)


@lru_cache(maxsize=16)
def stores(canonical: Canonical) -> tuple[StoreOfState, ...]:
    """Stores of a problem."""
    canonical = canonical.unscaled or canonical  # what follows a state is in the user's units
    states = [s for s in canonical.streams if s.uncut is not None]
    awaited = _alone(s for s in (_awaited(canonical, s) for s in states) if s is not None)
    on_the_way = {g.state.name for s in awaited.values() if s.pipeline is not None for g in s.pipeline.stages}
    made = [awaited.get(s.name) or _store(canonical, s) for s in states if s.name not in on_the_way]
    return tuple(s for s in made if s is not None)


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
        others = (entries == entry) & (filled != place)
        beside[k, filled[others]] = rate[others] / rate[k]
    return beside


def _alone(awaited: Iterable[StoreOfState]) -> dict[str, StoreOfState]:
    """Stores that decisions fill rounds later, by name: those whose orders go to no other."""
    own = list(awaited)
    taken = Counter(int(i) for s in own for i in s.entries)
    return {s.name: s for s in own if all(taken[int(i)] == 1 for i in s.entries)}


def _store(canonical: Canonical, s: StreamRange) -> StoreOfState | None:
    """State as a store; None where it is none."""
    assert s.uncut is not None
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for e in (s.lower, s.upper))
    blocks = tuple(b.name for b in canonical.blocks)
    variables = (*blocks, s.name)
    own = rewrite(s.uncut, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name == s.name else n)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        return None
    if not is_affine(own, variables):
        return None
    slopes = jacobian(algebra.broadcast(own, s.shape), variables)
    if any(changes(e) for e in slopes.values()):
        return None
    sizes = {b.name: b.shape for b in canonical.blocks} | {s.name: s.shape}
    m = math.prod(s.shape)
    parts = {n: np.broadcast_to(evaluate(e, {}), (*s.shape, *sizes[n])).reshape(m, -1) for n, e in slopes.items()}
    flows, kept = np.concatenate([parts[n] for n in blocks], axis=1), parts[s.name]
    if not (flows != 0).any(axis=1).all() or (kept != np.diag(np.diag(kept))).any():
        return None
    (filled, entries), keep = np.nonzero(flows), np.diag(kept).copy()
    rate = flows[filled, entries]
    if (keep < 0).any():
        return None
    least, most = np.sort(rate * decision_ends(canonical, entries), axis=0)
    kept_within = kept_range(canonical, s)
    return None if kept_within is None else StoreOfState(s, kept_within, keep, filled, entries, rate, least, most)


def _awaited(canonical: Canonical, s: StreamRange) -> StoreOfState | None:
    """State as a store that decisions fill rounds later; None where it is none, or constraints are on it."""
    way = pipeline(canonical, s)
    ends = None if way is None else awaited_range(canonical, s)
    if way is None or ends is None:
        return None
    least, most = np.sort(way.rate * decision_ends(canonical, way.entries), axis=0)
    return StoreOfState(s, ends, way.keep, np.arange(way.keep.size), way.entries, way.rate, least, most, way)


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
    total, own = reduce(algebra.add, (_left(s) for s in stores(canonical))), _with_outside(canonical, outside)
    for store, costs in zip(stores(canonical), state_costs(canonical), strict=True):
        if store.pipeline is not None:
            continue
        left = algebra.broadcast(store.following, store.shape)
        for cost in (c for c in costs if not c.left):
            total = algebra.sub(total, _summed(cost.at(left)))
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
        upper = constant(store.ends.upper.reshape(store.shape))
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
    as in `season(price, 24)`, and that comes twice; else 1. None is looked for where nothing is left in stores.
    """
    following, most = [s.following for s in stores(canonical)], (canonical.horizon or math.inf) / 2
    loss = canonical.objective if canonical.moving is None else canonical.moving
    remainders = (n for e in (loss, *following) for n in walk(e) if form_of(n) is forms.REMAINDER)
    statistics = (statistic_of(n) for p in canonical.model.predictions for n in names(p.value))
    predicted = (int(s.number) for s in statistics if s is not None and s.kind == "season")
    lengths = (k for k in (*(_length(*n.children) for n in remainders), *predicted) if k <= most)
    return max(lengths, default=1) if following else 1


def _length(number: Expr, divisor: Expr) -> int:
    """Rounds after which the remainder of a number repeats itself, where the number is that of the round or so much more, else 1."""
    own = set(names(number))
    if own != set(names(number, Kind.ROUND)) or not own or not isinstance(divisor, Constant) or divisor.shape:
        return 1
    grows = evaluate(number, {}, 2) - evaluate(number, {}, 1)
    return int(divisor.value.array) if (grows == 1).all() else 1


def _known(node: Expr) -> tuple[int, ...]:
    return tuple(n for n in node.shape if isinstance(n, int))
