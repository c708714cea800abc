"""Seasons that are detected as rounds come, where stores look ahead and no season is known: averages tell the hours of a day apart.

Averages of each entry of the data are kept at the phases of some usual seasons, beside the recent average of all rounds. The entry is
predicted by the one of these that had the least error on average so far; a longer season has to be clearly better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.margin_predictions import LEAST_SEASONS, SEASONS
from oco.compiler.problem.stores import stores

SURELY = 0.98
"""Factor of the least usual error of shorter seasons below which that of a longer one has to be, which takes more rounds to learn."""
ERROR_RATE, FORGETS = 0.02, 0.05
"""Least rates of the averages of errors, and of those of the data at a phase."""
PHASES, MISSED = "phases", "missed"
SYMBOLS = {
    PHASES: "averages of the data at the phases of the seasons that are tried",
    MISSED: "usual errors of the data as predicted by the last rounds, and by each of these seasons",
}
"""State that is kept, by name."""


def seasons_tried(canonical: Canonical, season: int) -> tuple[int, ...]:
    """Seasons, in rounds, that a problem with stores tries: the known one; else 1 (none) and usual ones that fit into the horizon."""
    if season > 1 or not stores(canonical):
        return (season,)
    return (1, *(k for k in SEASONS if canonical.horizon is None or LEAST_SEASONS * k <= canonical.horizon))


def least_missed(errors: Value, choices: Sequence[Value]) -> Value:
    """Choice with the least usual error for each entry, (..., n), by errors (choices, n): a later one where its error is clearly less."""
    t, least, result = errors.tracer, errors[0], choices[0]
    for k, choice in enumerate(choices[1:], 1):
        better = errors[k] < SURELY * least
        least, result = t.where(better, errors[k], least), t.where(better, choice, result)
    return result


class DetectedSeasons:
    """State and prediction of `size` entries of data, each by the season that is detected for it."""

    def __init__(self, p: Problem, size: int) -> None:
        self.p, self.t, self.size = p, p.tracer, size
        self.seasons = seasons_tried(p.spec.canonical, p.whole("season"))[1:]
        self.begins = np.cumsum((0, *self.seasons)).tolist()

    def init(self) -> State:
        """State before the first round."""
        zeros = self.t.zeros
        return {PHASES: zeros((self.begins[-1], self.size)), MISSED: zeros((1 + len(self.seasons), self.size))}

    def update(self, state: State, before: Value, after: Value, now: Value) -> tuple[Value, State]:
        """Prediction (size,) of the round that this learner decides next, and the state after this one.

        before, after  recent averages without this round and with it
        now            data of this round
        """
        p, t = self.p, self.t
        assert p.round is not None
        p.note("averages at the phases of the seasons that are tried, and the one that is detected")
        table, expected, following = array(state, PHASES), [before], [after]
        for k, begin in zip(self.seasons, self.begins, strict=False):
            at, coming = (p.round - 1) % k + begin, (p.round + (p.ahead - 1)) % k + begin
            was = t.where(p.played > k + 0.5, table[at], before)
            rate = t.maximum(1.0 / (1.0 + t.floor((p.played - 0.5) / float(k))), FORGETS)
            table = t.put(table, was + rate * (now - was), at)
            expected.append(was)
            following.append(t.where(p.played > k - 0.5, table[coming], after))
        missed = array(state, MISSED)
        error = abs(now - t.stack(*expected))
        missed = t.name("missed", missed + t.maximum(ERROR_RATE, 1.0 / p.played) * (error - missed))
        return least_missed(missed, following), {PHASES: t.name("phases", table), MISSED: missed}
