"""Static comparators of data that does not fit in memory, for programs that need only sums over the rounds.

This holds for losses and constraints on average that are polynomials of degree two: their coefficients are added up in
one pass over the data, and the programs are then those of data in memory.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, Equality, Inequality
from oco.compiler.problem.degrees import degree
from oco.dsl.expressions import Expr
from oco.dsl.statements import Timing
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unsolved
from oco.evaluation.comparators.certificate import Certified
from oco.evaluation.comparators.functions import OfRounds, RoundArrays
from oco.evaluation.comparators.infeasible import FEASIBLE
from oco.evaluation.comparators.of_expressions import RunningSum
from oco.evaluation.comparators.parts import evaluated, parts_of
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.static import solve_programs
from oco.evaluation.comparators.structure import smooth
from oco.evaluation.comparators.sums import summed
from oco.evaluation.data import Data
from oco.evaluation.numbers import gibibytes

Array = np.ndarray[Any, Any]
METHOD = "sums over parts of the rounds"


def streamed_static(problem: Canonical, data: Data, budget: ComparatorBudget) -> Comparator | None:
    """Best decision for all rounds; None where sums do not suffice."""
    began = perf_counter()
    until = began + budget.seconds
    if not _by_sums(problem, data):
        return None
    result = _solved(problem, data, np.array([data.rounds]), budget, until)
    if result is None:
        return unsolved("static", _late(data, budget), -np.inf, began)
    bound, x = float(result.bound[0]), result.x[:1]
    if result.violation[0] > FEASIBLE:
        return unsolved("static", "no decision was found that satisfies the constraints", bound, began)
    sums = evaluated(problem, data, x, budget, until)
    if sums is None:
        return unsolved("static", "no time was left to evaluate the decision in all rounds", bound, began)
    value = float(sums.losses[0].sum())
    return Comparator(
        "static",
        ComparatorStatus.of_gap(value, bound, float(result.size[0])),
        RoundArrays.none(problem).split(x),
        sums.losses[0],
        value,
        bound,
        np.maximum(sums.constraints[0], 0.0),
        method=METHOD,
        seconds=perf_counter() - began,
    )


def streamed_prefixes(problem: Canonical, data: Data, ends: Array, budget: ComparatorBudget) -> Prefixes | str:
    """Best decisions for the first t rounds, for rising t; the reason where sums or the time do not suffice."""
    began = perf_counter()
    if not _by_sums(problem, data):
        return f"the data of all rounds takes {gibibytes(data.nbytes)}, and its functions cannot be added up"
    result = _solved(problem, data, ends, budget, began + budget.seconds)
    if result is None:
        return _late(data, budget)
    known = result.violation <= FEASIBLE
    reached = map(ComparatorStatus.of_gap, result.f, result.bound, result.size)
    status = [own if k else ComparatorStatus.NOT_COMPUTED for k, own in zip(known, reached)]
    decision = RoundArrays.none(problem).arrays(result.x)
    value = np.where(known, result.f, np.nan)
    return Prefixes(ends, value, result.bound, tuple(status), decision, METHOD, perf_counter() - began)


def _by_sums(problem: Canonical, data: Data) -> bool:
    """True where the programs need only sums over the rounds from the data."""
    first = RoundArrays.read(problem, data, 0, 1)  # which represents all where they do not differ
    constraints: list[Inequality | Equality] = [*problem.inequalities, *problem.equalities]
    differ = [c for c in constraints if first.enters(c.expr)]
    means = not any(isinstance(c, Inequality) and c.timing is Timing.EACH_ROUND for c in differ)
    polynomials = all(degree(e, first.variables) <= 2 for e in (problem.objective, *(c.expr for c in differ)))
    return means and polynomials and all(smooth(c.expr, first.variables) for c in constraints)


def _solved(problem: Canonical, data: Data, ends: Array, budget: ComparatorBudget, until: float) -> Certified | None:
    """Programs of all prefixes; None when time is over before all rounds are added up."""
    first, once, start = RoundArrays.read(problem, data, 0, 1), np.ones_like(ends), 0
    constraints = [*(c.expr for c in problem.inequalities), *(c.expr for c in problem.equalities)]
    sums = [RunningSum(problem.objective), *(RunningSum(e) for e in constraints if first.enters(e))]
    for part in parts_of(problem, data, budget):
        stop = start + part.count
        for one in sums:
            one.add(part, ends[(start < ends) & (ends <= stop)] - start)
        start = stop
        if perf_counter() > until:
            return None
    loss, means = sums[0].times(once), {id(one.expr): one.times(1.0 / ends) for one in sums[1:]}

    def mean(expr: Expr) -> OfRounds:
        return means[id(expr)] if id(expr) in means else summed(first, expr, once, once)

    inequalities = tuple(mean(c.expr) for c in problem.inequalities)
    equations = tuple(mean(c.expr) for c in problem.equalities)
    return solve_programs(Assembled(region(problem), np.arange(len(ends)), loss, inequalities, equations), until)


def _late(data: Data, budget: ComparatorBudget) -> str:
    return f"the data takes {gibibytes(data.nbytes)}, and adding it up took longer than {budget.seconds:g} s"
