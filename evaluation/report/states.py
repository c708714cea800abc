"""States that were cut to their range: what a decision left beyond it was lost, at no cost that the model states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.numbers import number


def cut_states(trace: MeasuredRun) -> list[str]:
    """Words on each state that stood at an end of its range which no known constraint keeps, with the number of rounds."""
    return [
        words
        for s in trace.problem.standing.carried
        if s.stream.following is not None
        for words in _ends(trace, s.name)
    ]


def _ends(trace: MeasuredRun, name: str) -> Iterator[str]:
    state = next(s for s in trace.problem.streams if s.name == name)
    kept = {c.label for c in (*trace.problem.known, *trace.problem.inequalities)}
    values = trace.data.array(name)[1:].reshape(trace.rounds - 1, -1)
    for end, bound in (("least", state.lower), ("most", state.upper)):
        limit = np.broadcast_to(bound, state.shape).ravel()
        count = int((values == limit).any(axis=1).sum())
        if count and f"{name}.{end}" not in kept:
            shown = f", {number(float(limit[0]))}," if len(set(limit.tolist())) == 1 else ""
            yield f"{name}: at the {end} of its range{shown} after {count:,} of {trace.rounds:,} rounds"
