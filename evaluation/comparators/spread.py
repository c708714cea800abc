"""Functions of a decision and of variables that every round has for itself, as functions of all of these together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.evaluation.comparators.functions import OfRounds, stretches

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Spread(OfRounds):
    """f_t(x, s_t) as a function of (x, s_1, ..., s_T), x of `common` entries and each s_t of `own`."""

    base: OfRounds
    common: int
    own: int
    count: int

    @property
    def entries(self) -> int:  # type: ignore[override]
        return self.base.entries

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        return self.base.diagonal

    @property
    def size(self) -> int:
        return self.common + self.count * self.own

    def _inner(self, z: Array, rows: Array) -> Array:
        own = z[0, self.common :].reshape(self.count, self.own)[rows]
        return np.concatenate([np.broadcast_to(z[:, : self.common], (len(rows), self.common)), own], axis=1)

    def _places(self, rows: Array) -> Array:
        """Where s_t stands, for each of the rounds: (b, own)."""
        return np.asarray(self.common + rows[:, None] * self.own + np.arange(self.own))

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        values, slopes = self.base.jet(self._inner(x, rows), rows)
        wide = np.zeros((len(rows), self.entries, self.size))
        wide[:, :, : self.common] = slopes[:, :, : self.common]
        wide[np.arange(len(rows))[:, None, None], np.arange(self.entries)[:, None], self._places(rows)[:, None]] = (
            slopes[:, :, self.common :]
        )
        return values, wide

    def added_jet(self, x: Array, rows: Array, cuts: Array) -> tuple[Array, Array]:
        values, slopes = self.base.jet(self._inner(x, rows), rows)
        total = np.zeros((len(cuts), self.entries, self.size))
        total[:, :, : self.common] = np.add.reduceat(slopes[:, :, : self.common], cuts, axis=0)
        owner = np.searchsorted(cuts, np.arange(len(rows)), side="right") - 1
        places = self._places(rows)[:, None]
        total[owner[:, None, None], np.arange(self.entries)[None, :, None], places] = slopes[:, :, self.common :]
        return np.add.reduceat(values, cuts, axis=0), total

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        return self.added_hessian(x, weights, rows, np.arange(len(rows)))

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        return np.stack([self._summed(x, weights[p], rows[p]) for p in stretches(cuts, len(rows))])

    def _summed(self, x: Array, weights: Array, rows: Array) -> Array:
        each = self.base.hessian(self._inner(x, rows), weights, rows)
        places, c = self._places(rows), self.common
        if self.diagonal:
            total = np.zeros(self.size)
            total[:c] = each[:, :c].sum(axis=0)
            total[places] = each[:, c:]
            return total
        full = np.zeros((self.size, self.size))
        full[:c, :c] = each[:, :c, :c].sum(axis=0)
        full[places[:, :, None], np.arange(c)] = each[:, c:, :c]
        full[np.arange(c)[:, None], places[:, None, :]] = each[:, :c, c:]
        full[places[:, :, None], places[:, None, :]] = each[:, c:, c:]
        return full
