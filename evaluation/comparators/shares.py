"""Best fixed decision in hindsight that keeps constraints in a share of the rounds in that share of the rounds that came.

Which rounds are left out is a choice among many, with which the problem is not convex. Decisions are found by turns: the worst rounds of a
constraint at the last decision are left out, as many as may break it, and the best decision that satisfies it in all others breaks it in no
more and costs no more. The first is the best decision without these constraints, whose loss is a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.parts import Inequality
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.expressions import Kind, Name, constant
from oco.dsl.statements import Stream
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]

KEPT = "_kept_"
TURNS = 8
"""Turns at most: each solves the problem of all rounds once more, and after a few the decision hardly moves."""
ALIKE = 1e-6
"""Share of the loss by which a turn has to be better than those before."""
MET = 1e-7
"""Share of the size of a constraint by which solvers may miss it."""


def in_shares(problem: Canonical, data: Data, budget: ComparatorBudget | None = None) -> Comparator | None:
    """Best decision that is found within the budget, certified where it is the best without these constraints too; None where there are no
    such constraints, where rounds leave something else to the next, where the data do not fit in memory, or where no decision was found.
    """
    budget, began = budget or ComparatorBudget(), perf_counter()
    shared = any(c.margin is not None for c in problem.inequalities)
    if not shared or problem.carried or data.absent or not budget.wanted or data.nbytes > budget.memory:
        return None
    free = compare(_unshared(problem), data, "static", budget)
    if free.losses is None:
        return None
    rounds = _Rounds(problem, data)
    if rounds.keeps(free):
        return free
    best = _by_turns(rounds, free, budget, began)
    if best is None:
        return None
    status = ComparatorStatus.of_gap(best.value, free.bound)
    return replace(best, status=status, bound=free.bound, seconds=perf_counter() - began)


def _by_turns(rounds: _Rounds, first: Comparator, budget: ComparatorBudget, began: float) -> Comparator | None:
    """Best decision of turns that begin at `first`; None where the first turn finds none."""
    best, last = None, first
    for _ in range(TURNS):
        last = compare(*rounds.without_worst(last), "static", budget.left(began))
        if last.losses is None or last.status is ComparatorStatus.LEAST_VIOLATING:
            break
        if best is not None and last.value >= best.value - ALIKE * abs(best.value):
            break
        best = last
        if budget.over(began):
            break
    return best


def _unshared(problem: Canonical) -> Canonical:
    """Problem without its constraints in a share of the rounds."""
    return replace(problem, inequalities=tuple(c for c in problem.inequalities if c.margin is None))


class _Rounds:
    """Rounds of a problem with constraints in a share of them."""

    def __init__(self, problem: Canonical, data: Data) -> None:
        self.problem, self.data = problem, data
        self.given = data.read(0, data.rounds)
        self.table = RoundArrays.of(problem, self.given, np.arange(data.rounds) + 1)
        self.shared = [(c, c.margin) for c in problem.inequalities if c.margin is not None]

    def keeps(self, c: Comparator) -> bool:
        """True where a decision breaks no entry in more rounds than its share."""
        return all(((g > MET * np.abs(g).max(axis=0)).sum(axis=0) <= k).all() for g, k in self._values(c))

    def without_worst(self, c: Comparator) -> tuple[Canonical, Data]:
        """Problem and data in which each entry has to hold in all rounds but those that are worst for it at a decision."""
        T, streams, given, own = self.data.rounds, list(self.problem.streams), dict(self.given), list[Inequality]()
        for i, ((row, margin), (g, allowed)) in enumerate(zip(self.shared, self._values(c), strict=True)):
            kept = np.ones(g.shape)
            np.put_along_axis(kept, np.argsort(-g, axis=0, kind="stable")[:allowed], 0.0, axis=0)
            stream = Stream(f"{KEPT}{i}", (), row.shape, None)
            streams.append(StreamRange(stream.name, row.shape, np.asarray(0.0), np.asarray(1.0), False, stream))
            given[stream.name] = kept.reshape(T, *row.shape)
            name, size = (
                Name(stream.name, Kind.STREAM, shape=row.shape),
                constant(np.abs(g).max(axis=0).reshape(row.shape)),
            )
            # Rounds that are left out have room to spare: methods that stay inside the constraints need some.
            left_out = algebra.mul(algebra.sub(name, algebra.number(1)), size)
            holds = algebra.add(algebra.mul(name, margin.measured), left_out)
            own.append(replace(row, expr=holds, moving=None, margin=None, known=False))
        inequalities = (*_unshared(self.problem).inequalities, *own)
        made = replace(self.problem, streams=tuple(streams), inequalities=inequalities)
        return made, Data(made, T, MappingProxyType(given))

    def _values(self, c: Comparator) -> list[tuple[Array, int]]:
        """Values (T, entries) of each of these constraints at a decision, and the rounds that may break one of its entries."""
        T = self.data.rounds
        x = np.concatenate([np.ravel(c.decision[b.name]) for b in self.problem.blocks]).reshape(1, -1)
        return [
            (self.table.at_each(margin.measured, x).reshape(T, -1), math.floor(margin.allowed(T) + MET))
            for _, margin in self.shared
        ]
