"""Pilot runs: algorithms whose guarantees say nothing, tried on the same rounds, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from oco.compiler.pilots import PilotResult, Pilots
from oco.compiler.theorems import Situation
from oco.dsl.model import Timing
from oco.evaluation.data import Data
from oco.evaluation.measures import equality_violation, violation
from oco.evaluation.trace import Trace

Array = np.ndarray[Any, Any]


class Piloted(Protocol):
    """A plan that can run."""

    def run(self, data: Any = None, rounds: int | None = None, seed: int = 0) -> Trace: ...


def score(trace: Trace, s: Situation, weight: float) -> tuple[float, float, float]:
    """The loss and the violation of a run, a round, in units of the loss's range and of the constraints' scales, and their sum.

    A constraint that binds each round counts what it was broken by; one on average, what is left over all rounds.
    """
    loss = float(trace.loss.mean()) / (s.loss_range or 1.0)
    total = 0.0
    if s.constraints or s.equalities:
        hard = np.array([c.timing is Timing.EACH_ROUND for c in s.canonical.inequalities for _ in range(c.size)], bool)
        last = np.zeros(0)
        if s.constraints:
            of = {kind: violation(trace.constraints, kind)[-1] for kind in ("hard", "soft")}
            last = np.where(hard, of["hard"], of["soft"])
        if s.equalities:
            last = np.concatenate([last, equality_violation(trace.equalities)[-1]])
        scales = s.constraint_scales if s.constraint_scales is not None else np.ones(len(last))
        kept = scales > 0
        total = float((last[kept] / scales[kept]).sum()) / len(trace.loss)
    return loss, total, loss + weight * total


def pilot(
    plans: Mapping[str, Piloted], source: Data, seeds: Sequence[int], s: Situation, weight: float, told: str
) -> Pilots:
    """Every plan over the same rounds with each seed, the cheapest first."""
    found = {
        name: np.array([score(plan.run(replace(source, seed=k), seed=k), s, weight) for k in seeds])
        for name, plan in plans.items()
    }
    best = min(found, key=lambda name: (float(found[name][:, 2].mean()), name))
    results = [_result(name, scores, found[best]) for name, scores in found.items()]
    ranked = sorted(results, key=lambda r: (r.cost, r.algorithm))
    return Pilots(tuple(ranked), source.rounds, len(seeds), told)


def _result(name: str, scores: Array, best: Array) -> PilotResult:
    loss, broken, cost = (float(x) for x in scores.mean(axis=0))
    apart = scores[:, 2] - best[:, 2]
    error = float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else 0.0
    return PilotResult(name, loss, broken, cost, float(apart.mean()), error)
