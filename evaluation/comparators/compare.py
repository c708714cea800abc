"""Choice of the solver for a comparator, and the explanation where none applies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.compiler.problem.expectation import in_expectation
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unknown, unsolved
from oco.evaluation.comparators.conic_comparators import conic_prefixes, conic_static
from oco.evaluation.comparators.fixed import StaticProblem, prefixes, static
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.lift import least_loss, lift
from oco.evaluation.comparators.make import entries_of
from oco.evaluation.comparators.moves import moving_freely, paying_moves
from oco.evaluation.comparators.parts import by_parts
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.rounds import Formulation, dynamic
from oco.evaluation.comparators.streamed import streamed_prefixes, streamed_static
from oco.evaluation.comparators.structure import separable, smooth
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Kind = Literal["static", "dynamic"]

BEYOND = "a function with kinks is beyond the solvers that are here"
FIRST = 0.5  # of the time, for the method after which another one is left
MANY = 100  # rounds from which on norms of matrices are first taken as they are: a sum of so many hardly has kinks
FINAL = (ComparatorStatus.CERTIFIED, ComparatorStatus.LEAST_VIOLATING)


def compare(problem: Canonical, data: Data, kind: Kind, budget: ComparatorBudget | None = None) -> Comparator:
    """Comparator of a run over `data`, within a budget; always with a certificate or a statement that it was not
    computed.
    """
    budget = budget or ComparatorBudget()
    if why := _beyond_all(problem, data, budget):
        result = unsolved(kind, why, data.rounds * least_loss(problem, data.rounds), perf_counter())
        return result if budget.wanted else replace(result, why=why)  # who did not ask for it has no use for its bound
    if kind == "dynamic" and problem.moving is not None and data.nbytes <= budget.memory:
        free = _dynamic(moving_freely(problem), data, budget)
        return paying_moves(free, lambda: compare(problem, data, "static", budget), _all_rounds(problem, data))
    if kind == "dynamic":
        return _dynamic(problem, data, budget)
    problem = in_expectation(problem)
    if data.nbytes > budget.memory:
        return streamed_static(problem, data, budget) or by_parts(problem, data, budget, _static)
    return _static(_all_rounds(problem, data), budget)


def _static(rounds: RoundArrays, budget: ComparatorBudget) -> Comparator:
    """Certified comparator, or else the best of those that the methods give."""
    clock = _Clock(perf_counter(), budget)
    made, share = _first(rounds, np.array([rounds.count]))
    best = static(made, clock.left(share)) if made else conic_static(rounds, clock.left(), share)
    if best.status in FINAL or clock.over:
        return best
    best = _better(best, conic_static(rounds, clock.left()) if made else _roughly(rounds, clock.left()))
    return replace(best, seconds=clock.spent)


def _roughly(rounds: RoundArrays, budget: ComparatorBudget) -> Comparator:
    """Static comparator where kinks are too many for one sparse program, by their subgradients."""
    made = _projected(rounds, np.array([rounds.count]))
    return static(made, budget) if made else Comparator("static", ComparatorStatus.NOT_COMPUTED, why=BEYOND)


def _better(first: Comparator, second: Comparator) -> Comparator:
    """Combination of two results for one comparator: the better decision and the better bound."""
    if second.status in FINAL:
        return second
    best = second if first.losses is None or second.value < first.value else first
    return replace(best, bound=max(first.bound, second.bound))


def compare_prefixes(problem: Canonical, data: Data, ends: Array, budget: ComparatorBudget | None = None) -> Prefixes:
    """Best fixed decisions for the first t rounds, for rising t: all solved side by side, on sums that are formed once."""
    budget = budget or ComparatorBudget()
    if why := _beyond_all(problem, data, budget):
        return unknown(ends, why)
    problem, data = in_expectation(problem), data.first(int(ends[-1]))
    if data.nbytes > budget.memory:
        streamed = streamed_prefixes(problem, data, ends, budget)
        return unknown(ends, streamed) if isinstance(streamed, str) else streamed
    rounds = _all_rounds(problem, data)
    clock = _Clock(perf_counter(), budget)
    made, share = _first(rounds, ends)
    result = prefixes(made, clock.left(share)) if made else unknown(ends, "")
    result = conic_prefixes(rounds, ends, clock.left(), result)
    open_ = np.array([s is ComparatorStatus.NOT_COMPUTED for s in result.status])
    if made or not open_.any() or clock.over:
        return result
    few = rounds.first(int(ends[open_][-1]))
    return result.with_members(open_, _rough_prefixes(few, ends[open_], clock.left()))


def _rough_prefixes(rounds: RoundArrays, ends: Array, budget: ComparatorBudget) -> Prefixes:
    made = _projected(rounds, ends)
    return prefixes(made, budget) if made else unknown(ends, BEYOND)


@dataclass(frozen=True)
class _Clock:
    """Starting time and budget of a search."""

    began: float
    budget: ComparatorBudget

    @property
    def spent(self) -> float:
        return perf_counter() - self.began

    @property
    def over(self) -> bool:
        return self.spent >= self.budget.seconds

    def left(self, share: float = 1.0) -> ComparatorBudget:
        """Budget with a share of the remaining time and all the memory."""
        return ComparatorBudget(share * max(self.budget.seconds - self.spent, 0.0), self.budget.memory)


def _too_large(data: Data, budget: ComparatorBudget) -> str:
    needed, allowed = data.nbytes / 2**30, budget.memory / 2**30
    return f"the data of all rounds takes {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"


def _beyond_all(problem: Canonical, data: Data, budget: ComparatorBudget) -> str:
    """Reason why no solver can begin; "" where one can."""
    if not budget.wanted:
        return "it was not asked for"
    if data.absent:
        return f"the values of {', '.join(f'`{n}`' for n in data.absent)} were not kept with the run"
    return _too_wide(problem, budget)


def _too_wide(problem: Canonical, budget: ComparatorBudget) -> str:
    """Reason why second derivatives, which every solver forms for curved functions, do not fit in memory; "" where they
    do.
    """
    size, names = sum(b.domain.size for b in problem.blocks), tuple(b.name for b in problem.blocks)
    nonlinear = [f for f in (problem.objective, *(c.expr for c in problem.inequalities)) if degree(f, names) > 1]
    if (
        not nonlinear
        or 8 * size**2 <= budget.memory
        or all(separable(e, names) for f in nonlinear for e in entries_of(f))
    ):
        return ""
    needed, allowed = 8 * size**2 / 2**30, budget.memory / 2**30
    return f"second derivatives for {size:,} numbers take {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"


def _all_rounds(problem: Canonical, data: Data) -> RoundArrays:
    return RoundArrays.of(problem, data.read(0, data.rounds), np.arange(data.rounds) + 1)


def _setting(rounds: RoundArrays, ends: Array) -> StaticProblem | None:
    """Static programs; None where some kinks cannot become smooth functions in variables that the rounds share."""
    problem = rounds.problem
    if _is_smooth(problem):
        return StaticProblem(rounds, region(problem), rounds, ends)
    lifted = lift(rounds) if region(problem).complete else None
    if lifted is None or not lifted.smooth or lifted.each_round:
        return None
    inner = RoundArrays.of(lifted.problem, rounds.streams, rounds.numbers)
    return StaticProblem(inner, region(lifted.problem), rounds, ends, tuple(d.expr for d in lifted.definitions))


def _first(rounds: RoundArrays, ends: Array) -> tuple[StaticProblem | None, float]:
    """Static programs to begin with, None for a conic one; and the share of the time for them."""
    made = _setting(rounds, ends)
    if made or rounds.count <= MANY:
        return made, 1.0 if made else FIRST
    lifted = lift(rounds)
    many = lifted is not None and not lifted.smooth and bool(set(lifted.norms) & set(lifted.each_round))
    return _projected(rounds, ends) if many else None, FIRST


def _projected(rounds: RoundArrays, ends: Array) -> StaticProblem | None:
    """Functions with kinks, each by one of its subgradients, on a set with a projection; None where it has none.

    Sums over many rounds that differ are nearly smooth. Any subgradient at a point gives a valid bound.
    """
    if not all(b.domain.is_cheap("project") for b in rounds.problem.blocks):
        return None
    return StaticProblem(rounds, replace(region(rounds.problem), complete=False), rounds, ends)


def _is_smooth(problem: Canonical) -> bool:
    names = tuple(b.name for b in problem.blocks)
    return all(smooth(f, names) for f in (problem.objective, *(c.expr for c in problem.inequalities)))


def _dynamic(problem: Canonical, data: Data, budget: ComparatorBudget) -> Comparator:
    if _is_smooth(problem):
        return dynamic(problem, data, Formulation(problem, region(problem)), budget)
    if data.nbytes > budget.memory:
        return Comparator("dynamic", ComparatorStatus.NOT_COMPUTED, why=_too_large(data, budget))
    lifted = lift(_all_rounds(problem, data)) if region(problem).complete else None
    if lifted is None or not lifted.smooth:
        return dynamic(problem, data, None, budget)
    way = Formulation(lifted.problem, region(lifted.problem), tuple(d.expr for d in lifted.definitions))
    return dynamic(problem, data, way, budget)
