"""Values of data at quantiles of the errors of their best prediction: where a loss has kinks that move with them, its mean is not that at
their mean.

Of several predictions the one counts whose errors were least on average so far; a quantile is what it says and a shift, which follows
s <- s + rate (1[e > s] - (1 - q)) for errors e (Gibbs & Candes 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.algorithms.detected_seasons import least_missed
from oco.compiler.ir.value import Value
from oco.compiler.lowering.predicted_round import within_ranges
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array

LEVELS = tuple((k + 0.5) / 9 for k in range(9))
"""Quantiles of data with which kinks of the loss move, in the middles of equal shares: what is best is one of them, and not the mean."""
SHIFT_RATE = 0.02
"""Least rate of the shifts, in three usual sizes of the errors, whose average forgets at the same rate."""
SHIFT, USUAL, OFF = "shift", "usual", "off"
SYMBOLS = {
    SHIFT: "what the data are above their best prediction, at several quantiles",
    USUAL: "usual size of the errors of this prediction",
    OFF: "usual sizes of the errors of all predictions that it is chosen from",
}
"""State that is kept, by name."""


class ErrorQuantiles:
    """State and values of `kinked` entries of data at `LEVELS`, of the best of the predictions in some `rows`."""

    def __init__(self, p: Problem, kinked: np.ndarray, rows: Sequence[int]) -> None:
        self.p, self.t, self.kinked, self.rows = p, p.tracer, kinked, tuple(rows)

    def init(self) -> State:
        """State before the first round."""
        zeros, size = self.t.zeros, self.kinked.size
        return {SHIFT: zeros((len(LEVELS), size)), USUAL: zeros((size,)), OFF: zeros((len(self.rows), size))}

    def at_levels(self, state: State, predicted: Value) -> Value:
        """Values (levels, entries) that the data may take, with what is predicted, (predictions, entries)."""
        added = self.t.where(self.t.constant(self.kinked, "kinked"), array(state, SHIFT), 0.0)
        return within_ranges(self.p, self._best(state, predicted) + added)

    def update(self, state: State, was: Value, now: Value) -> State:
        """State after a round with these data, of which `was` had been predicted, (predictions, entries)."""
        t, played = self.t, self.p.played
        self.p.note("quantiles of the errors of data with which kinks of the loss move")
        error, shift, usual, off = now - self._best(state, was), *(array(state, n) for n in (SHIFT, USUAL, OFF))
        rate = t.maximum(SHIFT_RATE, 1.0 / played)
        usual = t.name("usual", usual + rate * (abs(error) - usual))
        rises = t.to_float(error > shift) - t.constant(1.0 - np.array(LEVELS).reshape(-1, 1), "above", "shares above")
        shift = t.name("shift", shift + t.maximum(SHIFT_RATE, 1.0 / t.sqrt(played)) * 3.0 * usual * rises)
        missed = t.stack(*(abs(now - was[k]) for k in self.rows))
        return {SHIFT: shift, USUAL: usual, OFF: t.name("off", off + rate * (missed - off))}

    def _best(self, state: State, predicted: Value) -> Value:
        return least_missed(array(state, OFF), [predicted[k] for k in self.rows])
