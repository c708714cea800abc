"""Static comparator of data that does not fit in memory: an interval from the best decisions for parts of the rounds.

    sum_t f_t(x*) >= sum over the parts of min_x sum_{t in part} f_t(x),

where the minima need only satisfy the constraints of their own part; and every decision that satisfies all constraints
is an upper bound. The candidates are the best decisions of the parts, and their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, unsolved
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import Data
from oco.evaluation.numbers import gibibytes

Array = np.ndarray[Any, Any]
Solve = Callable[[RoundArrays, ComparatorBudget], Comparator]

SHARE = 0.25  # of the memory that one part may take: its functions take as much again
TRIED = 8  # decisions that are tried for the upper bound
SLACK = 1e-6  # of what a constraint may be in size, by which it may be broken


@dataclass(frozen=True, eq=False)
class Sums:
    """Totals of some decisions over all rounds: losses (K, T), and the largest (each round) or the mean (on average) of
    each constraint.
    """

    losses: Array
    constraints: Array
    size: Array

    @property
    def violation(self) -> Array:
        """Violation (K, N) of each constraint by each decision."""
        return np.maximum(self.constraints, 0.0)

    @property
    def best(self) -> int | None:
        """Decision of the least loss among those that satisfy all constraints; None where none does."""
        allowed = np.flatnonzero((self.violation <= SLACK * self.size).all(axis=1))
        return int(allowed[np.argmin(self.losses.sum(axis=1)[allowed])]) if len(allowed) else None


def by_parts(problem: Canonical, data: Data, budget: ComparatorBudget, solve: Solve) -> Comparator:
    """Interval [dual bound, feasible value] from parts that fit, or the statement that time did not suffice."""
    began = perf_counter()
    results = _solved(_without_averages(problem), data, budget, solve, began + budget.seconds / 2)
    if results is None:
        why = f"the data takes {gibibytes(data.nbytes)}, and its parts took longer than {budget.seconds / 2:g} s"
        return unsolved("static", why, began=began)
    bound = 0.0
    for result in results:
        bound += result.bound
    decisions = [result.decision for result in results if result.decision]
    if not decisions or problem.equalities:
        return unsolved("static", "no decision that satisfies the constraints of all rounds was found", bound, began)
    points = [np.concatenate([np.ravel(x[b.name]) for b in problem.blocks]) for x in decisions]
    tried = np.array([np.mean(points, axis=0), *points[:: -(-len(points) // TRIED)]])
    sums = evaluated(problem, data, tried, budget, began + budget.seconds)
    if sums is None:
        return unsolved("static", "no time was left to evaluate a decision in all rounds", bound, began)
    best = sums.best
    if best is None:
        return unsolved("static", "none of the decisions that were tried satisfies all constraints", bound, began)
    value = float(sums.losses[best].sum())
    return Comparator(
        "static",
        ComparatorStatus.of_gap(value, bound),
        RoundArrays.none(problem).split(tried[best][None]),
        sums.losses[best],
        value,
        bound,
        sums.violation[best],
        method="parts of the rounds",
        seconds=perf_counter() - began,
    )


def _solved(
    problem: Canonical, data: Data, budget: ComparatorBudget, solve: Solve, until: float
) -> list[Comparator] | None:
    """Comparator of each part of the rounds; None where time is over before all have one."""
    results = []
    for part in parts_of(problem, data, budget):
        left = until - perf_counter()
        if left < 0:
            return None
        results.append(solve(part, replace(budget, seconds=left)))
    return results


def _without_averages(problem: Canonical) -> Canonical:
    """Problem with the constraints that bind a part of the rounds: means over all rounds do not."""
    each = tuple(c for c in problem.inequalities if c.timing is Timing.EACH_ROUND)
    return replace(problem, inequalities=each, equalities=())


def parts_of(problem: Canonical, data: Data, budget: ComparatorBudget) -> Iterator[RoundArrays]:
    """Consecutive parts of the rounds that leave room for their functions."""
    step = max(1, int(SHARE * budget.memory * data.rounds / data.nbytes))
    for start in range(0, data.rounds, step):
        yield RoundArrays.read(problem, data, start, min(start + step, data.rounds))


def evaluated(problem: Canonical, data: Data, points: Array, budget: ComparatorBudget, until: float) -> Sums | None:
    """Values of the points in all rounds, part by part; None when time is over."""
    each = np.array([c.timing is Timing.EACH_ROUND for c in problem.inequalities for _ in range(c.size)], dtype=bool)
    losses, totals, tops = [], np.zeros((len(points), len(each))), np.full((len(points), len(each)), -np.inf)
    size = np.zeros(len(each))
    for rounds in parts_of(problem, data, budget):
        if perf_counter() > until:
            return None
        values = [rounds.evaluate(problem.objective, x[None], rounds.everything) for x in points]
        losses.append(np.stack([np.array(values_of(v, rounds.count), dtype=np.float64) for v in values]))
        for k, x in enumerate(points):
            g = rounds.inequalities_at(x[None])
            totals[k] += g.sum(axis=0)
            tops[k] = np.maximum(tops[k], g.max(axis=0, initial=-np.inf))
            size = np.maximum(size, np.abs(g).max(axis=0, initial=0.0))
    return Sums(np.concatenate(losses, axis=1), np.where(each, tops, totals / data.rounds), size)
