"""Linear regression of a round's data on what is known before it: contexts, and the last values of the data.

With contexts z the data are predicted by r = mean + C_sz (C_zz + diag(C_zz)/t)^-1 (z - mean z), of all rounds so far. Many data go on
from where they were: what r misses of each entry is regressed on r and on the entry's last value v, as a (r - mean) + b (v - mean) with a
and b of least squares, shrunk by 4/t (stacked regressions: Breiman 1996). What this misses of late, an average that forgets, is added as
far as it foretells what is missed next (`shrinkage`): regressions on all rounds do not see that a level has changed.
"""

from __future__ import annotations

import math

from oco.compiler.algorithms.shrinkage import Shrinkage
from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.ir.value import Value
from oco.compiler.lowering.predicted_round import picking, predicted_of, within_ranges
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.canonical import Canonical
from oco.dsl.limits import MOST_NUMBERS

SHRINK = 1e-9
STACKED_SHRINK = 4.0
"""Rounds by which both factors of a stack are shrunk: until more have come, the contexts alone say more."""
LEVEL_RATE = 0.05
"""Rate at which the average of what is missed forgets."""
REGRESSED, MOMENTS, OFF, OFF_FORETOLD = "regressed", "moments", "off_level", "off_foretold"
SYMBOLS = {
    "z": "means of the contexts",
    "C_zz": "covariances of the contexts",
    "C_sz": "covariances of the data and the contexts",
    REGRESSED: "data as predicted by the contexts alone",
    MOMENTS: "moments of these predictions r, last values v and what r misses e about means: r r, r v, v v, r e, v e",
    OFF: "what regressions have missed of late",
    OFF_FORETOLD: "sums of what regressions missed in the direction of this, of its squares, and of squares of what this missed of it",
}
"""State that is kept, by name."""


def contexts(canonical: Canonical) -> tuple[str, ...]:
    """Contexts of a regression: those that pick no entries; none where nothing is predicted, or they are too many to solve a system of
    their number each round, or to keep its numbers.
    """
    own = [s.name for s in canonical.streams if s.name in canonical.context and s.name not in picking(canonical)]
    size = sum(math.prod(shape_now(canonical, n)) for n in own)
    predicted = predicted_of(canonical).size
    fits = size <= MAX_DENSE_ORDER and size * predicted <= MOST_NUMBERS
    return tuple(own) if fits and predicted else ()


def shape_now(canonical: Canonical, context: str) -> tuple[int, ...]:
    """Shape of a context, of one about rounds to come that of its entry for the round itself."""
    shape = next(s.shape for s in canonical.streams if s.name == context)
    return shape[1:] if context in canonical.lookahead.contexts else shape


def context_now(p: Problem, name: str) -> Value:
    """Value of a context for the round itself, one vector."""
    value, canonical = p.seen[name], p.spec.canonical
    value = value[0] if name in canonical.lookahead.contexts else value
    return p.tracer.reshape(p.tracer.to_float(value), (math.prod(shape_now(canonical, name)),))


class ContextRegression:
    """State and prediction of `size` entries of data by the contexts of a round and by what they were last."""

    def __init__(self, p: Problem, size: int) -> None:
        self.p, self.t, self.size = p, p.tracer, size
        self.known = contexts(p.spec.canonical)
        self.width = sum(math.prod(shape_now(p.spec.canonical, n)) for n in self.known)
        self.shrinkage = Shrinkage(p, OFF_FORETOLD, (size,))

    def init(self) -> State:
        """State before the first round."""
        zeros, width = self.t.zeros, self.width
        square = {"z": zeros((width,)), "C_zz": zeros((width, width)), "C_sz": zeros((self.size, width))}
        stacked = {REGRESSED: zeros((self.size,)), MOMENTS: zeros((5, self.size))}
        return joined(square, stacked, {OFF: zeros((self.size,))}, self.shrinkage.init())

    def predicted(self, state: State, mean: Value, last: Value) -> tuple[Value, State]:
        """Prediction (size,) of this round, whose contexts are known, and the state with it; `mean` and `last` are of the data before."""
        t = self.t
        z, C = array(state, "z"), array(state, "C_zz")
        self.p.note("regression of the data on the contexts, and of each on that and its last value")
        spread = t.sum(C * t.eye(self.width), axis=1)
        ridge = t.where(spread > 0.0, spread * (SHRINK + 1.0 / self.p.played), 1.0)
        weights = t.solve(C + t.diag(ridge), self._context() - z)
        by_contexts = t.name("by_contexts", array(state, "C_sz") @ weights)
        level = self.shrinkage.factors(state) * array(state, OFF)
        made = self._stacked(state, by_contexts, last - mean, mean) + level
        return within_ranges(self.p, made), {REGRESSED: by_contexts}

    def update(self, state: State, last: Value, change: Value, mean: Value) -> State:
        """State after a round: `last` is what the data had been last, `change` what they are, both above their `mean` before."""
        t, rate = self.t, 1.0 / self.p.played
        z, C, cross = (array(state, name) for name in ("z", "C_zz", "C_sz"))
        move = self._context() - z
        self.p.note("covariances of the contexts and of the data with them")
        kept = 1.0 - rate
        by_contexts, moments = array(state, REGRESSED), array(state, MOMENTS)
        missed, r, v = change - by_contexts, by_contexts, last
        products = t.stack(r * r, r * v, v * v, r * missed, v * missed)
        off, level = mean + change - self._stacked(state, r, v, mean), array(state, OFF)
        return {
            "z": z + rate * move,
            "C_zz": kept * (C + rate * t.outer(move, move)),
            "C_sz": kept * (cross + rate * t.outer(change, move)),
            REGRESSED: by_contexts,
            MOMENTS: t.name("moments", moments + rate * (products - moments)),
            OFF: t.name("off", level + t.maximum(LEVEL_RATE, rate) * (off - level)),
            **self.shrinkage.update(state, level, off),
        }

    def _stacked(self, state: State, r: Value, v: Value, mean: Value) -> Value:
        """Prediction (size,) by that of the contexts r and the last value v, both above the mean, within the ranges."""
        a, b = self._factors(array(state, MOMENTS))
        return self.t.name("stacked", within_ranges(self.p, mean + r + a * r + b * v))

    def _factors(self, moments: Value) -> tuple[Value, Value]:
        """Factors (size,) of r and of v in what r misses."""
        t = self.t
        rr, rv, vv, re, ve = (moments[k] for k in range(5))
        rr, vv = (t.where(s > 0.0, s * (1.0 + SHRINK + STACKED_SHRINK / self.p.played), 1.0) for s in (rr, vv))
        size = rr * vv - rv * rv
        return (vv * re - rv * ve) / size, (rr * ve - rv * re) / size

    def _context(self) -> Value:
        parts = [context_now(self.p, n) for n in self.known]
        return parts[0] if len(parts) == 1 else self.t.concat(*parts)
