"""Value of a unit in a store to the others that it moves: rooms that exchange heat, tanks of which one runs into the next.

With z_i = keep_i s_i + sum_j b_ji s_j + what is decided and comes, a unit in entry j brings b_ji units into entry i by the next round, as
b_ji / keep_i units more in i itself do. Bellman's equation, differentiated, then has

    v_h(s_j) = keep_j w_h(y_j) + sum_i b_ji w_h(y_i) - m_h,      y_i = s_i + sum_j (b_ji / keep_i) s_j,

with the value w_h of a unit before the flows of a round. What a round leaves is valued so, by the y that it leads to. In rounds after it
the value of an entry is by its own level alone, with others at their usual levels: the adjoint of the linear system along these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.compiler.algorithms.learned_costs import DAY
from oco.compiler.algorithms.value_grid import ValueGrid
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import as_own, brought

Floats = np.ndarray[Any, Any]


class CoupledStores:
    """Store entries, m of them, of which some move others."""

    def __init__(self, t: Tracer, stores: Sequence[StoreOfState]) -> None:
        self.t, self.stores, self.brought = t, stores, brought(stores)
        self.keep = np.concatenate([s.keep for s in stores]) if stores else np.zeros(0)
        self.as_own = as_own(self.brought, self.keep)

    def __bool__(self) -> bool:
        return bool(self.brought.any())

    def inflow(self, level: Value) -> Value:
        """Units that entries at these levels, (m,), bring into others by the next round, (m,)."""
        return self.t.constant(self.brought.T, "inflow", "what a unit in each entry brings into another one") @ level

    def beside(self, level: Value) -> Value:
        """Units of each entry itself that levels of others, (m,) or (m, P), are as good as, of the same shape."""
        return self.t.constant(self.as_own.T, "as_own", "units of an entry that one in another is as good as") @ level

    def ends(self, least: Value, most: Value) -> tuple[Value, Value]:
        """Least and most y, (m,), where levels are between these, (m,)."""
        if (self.as_own >= 0).all():
            return least + self.beside(least), most + self.beside(most)
        more, less = (self.t.constant(np.maximum(s * self.as_own.T, 0.0), "as_own") for s in (1.0, -1.0))
        return least + more @ least - less @ most, most + more @ most - less @ least

    def by_entry(self, value: Value, beside: Value) -> Value:
        """Value of a unit in each entry, (m,), where one more of each y has this `value` and one at any level that `beside`, (m,)."""
        return value + self.t.constant(self.as_own, "as_own") @ value + beside

    def value_to_others(self, value: Value, grid: ValueGrid, level: Value) -> Value:
        """Value of a unit more in each entry to others, (m, 1): one in these has a `value` before the flows, (m, G), at their `level`,
        (m,).
        """
        return self._brought_value(self.brought, value, grid, level)

    def value_beside(self, value: Value, grid: ValueGrid, level: Value) -> Value:
        """Value of what is brought into entries that keep nothing, which no y counts, (m, 1)."""
        return self._brought_value(np.where(self.keep > 0, 0.0, self.brought), value, grid, level)

    def _brought_value(self, brought: Floats, value: Value, grid: ValueGrid, level: Value) -> Value:
        there = grid.interpolated(value, self.t.reshape(level, (level.size, 1)))
        return self.t.constant(brought, "brought", "units that one more in an entry brings into others") @ there

    def usual_after(self, usual: Value, level: Value, played: Value) -> Value:
        """Usual levels after a round that began with these levels, (m,)."""
        rate = self.t.maximum(1.0 / played, 1.0 / DAY)
        return self.t.name("usual_level", usual + rate * (level - usual))

    def lasting(self, value: Value, rounds: int) -> Value:
        """Value of a unit in each entry after the rounds to come, (m,): the `value` of those that decisions move, (m,), and of others what
        they bring into these in so many rounds.
        """
        moved = np.concatenate([np.bincount(s.filled, s.entries != NO_ENTRY, s.size) > 0 for s in self.stores])
        if moved.all():
            return value
        own = np.where(moved, 0.0, self.brought) + np.diag(self.keep)
        total, left = np.zeros_like(self.brought), np.eye(moved.size)
        for _ in range(rounds):
            total, left = total + left @ np.where(moved, self.brought, 0.0), left @ own
        return self.t.constant(np.where(moved[:, None], np.eye(moved.size), total), "lasting") @ value
