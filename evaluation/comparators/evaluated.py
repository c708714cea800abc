"""Affine functions of many rounds that are evaluated where they are asked for, so that no coefficients of all rounds are in memory."""

from __future__ import annotations

import numpy as np

from oco.compiler.problem.degrees import degree
from oco.dsl.dims import known
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import Array, General, OfRounds, RoundArrays

MANY = 1 << 22
"""Coefficients beyond which they are not stored: 32 MB."""


@dataclass(frozen=True, eq=False)
class EvaluatedRows(OfRounds):
    """Affine functions one by one: entry k of round t, counted from 0, is that of the round t K + k, for K entries of `base`."""

    base: General
    entries: int = 1
    diagonal: bool = True

    @property
    def affine_in(self) -> int:
        return self.base.rounds.size

    def values(self, x: Array, rows: Array) -> Array:
        points, rounds, own = self._places(x, rows)
        return self.base.values(points, rounds)[own][:, None]

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        points, rounds, own = self._places(x, rows)
        values, slopes = self.base.jet(points, rounds)
        return values[own][:, None], slopes[own][:, None]

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        return np.zeros((len(rows), x.shape[1]))

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        return np.zeros((len(cuts), x.shape[1]))

    def _places(self, x: Array, rows: Array) -> tuple[Array, Array, tuple[Array, Array]]:
        """Points and rounds at which `base` is evaluated, and where the entries of `rows` are among its values."""
        rounds, entries = np.divmod(rows, self.base.entries)
        if len(x) > 1:
            return x, rounds, (np.arange(len(rows)), entries)
        own, back = _each_once(rounds)
        return x, own, (back, entries)


def _each_once(rounds: Array) -> tuple[Array, Array]:
    """Rounds in rising order, each once, and the place of each of these among them."""
    if np.any(rounds[1:] < rounds[:-1]):
        own, back = np.unique(rounds, return_inverse=True)
        return own, back
    new = np.diff(rounds, prepend=-1) != 0
    return rounds[new], np.cumsum(new) - 1


def evaluated_rows(rounds: RoundArrays, expr: Expr) -> EvaluatedRows | None:
    """Entries of an affine expression one by one; None where it is not affine, where the rounds are known to differ by constants alone, and
    where there are few coefficients.
    """
    entries = int(np.prod(known(expr.shape), dtype=np.int64))
    if rounds.count * entries * rounds.size <= MANY or degree(expr, rounds.variables) > 1 or not rounds.enters(expr):
        return None
    general = General(rounds, expr, entries, True)
    return None if general.same_slope else EvaluatedRows(general)
