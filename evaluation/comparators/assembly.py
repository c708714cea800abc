"""Programs made of smooth functions: one program a round (dynamic), or one a prefix, with sums over its rounds (static)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.evaluation.comparators.functions import OfRounds
from oco.evaluation.comparators.kkt import added
from oco.evaluation.comparators.programs import Jet
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Assembled:
    """A batch of programs (see `programs.py`) over a region: loss, constraints that the data makes, and affine equalities of theirs.

    After the inequalities of the data come the definitions of variables and the region's own; its equalities come first.
    `members` are the members of the functions' batch that these programs are about.
    """

    region: Region
    members: Array
    loss: OfRounds
    inequalities: tuple[OfRounds, ...]
    equations: tuple[OfRounds, ...] = ()
    definitions: tuple[OfRounds, ...] = ()

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def size(self) -> int:
        return self.region.size

    @property
    def functions(self) -> tuple[OfRounds, ...]:
        return (*self.inequalities, *self.definitions, *self.region.curved)

    @property
    def constraints(self) -> int:
        return sum(f.entries for f in self.functions)

    @property
    def diagonal(self) -> bool:
        return self.loss.diagonal and all(f.diagonal for f in self.functions)

    @property
    def lower(self) -> Array:
        return self.region.lower

    @property
    def upper(self) -> Array:
        return self.region.upper

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        origin = np.zeros((len(rows), self.size))
        matrices = [np.broadcast_to(self.region.matrix, (len(rows), *self.region.matrix.shape))]
        rights = [np.broadcast_to(self.region.right, (len(rows), len(self.region.right)))]
        for function in self.equations:
            constant, slopes = function.jet(origin, self.members[rows])
            matrices.append(slopes)
            rights.append(-constant)
        return np.concatenate(matrices, axis=1), np.concatenate(rights, axis=1)

    def jet(self, x: Array, rows: Array) -> Jet:
        members = self.members[rows]
        f, df = self.loss.jet(x, members)
        parts = [function.jet(x, members) for function in self.functions]
        empty = (np.zeros((len(rows), 0)), np.zeros((len(rows), 0, self.size)))
        g = np.concatenate([empty[0], *(p[0] for p in parts)], axis=1)
        jacobian = np.concatenate([empty[1], *(p[1] for p in parts)], axis=1)
        return Jet(f[:, 0], g, df[:, 0], jacobian)

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        loss = self.loss.hessian(x, np.ones((len(rows), 1)), self.members[rows])
        return added(loss, self.constraint_hessian(x, multipliers, rows))

    def constraint_hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Of sum_m multipliers_m g_m alone: a diagonal (B, n) where all of these are."""
        total, first = np.zeros((len(rows), self.size)), 0
        for function in self.functions:
            weights = multipliers[:, first : first + function.entries]
            total = added(total, function.hessian(x, weights, self.members[rows]))
            first += function.entries
        return total

    def least(self, slopes: Array, rows: Array) -> Array:
        """min <c, x> over the region for each row of `slopes`."""
        return self.region.least(slopes)
