"""Pilot runs: algorithms with vacuous guarantees, tried on the same rounds, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from oco.backends.choose import usual_seconds
from oco.compiler.ir.program import Program
from oco.compiler.selection.pilots import PilotResult, Pilots
from oco.compiler.theory.theorems import Situation
from oco.evaluation.cost import Trade
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
) -> Pilots:
    """Run every plan over the same rounds with each seed. The cheapest in the second half of the rounds is first, after
    these those whose violation grows there (`Trade.grows`); of equals the constants of the least guarantee.

    plans    functions that make them, by candidate, in the order in which they are run
    seconds  that the runs may take by the model of costs, which is the same on every machine, or by the clock where that
             is slower; then no other plan is begun. The first one is always run
    """
    began, spent, entries = perf_counter(), 0.0, dict[Candidate, Array]()
    for c, made in plans.items():
        if entries and perf_counter() - began >= seconds:
            break
        plan = made()
        spent += len(seeds) * usual_seconds(plan.program, source.rounds)
        if entries and spent >= MODEL_SHARE * seconds:
            break
        entries[c] = _scores(plan, source, seeds, s, weight)
    ran = {name for name, _ in entries}
    left = tuple(dict.fromkeys(name for name, _ in plans if name not in ran))
    rank = {c: (bool(scores[:, 3].any()), float(scores[:, 2].mean())) for c, scores in entries.items()}
    order = sorted(entries, key=lambda c: (*rank[c], c[1], c[0]))
    results = tuple(_result(c, entries[c], entries[order[0]]) for c in order)
    return Pilots(results, source.rounds, len(seeds), note, left_out=left, seconds=seconds if left else 0.0)


def beside(
    pilots: Pilots, plan: Piloted, source: Data, seeds: Sequence[int], s: Situation, weight: float
) -> PilotResult:
    """Result of a plan that is not a candidate on the same runs, compared with the best algorithm."""
    scores = _scores(plan, source, seeds, s, weight)
    return _result((pilots.order[0], True), scores, scores)


def _scores(plan: Piloted, source: Data, seeds: Sequence[int], s: Situation, weight: float) -> Array:
    """Loss, violation, their sum, and 1 where the violation grows; one row for each seed."""
    runs = (plan.run(replace(source, seed=k), seed=k) for k in seeds)
    costs = (Trade.of(s, weight, run.problem).steady(run) for run in runs)
    return np.array([(c.loss, c.violation, c.value, float(c.grows)) for c in costs])


def _result(of: Candidate, scores: Array, best: Array) -> PilotResult:
    loss, broken, cost = (float(x) for x in scores[:, :3].mean(axis=0))
    apart = scores[:, 2] - best[:, 2]
    error = float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else 0.0
    return PilotResult(of[0], loss, broken, cost, float(apart.mean()), error, of[1], bool(scores[:, 3].any()))
