"""Flows of stores at one price: the value of a unit before a round, where what is left and what flows have one price.

A flow of u units costs c u + kappa u^2 / 2 + (j / 2) |u| (`costs_to_come`). With v, the value of a unit of what is left, which falls with
it, and flows u_k within their ranges the value w of a unit before the round solves

    w = v(kept + sum_k u_k),      u_k the flow at which c_k + kappa_k u_k + (j_k / 2) sign(u_k) = w, or the end of its range.

One flow: w is at the crossing of v with its price, which is linear between flows of a few sizes (`OneFlow`). Several: the range of each
is cut into segments with one price p_s each. Once all segments with lower prices are full and no other is used, phi_s flows; then

    w = max( max_s min(p_s, v(kept + phi_s)),  v(kept + all segments) ):

a price p_s <= w has phi_s <= sum_k u_k, so that min(p_s, v(kept + phi_s)) is p_s; one above w has phi_s >= sum_k u_k, so that it is at most
w, and w itself at the next price above w (`SeveralFlows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.stores import StoreOfState

FLOWS = 11
"""Flows of a round between which the best one is, where costs are curved; else the least and the largest are enough."""
Floats = np.ndarray[Any, Any]


class Flows(Protocol):
    """Flows of m store entries; rows of costs are (4, F) or (5, F), those of `CostsToCome` for the F flows."""

    def prices(self, row: Value) -> Value:
        """Prices of flows of a few sizes, (m, P)."""

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before the round where so much is `kept`, (m, G); `of` gives that of what is left, (m, P) at (m, P)."""


def flows_of(t: Tracer, stores: Sequence[StoreOfState], curved: bool, kinks: bool) -> Flows:
    """Flows of the stores; curved, kinks: costs have second derivatives, and jumps of their slopes where flows turn."""
    several = any(s.filled.size > s.size for s in stores)
    return (SeveralFlows if several else OneFlow)(t, stores, curved, kinks)


class OneFlow:
    """Stores with one flow each."""

    def __init__(self, t: Tracer, stores: Sequence[StoreOfState], curved: bool, kinks: bool) -> None:
        self.t, self.kinks = t, kinks
        least, most = (np.concatenate([getattr(s, n) for s in stores]).reshape(-1, 1) for n in ("least", "most"))
        flow = least + (most - least) * np.linspace(0.0, 1.0, FLOWS if curved else 2)
        side = np.sign(flow)
        if kinks:  # 0 is there twice, for either side
            none = np.clip(0.0, least, most)
            flow, side = np.hstack([flow, none, none]), np.hstack([side, -np.ones_like(none), np.ones_like(none)])
            order = np.lexsort((side, flow))
            flow, side = np.take_along_axis(flow, order, 1), np.take_along_axis(side, order, 1)
        self.flow, self.side = t.constant(flow, "flow"), t.constant(side, "side", "the side of 0 on which a flow is")

    def prices(self, row: Value) -> Value:
        """Prices of the flows, (m, P), from the costs of a round, (4, F) or (5, F)."""
        price = _column(self.t, row[0]) + _column(self.t, row[1]) * self.flow
        return price + 0.5 * _column(self.t, row[4]) * self.side if self.kinks else price

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before the round, at the flow at which that of what is left falls to the flow's price."""
        t, (m, G), flows = self.t, kept.shape, self.flow.shape[1]
        left = t.reshape(kept, (m, G, 1)) + t.reshape(self.flow, (m, 1, flows))
        value = t.reshape(of(t.reshape(left, (m, G * flows))), (m, G, flows))
        price, last = t.reshape(self.prices(row), (m, 1, flows)), flows - 1
        over = value - price
        here, there = over[:, :, :-1], over[:, :, 1:]
        crosses = t.and_(here > 0.0, there <= 0.0)
        share = t.where(crosses, here / t.where(crosses, here - there, 1.0), 0.0)
        between = t.to_float(crosses) * (price[:, :, :-1] + share * (price[:, :, 1:] - price[:, :, :-1]))
        inside = t.where(over[:, :, last] > 0.0, value[:, :, last], t.sum(between, axis=2))
        return t.where(over[:, :, 0] <= 0.0, value[:, :, 0], inside)


class SeveralFlows:
    """Stores of which some have several flows; entries with fewer have segments of no width beside."""

    def __init__(self, t: Tracer, stores: Sequence[StoreOfState], curved: bool, kinks: bool) -> None:
        self.t, self.kinks = t, kinks
        shares = np.linspace(0.0, 1.0, FLOWS if curved else 2)
        of_entry = list[list[tuple[int, float, float]]]()
        number = 0
        for s in stores:
            own: list[list[tuple[int, float, float]]] = [[] for _ in range(s.size)]
            for entry, least, most in zip(s.filled.tolist(), s.least.tolist(), s.most.tolist(), strict=True):
                ends = least + (most - least) * shares
                if kinks and least < 0.0 < most:
                    ends = np.array(sorted({*ends.tolist(), 0.0}))
                own[entry] += [(number, a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
                number += 1
            of_entry += own
        count = max(map(len, of_entry))
        padded = np.array([[*own, *([(own[0][0], 0.0, 0.0)] * (count - len(own)))] for own in of_entry])
        middle = padded[:, :, 1:].mean(axis=2)
        self.number = padded[:, :, 0].astype(np.int64)
        # A segment below 0 is used where it is not: its flow of `width` more begins at its lower end.
        self.width = t.constant(padded[:, :, 2] - padded[:, :, 1], "width", "of the segments of flows")
        self.middle, self.side = t.constant(middle, "middle"), t.constant(np.sign(middle), "side", "of 0")
        least = np.array([sum(a for n, a in first.items()) for first in map(_least_of, of_entry)])
        self.least = t.constant(least.reshape(-1, 1), "least_flow", "all flows at their lower ends")

    def prices(self, row: Value) -> Value:
        """Prices of the segments, (m, S), from the costs of a round, (4, F) or (5, F)."""
        t, shape = self.t, self.width.shape
        places = t.constant(self.number.ravel(), "flow_of", "the flow that each segment is of")
        own = [t.reshape(row[k][places], shape) for k in ((0, 1, 4) if self.kinks else (0, 1))]
        price = own[0] + own[1] * self.middle
        return price + 0.5 * own[2] * self.side if self.kinks else price

    def at_one_price(self, kept: Value, of: Callable[[Value], Value], row: Value) -> Value:
        """Value (m, G) of a unit before the round, as the maximum over the segments."""
        t, (m, G), (_, S) = self.t, kept.shape, self.width.shape
        price = t.name("price", self.prices(row))
        cheaper = t.to_float(t.reshape(price, (m, 1, S)) < t.reshape(price, (m, S, 1)))
        before = self.least + t.sum(cheaper * t.reshape(self.width, (m, 1, S)), axis=2)
        whole = self.least + t.reshape(t.sum(self.width, axis=1), (m, 1))
        flow = t.name("flow", t.concat(before, whole, axis=1))
        left = t.reshape(kept, (m, G, 1)) + t.reshape(flow, (m, 1, S + 1))
        value = t.reshape(of(t.reshape(left, (m, G * (S + 1)))), (m, G, S + 1))
        cut = t.minimum(value[:, :, :S], t.reshape(price, (m, 1, S)))
        return t.maximum(t.max(cut, axis=2), value[:, :, S])


def _least_of(segments: Sequence[tuple[int, float, float]]) -> dict[int, float]:
    """Lower end of each flow of a store entry, by its number."""
    first = dict[int, float]()
    for number, least, _ in segments:
        first[number] = min(least, first.get(number, least))
    return first


def _column(t: Tracer, v: Value) -> Value:
    return t.reshape(v, (v.size, 1))
