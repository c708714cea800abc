"""Value of an order that reaches its store rounds later, by the store's position (`problem.pipelines`).

With y the position before an order of r x = u units and q = y + u, the store holds

    z = q + S_h + e,        S_h = sum_{j<=L} keep^{L-j} drift_{h+j} as expected in round h,

when the order has come, with the errors e of such sums. One more unit in q saves or costs: the slope of the known costs g of the level
(`state_costs`); the price p_lower of a unit that is missing below the lower end of the range, or p_upper of one too many above the upper
end; m for holding it; and v_{h+1}, its value in the next position. Together

    W_h'(q) = E[p_lower 1[z < l] - p_upper 1[z > u] + (keep v_{h+1}(keep q + keep^{L+1} drift_h) - g'(z)) 1[l <= z <= u]] - m_h,

the derivative of Bellman's equation: what the range cuts off is lost to all later rounds. As for other stores (`stored_value`), v_h(y) is
the price at which W_h'(y + u) meets the marginal cost c_h + kappa_h u of filling; after the last round it is the mean of all c. Costs and
drifts of rounds to come are those of `costs_to_come`. The round minimizes f_t(x) - W_t(y_t + u), of which all but f_t is known before it.

Errors are learned of whole sums, and not of single drifts, so that their seasons and correlations count: their usual size, and quantiles
in such sizes at equal shares, which follow q <- q + rate (1[e > q] - (1 - share)) from those of a normal distribution (Gibbs & Candes
2021). The best position is a quantile of the sum at a share that follows from the prices, as in the newsvendor problem; hence many are
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from oco.compiler.algorithms.costs_to_come import SYMBOLS as COST_SYMBOLS
from oco.compiler.algorithms.costs_to_come import CostsToCome, ToCome
from oco.compiler.algorithms.known_slopes import EDGE, KnownSlopes
from oco.compiler.algorithms.learned_costs import DAY, DRIFT, SIZE_RATE, UNBOUNDED
from oco.compiler.algorithms.rounds_ahead import AHEAD
from oco.compiler.algorithms.store_flows import OneFlow
from oco.compiler.algorithms.stored_value import GOLDEN
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.stores import KNOTS, has_curvature, knot_names, slope_name, stores, valued

SHARES = (np.arange(21) + 0.5) / 21
"""Shares of the errors of sums below their quantiles, in the middles of equal parts."""
NORMAL = np.array([NormalDist(sigma=np.sqrt(np.pi / 2)).inv_cdf(q) for q in SHARES])
"""These quantiles of a normal distribution with the mean absolute value 1."""
SHAPE_RATE = 0.01
"""Rate at which the quantiles move, in usual sizes of the errors: slow, since most begin near where they end."""
FARTHEST = 2.5
"""Largest error that the usual size learns from, in usual sizes, after the first day: jumps of the level count as no more."""
CELLS = 20
"""Cells of the grid of positions on each side of the expected use until an order comes; they are wider farther from it."""
ROOM = 0.05
"""Share of the range of positions by which the middle of the grid stays away from both ends, so that cells on each side have a width."""
SOUGHT = 33
"""Points of each of two scans for the order at which the value of a unit meets its cost; the second is between two points of the first."""
LEAD = "lead_"
SLOPES, DROPS, KINKS = "order_slope", "order_drop", "order_knot"
SUMS, EXPECTED, OPEN, SIZE, SHAPE = "order_sum", "order_drift", "order_sums", "order_error", "order_shape"

SYMBOLS = {
    **{f"{LEAD}{name}": f"{says}; of stores that orders reach later" for name, says in COST_SYMBOLS.items()},
    SLOPES: "value of a unit that this round orders, where it orders least",
    DROPS: "drops of this value",
    KINKS: "orders at which it drops",
    SUMS: "sum of the drifts until an order of this round has come, as expected",
    EXPECTED: "drift of this round, as expected",
    OPEN: "what such sums are above those expected so far, of the orders on the way",
    SIZE: "usual size of the errors of these sums",
    SHAPE: "quantiles of these errors, in usual sizes",
}


class PositionValue:
    """Value of what a round orders for stores with a pipeline; m is the number of their entries, all stores together."""

    def __init__(self, p: Problem) -> None:
        self.p, self.t = p, p.tracer
        self.ahead = p.whole(AHEAD) if AHEAD in p.spec.settings else 1
        every = stores(p.spec.canonical) if self.ahead > 1 else ()
        self.stores = tuple(s for s in every if s.pipeline is not None)
        self.ways = tuple(s.pipeline for s in every if s.pipeline is not None)
        self.size = sum(s.size for s in self.stores)
        self.length = max((way.length for way in self.ways), default=0)
        self.is_curved = bool(self.stores) and has_curvature(p.spec.canonical)
        self.costs = CostsToCome(p, self.stores, self.ahead, LEAD)

    def init(self) -> State:
        """State before the first round, in which no order has a value."""
        if not self.stores:
            return {}
        m, t = self.size, self.t
        costs = self.costs.init()
        own = {
            SLOPES: t.zeros((m,)),
            DROPS: t.zeros((KNOTS, m)),
            KINKS: t.zeros((KNOTS, m)),
            SUMS: t.zeros((m,)),
            EXPECTED: t.zeros((m,)),
            OPEN: t.zeros((self.length + 1, m)),
            SIZE: t.zeros((m,)),
            SHAPE: t.broadcast(t.constant(NORMAL, "normal", "quantiles of a normal distribution"), (m, NORMAL.size)),
        }
        return joined(costs, own)

    def viewed(self, p: Problem, state: State) -> Problem:
        """View of the round of `p` with the value of what is ordered taken off its loss."""
        if not self.stores:
            return p
        result = copy(p)
        result.spec = replace(p.spec, canonical=valued(self.p.spec.canonical))
        result.seen = dict(p.seen)
        for k in range(KNOTS):
            names = zip(*(knot_names(s, k) for s in self.stores), strict=True)
            for own, name in zip(names, (KINKS, DROPS), strict=True):
                result.seen |= dict(zip(own, self._apart(array(state, name)[k]), strict=True))
        slopes = self._apart(array(state, SLOPES))
        result.seen |= {slope_name(s): slope for s, slope in zip(self.stores, slopes, strict=True)}
        return result

    def prepared(self, state: State) -> State:
        """State with the value of what this round may order, from what is in store and on its way there."""
        if not self.stores:
            return {}
        t = self.t
        self.p.note("the value of what this round may order, by what is in store and on its way there")
        position, to_come = self._position(), _ToCome(self, self.costs.before_decision(state), state)
        after = to_come.values()
        least, most = (self.constant(end) for end in ("least", "most"))

        def marginal(flow: Value) -> Value:
            return to_come.marginal(self.column(position) + flow, t.lift(0), after)

        best = self._best(marginal, to_come, least, most)
        f = GOLDEN * self.p.played
        places = 2.0 * (t.iota(KNOTS) + (f - t.floor(f))) / float(KNOTS) - 1.0
        places = t.reshape(places, (KNOTS, 1))
        knots = best + t.where(places < 0.0, best - least, most - best) * places * places * places
        row = (1, self.size)
        ends = t.concat(t.reshape(least, row), knots, t.reshape(most, row))
        slopes = t.transpose(marginal(t.transpose(0.5 * (ends[:-1] + ends[1:]))))
        drops = t.name("drop", t.maximum(slopes[:-1] - slopes[1:], 0.0))
        expected = {SUMS: to_come.sums[0], EXPECTED: to_come.table[0][DRIFT]}
        return {SLOPES: slopes[0], DROPS: drops, KINKS: t.name("kinks", knots), **expected}

    def update(self, state: State, played: Point, slope: Point) -> State:
        """State after a round with the decision `played`, where the penalised loss had this slope, in units of the rule."""
        if not self.stores:
            return {}
        t, p = self.t, self.p
        p.note("what a unit ordered costs, and what sums of drifts were above those expected")
        drift = t.reshape(p.values([s.drift for s in self.stores], played), (1, self.size))
        begun = t.reshape(-array(state, SUMS), (1, self.size))
        sums = t.concat(begun, array(state, OPEN)[:-1]) + self.of_drifts() * drift
        error, rounds = self._error(state, sums, drift[0]), p.played - 1.0
        size, shape = array(state, SIZE), array(state, SHAPE)
        most = t.where(rounds > float(DAY) + 0.5, FARTHEST * size, UNBOUNDED)
        rate = t.where(rounds > 0.5, t.maximum(SIZE_RATE, 1.0 / t.maximum(rounds, 1.0)), 0.0)
        size = t.name("size", size + rate * (t.minimum(abs(error), most) - size))
        above = t.to_float(self.column(error) > shape * self.column(size))
        moved = above - t.constant(1.0 - SHARES, "above", "shares of errors above the quantiles")
        rate = t.where(rounds > 0.5, SHAPE_RATE, 0.0)
        return {
            **self.costs.update(state, played, slope, None),
            OPEN: t.name("open", sums),
            SIZE: size,
            SHAPE: t.name("shape", shape + rate * moved),
        }

    def _position(self) -> Value:
        """y before the round's order, (m,)."""
        t, seen, parts = self.t, self.p.seen, list[Value]()
        for s, way in zip(self.stores, self.ways, strict=True):
            total = way.of_stock * t.reshape(t.to_float(seen[s.state.expected or s.name]), (s.size,))
            for stage in way.stages:
                a = stage.state
                flat = t.reshape(t.to_float(seen[a.expected or a.name]), (int(np.prod(a.shape, dtype=int)),))
                total = total + stage.share * flat[t.constant(stage.entries, "stage")]
            parts.append(total)
        return t.name("position", self._joined(parts))

    def _best(self, marginal: Callable[[Value], Value], to_come: _ToCome, least: Value, most: Value) -> Value:
        """Flow at which the value of a unit falls to its expected cost, (m,), by two scans of rising flows."""
        t, (low, high) = self.t, (least, most)
        shares = t.iota(SOUGHT) / float(SOUGHT - 1)
        for _ in range(2):
            flow = self.column(low) + self.column(high - low) * shares
            over = marginal(flow) > to_come.prices(flow)
            count, cell = t.sum(t.to_float(over), axis=1), (high - low) / float(SOUGHT - 1)
            begin = low + t.minimum(t.maximum(count - 1.0, 0.0), float(SOUGHT - 2)) * cell
            low, high = begin, t.where(count > 0.5, begin + cell, begin)
        return t.name("best", 0.5 * (low + high))

    def of_drifts(self) -> Value:
        """Factors of drifts in the sums S, by the round in which they come, (L + 1, m); 0 for those after the order has come."""
        parts = [np.vstack([w.of_drifts, np.zeros((self.length - w.length, w.rate.size))]) for w in self.ways]
        return self.t.constant(np.hstack(parts), "of_drifts")

    def _error(self, state: State, sums: Value, drift: Value) -> Value:
        """Error of the sum that this round completes, (m,); before there is one, as if rounds had independent errors of this one's size."""
        t, length = self.t, self.of_ways("length")
        rows = t.constant(np.arange(self.length + 1.0).reshape(-1, 1), "age")
        whole = t.sum(t.where(abs(rows - length) < 0.5, sums, 0.0), axis=0)
        alone = (drift - array(state, EXPECTED)) * t.sqrt(length + 1.0)
        return t.where(self.p.played > length + 1.5, whole, alone)  # the first round expected nothing yet

    def constant(self, name: str) -> Value:
        """Attribute of the stores, for all entries, (m,)."""
        return self.t.constant(np.concatenate([getattr(s, name) for s in self.stores]), name)

    def of_ways(self, name: str) -> Value:
        """Attribute of the pipelines, for all entries, (m,)."""
        parts = [np.broadcast_to(np.float64(getattr(w, name)), w.rate.shape) for w in self.ways]
        return self.t.constant(np.concatenate(parts), name)

    def end(self, name: str) -> Value:
        """Attribute of the ends of the stores' ranges, for all entries, (m,): an end, or its price."""
        return self.t.constant(np.concatenate([getattr(s.ends, name) for s in self.stores]), name)

    def column(self, v: Value) -> Value:
        """Vector as a column."""
        return self.t.reshape(v, (v.size, 1))

    def _joined(self, parts: list[Value]) -> Value:
        return parts[0] if len(parts) == 1 else self.t.concat(*parts)

    def _apart(self, v: Value) -> list[Value]:
        """Entries of all stores (m,) store by store, of the shapes of the states."""
        ends = np.cumsum([0, *(s.size for s in self.stores)])
        return [self.t.reshape(v[int(a) : int(a) + s.size], s.shape) for a, s in zip(ends, self.stores)]

    def ends_of_positions(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Least and greatest positions before an order, (m,)."""
        result = list[np.ndarray[Any, Any]]()
        for name in ("lower", "upper"):
            parts = list[np.ndarray[Any, Any]]()
            for s, way in zip(self.stores, self.ways, strict=True):
                total = way.of_stock * getattr(s.ends, name)
                for g in way.stages:
                    ends = (
                        np.broadcast_to(np.asarray(e, dtype=np.float64), g.state.shape)
                        for e in (g.state.lower, g.state.upper)
                    )
                    reached = np.stack([g.share * e.ravel()[g.entries] for e in ends])
                    total = total + (reached.min(axis=0) if name == "lower" else reached.max(axis=0))
                parts.append(total)
            result.append(np.concatenate(parts))
        return result[0], result[1]


class _ToCome:
    """Expected rounds to come, from the present one on: costs, drifts, sums of drifts, and values of units ordered.

    sums  S_h of rounds t + h, (H + 1, m)
    """

    def __init__(self, value: PositionValue, costs: ToCome, state: State) -> None:
        self.value, self.t, self.costs = value, value.t, costs
        t, count = self.t, value.ahead + 1
        (self.table,) = t.map_(lambda h: (costs.of(h),), t.iota(count + value.length))
        drift, weights = self.table[:, DRIFT], value.of_drifts()
        sums = weights[0] * drift[:count]
        for j in range(1, value.length + 1):
            sums = sums + weights[j] * drift[j : j + count]
        self.sums = t.name("sums", sums)
        self.errors = t.name("errors", array(state, SHAPE) * value.column(array(state, SIZE)))
        lower, upper = (t.constant(e.reshape(-1, 1), "least_position") for e in value.ends_of_positions())
        used, room = value.column(-self.sums[0]), ROOM * (upper - lower)
        self.middle = t.name("middle", t.minimum(t.maximum(used, lower + room), upper - room))
        self.below, self.above = self.middle - lower, upper - self.middle
        self.known = KnownSlopes(value.p, value.stores)

    def prices(self, flow: Value) -> Value:
        """Cost of a unit more in this round at flows (m, P)."""
        row, column = self.table[0], self.value.column
        price = column(row[0]) + column(row[1]) * flow
        return price + 0.5 * column(row[4]) * self.t.sign(flow) if self.value.costs.kinks else price

    def values(self) -> Value:
        """v of the next round, (m, GRID)."""
        t, value = self.t, self.value
        flows = OneFlow(t, value.stores, value.is_curved, value.costs.kinks, value.costs.shared, value.costs.limited)
        places = t.constant(np.linspace(-1.0, 1.0, 2 * CELLS + 1), "places")
        grid = t.name("grid", self.middle + t.where(places < 0.0, self.below, self.above) * places * abs(places))

        def earlier(j: Value, after: Value) -> tuple[Value, ...]:
            h = value.ahead - j
            return (flows.at_one_price(grid, lambda level: self.marginal(level, h, after), self.table[h]),)

        (values,) = t.for_(value.ahead, earlier, [t.broadcast(value.column(self.costs.mean), grid.shape)])
        return values

    def marginal(self, level: Value, h: Value, after: Value) -> Value:
        """W' of round t + h at positions after an order, (m, P), with the values of the round after it, (m, GRID)."""
        t, value, (m, P) = self.t, self.value, level.shape
        K, column = self.errors.shape[1], self.value.column
        lower, upper, paid, charged = (t.reshape(value.end(n), (m, 1)) for n in ("lower", "upper", "paid", "charged"))
        there = level + column(self.sums[h])
        z = t.reshape(t.reshape(there, (m, P, 1)) + t.reshape(self.errors, (m, 1, K)), (m, P * K))
        edge = EDGE * (upper - lower)
        known = -self.known.at(z, {}, self.value.p.round) if self.known else 0.0 * z
        known = t.where(z > upper + edge, -charged, t.where(z < lower - edge, paid, known))
        inside = t.to_float(t.and_(z <= upper + edge, z >= lower - edge))
        known, inside = (t.sum(t.reshape(v, (m, P, K)), axis=2) / float(K) for v in (known, inside))
        keep, row = column(value.of_ways("keep")), self.table[h]
        following = keep * level + column(value.of_ways("of_stock")) * column(row[DRIFT])
        return known + inside * keep * self._interpolated(after, following) - column(row[2])

    def _interpolated(self, values: Value, at: Value) -> Value:
        """Values (m, GRID), linear between the points of the grid and constant beyond, at positions (m, P)."""
        t, (m, P), cells = self.t, at.shape, 2 * CELLS
        away = at - self.middle
        scaled = t.minimum(abs(away) / t.where(away < 0.0, self.below, self.above), 1.0)
        place = float(CELLS) * (1.0 + t.sign(away) * t.sqrt(scaled))
        cell = t.minimum(t.floor(place), float(cells - 1))
        first = t.constant((cells + 1) * np.arange(m).reshape(m, 1), "first", "where the values of a store begin")
        index = t.reshape(t.to_int(cell) + first, (m * P,))
        flat = t.reshape(values, (m * (cells + 1),))
        low, high = (t.reshape(flat[i], (m, P)) for i in (index, index + 1))
        ends = [cell / float(CELLS) - 1.0, (cell + 1.0) / float(CELLS) - 1.0]
        begin, end = (t.where(e < 0.0, -self.below, self.above) * e * e for e in ends)
        return low + t.minimum(t.maximum((away - begin) / (end - begin), 0.0), 1.0) * (high - low)
