"""Programs whose constraints are relaxed by given amounts: the best among the least violating points."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.products import applied
from oco.evaluation.comparators.programs import Jet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Members `rows` of `base` with g_m <= allowed_m and |h_k| <= allowed_(M + k) for the constraints from the data.

    The region's own constraints are not relaxed.
    """

    base: Assembled
    rows: Array
    allowed: Array

    @property
    def count(self) -> int:
        """Number of programs."""
        return len(self.rows)

    @property
    def size(self) -> int:
        """Number of variables n."""
        return self.base.size

    @property
    def lower(self) -> Array:
        """Lower bounds (n,)."""
        return self.base.lower

    @property
    def upper(self) -> Array:
        """Upper bounds (n,)."""
        return self.base.upper

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices and right-hand sides of the region's equalities."""
        own = len(self.base.region.right)
        matrix, right = self.base.equalities(self.rows[rows])
        return matrix[:, :own], right[:, :own]

    def jet(self, x: Array, rows: Array) -> Jet:
        """Values and first derivatives at x."""
        members = self.rows[rows]
        jet = self.base.jet(x, members)
        allowed = self.allowed[rows]
        slack = allowed[:, : self.base.constraints].copy()
        slack[:, self.base.data_inequalities :] = 0.0
        matrix, right = self.base.data_equalities(members)
        off = applied(matrix, x) - right
        loose = allowed[:, self.base.constraints :]
        g = np.concatenate([jet.g - slack, off - loose, -off - loose], axis=1)
        return Jet(jet.f, g, jet.df, np.concatenate([jet.jacobian, matrix, -matrix], axis=1))

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of the Lagrangian; relaxed equalities are affine and add nothing."""
        return self.base.hessian(x, multipliers[:, : self.base.constraints], self.rows[rows])

    def least(self, slopes: Array, rows: Array) -> Array:
        """Minimum of <c, x> over the region, for each row of `slopes`."""
        return self.base.least(slopes, self.rows[rows])
