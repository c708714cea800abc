"""Functions of a program that stands for the first rounds of a run: sums over them, and constraints of chosen ones.

A batch has one member for each prefix 1..ends_b of the rounds; the whole run is a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.dsl.expressions import Expr
from oco.evaluation.comparators.functions import OfRounds, Rounds, calls
from oco.evaluation.comparators.make import implicit, total

Array = np.ndarray[Any, Any]

SHARE = 0.125  # prefixes with more than this share of the rounds have second derivatives in common


@dataclass(frozen=True, eq=False)
class Upto(OfRounds):
    """weights_b sum_{t <= ends_b} f_t(x_b), for ends that rise."""

    base: OfRounds
    ends: Array
    weights: Array

    @property
    def entries(self) -> int:  # type: ignore[override]
        return self.base.entries

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        return self.base.diagonal

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        ends = self.ends[rows]
        values, slopes = self.base.jet_upto(x, ends)
        weights = self.weights[rows][:, None]
        return weights * values, weights[:, :, None] * slopes

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        """Of a single member exactly, and of those with few rounds.

        Those with many share the sums over the rounds between two ends, each formed at the point of the first of them that has these
        rounds: neighbours have nearly the same point, and what a solver does with the matrix is judged by values and slopes alone.
        """
        ends, weights = self.ends[rows], weights * self.weights[rows][:, None]
        few = len(rows) if ends[0] == ends[-1] else int(np.searchsorted(ends, SHARE * self.ends[-1]))
        each = self._added(x[:few], np.zeros_like(ends[:few]), ends[:few], weights[:few])
        if few == len(rows):
            return each
        starts = np.append(0, ends[few:-1])
        units = (np.broadcast_to(unit, weights[few:].shape) for unit in np.eye(self.entries))
        shared = [np.cumsum(self._added(x[few:], starts, ends[few:], unit), axis=0) for unit in units]
        wide = (slice(None), *[None] * (each.ndim - 1))
        rest = np.sum([part * weights[few:, k][wide] for k, part in enumerate(shared)], axis=0)
        return np.concatenate([each, rest])

    def _added(self, x: Array, starts: Array, ends: Array, weights: Array) -> Array:
        """Of each member over its rounds from `starts` to `ends`."""
        if not len(ends):
            return np.zeros((0, x.shape[1])) if self.diagonal else np.zeros((0, x.shape[1], x.shape[1]))
        return self.base.hessian_between(x, weights, starts, ends)


def values_upto(function: OfRounds, x: Array, ends: Array) -> list[Array]:
    """For each member the values in its rounds: (ends_b, entries)."""
    found: list[Array] = []
    for _, points, rows, cuts in calls(x, np.zeros_like(ends), ends):
        values = function.values(points, rows)
        found += np.split(values, cuts[1:]) if len(cuts) > 1 else [values]
    return found


def summed(rounds: Rounds, expr: Expr, ends: Array, weights: Array) -> OfRounds:
    """Weighted sums over the first rounds: coefficients are added up once, other functions are summed when they are evaluated."""
    return total(rounds, expr, ends, weights) or Upto(implicit(rounds, expr), ends, weights)


@dataclass(frozen=True, eq=False)
class Chosen(OfRounds):
    """f_t of some rounds as constraints of one program: member b has those of the rounds `chosen` (B, K) that are `present` (B, K).

    One that is absent stands as the constraint -1 <= 0.
    """

    base: OfRounds
    chosen: Array
    present: Array

    @classmethod
    def of(cls, base: OfRounds, rounds: Sequence[Array]) -> Chosen:
        """From the rounds of each member, of which there may be different numbers."""
        width = max(map(len, rounds))
        present = np.arange(width) < np.array([len(r) for r in rounds])[:, None]
        chosen = np.zeros(present.shape, dtype=np.int64)
        chosen[present] = np.concatenate(rounds)
        return cls(base, chosen, present)

    @property
    def entries(self) -> int:  # type: ignore[override]
        return int(self.base.entries * self.chosen.shape[1])

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        return self.base.diagonal

    def _points(self, x: Array, rows: Array) -> tuple[Array, Array]:
        width = self.chosen.shape[1]
        return x if len(x) == 1 else np.repeat(x, width, axis=0), self.chosen[rows].ravel()

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        values, slopes = self.base.jet(*self._points(x, rows))
        present = np.repeat(self.present[rows], self.base.entries, axis=1)
        shape = (len(rows), self.entries)
        slopes = slopes.reshape(*shape, x.shape[1]) * present[:, :, None]
        return np.where(present, values.reshape(shape), -1.0), slopes

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        points, picked = self._points(x, rows)
        present = self.present[rows].reshape(-1, 1)
        parts = weights.reshape(len(picked), self.base.entries) * present
        return self.base.added_hessian(points, parts, picked, np.arange(len(rows)) * self.chosen.shape[1])


def deciding_rounds(function: OfRounds, rounds: Rounds, start: Array, ends: Array) -> list[Array] | None:
    """For each prefix the few rounds that decide for all, where the rounds differ by a constant alone; else None."""
    if not function.same_slope:
        return None
    values = function.values(start[None], rounds.everything)
    before = np.maximum.accumulate(values, axis=0)[:-1]
    rises = np.concatenate(
        [np.zeros((1, values.shape[1]), dtype=np.int64), np.where(values[1:] > before, rounds.everything[1:, None], 0)]
    )
    latest = np.maximum.accumulate(rises, axis=0)
    return [np.unique(latest[end - 1]) for end in ends]
