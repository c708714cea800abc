"""The way to a comparator: which solver fits the problem, and what to say where none does."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

import numpy as np

from oco.compiler.canonical import Canonical
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status, unsolved
from oco.evaluation.comparators.expectation import in_expectation
from oco.evaluation.comparators.fixed import Setting, prefixes, static
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.lift import Lifted, least_loss, lift, ranges_of
from oco.evaluation.comparators.parts import by_parts
from oco.evaluation.comparators.region import Region, region, with_tail
from oco.evaluation.comparators.rounded import rounded_prefixes, rounded_static, unknown
from oco.evaluation.comparators.rounds import dynamic
from oco.evaluation.comparators.smoothing import smoothed
from oco.evaluation.comparators.sparse import sparse_prefixes, sparse_static
from oco.evaluation.comparators.structure import degree, smooth
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Kind = Literal["static", "dynamic"]

LARGEST = 1500  # variables of a static program with kinks in every round; beyond, the kinks are rounded off
BEYOND = "a function with kinks is beyond the solvers that are here"


def compare(problem: Canonical, data: Data, kind: Kind, budget: Budget | None = None) -> Comparator:
    """The comparator of a run over `data`, within a budget; never without a certificate or a word that there is none."""
    budget = budget or Budget()
    if why := _beyond_all(problem, data, budget):
        return unsolved(kind, why, data.rounds * least_loss(problem, data.rounds), perf_counter())
    if kind == "dynamic":
        return _dynamic(problem, data, budget)
    problem = in_expectation(problem)
    if data.nbytes > budget.memory:
        return by_parts(problem, data, budget, _static)
    return _static(_all_rounds(problem, data), budget)


def _static(rounds: Rounds, budget: Budget) -> Comparator:
    made = _setting(rounds, np.array([rounds.count]))
    if isinstance(made, Setting):
        return static(made, budget)
    if not made:
        return Comparator("static", Status.NOT_COMPUTED, why=BEYOND)
    return sparse_static(rounds, budget) or rounded_static(rounds, budget)


def compare_prefixes(problem: Canonical, data: Data, ends: Array, budget: Budget | None = None) -> Prefixes:
    """The best fixed decisions for the first t rounds, for rising t: all solved side by side, on sums that are formed once."""
    budget = budget or Budget()
    if why := _beyond_all(problem, data, budget):
        return unknown(ends, why)
    if data.nbytes > budget.memory:
        return unknown(ends, _too_large(data, budget))
    rounds = _all_rounds(in_expectation(problem), data.first(int(ends[-1])))
    made = _setting(rounds, ends)
    if isinstance(made, Setting):
        return prefixes(made, budget)
    return sparse_prefixes(rounds, ends, budget, rounded_prefixes) if made else unknown(ends, BEYOND)


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


def _setting(rounds: Rounds, ends: Array) -> Setting | bool:
    """The static programs; True where they have too many kinks for variables of their own, False where no solver is here."""
    problem = rounds.problem
    if _is_smooth(problem):
        return Setting(rounds, region(problem), rounds, ends)
    lifted = lift(rounds) if region(problem).complete else None
    if lifted is None:
        return smoothed(problem, ranges_of(rounds), 1.0) is not None
    own = sum(b.domain.size for b in lifted.problem.blocks if b.name in lifted.each_round)
    if own and (len(ends) > 1 or own * rounds.count > LARGEST):
        return True
    place = _shared_region(lifted, rounds.count)
    inner = Rounds.of(lifted.problem, rounds.streams, rounds.numbers)
    return Setting(inner, place, rounds, ends, tuple(d.expr for d in lifted.definitions), own)


def _is_smooth(problem: Canonical) -> bool:
    names = tuple(b.name for b in problem.blocks)
    return all(smooth(f, names) for f in (problem.objective, *(c.expr for c in problem.inequalities)))


def _dynamic(problem: Canonical, data: Data, budget: Budget) -> Comparator:
    if _is_smooth(problem):
        return dynamic(problem, data, region(problem), budget)
    if data.nbytes > budget.memory:
        return Comparator("dynamic", Status.NOT_COMPUTED, why=_too_large(data, budget))
    rounds = _all_rounds(problem, data)
    lifted = lift(rounds) if region(problem).complete else None
    if lifted is None:
        return Comparator("dynamic", Status.NOT_COMPUTED, why=BEYOND)
    definitions = tuple(d.expr for d in lifted.definitions)
    return _in_terms_of(rounds, dynamic(lifted.problem, data, region(lifted.problem), budget, definitions))


def _shared_region(lifted: Lifted, count: int) -> Region:
    """The set of the decisions and of the variables that all rounds share, times the boxes of those that each round has."""
    blocks = lifted.problem.blocks
    shared = tuple(b for b in blocks if b.name not in lifted.each_round)
    local = [b for b in blocks if b.name in lifted.each_round]
    base = region(replace(lifted.problem, blocks=shared))
    if not local:
        return base
    lower = np.concatenate([b.domain.lower.ravel() for b in local])
    upper = np.concatenate([b.domain.upper.ravel() for b in local])
    return with_tail(base, *(np.tile(part, count) for part in (lower, upper, (lower + upper) / 2)))


def _in_terms_of(rounds: Rounds, found: Comparator) -> Comparator:
    """A dynamic comparator of the lifted problem as one of the problem itself."""
    if found.losses is None:
        return found
    decision = {b.name: found.decision[b.name] for b in rounds.problem.blocks}
    x = np.concatenate([decision[name].reshape(rounds.count, -1) for name, _ in rounds.layout], axis=1)
    rows = rounds.everything
    losses = np.array(values_of(rounds.evaluate(rounds.problem.objective, x, rows), rounds.count), dtype=np.float64)
    values = [
        values_of(rounds.evaluate(c.expr, x, rows), rounds.count).reshape(rounds.count, -1)
        for c in rounds.problem.inequalities
    ]
    g = np.concatenate([np.zeros((rounds.count, 0)), *values], axis=1)
    excess = np.maximum(g.max(axis=0, initial=0.0), 0.0)
    return replace(found, decision=decision, losses=losses, value=float(losses.sum()), excess=excess)
