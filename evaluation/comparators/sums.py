"""Functions of programs over the first rounds of a run: sums over them, and constraints of chosen ones.

A batch has one member for each prefix 1..ends_b of the rounds; the whole run is a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import OfRounds, QuadraticRounds, RoundArrays, calls
from oco.evaluation.comparators.of_expressions import implicit, total

Array = np.ndarray[Any, Any]

SHARE = 0.125  # prefixes with more than this share of the rounds have second derivatives in common


@dataclass(frozen=True, eq=False)
class PrefixSums(OfRounds):
    """Functions weights_b sum_{t <= ends_b} f_t(x_b), for rising ends."""

    base: OfRounds
    ends: Array
    weights: Array

    @property
    def entries(self) -> int:  # type: ignore[override]
        """Number of functions."""
        return self.base.entries

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        """True where all Hessians are diagonal."""
        return self.base.diagonal

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        ends = self.ends[rows]
        if _at_one_point(x, ends):
            parts = self.base.added_jet(x[:1], np.arange(ends[-1]), np.append(0, ends[:-1]))
            values, slopes = (np.cumsum(part, axis=0) for part in parts)
        else:
            values, slopes = self.base.jet_upto(x, ends)
        weights = self.weights[rows][:, None]
        return weights * values, weights[:, :, None] * slopes

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        """Hessian of the weighted sum: exact for a single member, for members with few rounds, and where all points are
        equal.

        Members with many rounds share the sums over the rounds between two ends, each formed at the point of the first
        member that has these rounds: neighbours have nearly equal points, and the result of a solver is judged by
        values and slopes alone.
        """
        ends, weights = self.ends[rows], weights * self.weights[rows][:, None]
        few = len(rows) if ends[0] == ends[-1] else int(np.searchsorted(ends, SHARE * self.ends[-1]))
        if _at_one_point(x, ends):
            few = 0
        each = self._added(x[:few], np.zeros_like(ends[:few]), ends[:few], weights[:few])
        if few == len(rows):
            return each
        starts = np.append(0, ends[few:-1])
        whole = np.zeros((len(rows), *each.shape[1:]))
        whole[:few] = each
        for k, unit in enumerate(np.eye(self.entries)):
            shared = self._added(x[few:], starts, ends[few:], np.broadcast_to(unit, weights[few:].shape))
            np.cumsum(shared, axis=0, out=shared)
            shared *= weights[few:, k].reshape(-1, *[1] * (each.ndim - 1))
            whole[few:] += shared
        return whole

    def _added(self, x: Array, starts: Array, ends: Array, weights: Array) -> Array:
        """Hessian of each member over its rounds from `starts` to `ends`."""
        if not len(ends):
            return np.zeros((0, x.shape[1])) if self.diagonal else np.zeros((0, x.shape[1], x.shape[1]))
        return self.base.hessian_between(x, weights, starts, ends)


def _at_one_point(x: Array, ends: Array) -> bool:
    """True where several members with different rounds are at one point, as all are where a solver begins."""
    return len(x) > 1 and bool(np.all(x == x[:1])) and bool(np.all(np.diff(ends) > 0))


def values_upto(function: OfRounds, x: Array, ends: Array) -> list[Array]:
    """Values of each member in its rounds: (ends_b, entries)."""
    results: list[Array] = []
    for _, points, rows, cuts in calls(x, np.zeros_like(ends), ends):
        values = function.values(points, rows)
        results += np.split(values, cuts[1:]) if len(cuts) > 1 else [values]
    return results


def summed(rounds: RoundArrays, expr: Expr, ends: Array, weights: Array) -> OfRounds:
    """Weighted sums over the first rounds: coefficients are added up once, other functions are summed when they are
    evaluated.
    """
    return total(rounds, expr, ends, weights) or PrefixSums(implicit(rounds, expr), ends, weights)


@dataclass(frozen=True, eq=False)
class Chosen(OfRounds):
    """Functions f_t of some rounds as constraints of one program: each of `members` has those of its row of `chosen`
    (B, K) that are `present`.

    An absent one is the constraint -1 <= 0. `place` gives a member's row. Where a round of the run has several
    `pieces`, these follow each other as rounds of the base.
    """

    base: OfRounds
    chosen: Array
    present: Array
    place: Array
    pieces: int = 1

    @classmethod
    def of(cls, base: OfRounds, rounds: Sequence[Array], members: Array | None = None, pieces: int = 1) -> Chosen:
        """Constraints from the rounds of every member, whose number may differ; without `members`, of all."""
        members = np.arange(len(rounds)) if members is None else members
        own = [rounds[int(member)] for member in members]
        width = max(map(len, own))
        present = np.arange(width) < np.array([len(r) for r in own])[:, None]
        chosen = np.zeros(present.shape, dtype=np.int64)
        chosen[present] = np.concatenate(own)
        place = np.full(len(rounds), -1)
        place[members] = np.arange(len(members))
        return cls(base, chosen, present, place, pieces)

    @property
    def entries(self) -> int:  # type: ignore[override]
        """Number of constraints of a member."""
        return int(self.base.entries * self.chosen.shape[1])

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        """True where all Hessians are diagonal."""
        return self.base.diagonal

    @cached_property
    def _coefficients(self) -> QuadraticRounds | None:
        """Constraints of all members where they are affine: gathered once instead of at each evaluation."""
        if not self.base.affine_in:
            return None
        constant, slopes = self._jet(np.zeros((1, self.base.affine_in)), np.arange(len(self.chosen)))
        return QuadraticRounds(constant, slopes, None, True)

    def _points(self, x: Array, rows: Array) -> tuple[Array, Array]:
        width = self.chosen.shape[1]
        return x if len(x) == 1 else np.repeat(x, width, axis=0), self.chosen[rows].ravel()

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        own = self.place[rows]
        return self._jet(x, own) if self._coefficients is None else self._coefficients.jet(x, own)

    def _jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        values, slopes = self.base.jet(*self._points(x, rows))
        present = np.repeat(self.present[rows], self.base.entries, axis=1)
        shape = (len(rows), self.entries)
        slopes = np.where(present[:, :, None], slopes.reshape(*shape, x.shape[1]), 0.0)
        return np.where(present, values.reshape(shape), -1.0), slopes

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        own = self.place[rows]
        if self._coefficients is not None:
            return self._coefficients.hessian(x, weights, own)
        points, picked = self._points(x, own)
        present = self.present[own].reshape(-1, 1)
        parts = weights.reshape(len(picked), self.base.entries) * present
        return self.base.added_hessian(points, parts, picked, np.arange(len(rows)) * self.chosen.shape[1])

    def carrying(self, member: int, weights: Array, least: float) -> Array:
        """Rounds of a member whose constraints have one of the weights (entries,) above `least`."""
        own = self.place[member]
        carried = weights.reshape(len(self.chosen[own]), -1).max(axis=1)
        return np.asarray(self.chosen[own][self.present[own] & (carried > least)]) // self.pieces


def deciding_rounds(function: OfRounds, rounds: RoundArrays, start: Array, ends: Array) -> list[Array] | None:
    """Few rounds of each prefix that imply the constraints of all, where the rounds differ by a constant alone; else
    None.
    """
    if not function.same_slope:
        return None
    values = function.values(start[None], rounds.everything)
    before = np.maximum.accumulate(values, axis=0)[:-1]
    rises = np.concatenate(
        [np.zeros((1, values.shape[1]), dtype=np.int64), np.where(values[1:] > before, rounds.everything[1:, None], 0)]
    )
    latest = np.maximum.accumulate(rises, axis=0)
    return [np.unique(latest[end - 1]) for end in ends]
