"""Factors of flows that change from round to round, over the numbers of `StoreOfState.rate`: what a unit of a decision brings into a store.

In `stock + spend / price` that is 1 / price, and the number the middle of its range. Factors of rounds to come are learned as costs are
(`learned_costs`): by the phases of the season, and by the last rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from oco.compiler.algorithms.detected_seasons import least_missed, seasons_tried
from oco.compiler.algorithms.learned_costs import KEPT, SIZE_RATE, LearnedCosts
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import filled_by_flows

SCALE = "scale"
OFF = "scale_off"
SYMBOLS = {f"{SCALE}_{part}": f"`cost_{part}` of what a unit of a decision brings into a store" for part in KEPT}
SYMBOLS |= {OFF: "usual size of what the flows into a store are off by these"}
"""State that is kept, by name."""


class FlowScales:
    """Factors of the F flows of stores by the round, in a row of costs; `rows` is 0 where none changes."""

    def __init__(self, p: Problem, own: Sequence[StoreOfState], begins: str = "") -> None:
        """Factors kept under names that begin so."""
        self.p, self.t, self.stores = p, p.tracer, own
        self.size, self.rows = sum(s.rate.size for s in own), int(any(s.changing for s in own))
        seasons = seasons_tried(p.spec.canonical, p.whole("season")) if self.rows else (1,)
        self.learned, self.off = LearnedCosts(p, f"{begins}{SCALE}", self.size, 1, seasons), f"{begins}{OFF}"

    def init(self) -> State:
        """State before the first round."""
        return joined(self.learned.init(), {self.off: self.t.zeros((self.size,))}) if self.rows else {}

    def update(self, state: State, now: Value, played: Point) -> State:
        """State after a round with these factors, (F,), and the decision `played`, in units of the rule."""
        t, p = self.t, self.p
        assert p.round is not None
        expected = self.to_come(state, p.round - 1, p.played - 1.0)(t.lift(0))[0]
        entries, rate = (np.concatenate([getattr(s, n) for s in self.stores]) for n in ("entries", "rate"))
        flow = p.units.outward(played).flat()[t.constant(np.maximum(entries, 0), "filling")]
        error = (now - expected) * t.constant(np.where(entries == NO_ENTRY, 0.0, rate), "rate") * flow
        filled = filled_by_flows(self.stores)
        beside = t.constant((filled == filled.reshape(-1, 1)).astype(np.float64), "beside", "flows into the same store")
        was = array(state, self.off)
        size = t.where(p.played > 1.5, abs(beside @ error), 0.0)
        off = was + t.maximum(SIZE_RATE, 1.0 / p.played) * (size - was)
        return {**self.learned.update(state, t.reshape(now, (1, self.size))), self.off: t.name("off", off)}

    def unsure(self, state: State) -> Value:
        """Usual size of what the flows into the store of each flow are off, (F,), with what of that lasts."""
        return array(state, self.off) * self.learned.lasting(state)[0]

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Factors (1, F) of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of them are over."""
        tried, usual = self.learned.to_come(state, begun, rounds), self.learned.kept(state, "usual")

        def of(h: Value) -> Value:
            by_season = tried(h)
            own = least_missed(usual, [by_season[k, 0] for k in range(self.learned.count)])
            return self.t.reshape(own, (1, self.size))

        return of

    def of_round(self, p: Problem, x: Point) -> list[Value]:
        """Factors in a round at a decision, (F,); none where none changes."""
        t, own = self.t, list[Value]()
        sizes = np.array([math.prod(b.shape) for b in p.spec.canonical.blocks])
        begins = np.cumsum([0, *sizes])
        for s in self.stores if self.rows else ():
            if not s.changing:
                own.append(t.constant(np.ones(s.rate.size), "alike"))
                continue
            moving = s.entries != NO_ENTRY
            block = np.searchsorted(begins[1:], s.entries, side="right")
            places = s.size * begins[block] + s.filled * sizes[block] + s.entries - begins[block]
            factors = p.values(s.changing, x)[t.constant(np.where(moving, places, 0), "factors")]
            scale = factors / t.constant(s.rate, "rate")
            own.append(scale if moving.all() else t.where(t.constant(moving, "moving"), scale, 1.0))
        return [t.name("scale", own[0] if len(own) == 1 else t.concat(*own))] if own else []
