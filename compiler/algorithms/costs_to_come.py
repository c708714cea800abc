"""Costs of what fills stores in the rounds to come: as learned from the rounds so far, and as the model predicts them.

Where the model predicts streams of K rounds (`ahead`), or where loss and drifts hang on the number of the round (`tariff[t]`), costs of
round t + k < t + K are b(s^_k) + r_k: those b of the loss alone at the middle of the domain, with the streams as predicted and all else at
its middle, and the rest r, which is learned as costs are: as what costs were above b(s^_0) in the rounds so far. Where costs are about
these streams alone and predictions are right, r is 0; what is wrong with predictions on average, at a phase or for some rounds goes into r.
With the usual errors e of b + r, and l of what is learned without predictions, the cost of a unit is as predicted by l^2 / (l^2 + e^2),
else as learned: the mean of least variance of two estimates whose errors have nothing to do with one another. Costs of rounds after these
are as learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.algorithms.flow_limits import SYMBOLS as LIMIT_SYMBOLS
from oco.compiler.algorithms.flow_limits import FlowLimits
from oco.compiler.algorithms.flow_scales import SYMBOLS as SCALE_SYMBOLS
from oco.compiler.algorithms.flow_scales import FlowScales
from oco.compiler.algorithms.learned_costs import ABOVE, DRIFT, KEPT, OFF, SIZE_RATE, LearnedRounds
from oco.compiler.algorithms.shared_flows import SharedFlows
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.predicted_round import stated_value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stated_predictions import entry_name
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import (
    diagonal_curvature,
    filled_by_flows,
    has_curvature,
    has_kinks,
    is_known_ahead,
    moved_beside,
    value_of_state,
    without_outside,
)
from oco.compiler.problem.stream_ranges import StreamRange, middle
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

AS_ZERO = 1e-4
"""Share of a store's range of flows within which one is as good as 0: near enough to see a kink there."""
SCARCE = 10.0
"""Largest costs of a unit that one is worth which constraints want and no flow brings."""
COST, REST, UNSURE = "cost", "rest", "unsure"
SYMBOLS = {
    f"{name}_{part}": says.format(words)
    for name, words in ((COST, "cost"), (REST, "cost that predictions leave open"))
    for part, says in KEPT.items()
} | {UNSURE: "usual size of the errors of the drift, where the cut keeps an end of a store"}
SYMBOLS |= {
    f"{name}_{ABOVE}_{part}": f"`{name}_{part}` of what the drift was above its average at the phase"
    for name in (COST, REST)
    for part in KEPT
}
SYMBOLS |= {
    f"{name}_{OFF}": "usual size of the errors of the drift, by the seasons that are tried" for name in (COST, REST)
}
SYMBOLS |= LIMIT_SYMBOLS | SCALE_SYMBOLS
"""State that is kept, by name."""


def rounds_predicted(canonical: Canonical) -> int:
    """Rounds from the present one on of which the model predicts streams; 0 where it predicts none to come."""
    shapes = {s.name: s.shape for s in canonical.streams}
    return min((shapes[n][0] for n in canonical.lookahead.contexts), default=0)


def filling(p: Problem) -> Problem:
    """View of a round whose loss pays nothing for what is missing in stores, or too much."""
    result = copy(p)
    result.spec = replace(p.spec, canonical=without_outside(p.spec.canonical))
    return result


@dataclass(frozen=True)
class ToCome:
    """Costs of rounds to come.

    of      costs (4, m) or (5, m) of the h-th round after the next one, by h
    mean    mean cost of a unit of all rounds, (m,)
    later   rounds from the present one to the next one, h = 0
    unsure  usual size of the errors of the drift, with what of them lasts, (m,); None where constraints keep both ends of each store
    """

    of: Callable[[Value], Value]
    mean: Value
    later: int
    unsure: Value | None = None


class CostsToCome:
    """Costs of the flows of stores, m of them, in the user's units: what a unit more costs, the growth of that, what holding a unit
    costs, and the drift, (4, m); where the loss has kinks also by how much a unit costs more than one fewer brings, (5, m); where known
    constraints tie stores to others, last what flows cost above the one in the middle (`shared_flows`). Where a flow moves several
    stores its cost in one of them is less by its value in the others.
    """

    def __init__(self, p: Problem, stores: Sequence[StoreOfState], ahead: int, begins: str = "") -> None:
        """Costs so many rounds `ahead`, kept under names that begin so."""
        self.p, self.t, self.stores = p, p.tracer, stores
        self.filled = filled_by_flows(stores)
        self.size, self.alone = self.filled.size, self.filled.size == sum(s.size for s in stores)
        self.kinks = bool(stores) and has_kinks(p.spec.canonical)
        self.shared = SharedFlows(p, stores)
        self.limits = FlowLimits(p, stores, begins)
        self.factors = FlowScales(p, stores, begins)
        self.rows = 4 + self.kinks + self.factors.rows + self.shared.rows
        self.predicted = rounds_predicted(p.spec.canonical) if stores else 0
        if stores and not self.predicted and is_known_ahead(p.spec.canonical, p.whole("season")):
            self.predicted = ahead + 1
        self.learned, self.rest = (
            LearnedRounds(p, begins + name, self.size, self.rows, each=bool(begins)) for name in (COST, REST)
        )
        self.is_unsure = any(s.ends.soft.any() and s.pipeline is None for s in stores)

    @property
    def limited(self) -> slice | None:
        """Rows of costs to come that are the least and the greatest flows; None where the domain alone limits them."""
        first = 4 + self.kinks + self.factors.rows
        return slice(first, first + self.limits.rows) if self.limits.rows else None

    @property
    def scales(self) -> int | None:
        """Row of costs to come with factors of flows over `StoreOfState.rate`; None where none changes."""
        return 4 + self.kinks if self.factors.rows else None

    def init(self) -> State:
        """State before the first round."""
        rest: State = self.rest.init() if self.predicted else {}
        unsure: State = {UNSURE: self.t.zeros((self.size,))} if self.is_unsure else {}
        return joined(self.learned.init(), rest, unsure, self.limits.init(), self.factors.init())

    def update(self, state: State, played: Point, slope: Point, unit_values: Value | None) -> State:
        """State after a round with the decision `played`, where the penalised loss had this slope, in units of the rule, and a unit in
        each store entry has these `unit_values`, (entries,), where flows move several.
        """
        now = self._costs(self.p, played, slope)
        if unit_values is not None:
            beside = self.t.constant(moved_beside(self.stores), "beside", "what a unit into a store brings into others")
            now = self.t.concat(self.t.reshape(now[0] - beside @ unit_values, (1, self.size)), now[1:])
        before = self._predicted(1)[0] if self.predicted else None
        rest: State = {} if before is None else self.rest.update(state, now - before)
        unsure: State = {UNSURE: self._unsure_after(state, now[DRIFT], before)} if self.is_unsure else {}
        scales: State = {} if self.scales is None else self.factors.update(state, now[self.scales], played)
        return {**self.learned.update(state, now), **rest, **unsure, **self.limits.update(state), **scales}

    def _unsure_after(self, state: State, drift: Value, predicted: Value | None) -> Value:
        """Usual size of the errors of the drift after a round, (m,)."""
        t, p = self.t, self.p
        expected = (self.learned if predicted is None else self.rest).expected_drift(state)
        error = abs(drift - (expected if predicted is None else expected + predicted[DRIFT]))
        was, begun = array(state, UNSURE), p.played > 1.5
        return t.name("unsure", was + t.maximum(SIZE_RATE, 1.0 / p.played) * (t.where(begun, error, 0.0) - was))

    def _kept_unsure(self, state: State) -> Value | None:
        if not self.is_unsure:
            return None
        drift = array(state, UNSURE) * (self.rest if self.predicted else self.learned).lasting(state)
        return drift if self.scales is None else self.t.sqrt(drift**2.0 + self.factors.unsure(state) ** 2.0)

    def _learned(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs of rounds to come as learned."""
        costs, at = self.learned.to_come(state, begun, rounds), self.scales
        if at is None:
            return costs
        t, scales = self.t, self.factors.to_come(state, begun, rounds)

        def of(h: Value) -> Value:
            row = costs(h)
            return t.concat(row[:at], scales(h), *([row[at + 1 :]] if self.rows > at + 1 else []))

        return of

    def after_round(self, state: State) -> ToCome:
        """Costs from the next round on that is decided with what this one taught, as learned."""
        p = self.p
        assert p.round is not None
        costs = self._learned(state, p.round + (p.ahead - 1), p.played)
        costs = self._limited(costs, state, p.round + (p.ahead - 1), p.played)
        return ToCome(costs, self.learned.kept(state, "overall")[0], p.ahead, self._kept_unsure(state))

    def before_decision(self, state: State) -> ToCome:
        """Costs from this round on, which has begun, as learned and as predicted."""
        t, p, count = self.t, self.p, self.predicted
        assert p.round is not None
        begun, over = p.round - 1, p.played - 1.0
        learned, overall = self._learned(state, begun, over), self.learned.kept(state, "overall")
        if not count:
            learned = self._limited(learned, state, begun, over, now=True)
            return ToCome(learned, overall[0], 0, self._kept_unsure(state))
        p.note("what a unit in store costs as predicted, in this round and in those to come")
        table, rest = self._predicted(count), self.rest.to_come(state, begun, over)
        usual = t.name("usual", t.sum(table, axis=0) / float(count) + self.rest.kept(state, "overall"))
        mean = (over * overall[0] + float(count) * usual[0]) / (over + float(count))

        off, by = (own.kept(state, "usual") ** 2.0 for own in (self.learned, self.rest))
        share = t.name("share", t.where(by > 0.0, off / t.maximum(off + by, TINY), 1.0))

        def of(h: Value) -> Value:
            far, near = learned(h), table[t.minimum(h, count - 1)] + rest(h)
            cost = t.reshape(far[0] + share * (near[0] - far[0]), (1, self.size))
            near = t.concat(cost, t.maximum(near[1:2], 0.0), near[2:])
            return t.where(h < count, near, t.where(over > 0.5, far, usual))

        costs = self._limited(of, state, begun, over, now=True)
        return ToCome(costs, t.name("mean", mean), 0, self._kept_unsure(state))

    def _limited(
        self, costs: Callable[[Value], Value], state: State, begun: Value, rounds: Value, now: bool = False
    ) -> Callable[[Value], Value]:
        """Costs of rounds to come with the ranges of flows after those of each flow; those of h = 0 are known where it is this round."""
        if self.limited is None:
            return costs
        t, limits, first = self.t, self.limits.to_come(state, begun, rounds), self.limited.start
        known = self.limits.of_round(self.p, self.limits.limits) if now else None

        def of(h: Value) -> Value:
            row, own = costs(h), limits(h)
            own = own if known is None else t.where(h < 1, known, own)
            return t.concat(row[:first], own, *([row[first:]] if self.rows > first else []))

        return of

    def _predicted(self, count: int) -> Value:
        """Costs of the loss in `count` rounds from this one on, of streams as predicted: (count, 4 or 5, m)."""
        p, t = self.p, self.t
        streams = {s.name: s for s in p.spec.canonical.streams}
        look = p.spec.canonical.lookahead
        still = {**p.seen, **{n: t.constant(_usual(s), f"middle_{n}") for n, s in streams.items()}}

        def one(k: Value, *entries: Value) -> tuple[Value, ...]:
            assert p.round is not None
            last = p.spec.horizon
            round_ = p.round + k if last is None else t.minimum(p.round + k, last)
            own = dict(zip(map(entry_name, look.contexts), entries, strict=True))
            known = Problem(t, p.spec, {**p.seen, **own}, round_, constants=p.constants)
            seen = {n: self._within(streams[n], stated_value(known, e)) for n, e in look.of}
            view = Problem(t, p.spec, {**still, **seen}, round_, constants=p.constants)
            x = view.centre()
            return (self._costs(view, x, filling(view).gradient(x)),)

        (table,) = t.map_(one, t.iota(count), *(p.seen[n][:count] for n in look.contexts))
        return table

    def _within(self, s: StreamRange, value: Value) -> Value:
        """Value of a stream, of its shape and in its range; an integer one rounded."""
        t = self.t
        lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape) for e in (s.lower, s.upper))
        own = t.reshape(value, s.shape)
        own = t.minimum(t.maximum(own, t.constant(lower, "least")), t.constant(upper, "greatest"))
        return t.to_int(t.floor(own + 0.5)) if s.integer else own

    def _costs(self, p: Problem, x: Point, slope: Point) -> Value:
        """Costs in a round at a decision, where the loss has this slope, both in units of the rule."""
        t, scales, canonical = self.t, p.spec.scales, p.spec.canonical
        unit = 1.0 if scales is None else float(scales.loss / scales.radius)
        own = self._each("entries")
        entries = t.constant(np.maximum(own, 0), "filling", "decisions that fill stores")
        rate = t.constant(self._each("rate"), "rate")
        cost = unit * slope.flat()[entries] / rate
        growth, jump, by_flow = t.zeros((self.size,)), list[Value](), list[Value]()
        if self.shared.known:
            charged, more = self.shared.charged(p, x, slope, filling(p).gradient)
            cost, by_flow = cost + unit * charged / rate, [unit * c / rate for c in more]
        if has_curvature(canonical):
            grown = p.values([*diagonal_curvature(canonical).values()], x)[entries]
            growth = t.name("growth", t.maximum(grown, 0.0) / (rate * rate))
            cost = cost - growth * rate * p.units.outward(x).flat()[entries]
        if self.kinks:
            flow, near = (
                rate * p.units.outward(x).flat()[entries],
                t.constant(self._near, "near", "as good as 0"),
            )
            above, below = (unit * filling(p).gradient(self._at(p, x, side)).flat()[entries] for side in (1.0, -1.0))
            jump = [t.name("jump", t.maximum((above - below) / abs(rate) - 2.0 * near * growth, 0.0))]
            cost = cost - 0.5 * jump[0] * (t.to_float(flow > 0.0) - t.to_float(flow < 0.0))
        if (own == NO_ENTRY).any():
            moving = t.constant(
                (own != NO_ENTRY).astype(np.float64), "moving", "1 where a decision moves a store entry"
            )
            cost, growth, jump = cost * moving, growth * moving, [j * moving for j in jump]
        held = p.values([value_of_state(without_outside(canonical), s) for s in self.stores], x)
        drift = p.values([s.drift for s in self.stores], x)
        if not self.alone:
            places = t.constant(self.filled, "filled", "the store that each flow moves")
            held, drift = held[places], drift[places]
        return t.stack(cost, growth, held, drift, *jump, *self.factors.of_round(p, x), *by_flow)

    @property
    def _near(self) -> np.ndarray[Any, Any]:
        """Flows that are as good as 0, in units of the stores, (m,)."""
        return np.asarray(AS_ZERO * (self._each("most") - self._each("least")))

    def _at(self, p: Problem, x: Point, side: float) -> Point:
        """Decision x with the entries that fill stores just above 0, or just below it."""
        t, whole = self.t, p.units.outward(x)
        to, fills = np.zeros(sum(b.size for b in whole.blocks)), self._each("entries")
        moving = fills != NO_ENTRY
        to[fills[moving]] = (side * self._near / abs(self._each("rate")))[moving]
        ends, blocks = np.cumsum([b.size for b in whole.blocks])[:-1], list[Value]()
        for b, own in zip(whole.blocks, np.split(to, ends), strict=True):
            own = own.reshape(b.shape)
            blocks.append(t.where(t.constant(own != 0, "fills"), t.constant(own, "to"), b))
        return p.units.inward(Point(tuple(blocks)))

    def _each(self, name: str) -> np.ndarray[Any, Any]:
        """Numbers of all entries of the stores, (m,)."""
        return np.concatenate([getattr(s, name) for s in self.stores])


def _usual(s: StreamRange) -> np.ndarray[Any, Any]:
    """Middle of a stream, one that it may take."""
    return np.rint(middle(s)).astype(np.int64) if s.integer else middle(s)
