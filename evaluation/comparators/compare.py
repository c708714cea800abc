"""The way to a comparator: which solver fits the problem, and what to say where none does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from oco.compiler.canonical import Canonical
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.base import Budget, Comparator, Status
from oco.evaluation.comparators.fixed import Setting, static
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.lift import Lifted, lift
from oco.evaluation.comparators.region import Region, region, with_tail
from oco.evaluation.comparators.rounds import dynamic
from oco.evaluation.comparators.structure import smooth
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Kind = Literal["static", "dynamic"]

LARGEST = 1500  # variables of a static program in which every round has some for its kinks


def compare(problem: Canonical, data: Data, kind: Kind, budget: Budget | None = None) -> Comparator:
    """The comparator of a run over `data`, within a budget; never without a certificate or a word that there is none."""
    budget = budget or Budget()
    if data.nbytes > budget.memory:
        needed, allowed = data.nbytes / 2**30, budget.memory / 2**30
        why = f"the data of all rounds takes {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"
        return Comparator(kind, Status.NOT_COMPUTED, why=why)
    names = tuple(b.name for b in problem.blocks)
    if all(smooth(f, names) for f in (problem.objective, *(c.expr for c in problem.inequalities))):
        return _smooth(problem, data, kind, budget)
    return _kinked(problem, data, kind, budget)


def _all_rounds(problem: Canonical, data: Data) -> Rounds:
    return Rounds.of(problem, data.read(0, data.rounds), np.arange(data.rounds) + 1)


def _smooth(problem: Canonical, data: Data, kind: Kind, budget: Budget) -> Comparator:
    if kind == "dynamic":
        return dynamic(problem, data, region(problem), budget)
    rounds = _all_rounds(problem, data)
    return static(Setting(rounds, region(problem), rounds), budget)


def _kinked(problem: Canonical, data: Data, kind: Kind, budget: Budget) -> Comparator:
    """The same after kinks have become variables."""
    rounds = _all_rounds(problem, data)
    lifted = lift(rounds)
    if lifted is None or not region(problem).complete:
        return Comparator(kind, Status.NOT_COMPUTED, why="a function with kinks is beyond the solvers that are here")
    definitions = tuple(d.expr for d in lifted.definitions)
    if kind == "dynamic":
        return _in_terms_of(rounds, dynamic(lifted.problem, data, region(lifted.problem), budget, definitions))
    place, own = _shared_region(lifted, rounds.count)
    if place.size > LARGEST:
        why = f"the kinks of {rounds.count} rounds need {place.size} variables, more than the {LARGEST} that are tried"
        return Comparator(kind, Status.NOT_COMPUTED, why=why)
    inner = Rounds.of(lifted.problem, rounds.streams, rounds.numbers)
    return static(Setting(inner, place, rounds, definitions, own), budget)


def _shared_region(lifted: Lifted, count: int) -> tuple[Region, int]:
    """The set of the decisions and of the variables that all rounds share, times the boxes of those that each round has."""
    blocks = lifted.problem.blocks
    shared = tuple(b for b in blocks if b.name not in lifted.each_round)
    local = [b for b in blocks if b.name in lifted.each_round]
    base = region(replace(lifted.problem, blocks=shared))
    if not local:
        return base, 0
    lower = np.concatenate([b.domain.lower.ravel() for b in local])
    upper = np.concatenate([b.domain.upper.ravel() for b in local])
    tail = (np.tile(part, count) for part in (lower, upper, (lower + upper) / 2))
    return with_tail(base, *tail), len(lower)


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
