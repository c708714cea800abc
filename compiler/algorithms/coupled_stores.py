"""What a unit in a store is worth to the others that it moves: rooms that exchange heat, tanks of which one runs into the next.

With z_i = keep_i s_i + sum_j b_ji s_j + what is decided and comes, a unit in entry j brings b_ji units into entry i by the next round, whose
value falls with what is there already. Bellman's equation, differentiated, then has

    v_h(s_j) = keep_j w_h(s_j) + sum_i b_ji w_h(s^_i + (b_ji / keep_i) (s_j - s^_j)) - m_h

with the value w_h of a unit before the flows of a round, which is known by the level of its own entry, and the levels s^ that the entries
are expected to have, which are those that they have now: a unit more in j is for i as b_ji / keep_i of one in i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.algorithms.value_grid import ValueGrid
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.stores import StoreOfState, brought


class CoupledStores:
    """Store entries, m of them, of which some move others."""

    def __init__(self, t: Tracer, stores: Sequence[StoreOfState]) -> None:
        self.t, b = t, brought(stores)
        keep = np.concatenate([s.keep for s in stores]) if stores else np.zeros(0)
        self.size, self.slots = keep.size, int((b != 0).sum(axis=0).max(initial=0))
        self._movers = np.tile(np.arange(self.size)[:, None], (1, self.slots))
        self._shift, self._shares = np.zeros((self.size, self.slots)), np.zeros((self.size, self.size * self.slots))
        for i, column in enumerate(b.T):
            for slot, j in enumerate(np.flatnonzero(column)):
                self._movers[i, slot] = j
                self._shift[i, slot] = column[j] / keep[i] if keep[i] > 0 else 0.0
                self._shares[j, i * self.slots + slot] = column[j]

    def __bool__(self) -> bool:
        return self.slots > 0

    def worth(self, value: Value, grid: ValueGrid, level: Value) -> Value:
        """What a unit more at each point of the grid is worth to other entries, (m, G), where one in them before the flows has a `value`, (m,
        G), and `level` is expected, (m,).
        """
        t, (m, G) = self.t, value.shape
        movers = t.constant(self._movers.ravel(), "movers", "entries that move each store entry")
        above = grid.points - t.reshape(level, (m, 1))
        beside = t.reshape(above[movers], (m, self.slots, G))
        shift = t.reshape(t.constant(self._shift, "shift", "as units of the entry that is moved"), (m, self.slots, 1))
        at = t.reshape(t.reshape(level, (m, 1, 1)) + shift * beside, (m, self.slots * G))
        shares = t.constant(self._shares, "brought", "units that one more in an entry brings into others")
        return shares @ t.reshape(grid.interpolated(value, at), (m * self.slots, G))
