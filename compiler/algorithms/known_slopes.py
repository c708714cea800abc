"""Slopes of what the loss says of the level of a store alone (`state_costs`): known at every level, while those of all else are learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.state_costs import level_name, slope_of_costs
from oco.compiler.problem.stores import StoreOfState, state_costs
from oco.compiler.problem.stores import stores as all_stores

EDGE = 1e-9
"""Share of a range within which rounding may put a level on either side of its ends, or of a kink."""


class KnownSlopes:
    """Slopes of the known costs of stores with m entries, at the level that a round leaves, in it and in the one that begins with it."""

    def __init__(self, p: Problem, stores: Sequence[StoreOfState]) -> None:
        self.p, self.t, self.stores = p, p.tracer, stores
        costs = dict(zip(all_stores(p.spec.canonical), state_costs(p.spec.canonical), strict=True)) if stores else {}
        self.costs = [costs[s] for s in stores]

    def __bool__(self) -> bool:
        return any(self.costs)

    def at(self, level: Value) -> Value:
        """Slopes (m, P) at levels (m, P). One that may be on either side of a kink is above it, but for those at the upper end."""
        p, t, P = self.p, self.t, level.shape[1]
        ends = ([getattr(s.ends, name) for s in self.stores] for name in ("lower", "upper"))
        lower, upper = (t.constant(np.concatenate(e).reshape(-1, 1), "end") for e in ends)
        edge = EDGE * (upper - lower)
        level = t.where(level > upper + edge, level, t.minimum(level + edge, upper - edge))
        begins = np.cumsum([0, *(s.size for s in self.stores)]).tolist()
        rows = list[Value]()
        for s, costs, a in zip(self.stores, self.costs, begins, strict=False):
            if not costs:
                rows.append(t.zeros((s.size, P)))
                continue
            name = level_name(P, s.state)
            seen = {**p.seen, name.name: t.reshape(t.transpose(level[a : a + s.size]), (P, *s.shape))}
            view = Problem(t, p.spec, seen, p.round, constants=p.constants)
            slopes = view.values([slope_of_costs(costs, name)], view.centre())
            rows.append(t.transpose(t.reshape(slopes, (P, s.size))))
        return t.name("known", rows[0] if len(rows) == 1 else t.concat(*rows))
