"""Predictions shrunk toward nothing by what they have foretold: what is noise about 0 is predicted as 0.

Of what was predicted as d and came as s, d counts by the factor

    [1 - (Z e / m)^2]_+,    m = sum s sign(d),    e^2 = min(sum s^2, sum (s - d)^2),    0 where m <= 0,

the larger one of all rounds and of those that are not forgotten: weak signals take many rounds to be seen, and levels that jump few. It
is the positive part of James & Stein's (1961) factor 1 - e^2 / m^2 (Baranchik 1964), with Z standard errors for one. m is what bets of one
unit on the signs have won, 0 on average where d foretells nothing, and e its standard error: the first sum is its square where d foretells
nothing, the second where d foretells s, so that the factor is 1 at once where predictions are right. Signs as the instruments of a
regression (Cauchy; So & Shin 1999) bound what one wild prediction weighs. The factor has no units.
"""

from __future__ import annotations

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.dsl.magnitudes import TINY

ERRORS = 3.0
"""Z: at two, every fortieth prediction of noise counts, and what it costs to follow one grows with its square."""
KEPT = (1.0, 0.98)
"""Share of the sums that stays each round."""


class Shrinkage:
    """Factors of predictions of a shape, by sums that are kept under a name."""

    def __init__(self, p: Problem, name: str, shape: tuple[int, ...]) -> None:
        self.t, self.name, self.shape = p.tracer, name, shape

    def init(self) -> State:
        """State before the first round, in which nothing was foretold."""
        return {self.name: self.t.zeros((3, len(KEPT), *self.shape))}

    def factors(self, state: State) -> Value:
        """Factors of predictions, of their shape."""
        t, (won, came, missed) = self.t, self._sums(state)
        error = ERRORS * t.sqrt(t.minimum(came, missed)) / t.maximum(won, TINY)
        factors = t.where(won > 0.0, t.maximum(1.0 - error * error, 0.0), 0.0)
        return t.name("counts", t.max(factors, axis=0))

    def update(self, state: State, predicted: Value, came: Value) -> State:
        """State after a round in which this came, of which that had been predicted; 0 where nothing was."""
        t, sums, sign = self.t, self._sums(state), self.t.sign(predicted)
        shape = (len(KEPT), *(1 for _ in self.shape))
        kept = t.constant(np.reshape(KEPT, shape), "kept", "share of the sums that stays")
        won, missed = came * sign, (came - predicted) * sign
        factors, added = (kept, kept * kept, kept * kept), (won, won * won, missed * missed)
        after = (k * before + new for k, before, new in zip(factors, sums, added, strict=True))
        return {self.name: t.name(self.name, t.stack(*after))}

    def _sums(self, state: State) -> tuple[Value, Value, Value]:
        """Sums m, of s^2 and of (s - d)^2 where d is not 0."""
        sums = array(state, self.name)
        return sums[0], sums[1], sums[2]
