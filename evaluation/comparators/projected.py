"""Comparators on sets with a projection (nuclear-norm balls, spectrahedra), by the first-order method."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.certificate import Certified
from oco.evaluation.comparators.first_order import Local, solve_split
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class _Member:
    """One member of a batch: inequalities scaled by `weight` (M,), then the equations `matrix` x = `right`, scaled."""

    programs: Assembled
    row: Array
    weight: Array
    matrix: Array
    right: Array
    size: float

    @classmethod
    def of(cls, programs: Assembled, row: int) -> _Member:
        """Member with its functions scaled by their slopes over the set."""
        region, rows = programs.region, np.array([row])
        x = region.project(region.start)
        jet = programs.jet(x[None], rows)
        width = region.diagonal
        sizes = np.linalg.norm(jet.jacobian[0], axis=1) * width
        weight = 1.0 / np.where(sizes > 0, sizes, np.maximum(np.abs(jet.g[0]), 1.0))
        matrix, right = (part[0] for part in programs.data_equalities(rows))
        norms = np.linalg.norm(matrix, axis=1) * width
        scale = np.where(norms > 0, norms, 1.0)
        slope = float(np.linalg.norm(jet.df[0])) * width or 1.0
        return cls(programs, rows, weight, matrix / scale[:, None], right / scale, slope)

    @property
    def region(self) -> Region:
        return self.programs.region

    @property
    def penalty(self) -> float:
        return 10.0 * self.size

    def at(self, x: Array) -> Local:
        jet = self.programs.jet(x[None], self.row)
        v = np.concatenate([jet.g[0] * self.weight, self.matrix @ x - self.right])
        return Local(
            float(jet.f[0]), jet.df[0], v, np.concatenate([jet.jacobian[0] * self.weight[:, None], self.matrix])
        )

    def onto(self, y: Array) -> Array:
        count = len(self.weight)
        return np.concatenate([np.maximum(y[:count], 0.0), y[count:]])

    def measured(self, here: Local) -> tuple[float, float]:
        g, h = np.split(here.v, [len(self.weight)])
        return here.f, max(float(g.max(initial=0.0)), float(np.abs(h).max(initial=0.0)))


def solve_projected(
    programs: Assembled, row: int, until: float, near: Array | None = None, least: float = -np.inf
) -> Certified:
    """Solve one member of a batch from a point `near` (n,), at most until the time `until`; returns a batch of one.

    `least` is a lower bound on the loss.
    """
    member = _Member.of(programs, row)
    result, count = solve_split(member, until, near, least), len(member.weight)
    values = programs.jet(result.x[None], member.row).g
    weights = (result.multipliers[:count] * member.weight)[None]
    value, bound, off, size = (np.array([n]) for n in (result.value, result.bound, result.off, member.size))
    return Certified(result.x[None], value, bound, weights, values, off, size)
