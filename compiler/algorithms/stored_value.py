"""Value of what a round leaves in stores, from what filling them costs in the rounds to come.

A flow of u units into a store costs c_t u + kappa_t u^2 / 2 in round t, with the slope and the second derivative of the penalised loss at
the decision, and a unit that is there m_t = df_t/ds (holding it). Averages of these, and of the drift, at the phases of the season predict
those of H rounds to come: of c the mean of all rounds with theta times what that of the phase is above it, and phi^h times what the last
one was above this; theta and phi are the regressions, cut to [0, 1], of what came on what was expected, so that noise is no season. No c
counts as more than two usual errors off: one spike decides nothing.

The marginal value v_h of s units before round h is then keep w - m_h with w at the flow at which the next store and the flow have one
price (Bellman's equation, differentiated: the value is concave, so its slope falls while that of the flow's cost does not),

    w = v_{h+1}(keep s + drift_h + u) = c_h + kappa_h u,      least <= u <= most,

and that at the end of the flows where they have none: for kappa = 0 the median of c_h and of v_{h+1} at both ends. Beyond the upper end of
the store a unit has no value, below the lower one any; after H rounds it has the mean of all c. Values stand on a grid, linear
between its points, at flows of a few sizes. So a round decides by f_t(x) - V_{t+1}(s'(x)), and

    sum_t f_t(x_t) = sum_t [f_t(x_t) - V_{t+1}(s_{t+1}) + V_t(s_t)] + V_{T+1}(s_{T+1}) - V_1(s_1):

experts are judged by what they leave, too, and what is paid for it comes back. H = 1 looks no round ahead.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.stores import (
    KNOTS,
    cut_names,
    diagonal_curvature,
    has_curvature,
    knot_names,
    slope_name,
    stores,
    value_of_state,
    valued,
    without_missing,
)
from oco.compiler.theory.settings import Default
from oco.compiler.theory.theorems import Situation
from oco.dsl.magnitudes import TINY

AHEAD = "ahead"
"""Setting with the rounds that the value of what is left looks ahead."""
DAY, MOST_AHEAD = 24, 48
"""Least and largest number of these rounds, of whole seasons where they fit."""
GRID = 21
"""Points of a store at which its values stand."""
FLOWS = 11
"""Flows of a round between which the best one is, where costs are curved; else the least and the largest are enough."""
FORGETS = 0.05
"""Least rate at which averages at the phases of the season forget."""
FARTHEST = 2.0
"""Usual errors that a cost counts as off what was expected, at most, after the first season."""
SIZE_RATE = 0.02
"""Least rate at which the usual size of these errors forgets."""
ROUNDING = 1e-4
"""Least sum of squares that a regression is on, in squares of the usual error."""
UNBOUNDED, EDGE = 1e300, 1e-9
GOLDEN = 0.6180339887498949
"""Part of a cell by which the kinks of the value move each round: a decision at a kink is at none of the next round, where rounding would
choose its slope.
"""
BY_PHASE, OVERALL, ABOVE = "cost_by_phase", "cost_overall", "cost_above"
ERRORS, USUAL, VALUES = "cost_errors", "cost_usual", "value"
SLOPES, DROPS, KINKS = "value_slope", "value_drop", "value_knot"
SYMBOLS = {
    BY_PHASE: "averages at each phase of the season: cost of a unit in store, its growth, cost of holding one, drift of the store",
    OVERALL: "the same, of all rounds",
    ABOVE: "what the last cost of a unit was above its average",
    ERRORS: "sums of squares of these errors and of products with those before; and the same of what phases are above the mean",
    USUAL: "usual size of the errors",
    VALUES: "value of a unit more in store, by what is in it",
    SLOPES: "value of a unit that this round leaves, where it leaves least",
    DROPS: "drops of this value",
    KINKS: "what is left where it drops",
}


def rounds_ahead(s: Situation) -> dict[str, Default]:
    """Setting with the rounds to look ahead; none where the problem has no stores."""
    if not stores(s.canonical):
        return {}
    whole = s.season * -(-DAY // s.season)
    why = "rounds to come that what is left in a store is for: of a day, or of a season"
    return {AHEAD: Default(float(min(whole, MOST_AHEAD)), why)}


class StoredValue:
    """Value of what is left in the stores of a round's problem; m is the number of their entries, all stores together."""

    def __init__(self, p: Problem) -> None:
        self.p, self.t = p, p.tracer
        self.ahead = p.whole(AHEAD) if AHEAD in p.spec.settings else 1
        self.stores = stores(p.spec.canonical) if self.ahead > 1 else ()
        self.season = p.whole("season")
        self.size = sum(s.size for s in self.stores)
        self.is_curved = bool(self.stores) and has_curvature(p.spec.canonical)

    def init(self) -> State:
        """State before the first round, in which nothing that is left has a value."""
        if not self.stores:
            return {}
        m, zeros = self.size, self.t.zeros
        return {
            BY_PHASE: zeros((self.season, 4, m)),
            OVERALL: zeros((4, m)),
            ABOVE: zeros((m,)),
            ERRORS: zeros((4, m)),
            USUAL: zeros((m,)),
            VALUES: zeros((m, GRID)),
            SLOPES: zeros((m,)),
            DROPS: zeros((KNOTS, m)),
            KINKS: zeros((KNOTS, m)),
        }

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
        first, paid, wasted = array(state, SLOPES), self._end("paid"), self._end("wasted")
        beyond = wasted * self.t.maximum(first - self.t.sum(array(state, DROPS), axis=0), 0.0)
        short = self.t.where(paid > 0.0, self.t.minimum(first, paid), 0.0)
        parts = zip(self.stores, *map(self._apart, (first, short, beyond)), strict=True)
        for s, slope, short, over in parts:
            result.seen |= {slope_name(s): slope} | dict(zip(cut_names(s), (short, over), strict=True))
        return result

    def filling(self) -> Problem:
        """View of the round whose loss pays nothing for what is missing in stores."""
        result = copy(self.p)
        result.spec = replace(self.p.spec, canonical=without_missing(self.p.spec.canonical))
        return result

    def prepared(self, state: State) -> State:
        """State with the value of what this round may leave, from what is in store."""
        if not self.stores:
            return {}
        t = self.t
        assert self.p.round is not None
        self.p.note("the value of what this round may leave in store")
        drift = self._expected(state, (self.p.round - 1) % self.season, self.p.played - 1.0)[3]
        own = [t.reshape(t.to_float(self.p.seen[s.name]), (s.size,)) for s in self.stores]
        kept = self._constant("keep") * (own[0] if len(own) == 1 else t.concat(*own)) + drift
        lower, upper = self._end("lower"), self._end("upper")
        least, most = (
            t.name(end, t.minimum(t.maximum(kept + self._constant(end), lower), upper)) for end in ("least", "most")
        )
        f = GOLDEN * self.p.played
        knots = (t.iota(KNOTS) + (f - t.floor(f))) / float(KNOTS)
        ends = t.concat(t.zeros((1,)), knots, t.ones((1,)))
        between = t.name("between", 0.5 * (ends[:-1] + ends[1:]))
        kinks, middles = (least + t.reshape(v, (v.size, 1)) * (most - least) for v in (knots, between))
        slopes = t.transpose(self._interpolated(array(state, VALUES), t.transpose(middles)))
        drops = t.maximum(slopes[:-1] - slopes[1:], 0.0)
        return {SLOPES: slopes[0], DROPS: t.name("drop", drops), KINKS: t.name("kinks", kinks)}

    def update(self, state: State, played: Point, slope: Point) -> State:
        """State after a round with the decision `played`, where the penalised loss had this slope, in units of the rule."""
        if not self.stores:
            return {}
        p, t = self.p, self.t
        assert p.round is not None
        p.note("what a unit in store costs, and what is in store is worth for the rounds to come")
        phase = (p.round - 1) % self.season
        now, expected = self._costs(played, slope), self._expected(state, phase, p.played - 1.0)
        usual, begun = array(state, USUAL), p.played > 1.5
        error = t.name("error", t.where(begun, now[0] - expected[0], 0.0))
        most = t.where(p.played > float(max(self.season, DAY)) + 0.5, FARTHEST * usual, UNBOUNDED)
        above = t.name("above", t.minimum(t.maximum(error, -most), most))
        cost = t.where(begun, expected[0] + above, now[0])
        now = t.name("costs", t.concat(t.reshape(cost, (1, self.size)), now[1:]))
        overall, of_phase = array(state, OVERALL), array(state, BY_PHASE)[phase]
        came = p.played > float(self.season) + 0.5
        of_season = t.where(came, of_phase[0] - overall[0], 0.0)
        before, beside = array(state, ABOVE), t.where(came, cost - overall[0], 0.0)
        products = t.stack(before * before, before * above, of_season * of_season, of_season * beside)
        visits = 1.0 + t.floor((p.played - 0.5) / float(self.season))
        rate = t.maximum(1.0 / visits, FORGETS)
        after: State = {
            BY_PHASE: t.put(array(state, BY_PHASE), of_phase + rate * (now - of_phase), phase),
            OVERALL: t.name("overall", overall + (now - overall) / p.played),
            ABOVE: above,
            ERRORS: t.name("errors", array(state, ERRORS) + products),
            USUAL: t.name("usual", usual + t.maximum(SIZE_RATE, 1.0 / p.played) * (abs(error) - usual)),
        }
        return {**after, VALUES: self._values(after)}

    def _values(self, state: State) -> Value:
        """Values of a unit more before the round after the next one, (m, GRID)."""
        p, t, m = self.p, self.t, self.size
        above, errors, overall = (array(state, n) for n in (ABOVE, ERRORS, OVERALL))
        fades = t.name("fades", t.log(t.maximum(self._regressed(state, errors[0], errors[1]), TINY)))
        keep, least, most = (self._column(self._constant(n)) for n in ("keep", "least", "most"))
        lower, upper, missing, wasted = (self._column(self._end(n)) for n in ("lower", "upper", "paid", "wasted"))
        missing = t.where(missing > 0.0, missing, UNBOUNDED)
        step = t.name("step", (upper - lower) / float(GRID - 1))
        stored = t.name("stored", lower + step * t.to_float(t.iota(GRID)))
        edge = EDGE * (upper - lower)

        flows = FLOWS if self.is_curved else 2
        flow = t.name(
            "flow", least + (most - least) * t.constant(np.linspace(0.0, 1.0, flows), "shares", "of the flows")
        )

        def earlier(j: Value, after: Value) -> tuple[Value, ...]:
            assert p.round is not None
            h = self.ahead - j
            row = self._expected(state, (p.round + h) % self.season, p.played)
            cost = row[0] + t.exp(t.to_float(h + 1) * fades) * above
            price = self._column(cost) + self._column(row[1]) * flow
            kept = keep * stored + self._column(row[3])
            left = t.reshape(kept, (m, GRID, 1)) + t.reshape(flow, (m, 1, flows))
            at = t.reshape(left, (m, GRID * flows))
            value = t.where(at > upper + edge, -UNBOUNDED, self._interpolated(after, at))
            value = t.reshape(t.where(at < lower - edge, missing, value), (m, GRID, flows))
            at_price = self._at_one_price(value, t.reshape(price, (m, 1, flows)))
            # Where every flow fills the store beyond an end at which what is more is wasted, a unit more is worth nothing.
            lost = t.and_(wasted > 0.0, value[:, :, 0] <= -UNBOUNDED)
            return (keep * t.where(lost, 0.0, at_price) - self._column(row[2]),)

        (values,) = t.for_(self.ahead, earlier, [t.broadcast(self._column(overall[0]), (m, GRID))])
        return values

    def _at_one_price(self, value: Value, price: Value) -> Value:
        """Value of the store, (m, GRID), at the flow at which it falls to the price of the flow: `value` (m, GRID, flows) falls with the
        flow, `price` (m, 1, flows) does not. Between two flows the price is that where the lines cross.
        """
        t, last = self.t, value.shape[2] - 1
        over = t.minimum(t.maximum(value - price, -UNBOUNDED), UNBOUNDED)
        here, there = over[:, :, :-1], over[:, :, 1:]
        crosses = t.and_(here > 0.0, there <= 0.0)
        share = t.where(crosses, here / t.where(crosses, here - there, 1.0), 0.0)
        between = t.to_float(crosses) * (price[:, :, :-1] + share * (price[:, :, 1:] - price[:, :, :-1]))
        inside = t.where(over[:, :, last] > 0.0, value[:, :, last], t.sum(between, axis=2))
        return t.where(over[:, :, 0] <= 0.0, value[:, :, 0], inside)

    def _costs(self, played: Point, slope: Point) -> Value:
        """Cost of a unit more in store, its growth, what holding one costs, and the drift, in this round: (4, m), in the user's units."""
        p, t, scales, canonical = self.p, self.t, self.p.spec.scales, self.p.spec.canonical
        unit = 1.0 if scales is None else float(scales.loss / scales.radius)
        entries = t.constant(np.concatenate([s.entries for s in self.stores]), "filling", "decisions that fill stores")
        rate = self._constant("rate")
        cost = unit * self._flat(slope)[entries] / rate
        growth = t.zeros((self.size,))
        if self.is_curved:
            grown = p.values([*diagonal_curvature(canonical).values()], played)[entries]
            growth = t.name("growth", t.maximum(grown, 0.0) / (rate * rate))
            cost = cost - growth * rate * self._flat(p.units.outward(played))[entries]
        held = p.values([value_of_state(without_missing(canonical), s) for s in self.stores], played)
        return t.stack(cost, growth, held, p.values([s.drift for s in self.stores], played))

    def _flat(self, x: Point) -> Value:
        parts = [self.t.reshape(b, (b.size,)) for b in x.blocks]
        return parts[0] if len(parts) == 1 else self.t.concat(*parts)

    def _expected(self, state: State, phase: Value, rounds: Value) -> Value:
        """Costs as expected at a phase after so many rounds, (4, m): those of all rounds where it has not come."""
        t, overall, errors = self.t, array(state, OVERALL), array(state, ERRORS)
        theta = t.reshape(self._regressed(state, errors[2], errors[3]), (1, self.size))
        shares = t.concat(theta, t.ones((3, self.size)))
        came = t.to_float(phase) < rounds - 0.5
        return overall + t.where(came, shares * (array(state, BY_PHASE)[phase] - overall), 0.0)

    def _regressed(self, state: State, squares: Value, products: Value) -> Value:
        """Regression coefficient, cut to [0, 1]; 0 on what is but rounding beside the usual errors."""
        t, usual = self.t, array(state, USUAL)
        least = t.maximum(ROUNDING * usual * usual, TINY)
        return t.minimum(t.maximum(products / t.maximum(squares, least), 0.0), 1.0)

    def _interpolated(self, values: Value, at: Value) -> Value:
        """Values (m, GRID), linear between the points of the grid and constant beyond, at what is in store, (m, P)."""
        t, (m, P) = self.t, at.shape
        lower, upper = (self._column(self._end(n)) for n in ("lower", "upper"))
        place = t.minimum(t.maximum((at - lower) * (float(GRID - 1) / (upper - lower)), 0.0), float(GRID - 1))
        cell = t.minimum(t.floor(place), float(GRID - 2))
        first = t.constant(GRID * np.arange(m).reshape(m, 1), "first", "where the values of a store begin")
        cells = t.reshape(t.to_int(cell) + first, (m * P,))
        flat = t.reshape(values, (m * GRID,))
        low, high = (t.reshape(flat[i], (m, P)) for i in (cells, cells + 1))
        return low + (place - cell) * (high - low)

    def _constant(self, name: str) -> Value:
        numbers: np.ndarray[Any, Any] = np.concatenate([getattr(s, name) for s in self.stores])
        return self.t.constant(numbers, name)

    def _end(self, name: str) -> Value:
        numbers: np.ndarray[Any, Any] = np.concatenate([getattr(s.ends, name) for s in self.stores])
        return self.t.constant(numbers, name)

    def _column(self, v: Value) -> Value:
        return self.t.reshape(v, (v.size, 1))

    def _apart(self, v: Value) -> list[Value]:
        """Entries of all stores (m,) store by store, of the shapes of the states."""
        ends = np.cumsum([0, *(s.size for s in self.stores)])
        return [self.t.reshape(v[int(a) : int(a) + s.size], s.shape) for a, s in zip(ends, self.stores)]


def stores_valued(s: Situation) -> str:
    """Reason why nothing is promised of a problem with stores; "" where it has none."""
    names = [store.name for store in stores(s.canonical)]
    return f"what is left in `{names[0]}` has a value, which is an estimate" if names else ""
