"""When nothing satisfies the constraints: the point that breaks them least, and a proof that it must break them.

minimize v   subject to   g_m(x) / scale_m <= v,   |h_k(x)| / scale_k <= v,   x in X
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.certificate import Certified, solve_certified
from oco.evaluation.comparators.products import applied
from oco.evaluation.comparators.programs import Jet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Elastic:
    """The programs above over (x, v), for the members `rows` of `base`. v lies between `floor` and `ceiling`."""

    base: Assembled
    rows: Array
    scale: Array
    floor: float
    ceiling: float

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        return self.base.size + 1

    @property
    def data_constraints(self) -> int:
        return sum(f.entries for f in self.base.inequalities)

    @property
    def data_equations(self) -> int:
        return sum(f.entries for f in self.base.equations)

    @property
    def constraints(self) -> int:
        return self.base.constraints + 2 * self.data_equations

    @property
    def diagonal(self) -> bool:
        return self.base.diagonal

    @property
    def lower(self) -> Array:
        return np.append(self.base.lower, self.floor)

    @property
    def upper(self) -> Array:
        return np.append(self.base.upper, self.ceiling)

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        region = self.base.region
        matrix = np.concatenate([region.matrix, np.zeros((len(region.right), 1))], axis=1)
        return (
            np.broadcast_to(matrix, (len(rows), *matrix.shape)),
            np.broadcast_to(region.right, (len(rows), len(region.right))),
        )

    def jet(self, x: Array, rows: Array) -> Jet:
        inner, v = x[:, :-1], x[:, -1:]
        members = self.rows[rows]
        jet = self.base.jet(inner, members)
        scale = self.scale[members]
        soft = self.data_constraints
        g, slopes = jet.g / scale[:, : self.base.constraints], jet.jacobian / scale[:, : self.base.constraints, None]
        lift = np.zeros((*slopes.shape[:2], 1))
        lift[:, :soft] = -1.0
        h, h_slopes = self._equations(inner, members)
        values = np.concatenate([g + lift[:, :, 0] * v, h - v, -h - v], axis=1)
        down = -np.ones((*h_slopes.shape[:2], 1))
        blocks = [np.concatenate(pair, axis=2) for pair in ((slopes, lift), (h_slopes, down), (-h_slopes, down))]
        df = np.zeros_like(x)
        df[:, -1] = 1.0
        return Jet(v[:, 0], values, df, np.concatenate(blocks, axis=1))

    def _equations(self, x: Array, members: Array) -> tuple[Array, Array]:
        own = len(self.base.region.right)
        matrix, right = (part[:, own:] for part in self.base.equalities(members))
        scale = self.scale[members][:, self.base.constraints :]
        return (applied(matrix, x) - right) / scale, matrix / scale[:, :, None]

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        members = self.rows[rows]
        weights = multipliers[:, : self.base.constraints] / self.scale[members][:, : self.base.constraints]
        zero_loss = self.base.constraint_hessian(x[:, :-1], weights, members)
        pad = [(0, 0)] + [(0, 1)] * (zero_loss.ndim - 1)
        return np.pad(zero_loss, pad)

    def least(self, slopes: Array, rows: Array) -> Array:
        last = slopes[:, -1]
        inner = self.base.least(slopes[:, :-1], rows)
        return np.asarray(inner + np.minimum(last * self.floor, last * self.ceiling))


def least_violation(base: Assembled, rows: Array, start: Array) -> tuple[Certified, Array]:
    """Solve the elastic programs of some members. The scales (B, constraints + equations) come with the result."""
    scale = _scales(base, start)
    everything = np.arange(base.count)
    begin = np.broadcast_to(start, (base.count, base.size))
    jet = base.jet(begin, everything)
    own = len(base.region.right)
    matrix, right = (part[:, own:] for part in base.equalities(everything))
    off = np.abs(applied(matrix, begin) - right)
    soft = sum(f.entries for f in base.inequalities)
    worst = max(
        (jet.g[rows][:, :soft] / scale[rows][:, :soft]).max(initial=0.0),
        (off / scale[:, base.constraints :])[rows].max(initial=0.0),
    )
    elastic = Elastic(base, rows, scale, -1.0 - worst, 2.0 + 2.0 * worst)
    return solve_certified(elastic, np.append(start, 1.0 + worst)), scale


def _scales(base: Assembled, start: Array) -> Array:
    """How much each constraint can change over the region, by its slope at the start: what its excess is measured in."""
    everything = np.arange(base.count)
    width = base.upper - base.lower
    jet = base.jet(np.broadcast_to(start, (base.count, base.size)), everything)
    own = len(base.region.right)
    matrix = base.equalities(everything)[0][:, own:]
    slopes = np.concatenate(
        [np.abs(jet.jacobian * width).max(axis=2), np.abs(matrix * width).max(axis=2, initial=0.0)], axis=1
    )
    values = np.concatenate([np.abs(jet.g), np.zeros(matrix.shape[:2])], axis=1)
    return np.where(slopes > 0, slopes, np.where(values > 0, values, 1.0))
