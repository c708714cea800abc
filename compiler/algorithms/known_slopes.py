"""Slopes of what the loss charges for the level of a store (`state_costs`): known at every level, where other costs have to be learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.state_costs import level_name, slope_of_costs
from oco.compiler.problem.store_forms import StoreOfState
from oco.compiler.problem.stores import state_costs
from oco.compiler.problem.stores import stores as all_stores
from oco.compiler.problem.stream_ranges import StreamRange

EDGE = 1e-9
"""Share of a range by which rounding may put a level on the wrong side of a kink, or of an end of the range."""
ROUNDS = 8
"""Number of last rounds whose data stand for those of rounds to come, with equal weights."""
RECENT = "recent_data"
SYMBOLS = {RECENT: "data of the last rounds on which costs of levels hang"}


class KnownSlopes:
    """Slopes of the known costs of m store entries at the level that a round leaves: in that round, and in the next, which begins there."""

    def __init__(self, p: Problem, stores: Sequence[StoreOfState]) -> None:
        self.p, self.t, self.stores = p, p.tracer, stores
        costs = dict(zip(all_stores(p.spec.canonical), state_costs(p.spec.canonical), strict=True)) if stores else {}
        self.costs = [costs[s] for s in stores]
        used = {n for own in self.costs for c in own for n in c.data}
        self.data = [o for o in p.spec.canonical.streams if o.name in used]

    def __bool__(self) -> bool:
        return any(self.costs)

    @property
    def by_round(self) -> bool:
        """True where a slope hangs on the number of the round."""
        return any(c.by_round for own in self.costs for c in own)

    def init(self) -> State:
        """State before the first round, with no data yet."""
        size = sum(math.prod(o.shape) for o in self.data)
        return {RECENT: self.t.zeros((ROUNDS, size))} if self.data else {}

    def update(self, state: State) -> State:
        """State with the data of the round; those of the first round stand for all before it."""
        if not self.data:
            return {}
        t, recent, played = self.t, array(state, RECENT), self.p.played
        parts = [t.reshape(t.to_float(self.p.seen[o.name]), (math.prod(o.shape),)) for o in self.data]
        now = parts[0] if len(parts) == 1 else t.concat(*parts)
        place = t.to_int(played - 1.0) % ROUNDS
        after = t.where(played > 1.5, t.put(recent, now, place), t.broadcast(now, recent.shape))
        return {RECENT: t.name("recent_data", after)}

    def at(self, level: Value, state: State, round_: Value | None) -> Value:
        """Slopes (m, P) at levels (m, P) that a round of this number leaves; where they depend on data, their means over the last rounds.

        A level within `EDGE` of a kink counts as above it, and one at the upper end of the range as below that end.
        """
        t, ends = self.t, ([getattr(s.ends, name) for s in self.stores] for name in ("lower", "upper"))
        lower, upper = (t.constant(np.concatenate(e).reshape(-1, 1), "end") for e in ends)
        edge = EDGE * (upper - lower)
        level = t.where(level > upper + edge, level, t.minimum(level + edge, upper - edge))
        if not self.data:
            return t.name("known", self._slopes(level, {}, round_))
        recent = array(state, RECENT)
        places = np.cumsum([0, *(math.prod(o.shape) for o in self.data)]).tolist()

        def add(k: Value, total: Value) -> tuple[Value, ...]:
            row = recent[k]
            parts = zip(self.data, pairwise(places), strict=True)
            data = {o.name: self._of_stream(o, row[a:b]) for o, (a, b) in parts}
            return (total + self._slopes(level, data, round_),)

        (total,) = t.for_(ROUNDS, add, [t.zeros(level.shape)])
        return t.name("known", total / float(ROUNDS))

    def _of_stream(self, o: StreamRange, value: Value) -> Value:
        own = self.t.reshape(value, o.shape)
        return self.t.to_int(own) if o.integer else own

    def _slopes(self, level: Value, data: Mapping[str, Value], round_: Value | None) -> Value:
        """Slopes (m, P) at levels (m, P) that a round leaves, with these data."""
        p, t, P = self.p, self.t, level.shape[1]
        begins = np.cumsum([0, *(s.size for s in self.stores)]).tolist()
        rows = list[Value]()
        for s, costs, a in zip(self.stores, self.costs, begins, strict=False):
            if not costs:
                rows.append(t.zeros((s.size, P)))
                continue
            name = level_name(P, s.state)
            seen = {**p.seen, **data, name.name: t.reshape(t.transpose(level[a : a + s.size]), (P, *s.shape))}
            view = Problem(t, p.spec, seen, round_ if self.by_round else p.round, constants=p.constants)
            begun = [c if c.left else c.a_round_later(p.spec.canonical) for c in costs]
            slopes = view.values([slope_of_costs(begun, name)], view.centre())
            rows.append(t.transpose(t.reshape(slopes, (P, s.size))))
        return rows[0] if len(rows) == 1 else t.concat(*rows)
