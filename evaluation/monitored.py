"""Evidence against what a model states of its streams, and the monitor of a learner, over all rounds of a run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oco.backends.factors import points_of
from oco.backends.learner import Learner
from oco.backends.monitor import slope_rounds
from oco.backends.registry import growth_of
from oco.compiler.evidence.wealth import Evidence, read_alarm
from oco.evaluation.data import Data
from oco.evaluation.measured_run import Record
from oco.evaluation.measures import over_rounds

ALPHA = 0.001
"""Probability at most that a run warns of statements about its streams that hold."""


class Refutation:
    """Refutation of what a model states of its streams by the data of a run in a backend, looked for once."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._warnings: tuple[str, ...] | None = None

    def of(self, data: Data) -> tuple[str, ...]:
        """Warning where given data refute what is stated, with the round since when."""
        if self._warnings is None:
            self._warnings = tuple(self._searched(data))
        return self._warnings

    def _searched(self, data: Data) -> Iterator[str]:
        evidence = Evidence.of(data.problem, ALPHA, frozenset(data.given))
        growth = growth_of(self._backend, evidence, data.rounds)
        if growth is not None and evidence.surely_quiet((part for _, part in data.blocks()), growth):
            return
        for _, part in data.blocks() if evidence.streams else ():
            evidence = evidence.after_rounds({name: part[name] for name in evidence.streams}, growth)
            if evidence.alarm is not None:
                yield str(evidence.alarm)
                return


def monitor(learner: Learner, record: Record, data: Data, against: Refutation) -> None:
    """Monitor over the whole run: every value counts, and gradients of more rounds than a learner checks by itself.

    against  asked where the learner itself has warned of nothing
    """
    for warning in () if read_alarm(learner.warnings) else against.of(data):
        learner.warn(warning)
    rounds, seen = len(record.loss), learner.monitor
    most, least = (over_rounds(function, record.constraints) for function in (np.maximum, np.minimum))
    seen.record_values(float(max(record.loss.max(), -record.loss.min())), np.where(most >= -least, most, least))
    seen.broken = bool((over_rounds(np.fmax, record.constraints[rounds // 2 :]) > 0).any())
    kept = [np.asarray(d) for d in record.decisions.values()]
    fields = learner.compiled.program
    whole = [f.name for f in fields.decision] == [*record.decisions]
    if whole and {f.name for f in fields.feedback} <= data.names:
        looked_at = slope_rounds(data.given, rounds, record.kept)
        places = {int(record.kept[k]): int(k) for k in np.flatnonzero(np.isin(record.kept, looked_at))}
        for t, now in data.at(places):
            learner.record_slopes(t + 1, [d[places[t]] for d in kept], [now[f.name] for f in fields.feedback])
    if whole and all(len(d) == rounds for d in kept):
        last = points_of(fields, [d[-1] for d in kept])
        moving = record.duals.shape[1] > 0 and read_alarm(learner.warnings) is None
        seen.duals = {"the multipliers": record.duals[rounds // 2]} if moving else {}
        seen.check_round(rounds, last, {"the multipliers": record.duals[-1]} if moving else {})
