"""What a unit in a store is worth to the others that it moves: rooms that exchange heat, tanks of which one runs into the next.

With z_i = keep_i s_i + sum_j b_ji s_j + what is decided and comes, a unit in entry j brings b_ji units into entry i by the next round.
Bellman's equation, differentiated, then has

    v_h(s_j) = keep_j w_h(s_j) + sum_i b_ji w_h(s^_i) - m_h,

with the value w_h of a unit before the flows of a round, and the levels s^ that the entries are expected to have, which are those that they
have now: the adjoint of the linear system, along what is expected. That the value of what j brings falls with what j brings is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.algorithms.value_grid import ValueGrid
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import brought


class CoupledStores:
    """Store entries, m of them, of which some move others."""

    def __init__(self, t: Tracer, stores: Sequence[StoreOfState]) -> None:
        self.t, self.stores, self.brought = t, stores, brought(stores)

    def __bool__(self) -> bool:
        return bool(self.brought.any())

    def worth(self, value: Value, grid: ValueGrid, level: Value) -> Value:
        """What a unit more in each entry is worth to others, (m, 1): one in these has a `value` before the flows, (m, G), and a `level` of
        each is expected, (m,).
        """
        there = grid.interpolated(value, self.t.reshape(level, (level.size, 1)))
        return self.t.constant(self.brought, "brought", "units that one more in an entry brings into others") @ there

    def lasting(self, value: Value, rounds: int) -> Value:
        """Value of a unit in each entry after the rounds to come, (m,): the `value` of those that decisions move, (m,), and of others what
        they bring into these in so many rounds.
        """
        moved = np.concatenate([np.bincount(s.filled, s.entries != NO_ENTRY, s.size) > 0 for s in self.stores])
        if moved.all():
            return value
        own = np.where(moved, 0.0, self.brought) + np.diag(np.concatenate([s.keep for s in self.stores]))
        total, left = np.zeros_like(self.brought), np.eye(moved.size)
        for _ in range(rounds):
            total, left = total + left @ np.where(moved, self.brought, 0.0), left @ own
        return self.t.constant(np.where(moved[:, None], np.eye(moved.size), total), "lasting") @ value
