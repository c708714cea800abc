"""Value of what a round leaves in stores, from what filling them costs in the rounds to come.

A flow of u units into a store costs c_t u + kappa_t u^2 / 2 + j_t |u| / 2 in round t, with the slope and the second derivative of the
penalised loss at the decision, and the jump j_t of the slope where the flow turns. A unit of what flows share, as their sum where a row
cuts the domain, costs what it is worth to them (`row_multipliers`); where known constraints tie flows to other decisions, c_t hangs on the
flow (`shared_flows`). A unit that is there costs m_t = df_t/ds (holding it). Those of H rounds to come, and their drift, are predicted by
the rounds so far and by the model (`costs_to_come`).

The marginal value v_h of s units before round h is then keep_h w - m_h with w at the flow at which the next store and the flow have one
price (Bellman's equation, differentiated: the value is concave, so its slope falls while that of the flow's cost does not),

    w = v_{h+1}(keep_h s + drift_h + u) = c_h + kappa_h u + (j_h / 2) sign(u),      least <= u <= most,

and that at the end of the flows where they have none: for kappa = 0 the median of c_h and of v_{h+1} at both ends. Below the lower end of
the store a unit has more value than any cost, or what the loss pays for one that is missing; above the upper one none, or less by what the
loss pays for one that is too much. What the loss says of levels alone, g(s') + h(s), is no part of c and m, which are learned where levels
were: v_{h+1} - g' - h' stands for v_{h+1} there (`known_slopes`), and what a round leaves costs h(s'), too. Where the cut keeps an end,
v_{h+1} is the mean over quantiles of the errors of the drift: what the expected rounds do not use serves those that use more. Where units
cost and the cut takes those below the lower end, as of a queue, one there has no value. After H rounds a unit has the mean of all c.
Where levels of stores move each other, flows are planned together (`planned_flows`), and so they are where one flow moves stores that keep
unlike parts of what is in them, as a ward and its waiting list: no price between them stays.
Values stand on a grid, linear between its points, which are close to each other among the levels that are used. So a round decides by
f_t(x) - V_{t+1}(s'(x)), and

    sum_t f_t(x_t) = sum_t [f_t(x_t) - V_{t+1}(s_{t+1}) + V_t(s_t)] + V_{T+1}(s_{T+1}) - V_1(s_1):

experts are judged by what they leave, too, and what is paid for it comes back. H = 1 looks no round ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from oco.compiler.algorithms.costs_to_come import SCARCE, UNSURE, CostsToCome, ToCome, filling
from oco.compiler.algorithms.costs_to_come import SYMBOLS as COST_SYMBOLS
from oco.compiler.algorithms.detected_seasons import SYMBOLS as SEASON_SYMBOLS
from oco.compiler.algorithms.known_slopes import EDGE, KnownSlopes
from oco.compiler.algorithms.known_slopes import SYMBOLS as RECENT_SYMBOLS
from oco.compiler.algorithms.planned_flows import SYMBOLS as PLAN_SYMBOLS
from oco.compiler.algorithms.planned_flows import PlannedFlows
from oco.compiler.algorithms.rounds_ahead import AHEAD
from oco.compiler.algorithms.store_flows import all_flows, flows_of
from oco.compiler.algorithms.value_grid import ValueGrid, points_of
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.round_table import RoundTable
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.stores import (
    KNOTS,
    cut_names,
    filled_by_flows,
    has_curvature,
    knot_names,
    move_each_other,
    move_unlike_stores,
    moved_beside,
    slope_name,
    stores,
    valued,
)

SURE, UNSURE_CELLS = 20, 10
"""Cells between values among the levels that are used, where the range of every store is kept whatever comes, and where it is not."""
LEAST_CELL = 4.0
"""Width of the latter in usual errors of the drift, at least, where the range has room: values that fall faster trust what is expected too
far."""
ERRORS = (-1.606, -0.657, 0.0, 0.657, 1.606)
"""Errors of the drift in usual ones: quantiles of a normal distribution with the mean absolute value 1, in the middles of equal shares."""
GOLDEN = 0.6180339887498949
"""Part of a cell by which the kinks of the value move each round: a decision at a kink is at none of the next round, where rounding would
choose its slope.
"""
FADES = 0.01
"""Part of the way to the present level by which the levels that count as used move each round: one that was left long ago is none."""
VALUES, REACHED = "value", "reached"
SLOPES, DROPS, KINKS = "value_slope", "value_drop", "value_knot"
SYMBOLS = {
    **COST_SYMBOLS,
    **SEASON_SYMBOLS,
    **RECENT_SYMBOLS,
    VALUES: "value of a unit more in store, by what is in it",
    REACHED: "least and most that was in store, of late",
    **PLAN_SYMBOLS,
    SLOPES: "value of a unit that this round leaves, where it leaves least",
    DROPS: "drops of this value",
    KINKS: "what is left where it drops",
}


class StoredValue:
    """Value of what is left in the stores of a round's problem; m is the number of their entries, all stores together."""

    def __init__(self, p: Problem) -> None:
        self.p, self.t = p, p.tracer
        self.ahead = p.whole(AHEAD) if AHEAD in p.spec.settings else 1
        self.stores = tuple(s for s in stores(p.spec.canonical) if s.pipeline is None) if self.ahead > 1 else ()
        self.season = p.whole("season")
        self.size = sum(s.size for s in self.stores)
        self.is_free = any(s.ends.free.any() for s in self.stores)
        self.is_curved = bool(self.stores) and has_curvature(p.spec.canonical)
        self.costs, self.known = CostsToCome(p, self.stores, self.ahead), KnownSlopes(p, self.stores)
        moves = move_each_other(self.stores) or move_unlike_stores(self.stores)
        self.plan = PlannedFlows(p, self.stores, self.known, self.ahead, self.costs) if moves else None
        self.inner = UNSURE_CELLS if self.costs.is_unsure else SURE

    def init(self) -> State:
        """State before the first round, in which nothing that is left has a value."""
        if not self.stores:
            return {}
        m, zeros = self.size, self.t.zeros
        costs, known = self.costs.init(), self.known.init()
        own = {SLOPES: zeros((m,)), DROPS: zeros((KNOTS, m)), KINKS: zeros((KNOTS, m))}
        if self.plan is not None:
            return joined(costs, known, own, self.plan.init())
        values = {VALUES: zeros((m, points_of(self.inner))), REACHED: zeros((2, m))}
        return joined(costs, known, values, own)

    def viewed(self, state: State) -> Problem:
        """View of the round whose loss is less the value of what is left."""
        if not self.stores:
            return self.p
        result = copy(self.p)
        result.spec = replace(self.p.spec, canonical=valued(self.p.spec.canonical))
        result.seen = dict(self.p.seen)
        for k in range(KNOTS):
            names = zip(*(knot_names(s, k) for s in self.stores), strict=True)
            for own, name in zip(names, (KINKS, DROPS), strict=True):
                result.seen |= dict(zip(own, self._apart(array(state, name)[k]), strict=True))
        slope, paid, wasted = array(state, SLOPES), self._end("paid"), self._end("wasted")
        beyond = wasted * self.t.maximum(slope - self.t.sum(array(state, DROPS), axis=0), -self._end("charged"))
        short = self.t.where(paid > 0.0, self.t.minimum(slope, paid), 0.0)
        if self.is_free:
            short = self.t.where(self._end("free") > 0.0, self.t.minimum(slope, 0.0), short)
        parts = zip(self.stores, *map(self._apart, (slope, short, beyond)), strict=True)
        for s, own, missing, over in parts:
            result.seen |= {slope_name(s): own} | dict(zip(cut_names(s), (missing, over), strict=True))
        return result

    def filling(self) -> Problem:
        """View of the round whose loss pays nothing for what is missing in stores, or too much."""
        return filling(self.p)

    def prepared(self, state: State) -> State:
        """State with the value of what this round may leave, from what is in store."""
        if not self.stores:
            return {}
        t, costs = self.t, self.costs.before_decision(state)
        if self.plan is not None:
            return self._as_planned(self.plan, state, costs, self._of_entries(costs.of(t.lift(0))[3]))
        after: State = {}
        if self.costs.predicted:
            table = self._rounds_to_come(costs)
            row, after = table[0], self._values(costs, table, state)
            state = {**state, **after}
        else:
            row = costs.of(t.lift(0))
        self.p.note("the value of what this round may leave in store")
        drift = self._of_entries(row[3])
        now = self._round(costs, t.lift(0))
        scale = None if self.costs.scales is None else row[self.costs.scales]
        least, most = self._ends(self._kept((self.size,)).of(now) * self._levels() + drift, now, scale)
        places = self._places()
        ends = t.concat(t.zeros((1,)), places, t.ones((1,)))
        between = t.name("between", 0.5 * (ends[:-1] + ends[1:]))
        kinks, middles = (least + t.reshape(v, (v.size, 1)) * (most - least) for v in (places, between))
        slopes = t.transpose(self._grid(state).interpolated(array(state, VALUES), t.transpose(middles)))
        return {**after, **self._dropping(slopes, kinks)}

    def _as_planned(self, plan: PlannedFlows, state: State, costs: ToCome, drift: Value) -> State:
        """State with a plan of the rounds to come, and the value of what this round may leave by it: its kinks are close where it leads."""
        t, levels = self.t, self._levels()
        after, rounds = plan.prepared(state, costs, levels)
        self.p.note("the value of what this round may leave in store, as planned")
        kept = rounds.system(t.lift(0)) @ levels + drift
        least, most = self._ends(kept, self._round(costs, t.lift(0)))
        middle = plan.reached(after, rounds, kept)
        places = t.reshape(2.0 * self._places() - 1.0, (KNOTS, 1))
        kinks = middle + t.where(places < 0.0, middle - least, most - middle) * places * places * places
        row = (1, self.size)
        ends = t.concat(t.reshape(least, row), kinks, t.reshape(most, row))
        slopes = t.transpose(plan.values(after, rounds, t.transpose(0.5 * (ends[:-1] + ends[1:])), middle))
        upto = t.constant(np.tri(KNOTS + 1).reshape(KNOTS + 1, KNOTS + 1, 1) > 0, "upto", "levels up to each")
        falling = t.min(t.where(upto, t.reshape(slopes, (1, KNOTS + 1, self.size)), np.inf), axis=1)
        return {**after, **self._dropping(falling, kinks)}

    def _ends(self, kept: Value, round_: Value, scale: Value | None = None) -> tuple[Value, Value]:
        """Least and most that the round may leave, (m,), where it leaves `kept`, (m,), without flows."""
        t, (lower, upper) = self.t, self._range(round_)
        flows = {end: all_flows(t, self.stores, end, scale) for end in ("least", "most")}
        least, most = (t.name(n, t.minimum(t.maximum(kept + f, lower), upper)) for n, f in flows.items())
        return least, most

    def _places(self) -> Value:
        """Shares of a range at which kinks are, (KNOTS,), which move each round."""
        f = GOLDEN * self.p.played
        return (self.t.iota(KNOTS) + (f - self.t.floor(f))) / float(KNOTS)

    def _dropping(self, slopes: Value, kinks: Value) -> State:
        """State with these values of a unit between kinks, (KNOTS + 1, m), at kinks (KNOTS, m)."""
        drops = self.t.maximum(slopes[:-1] - slopes[1:], 0.0)
        return {SLOPES: slopes[0], DROPS: self.t.name("drop", drops), KINKS: self.t.name("kinks", kinks)}

    def update(self, state: State, played: Point, slope: Point) -> State:
        """State after a round with the decision `played`, where the penalised loss had this slope, in units of the rule."""
        if not self.stores:
            return {}
        self.p.note("what a unit in store costs, and what is in store is worth for the rounds to come")
        known = self.known.update(state)
        if self.plan is not None:
            return {**self.costs.update(state, played, slope, None), **known}
        after = {
            **self.costs.update(state, played, slope, self._unit_values(state, played)),
            **known,
            REACHED: self._reached_after(array(state, REACHED)),
        }
        if self.costs.predicted:  # the next round brings the predictions that its values are made of
            return after
        costs = self.costs.after_round(after)
        return {**after, **self._values(costs, self._rounds_to_come(costs), after)}

    def _levels(self) -> Value:
        """Levels of the stores at the beginning of the round, as far as they are known, (m,)."""
        t = self.t
        own = [t.reshape(t.to_float(self.p.seen[s.state.expected or s.name]), (s.size,)) for s in self.stores]
        return own[0] if len(own) == 1 else t.concat(*own)

    def _reached_after(self, used: Value) -> Value:
        """Least and most level of late, (2, m), with that of the round."""
        t, level = self.t, self._levels()
        faded = used + FADES * (level - used)
        ends = t.stack(t.minimum(faded[0], level), t.maximum(faded[1], level))
        return t.name("reached", t.where(self.p.played > 1.5, ends, t.stack(level, level)))

    def _grid(self, state: State) -> ValueGrid:
        """Levels at which values stand: close to each other among those used, with what the largest flows of a round add on either side."""
        t, used = self.t, array(state, REACHED)
        wide = all_flows(t, self.stores, "most") - all_flows(t, self.stores, "least")
        if self.costs.is_unsure:
            cells = self.inner * LEAST_CELL * self._of_entries(array(state, UNSURE))
            wide = t.maximum(wide, 0.5 * (cells - (used[1] - used[0])))
        least = t.maximum(used[0] - wide, self._end("lower"))
        most = t.minimum(used[1] + wide, self._end("upper"))
        first, last = (self._column(t.name(n, v)) for n, v in (("first", least), ("last", most)))
        lower, upper = (self._column(self._end(n)) for n in ("lower", "upper"))
        return ValueGrid(t, (lower, upper), (first, last), self.inner)

    def _unit_values(self, state: State, played: Point) -> Value | None:
        """Value of a unit in each store after a decision, (m,), where a flow moves several stores; else None."""
        if not moved_beside(self.stores).any():
            return None
        left = self._column(self.p.values([s.following for s in self.stores], played))
        ends = (self._end("lower"), self._end("upper"))
        values = self._of_all(array(state, VALUES), left, self._grid(state), ends)
        return self.t.reshape(values - self.known.at(left, state, self.p.round) if self.known else values, (self.size,))

    def _rounds_to_come(self, costs: ToCome) -> Value:
        """Costs of the h-th round after the next one, by h, as far as is looked ahead: (ahead + 1, rows, F)."""
        return self.t.map_(lambda h: (costs.of(h),), self.t.iota(self.ahead + 1))[0]

    def _values(self, costs: ToCome, table: Value, state: State) -> State:
        """State with the values of a unit more before the round after the next one, (m, G), by the costs of rounds to come in the table."""
        t, grid = self.t, self._grid(state)
        keeps, stored = self._kept((self.size, 1)), grid.points
        own = self.costs
        flows = flows_of(t, self.stores, self.is_curved, own.kinks, own.shared, own.limited, own.scales)
        errors = None if costs.unsure is None else self._errors(costs.unsure)
        limit = self._most_valued(costs, table, flows.prices, partial(self.known.at, stored, state))

        def expected(f: Callable[[Value], Value], at: Value) -> Value:
            return f(at) if errors is None else self._expected(f, at, errors)

        def earlier(j: Value, after: Value) -> tuple[Value, ...]:
            row, now = table[self.ahead - j], self._round(costs, self.ahead - j)
            keep, ends = keeps.of(now), self._range(now)
            kept = keep * stored + self._column(self._of_entries(row[3]))
            if errors is not None:
                after = expected(lambda at: self._of_all(after, at, grid, ends), stored)

            def left(at: Value) -> Value:
                value = self._of_all(after, at, grid, ends, limit)
                return value - expected(lambda at: self.known.at(at, state, now), at) if self.known else value

            return (keep * flows.at_one_price(kept, left, row) - self._column(self._of_entries(row[2])),)

        last = t.broadcast(self._column(self._mean_of_entries(costs.mean)), stored.shape)
        return {VALUES: t.for_(self.ahead, earlier, [last])[0]}

    def _most_valued(
        self, costs: ToCome, table: Value, prices: Callable[[Value], Value], known: Callable[[Value], Value]
    ) -> Value:
        """More than a unit is worth in any round to come, (m, 1), of one that constraints want and no flow brings, by the costs of these
        rounds, and by the slopes `known` of levels in a round.
        """
        t, m = self.t, self.size
        changing = bool(self.known) and self.known.by_round

        def most(of: Value) -> Value:
            return t.reshape(t.max(abs(of), axis=1), (m, 1))

        def more(j: Value, price: Value, held: Value, *slopes: Value) -> tuple[Value, ...]:
            h = self.ahead - j
            after = (t.maximum(s, most(known(self._round(costs, h)))) for s in slopes)
            return (
                t.maximum(price, most(prices(table[h]))),
                held + abs(self._column(self._of_entries(table[h][2]))),
                *after,
            )

        price, held, *slopes = t.for_(self.ahead, more, [t.zeros((m, 1))] * (3 if changing else 2))
        total = price + held + self._column(self._end("paid") + self._end("charged"))
        if self.known:
            total = total + (slopes[0] if changing else most(known(self._round(costs, t.lift(0)))))
        return t.name("most", SCARCE * total)

    def _round(self, costs: ToCome, h: Value) -> Value:
        """Number of the h-th round after the next one."""
        assert self.p.round is not None
        return self.p.round + costs.later + h

    def _kept(self, shape: tuple[int, ...]) -> RoundTable:
        """Part of each store that stays there, of this shape."""
        return RoundTable(self.t, [s.keep for s in self.stores], "keep", shape=shape)

    def _range(self, round_: Value) -> tuple[Value, Value]:
        """Ends of what a round may leave, (m,) each."""
        lower, upper = (
            RoundTable(self.t, [getattr(s.ends, f"{name}s") for s in self.stores], name) for name in ("lower", "upper")
        )
        return lower.of(round_), upper.of(round_)

    def _of_all(
        self, values: Value, at: Value, grid: ValueGrid, ends: tuple[Value, Value], limit: Value | None = None
    ) -> Value:
        """Values (m, G) at what would be in store, (m, P), within its range and beyond: of a unit that is missing, and one too much.

        ends   lower and upper ends of the range, (m,) each
        limit  value of a unit that is missing where constraints keep an end, or too much with the other sign, (m, 1); None: as at the end
        """
        t, (lower, upper) = self.t, map(self._column, ends)
        given, paid, wasted, charged = (self._column(self._end(n)) for n in ("given", "paid", "wasted", "charged"))
        edge, value = EDGE * (upper - lower), grid.interpolated(values, at)
        missing, beyond = (value, value) if limit is None else (limit, -limit)
        # What the cut takes or gives at an end is no reason to go there: the value stays concave.
        above = t.where(wasted > 0.0, t.minimum(value, -charged), beyond)
        below = t.where(given > 0.0, t.maximum(value, paid), missing)
        value = t.where(at > upper + edge, above, value)
        return t.where(at < lower - edge, below, value)

    def _errors(self, unsure: Value) -> Value:
        """Errors of the drift that are equally likely, (m, errors); 0 where constraints keep both ends."""
        soft = np.concatenate([s.ends.soft for s in self.stores])
        own = self.t.constant(soft, "soft", "stores with an end that the cut keeps")
        return self._column(self._of_entries(unsure) * own) * self.t.constant(
            np.array(ERRORS), "errors", "usual errors"
        )

    def _expected(self, f: Callable[[Value], Value], at: Value, errors: Value) -> Value:
        """Mean of f, which takes levels (m, P), over errors of these levels, (m, P)."""
        t, (m, P), count = self.t, at.shape, len(ERRORS)
        off = t.reshape(at, (m, P, 1)) + t.reshape(errors, (m, 1, count))
        return t.sum(t.reshape(f(t.reshape(off, (m, P * count))), (m, P, count)), axis=2) / float(count)

    def _of_entries(self, v: Value) -> Value:
        """Number of each store entry, (m,), of what all its flows have alike, (F,)."""
        if v.size == self.size:
            return v
        first = np.searchsorted(filled_by_flows(self.stores), np.arange(self.size))
        return v[self.t.constant(first, "first_flow", "of each store")]

    def _mean_of_entries(self, v: Value) -> Value:
        """Mean of the flows, (F,), of each store entry, (m,)."""
        if v.size == self.size:
            return v
        own = filled_by_flows(self.stores) == np.arange(self.size).reshape(-1, 1)
        return self.t.constant(own / own.sum(axis=1, keepdims=True), "mean_of_flows") @ v

    def _end(self, name: str) -> Value:
        numbers: np.ndarray[Any, Any] = np.concatenate([getattr(s.ends, name) for s in self.stores])
        return self.t.constant(numbers, name)

    def _column(self, v: Value) -> Value:
        return self.t.reshape(v, (v.size, 1))

    def _apart(self, v: Value) -> list[Value]:
        """Entries of all stores (m,) store by store, of the shapes of the states."""
        ends = np.cumsum([0, *(s.size for s in self.stores)])
        return [self.t.reshape(v[int(a) : int(a) + s.size], s.shape) for a, s in zip(ends, self.stores)]
