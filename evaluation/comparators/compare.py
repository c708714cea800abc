"""The way to a comparator: which solver fits the problem, and what to say where none does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Literal

import numpy as np

from oco.compiler.canonical import Canonical
from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status, unsolved
from oco.evaluation.comparators.conic_comparators import conic_prefixes, conic_static
from oco.evaluation.comparators.expectation import in_expectation
from oco.evaluation.comparators.fixed import Setting, prefixes, static
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.lift import least_loss, lift
from oco.evaluation.comparators.parts import by_parts
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.rounded import rounded_prefixes, rounded_static, unknown
from oco.evaluation.comparators.rounds import Way, dynamic
from oco.evaluation.comparators.streamed import streamed_prefixes, streamed_static
from oco.evaluation.comparators.structure import degree, smooth
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Kind = Literal["static", "dynamic"]

SETTLED = (Status.CERTIFIED, Status.LEAST_VIOLATING)


def compare(problem: Canonical, data: Data, kind: Kind, budget: Budget | None = None) -> Comparator:
    """The comparator of a run over `data`, within a budget; never without a certificate or a word that there is none."""
    budget = budget or Budget()
    if why := _beyond_all(problem, data, budget):
        return unsolved(kind, why, data.rounds * least_loss(problem, data.rounds), perf_counter())
    if kind == "dynamic":
        return _dynamic(problem, data, budget)
    problem = in_expectation(problem)
    if data.nbytes > budget.memory:
        return streamed_static(problem, data, budget) or by_parts(problem, data, budget, _static)
    return _static(_all_rounds(problem, data), budget)


def _static(rounds: Rounds, budget: Budget) -> Comparator:
    """The first method that settles it; what is known before is kept."""
    began, made = perf_counter(), _setting(rounds, np.array([rounds.count]))
    methods = [partial(static, made)] if made else []
    methods += [partial(conic_static, rounds), *([] if made else [partial(rounded_static, rounds)])]
    best = methods[0](budget)
    for method in methods[1:]:
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        if best.status in SETTLED or left.seconds <= 0:
            break
        best = _better(best, method(left))
    return replace(best, seconds=perf_counter() - began)


def _better(first: Comparator, second: Comparator) -> Comparator:
    """What is known of one comparator from two methods."""
    if second.status in SETTLED:
        return second
    best = second if first.losses is None or second.value < first.value else first
    return replace(best, bound=max(first.bound, second.bound))


def compare_prefixes(problem: Canonical, data: Data, ends: Array, budget: Budget | None = None) -> Prefixes:
    """The best fixed decisions for the first t rounds, for rising t: all solved side by side, on sums that are formed once."""
    budget = budget or Budget()
    if why := _beyond_all(problem, data, budget):
        return unknown(ends, why)
    problem, data = in_expectation(problem), data.first(int(ends[-1]))
    if data.nbytes > budget.memory:
        streamed = streamed_prefixes(problem, data, ends, budget)
        return unknown(ends, streamed) if isinstance(streamed, str) else streamed
    rounds = _all_rounds(problem, data)
    made = _setting(rounds, ends)
    began = perf_counter()
    found = conic_prefixes(rounds, ends, budget, prefixes(made, budget) if made else unknown(ends, ""))
    open_ = np.array([s is Status.NOT_COMPUTED for s in found.status])
    left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
    if made or not open_.any() or left.seconds <= 0:
        return found
    return found.with_members(open_, rounded_prefixes(rounds.first(int(ends[open_][-1])), ends[open_], left))


def _too_large(data: Data, budget: Budget) -> str:
    needed, allowed = data.nbytes / 2**30, budget.memory / 2**30
    return f"the data of all rounds takes {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"


def _beyond_all(problem: Canonical, data: Data, budget: Budget) -> str:
    """Why no solver can begin; "" where one can."""
    if data.absent:
        return f"the values of {', '.join(f'`{n}`' for n in data.absent)} were not kept with the run"
    return _too_wide(problem, budget)


def _too_wide(problem: Canonical, budget: Budget) -> str:
    """Why second derivatives, which every solver here forms where there are any, do not fit in memory; "" where they do."""
    size, names = sum(b.domain.size for b in problem.blocks), tuple(b.name for b in problem.blocks)
    bent = any(degree(f, names) > 1 for f in (problem.objective, *(c.expr for c in problem.inequalities)))
    if not bent or 8 * size**2 <= budget.memory:
        return ""
    needed, allowed = 8 * size**2 / 2**30, budget.memory / 2**30
    return f"second derivatives for {size:,} numbers take {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"


def _all_rounds(problem: Canonical, data: Data) -> Rounds:
    return Rounds.of(problem, data.read(0, data.rounds), np.arange(data.rounds) + 1)


def _setting(rounds: Rounds, ends: Array) -> Setting | None:
    """The static programs; None where not all kinks can have smooth functions in variables that the rounds share."""
    problem = rounds.problem
    if _is_smooth(problem):
        return Setting(rounds, region(problem), rounds, ends)
    lifted = lift(rounds) if region(problem).complete else None
    if lifted is None or not lifted.smooth or lifted.each_round:
        return None
    inner = Rounds.of(lifted.problem, rounds.streams, rounds.numbers)
    return Setting(inner, region(lifted.problem), rounds, ends, tuple(d.expr for d in lifted.definitions))


def _is_smooth(problem: Canonical) -> bool:
    names = tuple(b.name for b in problem.blocks)
    return all(smooth(f, names) for f in (problem.objective, *(c.expr for c in problem.inequalities)))


def _dynamic(problem: Canonical, data: Data, budget: Budget) -> Comparator:
    if _is_smooth(problem):
        return dynamic(problem, data, Way(problem, region(problem)), budget)
    if data.nbytes > budget.memory:
        return Comparator("dynamic", Status.NOT_COMPUTED, why=_too_large(data, budget))
    lifted = lift(_all_rounds(problem, data)) if region(problem).complete else None
    if lifted is None or not lifted.smooth:
        return dynamic(problem, data, None, budget)
    way = Way(lifted.problem, region(lifted.problem), tuple(d.expr for d in lifted.definitions))
    return dynamic(problem, data, way, budget)
