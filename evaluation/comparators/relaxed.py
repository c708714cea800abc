"""Programs whose constraints are loosened by given amounts: the best among the points that break them least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.products import applied
from oco.evaluation.comparators.programs import Jet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The members `rows` of `base` with g_m <= allowed_m and |h_k| <= allowed_(M + k) for the constraints that the data makes.

    The region's own constraints are not loosened.
    """

    base: Assembled
    rows: Array
    allowed: Array

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def constraints(self) -> int:
        return self.base.constraints + 2 * sum(f.entries for f in self.base.equations)

    @property
    def diagonal(self) -> bool:
        return self.base.diagonal

    @property
    def lower(self) -> Array:
        return self.base.lower

    @property
    def upper(self) -> Array:
        return self.base.upper

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        own = len(self.base.region.right)
        matrix, right = self.base.equalities(self.rows[rows])
        return matrix[:, :own], right[:, :own]

    def jet(self, x: Array, rows: Array) -> Jet:
        members, own = self.rows[rows], len(self.base.region.right)
        jet = self.base.jet(x, members)
        allowed = self.allowed[rows]
        slack = allowed[:, : self.base.constraints].copy()
        slack[:, sum(f.entries for f in self.base.inequalities) :] = 0.0
        matrix, right = (part[:, own:] for part in self.base.equalities(members))
        off = applied(matrix, x) - right
        loose = allowed[:, self.base.constraints :]
        g = np.concatenate([jet.g - slack, off - loose, -off - loose], axis=1)
        return Jet(jet.f, g, jet.df, np.concatenate([jet.jacobian, matrix, -matrix], axis=1))

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        return self.base.hessian(x, multipliers[:, : self.base.constraints], self.rows[rows])

    def least(self, slopes: Array, rows: Array) -> Array:
        return self.base.least(slopes, self.rows[rows])
