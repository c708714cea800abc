"""Programs of smooth functions: one program a round (dynamic), or one a prefix, with sums over its rounds (static)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import OfRounds
from oco.evaluation.comparators.kkt import added
from oco.evaluation.comparators.programs import Jet
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Assembled:
    """Batch of programs (see `programs.py`) over a region: loss, constraints from the data, and affine equalities.

    After the inequalities of the data come the definitions of variables and the region's own; the region's equalities
    come first. `members` selects the members of the functions' batch that the programs belong to.
    """

    region: Region
    members: Array
    loss: OfRounds
    inequalities: tuple[OfRounds, ...]
    equations: tuple[OfRounds, ...] = ()
    definitions: tuple[OfRounds, ...] = ()

    @property
    def count(self) -> int:
        """Number of programs B."""
        return len(self.members)

    @property
    def size(self) -> int:
        """Number of variables n."""
        return self.region.size

    @property
    def functions(self) -> tuple[OfRounds, ...]:
        """Inequalities in their order: of the data, definitions, the region's."""
        return (*self.inequalities, *self.definitions, *self.region.curved)

    @property
    def constraints(self) -> int:
        """Number of inequalities M."""
        return sum(f.entries for f in self.functions)

    @property
    def data_inequalities(self) -> int:
        """Number of inequalities of the data, the first of all."""
        return sum(f.entries for f in self.inequalities)

    @property
    def lower(self) -> Array:
        """Lower bounds (n,)."""
        return self.region.lower

    @property
    def upper(self) -> Array:
        """Upper bounds (n,)."""
        return self.region.upper

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices A (B, k, n) and right-hand sides c (B, k), with the region's equalities first."""
        origin = np.zeros((len(rows), self.size))
        matrices = [np.broadcast_to(self.region.matrix, (len(rows), *self.region.matrix.shape))]
        rights = [np.broadcast_to(self.region.right, (len(rows), len(self.region.right)))]
        for function in self.equations:
            constant, slopes = function.jet(origin, self.members[rows])
            matrices.append(slopes)
            rights.append(-constant)
        return np.concatenate(matrices, axis=1), np.concatenate(rights, axis=1)

    def data_equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices (B, k, n) and right-hand sides (B, k) of the equalities of the data alone."""
        own = len(self.region.right)
        matrix, right = self.equalities(rows)
        return matrix[:, own:], right[:, own:]

    def jet(self, x: Array, rows: Array) -> Jet:
        """Values and first derivatives at x (B, n)."""
        members = self.members[rows]
        f, df = self.loss.jet(x, members)
        parts = [function.jet(x, members) for function in self.functions]
        empty = (np.zeros((len(rows), 0)), np.zeros((len(rows), 0, self.size)))
        g = np.concatenate([empty[0], *(p[0] for p in parts)], axis=1)
        jacobian = np.concatenate([empty[1], *(p[1] for p in parts)], axis=1)
        return Jet(f[:, 0], g, df[:, 0], jacobian)

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of the Lagrangian: (B, n, n), or its diagonal (B, n)."""
        loss = self.loss.hessian(x, np.ones((len(rows), 1)), self.members[rows])
        return added(loss, self.constraint_hessian(x, multipliers, rows))

    def constraint_hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of sum_m multipliers_m g_m alone: a diagonal (B, n) where all of these are diagonal."""
        total, first = np.zeros((len(rows), self.size)), 0
        for function in self.functions:
            weights = multipliers[:, first : first + function.entries]
            total = added(total, function.hessian(x, weights, self.members[rows]))
            first += function.entries
        return total

    def least(self, slopes: Array, rows: Array) -> Array:
        """Minimum of <c, x> over the region for each row of `slopes`."""
        return self.region.least(slopes)
