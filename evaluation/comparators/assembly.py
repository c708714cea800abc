"""Programs made of smooth functions: one program a round (dynamic), or one whose functions are summed over the rounds (static)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.evaluation.comparators.functions import General, Quadratic, Rounds, Smooth
from oco.evaluation.comparators.programs import Jet
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Assembled:
    """A batch of programs (see `programs.py`) over a region: loss, constraints that the data makes, and affine equalities of theirs.

    The region's own inequalities come after those of the data; its equalities before them.
    """

    region: Region
    count: int
    loss: Smooth
    inequalities: tuple[Smooth, ...]
    equations: tuple[Smooth, ...] = ()

    @property
    def size(self) -> int:
        return self.region.size

    @property
    def functions(self) -> tuple[Smooth, ...]:
        return (*self.inequalities, *self.region.curved)

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
            constant, slopes = function.jet(origin, rows)
            matrices.append(slopes)
            rights.append(-constant)
        return np.concatenate(matrices, axis=1), np.concatenate(rights, axis=1)

    def jet(self, x: Array, rows: Array) -> Jet:
        f, df = self.loss.jet(x, rows)
        parts = [function.jet(x, rows) for function in self.functions]
        empty = (np.zeros((len(rows), 0)), np.zeros((len(rows), 0, self.size)))
        g = np.concatenate([empty[0], *(p[0] for p in parts)], axis=1)
        jacobian = np.concatenate([empty[1], *(p[1] for p in parts)], axis=1)
        return Jet(f[:, 0], g, df[:, 0], jacobian)

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        loss = self._part(self.loss, x, np.ones((len(rows), 1)), rows)
        return loss + self.constraint_hessian(x, multipliers, rows)

    def constraint_hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Of sum_m multipliers_m g_m alone."""
        shape = (len(rows), self.size) if self.diagonal else (len(rows), self.size, self.size)
        total, first = np.zeros(shape), 0
        for function in self.functions:
            weights = multipliers[:, first : first + function.entries]
            total += self._part(function, x, weights, rows)
            first += function.entries
        return total

    def _part(self, function: Smooth, x: Array, weights: Array, rows: Array) -> Array:
        hessian = function.hessian(x, weights, rows)
        if self.diagonal or hessian.ndim == 3:
            return hessian
        full = np.zeros((*hessian.shape, self.size))
        np.einsum("bii->bi", full)[...] = hessian
        return full

    def least(self, slopes: Array, rows: Array) -> Array:
        """min <c, x> over the region for each row of `slopes`."""
        return self.region.least(slopes)


@dataclass(frozen=True, eq=False)
class Summed:
    """sum_t w_t f_t(x) over all rounds of a function, as a batch of one."""

    base: Smooth
    rounds: Rounds
    weight: float

    @property
    def entries(self) -> int:
        return self.base.entries

    @property
    def diagonal(self) -> bool:
        return self.base.diagonal

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        everything = np.arange(self.rounds.count)
        values, slopes = self.base.jet(np.broadcast_to(x, (len(everything), x.shape[1])), everything)
        return self.weight * values.sum(axis=0)[None], self.weight * slopes.sum(axis=0)[None]

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        everything = np.arange(self.rounds.count)
        spread = np.broadcast_to(self.weight * weights, (len(everything), weights.shape[1]))
        each = self.base.hessian(np.broadcast_to(x, (len(everything), x.shape[1])), spread, everything)
        return np.asarray(each.sum(axis=0)[None])


def summed(function: Smooth, rounds: Rounds, weight: float) -> Smooth:
    """The sum over the rounds, times `weight`: coefficients are added up once, other functions are summed when evaluated."""
    if not isinstance(function, Quadratic):
        return Summed(function, rounds, weight)

    def total(coefficients: Array) -> Array:
        times = weight * (rounds.count if len(coefficients) == 1 else 1)
        return np.asarray(times * coefficients.sum(axis=0, keepdims=True))

    square = None if function.square is None else total(function.square)
    return Quadratic(total(function.constant), total(function.linear), square, function.diagonal)


@dataclass(frozen=True, eq=False)
class Stacked:
    """f_t for the rounds in `chosen`, all as constraints of one program: a batch of one with len(chosen) * entries functions."""

    base: Smooth
    chosen: Array

    @property
    def entries(self) -> int:
        return self.base.entries * len(self.chosen)

    @property
    def diagonal(self) -> bool:
        return self.base.diagonal

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        values, slopes = self.base.jet(np.broadcast_to(x, (len(self.chosen), x.shape[1])), self.chosen)
        return values.reshape(1, -1), slopes.reshape(1, -1, x.shape[1])

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        spread = weights.reshape(len(self.chosen), self.base.entries)
        each = self.base.hessian(np.broadcast_to(x, (len(self.chosen), x.shape[1])), spread, self.chosen)
        return np.asarray(each.sum(axis=0)[None])


def binding_rounds(function: Smooth, rounds: Rounds, start: Array) -> Array | None:
    """The few rounds that decide for all, where the rounds differ by a constant alone; None where they differ in more."""
    if isinstance(function, Quadratic):
        alike = len(function.linear) == 1 or bool(np.all(function.linear == function.linear[:1]))
        if function.square is not None and len(function.square) > 1:
            alike = alike and bool(np.all(function.square == function.square[:1]))
        offsets = function.constant
    elif isinstance(function, General):
        alike = function.same_slope
        offsets = function.values(np.broadcast_to(start, (rounds.count, len(start))), np.arange(rounds.count))
    else:
        return None
    return np.unique(np.argmax(offsets, axis=0)) if alike else None
