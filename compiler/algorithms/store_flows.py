"""Marginal value of a store before a round, from that after it: at the best flows a unit left is worth what moving it costs.

A flow of u units costs c u + kappa u^2 / 2 + (j / 2) |u| (`costs_to_come`). Let v(s) be the value of one more unit at the level s that the
round leaves, which falls with s, and `kept` the level that it leaves without flows. The value w of one more unit before the round solves

    w = v(kept + sum_k u_k),      c_k + kappa_k u_k + (j_k / 2) sign(u_k) = w for each flow u_k, or u_k at an end of its range.

Where data scale flows, as in `stock + spend / price`, costs and ranges are those of u / r, with the factor r of the round over the number
that `StoreOfState.rate` has (`flow_scales`): u then has r times the range and costs 1 / r times as much a unit. r is as expected, of
streams that are known only after the decision: a unit spent costs c and brings E r, so that a unit of goods costs c / E r.

One flow (`OneFlow`): w is where v crosses the marginal cost of the flow, which is linear between a few flows. Several (`SeveralFlows`):
the range of each is cut into segments with one price p_s each, and phi_s is the sum of the flows once all segments with lower prices are
full and no others are used; then

    w = max( max_s min(p_s, v(kept + phi_s)),  v(kept + all segments) ).

A price p_s <= w has phi_s <= sum_k u_k, so that v(kept + phi_s) >= w and the minimum is p_s. A price p_s > w has phi_s >= sum_k u_k, so
that the minimum is at most w. Where w is none of the prices, the minimum is w at the least price above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from oco.compiler.algorithms.shared_flows import FLOWS, SharedFlows
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.store_forms import StoreOfState
from oco.compiler.problem.stores import filled_by_flows

Floats = np.ndarray[Any, Any]
LEAST_SCALE = 1e-3
"""Part of the middle of its range that a factor of a decision counts as at least: the price of a unit stays finite where it brings none."""


class Flows(Protocol):
    """Flows into m entries of stores, F of them together. Costs of a round are rows, (rows, F), as `CostsToCome` has them."""

    def prices(self, row: Value) -> Value:
        """Marginal costs at a few flows, (m, P)."""

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before a round that leaves `kept` (m, G) without flows; `of` gives it at the levels left, (m, P)."""


def flows_of(
    t: Tracer,
    stores: Sequence[StoreOfState],
    curved: bool,
    kinks: bool,
    shared: SharedFlows,
    limited: slice | None = None,
    scales: int | None = None,
) -> Flows:
    """Flows of the stores.

    curved   costs have second derivatives
    kinks    their slopes jump where a flow changes its sign
    limited  rows of costs with the least and the greatest flows of a round
    scales   row of costs with the factors of flows in a round over `StoreOfState.rate`, with which all other rows are
    """
    several = any(s.filled.size > s.size for s in stores)
    return (SeveralFlows if several else OneFlow)(t, stores, curved, kinks, shared, limited, scales)


def _within(t: Tracer, flows: Value, row: Value, limited: slice | None) -> Value:
    """Flows (F, P) cut to the ranges that a round has for them."""
    if limited is None:
        return flows
    least, most = (_column(t, end) for end in row[limited])
    return t.minimum(t.maximum(flows, least), most)


def scale_of(t: Tracer, row: Value, scales: int) -> Value:
    """Factors of the flows in a round over `StoreOfState.rate`, (F, 1), from the costs of the round, (rows, F)."""
    return _column(t, t.maximum(row[scales], LEAST_SCALE))


class _Prices:
    """Marginal costs of F flows at `sizes`, (F, P), on the sides of 0 that `sides` gives, -1 or 1, (F, P)."""

    def __init__(
        self,
        t: Tracer,
        sizes: Floats,
        sides: Floats,
        kinks: bool,
        shared: SharedFlows,
        limited: slice | None,
        scales: int | None,
    ) -> None:
        self.t, self.sizes, self.kinks, self.shared = t, sizes, kinks, shared
        self.limited, self.scales = limited, scales
        self.flow = t.constant(sizes, "flow")
        self.side = t.constant(sides, "side", "the side of 0 on which a flow is") if kinks else None

    def at(self, row: Value) -> Value:
        """Flows (F, P) of a round with these costs."""
        flow = _within(self.t, self.flow, row, self.limited)
        return flow if self.scales is None else scale_of(self.t, row, self.scales) * flow

    def of(self, row: Value) -> Value:
        """Marginal costs (F, P), from the costs of a round, (rows, F)."""
        price = _column(self.t, row[0]) + _column(self.t, row[1]) * _within(self.t, self.flow, row, self.limited)
        if self.shared.rows:
            price = price + self.shared.above(row[-self.shared.rows :], self.sizes)
        price = price if self.side is None else price + 0.5 * _column(self.t, row[4]) * self.side
        return price if self.scales is None else price / scale_of(self.t, row, self.scales)


class OneFlow:
    """Stores with one flow each."""

    def __init__(
        self,
        t: Tracer,
        stores: Sequence[StoreOfState],
        curved: bool,
        kinks: bool,
        shared: SharedFlows,
        limited: slice | None = None,
        scales: int | None = None,
    ) -> None:
        self.t = t
        least, most = _ends(stores)
        flow = least + (most - least) * np.linspace(0.0, 1.0, FLOWS if curved or shared.rows else 2)
        side = np.sign(flow)
        if kinks:  # 0 is there twice, for either side
            none = np.clip(0.0, least, most)
            flow, side = np.hstack([flow, none, none]), np.hstack([side, -np.ones_like(none), np.ones_like(none)])
            order = np.lexsort((side, flow))
            flow, side = np.take_along_axis(flow, order, 1), np.take_along_axis(side, order, 1)
        self._prices = _Prices(t, flow, side, kinks, shared, limited, scales)

    def prices(self, row: Value) -> Value:
        """Marginal costs at the flows, (m, P), from the costs of a round, (rows, F)."""
        return self._prices.of(row)

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before the round, where the value of a unit left falls to the marginal cost of the flow."""
        t, (m, G), flow = self.t, kept.shape, self._prices.at(row)
        flows = flow.shape[1]
        left = t.reshape(kept, (m, G, 1)) + t.reshape(flow, (m, 1, flows))
        value = t.reshape(of(t.reshape(left, (m, G * flows))), (m, G, flows))
        return met(value, t.reshape(self.prices(row), (m, 1, flows)))


def met(value: Value, price: Value) -> Value:
    """Value (m, G) where it meets the price of the flow: `value` (m, G, P) falls along the last axis, `price` (m, 1, P) does not.

    Both are linear between two flows. Where they do not cross, it is the value at the first or the last flow.
    """
    t, last = value.tracer, value.shape[2] - 1
    over = value - price
    here, there = over[:, :, :-1], over[:, :, 1:]
    crosses = t.and_(here > 0.0, there <= 0.0)
    share = t.where(crosses, here / t.where(crosses, here - there, 1.0), 0.0)
    between = t.to_float(crosses) * (price[:, :, :-1] + share * (price[:, :, 1:] - price[:, :, :-1]))
    inside = t.where(over[:, :, last] > 0.0, value[:, :, last], t.sum(between, axis=2))
    return t.where(over[:, :, 0] <= 0.0, value[:, :, 0], inside)


class SeveralFlows:
    """Stores of which some have several flows; entries with fewer are filled up with segments of width 0."""

    def __init__(
        self,
        t: Tracer,
        stores: Sequence[StoreOfState],
        curved: bool,
        kinks: bool,
        shared: SharedFlows,
        limited: slice | None = None,
        scales: int | None = None,
    ) -> None:
        self.t = t
        least, most = _ends(stores)
        ends = least + (most - least) * np.linspace(0.0, 1.0, FLOWS if curved or shared.rows else 2)
        if kinks:
            ends = np.sort(np.hstack([ends, np.clip(0.0, least, most)]))
        middle, width = 0.5 * (ends[:, 1:] + ends[:, :-1]), np.diff(ends)
        self._prices = _Prices(t, middle, np.sign(middle), kinks, shared, limited, scales)
        filled, m, count = filled_by_flows(stores), sum(s.size for s in stores), middle.shape[1]
        most_flows = int(np.bincount(filled).max())
        self._places, widths = np.zeros((m, most_flows * count), dtype=np.int64), np.zeros((m, most_flows * count))
        for entry in range(m):
            own = np.flatnonzero(filled == entry)
            places = (own.reshape(-1, 1) * count + np.arange(count)).ravel()
            self._places[entry] = places[0]
            self._places[entry, : places.size], widths[entry, : places.size] = places, width.ravel()[places]
        self._ends, self._limited, self._own = ends, limited, filled == np.arange(m).reshape(-1, 1)
        self._whole, self._scales = widths, scales
        if limited is None and scales is None:
            self.width = t.constant(widths, "width", "of the segments of flows")
            self.least = t.constant(
                np.bincount(filled, least.ravel(), m).reshape(-1, 1), "least_flow", "all flows least"
            )

    def prices(self, row: Value) -> Value:
        """Prices of the segments, (m, S), from the costs of a round, (rows, F)."""
        t, price = self.t, self._prices.of(row)
        places = t.constant(self._places.ravel(), "segment", "the segments of each store")
        return t.reshape(t.reshape(price, (price.size,))[places], self._places.shape)

    def _segments(self, row: Value) -> tuple[Value, Value]:
        """Sum of the least flows, (m, 1), and widths of the segments, (m, S), in a round with these costs."""
        t = self.t
        if self._limited is None and self._scales is None:
            return self.least, self.width
        ends = _within(t, t.constant(self._ends, "ends", "of the segments of flows"), row, self._limited)
        ends = ends if self._scales is None else scale_of(t, row, self._scales) * ends
        width = t.reshape(ends[:, 1:] - ends[:, :-1], (ends.size - ends.shape[0],))
        places = t.constant(self._places.ravel(), "segment", "the segments of each store")
        has = t.constant((self._whole > 0).astype(np.float64), "has", "segments that a store has")
        own = t.constant(self._own.astype(np.float64), "own", "flows of each store")
        return own @ ends[:, :1], has * t.reshape(width[places], self._places.shape)

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before the round, as the maximum over the segments."""
        t, (m, G), (_, S) = self.t, kept.shape, self._places.shape
        least, width = self._segments(row)
        price = t.name("price", self.prices(row))
        cheaper = t.to_float(t.reshape(price, (m, 1, S)) < t.reshape(price, (m, S, 1)))
        before = least + t.sum(cheaper * t.reshape(width, (m, 1, S)), axis=2)
        whole = least + t.reshape(t.sum(width, axis=1), (m, 1))
        flow = t.name("flow", t.concat(before, whole, axis=1))
        left = t.reshape(kept, (m, G, 1)) + t.reshape(flow, (m, 1, S + 1))
        value = t.reshape(of(t.reshape(left, (m, G * (S + 1)))), (m, G, S + 1))
        cut = t.minimum(value[:, :, :S], t.reshape(price, (m, 1, S)))
        return t.maximum(t.max(cut, axis=2), value[:, :, S])


def _ends(stores: Sequence[StoreOfState]) -> tuple[Floats, Floats]:
    """Least and greatest values of all flows, (F, 1) each."""
    least, most = (np.concatenate([getattr(s, n) for s in stores]).reshape(-1, 1) for n in ("least", "most"))
    return least, most


def all_flows(t: Tracer, stores: Sequence[StoreOfState], end: str, scale: Value | None = None) -> Value:
    """Sum of the flows of each store entry at one end of their ranges, (m,), with factors over their rates, (F,)."""
    ends, filled = np.concatenate([getattr(s, end) for s in stores]), filled_by_flows(stores)
    size = sum(s.size for s in stores)
    if scale is None:
        return t.constant(np.bincount(filled, ends, size), end)
    own = (filled == np.arange(size).reshape(-1, 1)) * ends
    return t.constant(own, end) @ scale


def _column(t: Tracer, v: Value) -> Value:
    return t.reshape(v, (v.size, 1))
