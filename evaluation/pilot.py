"""Pilot runs: algorithms with vacuous guarantees, tried on the same rounds, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from oco.backends.choose import usual_seconds
from oco.compiler.ir.program import Program
from oco.compiler.selection.pilots import PilotResult, Pilots
from oco.compiler.theory.theorems import Situation
from oco.dsl.records import dataclass
from oco.evaluation.by_chance import block_differences, gain_by_chance, standard_error
from oco.evaluation.cost import PartOfRounds, Trade
from oco.evaluation.data import Data
from oco.evaluation.measured_run import MeasuredRun

Array = np.ndarray[Any, Any]
MODEL_SHARE = 1 / 6
"""Share of the seconds that runs are planned for by the model of costs: where it is wrong by 3, a machine half as fast is done in time."""
Candidate = tuple[str, bool]
"""Name of an algorithm, and a flag: True for the paper's constants, False for those of its least guarantee."""


class Piloted(Protocol):
    """Plan that can run."""

    @property
    def program(self) -> Program:
        """Rule of its learner."""

    def run(self, data: Any = None, rounds: int | None = None, seed: int = 0) -> MeasuredRun:
        """Run the plan over the data
        and return the trace.
        """


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of a plan on pilot rounds: loss, violation, their sum, and 1 where the violation grows, one row for each seed; and the costs
    of the rounds of all second halves.
    """

    table: Array
    each: Array

    @property
    def rank(self) -> tuple[bool, float]:
        """Key by which plans are ordered."""
        return bool(self.table[:, 3].any()), float(self.table[:, 2].mean())


def score(trace: MeasuredRun, s: Situation, weight: float) -> tuple[float, float, float]:
    """Loss and violation of a run per round in the second half of its rounds, in units of the loss's range and of the
    constraints' scales, and their sum.

    A constraint that binds each round counts its hard violation; one on average, the excess of its sum over these rounds.
    """
    cost = Trade.of(s, weight, trace.problem).steady(trace)
    return cost.loss, cost.violation, cost.value


def pilot(
    plans: Mapping[Candidate, Callable[[], Piloted]],
    source: Data,
    seeds: Sequence[int],
    s: Situation,
    weight: float,
    note: str,
    seconds: float = math.inf,
    default: str = "",
) -> Pilots:
    """Run every plan over the same rounds with each seed. That which would cost least at the horizon is first (`Trade.projected`), after
    these those whose violation grows (`Trade.grows`); of equals the constants of the least guarantee. Where there is time for the first
    of several alone, nothing is compared, and none is run.

    plans    functions that make them, by candidate, in the order in which they are run
    seconds  that the runs may take by the model of costs, which is the same on every machine, or by the clock where that
             is slower; then no other plan is begun
    default  name of the algorithm that comes first unless another one gains more than chance may show (`gain_by_chance`)
    """
    began, entries = perf_counter(), dict[Candidate, _Scores]()
    planned = _in_time(plans, len(seeds) * source.rounds, MODEL_SHARE * seconds)
    left = _left_out(plans, planned)
    if len(planned) == 1 and left:
        why = f"{seconds:g} s leave no time to try {', '.join(left)} beside it; `--budget` gives more time"
        return Pilots(skipped=why, left_out=left, seconds=seconds)
    for c, plan in planned.items():
        if entries and perf_counter() - began >= seconds:
            break
        entries[c] = _scores(plan, source, seeds, s, weight)
    left = _left_out(plans, entries)
    order = sorted(entries, key=lambda c: (*entries[c].rank, c[1], c[0]))
    kept = next((c for c in order if c[0] == default and not _clearly_better(entries[order[0]], entries[c])), order[0])
    order = [kept, *(c for c in order if c != kept)]
    results = tuple(_result(c, entries[c], entries[order[0]]) for c in order)
    return Pilots(results, source.rounds, len(seeds), note, left_out=left, seconds=seconds if left else 0.0)


def _in_time(plans: Mapping[Candidate, Callable[[], Piloted]], rounds: int, seconds: float) -> dict[Candidate, Piloted]:
    """The first plan, and those after it that run so many rounds within so many seconds in all, by the model of costs."""
    spent, planned = 0.0, dict[Candidate, Piloted]()
    for c, made in plans.items():
        plan = made()
        spent += usual_seconds(plan.program, rounds)
        if planned and spent >= seconds:
            break
        planned[c] = plan
    return planned


def _left_out(plans: Iterable[Candidate], ran: Iterable[Candidate]) -> tuple[str, ...]:
    """Names of the algorithms of some plans that are not among others."""
    names = {name for name, _ in ran}
    return tuple(dict.fromkeys(name for name, _ in plans if name not in names))


def _clearly_better(a: _Scores, b: _Scores) -> bool:
    """True if a costs less than b by more than chance may show, or the violation of b alone grows."""
    (a_grows, a_cost), (b_grows, b_cost) = a.rank, b.rank
    return (b_grows and not a_grows) or b_cost - a_cost > gain_by_chance(block_differences(a.each, b.each))


def beside(
    pilots: Pilots, plan: Piloted, source: Data, seeds: Sequence[int], s: Situation, weight: float
) -> PilotResult:
    """Result of a plan that is not a candidate on the same runs, compared with the best algorithm."""
    scores = _scores(plan, source, seeds, s, weight)
    return _result((pilots.order[0], True), scores, scores)


def _scores(plan: Piloted, source: Data, seeds: Sequence[int], s: Situation, weight: float) -> _Scores:
    runs = [plan.run(replace(source, seed=k), seed=k) for k in seeds]
    trades = [Trade.of(s, weight, run.problem) for run in runs]
    costs = [trade.projected(run, s.horizon) for trade, run in zip(trades, runs, strict=True)]
    table = np.array([(c.loss, c.violation, c.value, float(c.grows)) for c in costs])
    later = (PartOfRounds.of(run, len(run.loss) // 2) for run in runs)
    return _Scores(table, np.concatenate([t.each(r) for t, r in zip(trades, later, strict=True)]))


def _result(of: Candidate, scores: _Scores, best: _Scores) -> PilotResult:
    loss, broken, cost = (float(x) for x in scores.table[:, :3].mean(axis=0))
    behind, error = cost - best.rank[1], standard_error(block_differences(scores.each, best.each))
    return PilotResult(of[0], loss, broken, cost, behind, error, of[1], scores.rank[0])
