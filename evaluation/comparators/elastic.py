"""Infeasible constraints: the least violating point, and a proof that every point violates them.

minimize v   subject to   g_m(x) / scale_m <= v,   |h_k(x)| / scale_k <= v,   x in X
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.certificate import Certified, solve_certified
from oco.evaluation.comparators.products import applied
from oco.evaluation.comparators.programs import Jet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Elastic:
    """Programs above over (x, v) for the members of `base`. v lies between `floor` and `ceiling`."""

    base: Assembled
    scale: Array
    floor: float
    ceiling: float

    @property
    def count(self) -> int:
        """Number of programs B."""
        return self.base.count

    @property
    def size(self) -> int:
        """Number of variables, with v as the last."""
        return self.base.size + 1

    @property
    def lower(self) -> Array:
        """Lower bounds of (x, v)."""
        return np.append(self.base.lower, self.floor)

    @property
    def upper(self) -> Array:
        """Upper bounds of (x, v)."""
        return np.append(self.base.upper, self.ceiling)

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices and right-hand sides of the region's equalities, which are not relaxed."""
        region = self.base.region
        matrix = np.concatenate([region.matrix, np.zeros((len(region.right), 1))], axis=1)
        return (
            np.broadcast_to(matrix, (len(rows), *matrix.shape)),
            np.broadcast_to(region.right, (len(rows), len(region.right))),
        )

    def jet(self, x: Array, rows: Array) -> Jet:
        """Values and first derivatives at (x, v)."""
        inner, v = x[:, :-1], x[:, -1:]
        jet = self.base.jet(inner, rows)
        scale = self.scale[rows]
        soft = self.base.data_inequalities
        g, slopes = jet.g / scale[:, : self.base.constraints], jet.jacobian / scale[:, : self.base.constraints, None]
        lift = np.zeros((*slopes.shape[:2], 1))
        lift[:, :soft] = -1.0
        h, h_slopes = self._equations(inner, rows)
        values = np.concatenate([g + lift[:, :, 0] * v, h - v, -h - v], axis=1)
        down = -np.ones((*h_slopes.shape[:2], 1))
        blocks = [np.concatenate(pair, axis=2) for pair in ((slopes, lift), (h_slopes, down), (-h_slopes, down))]
        df = np.zeros_like(x)
        df[:, -1] = 1.0
        return Jet(v[:, 0], values, df, np.concatenate(blocks, axis=1))

    def _equations(self, x: Array, rows: Array) -> tuple[Array, Array]:
        matrix, right = self.base.data_equalities(rows)
        scale = self.scale[rows][:, self.base.constraints :]
        return (applied(matrix, x) - right) / scale, matrix / scale[:, :, None]

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of the Lagrangian in (x, v); v enters linearly."""
        weights = multipliers[:, : self.base.constraints] / self.scale[rows][:, : self.base.constraints]
        zero_loss = self.base.constraint_hessian(x[:, :-1], weights, rows)
        pad = [(0, 0)] + [(0, 1)] * (zero_loss.ndim - 1)
        return np.pad(zero_loss, pad)

    def least(self, slopes: Array, rows: Array) -> Array:
        """Minimum of <c, (x, v)> over the region and the range of v, for each row of `slopes`."""
        last = slopes[:, -1]
        inner = self.base.least(slopes[:, :-1], rows)
        return np.asarray(inner + np.minimum(last * self.floor, last * self.ceiling))


def least_violation(base: Assembled) -> tuple[Elastic, Certified]:
    """Elastic programs with their solutions."""
    start, everything = base.region.start, np.arange(base.count)
    scale = _scales(base, start)
    begin = np.broadcast_to(start, (base.count, base.size))
    jet = base.jet(begin, everything)
    matrix, right = base.data_equalities(everything)
    off = np.abs(applied(matrix, begin) - right)
    soft = base.data_inequalities
    worst = max(
        (jet.g[:, :soft] / scale[:, :soft]).max(initial=0.0), (off / scale[:, base.constraints :]).max(initial=0.0)
    )
    elastic = Elastic(base, scale, -4.0 * (1.0 + worst), 2.0 + 2.0 * worst)
    return elastic, solve_certified(elastic, np.append(start, 1.0 + worst))


def _scales(base: Assembled, start: Array) -> Array:
    """Change of each constraint over the region by its slope at the start: the unit of its violation."""
    everything = np.arange(base.count)
    width = base.upper - base.lower
    jet = base.jet(np.broadcast_to(start, (base.count, base.size)), everything)
    matrix, _ = base.data_equalities(everything)
    with np.errstate(invalid="ignore"):  # an infinite slope along an entry that has one value changes nothing
        changes = np.nan_to_num(np.abs(jet.jacobian * width), posinf=np.inf)
    slopes = np.concatenate([changes.max(axis=2), np.abs(matrix * width).max(axis=2, initial=0.0)], axis=1)
    values = np.concatenate([np.abs(jet.g), np.zeros(matrix.shape[:2])], axis=1)
    return np.where(slopes > 0, slopes, np.where(values > 0, values, 1.0))
