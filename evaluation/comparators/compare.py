"""Choice of the solver for a comparator, and the explanation where none applies."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.compiler.problem.expectation import in_expectation
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unknown, unsolved
from oco.evaluation.comparators.conic_comparators import conic_prefixes, conic_static
from oco.evaluation.comparators.dynamic import Formulation, dynamic
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.lift import least_loss, lift
from oco.evaluation.comparators.minimised import (
    is_minimised,
    minimised_dynamic,
    minimised_prefixes,
    minimised_static,
)
from oco.evaluation.comparators.moves import moving_freely, paying_moves
from oco.evaluation.comparators.of_expressions import entries_of
from oco.evaluation.comparators.parts import by_parts
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.static import StaticProblem, prefixes, static
from oco.evaluation.comparators.streamed import streamed_prefixes, streamed_static
from oco.evaluation.comparators.structure import separable, smooth
from oco.evaluation.data import Data
from oco.evaluation.numbers import gibibytes

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
        result = unsolved(kind, why, data.rounds * least_loss(problem, data.rounds))
        return result if budget.wanted else replace(result, why=why)  # who did not ask for it has no use for its bound
    if is_minimised(problem):
        return minimised_static(problem, data) if kind == "static" else minimised_dynamic(problem, data, budget)
    if kind == "dynamic" and problem.moving is not None and data.nbytes <= budget.memory:
        free = _dynamic(moving_freely(problem), data, budget)
        return paying_moves(free, lambda: compare(problem, data, "static", budget), RoundArrays.read(problem, data))
    if kind == "dynamic":
        return _dynamic(problem, data, budget)
    problem = in_expectation(problem)
    if data.nbytes > budget.memory:
        return streamed_static(problem, data, budget) or by_parts(problem, data, budget, _static)
    return _static(RoundArrays.read(problem, data), budget)


def _static(rounds: RoundArrays, budget: ComparatorBudget) -> Comparator:
    """Certified comparator, or else the best of those that the methods give."""
    began = perf_counter()
    made, share = _first(rounds, np.array([rounds.count]))
    best = static(made, budget.left(began, share)) if made else conic_static(rounds, budget.left(began), share)
    if best.status in FINAL or budget.over(began):
        return best
    best = _better(best, conic_static(rounds, budget.left(began)) if made else _roughly(rounds, budget.left(began)))
    return replace(best, seconds=perf_counter() - began)


def _roughly(rounds: RoundArrays, budget: ComparatorBudget) -> Comparator:
    """Static comparator where kinks are too many for one sparse program, by their subgradients."""
    made = _projected(rounds, np.array([rounds.count]))
    return static(made, budget) if made else unsolved("static", BEYOND)


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
    if is_minimised(problem):
        return minimised_prefixes(problem, data, ends)
    problem, data = in_expectation(problem), data.first(int(ends[-1]))
    if data.nbytes > budget.memory:
        streamed = streamed_prefixes(problem, data, ends, budget)
        return unknown(ends, streamed) if isinstance(streamed, str) else streamed
    rounds = RoundArrays.read(problem, data)
    began = perf_counter()
    made, share = _first(rounds, ends)
    result = prefixes(made, budget.left(began, share)) if made else unknown(ends, "")
    result = conic_prefixes(rounds, ends, budget.left(began), result)
    open_ = np.array([s is ComparatorStatus.NOT_COMPUTED for s in result.status])
    if made or not open_.any() or budget.over(began):
        return result
    few = rounds.first(int(ends[open_][-1]))
    return result.with_members(open_, _rough_prefixes(few, ends[open_], budget.left(began)))


def _rough_prefixes(rounds: RoundArrays, ends: Array, budget: ComparatorBudget) -> Prefixes:
    made = _projected(rounds, ends)
    return prefixes(made, budget) if made else unknown(ends, BEYOND)


def _too_large(data: Data, budget: ComparatorBudget) -> str:
    return f"the data of all rounds takes {gibibytes(data.nbytes)}, more than the budget of {gibibytes(budget.memory)}"


def _beyond_all(problem: Canonical, data: Data, budget: ComparatorBudget) -> str:
    """Reason why no solver can begin; "" where one can."""
    if not budget.wanted:
        return "it was not asked for"
    if data.absent:
        return f"the values of {', '.join(f'`{n}`' for n in data.absent)} were not kept with the run"
    return _too_wide(problem, budget)


def _too_wide(problem: Canonical, budget: ComparatorBudget) -> str:
    """Reason why equations of sets that every solver has, or second derivatives, which it forms for curved functions, do not fit in
    memory; "" where they do.
    """
    large = [b.name for b in problem.blocks if not b.domain.hull_fits]
    if large and not is_minimised(problem):
        return f"the equations of the set of `{large[0]}` do not fit in memory"
    size, names = sum(b.domain.size for b in problem.blocks), tuple(b.name for b in problem.blocks)
    nonlinear = [f for f in (problem.objective, *(c.expr for c in problem.inequalities)) if degree(f, names) > 1]
    if (
        not nonlinear
        or 8 * size**2 <= budget.memory
        or all(separable(e, names) for f in nonlinear for e in entries_of(f))
    ):
        return ""
    needed, allowed = gibibytes(8 * size**2), gibibytes(budget.memory)
    return f"second derivatives for {size:,} numbers take {needed}, more than the budget of {allowed}"


def _static_problem(rounds: RoundArrays, ends: Array) -> StaticProblem | None:
    """Static programs; None where some kinks cannot become smooth functions in variables that the rounds share."""
    problem = rounds.problem
    if _is_smooth(problem):
        return StaticProblem(rounds, region(problem), rounds, ends)
    lifted = lift(rounds) if region(problem).complete else None
    if lifted is None or not lifted.smooth or lifted.each_round:
        return None
    return StaticProblem(
        rounds.under(lifted.problem), region(lifted.problem), rounds, ends, tuple(d.expr for d in lifted.definitions)
    )


def _first(rounds: RoundArrays, ends: Array) -> tuple[StaticProblem | None, float]:
    """Static programs to begin with, None for a conic one; and the share of the time for them."""
    made = _static_problem(rounds, ends)
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
        return unsolved("dynamic", _too_large(data, budget))
    lifted = lift(RoundArrays.read(problem, data)) if region(problem).complete else None
    if lifted is None or not lifted.smooth:
        return dynamic(problem, data, None, budget)
    way = Formulation(lifted.problem, region(lifted.problem), tuple(d.expr for d in lifted.definitions))
    return dynamic(problem, data, way, budget)
