"""Filling entries from the cheapest on, over the step IR: linear minimisation where a total is given out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

SORTED = 1024
"""Up to this many entries are sorted; among more the price of the last one filled is selected, in expected O(n)."""


def filled(t: Tracer, prices: Value, room: Value, amount: float) -> Value:
    """Shares of an amount that is given out to the cheapest entry first, the lowest index among equals, none more than its room.

    With prices in increasing order this is the greedy solution of Dantzig (Oper. Res. 5, 1957) of a continuous knapsack. The price at
    which the amount is used up gives it away without the order (Balas and Zemel, Oper. Res. 28, 1980): all cheaper entries are full.
    """
    if prices.size <= SORTED:
        order = t.argsort(prices)
        return t.put(t.zeros(prices.shape), _in_turn(t, t.gather(room, order), amount), order)
    last = t.weighted_quantile(prices, room, amount)
    cheaper, costlier = room * t.to_float(prices < last), room * t.to_float(prices > last)
    tied = room - cheaper - costlier
    left, of_tied = t.maximum(amount - t.sum(cheaper), 0.0), t.sum(tied)
    in_turn = t.and_(of_tied > left, of_tied > t.max(tied))
    return cheaper + t.if_(in_turn, lambda: _in_turn(t, tied, left), lambda: t.minimum(tied, left))[0]


def _in_turn(t: Tracer, room: Value, amount: Value | float) -> Value:
    """Remainder of the amount when it is an entry's turn, at most its room."""
    return t.minimum(t.maximum(amount - (t.cumsum(room) - room), 0.0), room)
