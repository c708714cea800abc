"""Levels of states that are known late, as expected before the decision of a round.

Once feedback came of the rounds up to t - k, k <= d + 1, the level after these is known: that before round t - k + 1. In the k - 1 rounds
after it, which were decided and are open, the state moved by what was decided and known then, and by streams that are still to come. What
is expected of it before round t is the level of round t - k + 1, moved k - 1 times by what follows the state, with the decisions of these
rounds as they were and averages of the last rounds in the place of the streams.

Where the following level hangs on the level with a slope in [0, 1], cuts to the range included, the expected level is off by no more than
the sum of what the streams of the open rounds were off, since each step brings two levels no farther apart.
"""

from __future__ import annotations

from functools import lru_cache

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.compiler.problem.stream_ranges import middle
from oco.compiler.proximal.known_step import carried_field
from oco.dsl.expressions import Kind, names

OPEN, USUAL = "open_", "usual_"
BEGUN, OVER = "rounds_begun", "rounds_over"
FORGETS = 0.08
"""Least rate at which the averages of the streams forget."""


class ExpectedLevels:
    """State and arithmetic of the levels that are expected; empty where no state is known late.

    It has the values that moved the states in the last d rounds, the oldest first, and the number of rounds begun, which rounds hand on
    with their decision; and averages of the streams and the number of rounds over, which learners in turn have in common.
    """

    def __init__(self, p: Problem) -> None:
        self.p, self.t, canonical = p, p.tracer, p.spec.canonical
        self.delay = canonical.delay
        self.states = late_states(canonical)
        self.following = [s.following for s in self.states if s.following is not None]
        late, self.streams = moved_by(canonical)
        used = {n for e in self.following for n in (*names(e, Kind.STREAM), *names(e, Kind.DECISION))}
        shapes = {s.name: s.shape for s in canonical.streams} | {b.name: b.shape for b in canonical.blocks}
        self.shapes = {name: shape for name, shape in shapes.items() if name in used - late}

    def handed_at_start(self) -> State:
        """State that the round before the first one would have left."""
        if not self.states:
            return {}
        zeros = {f"{OPEN}{n}": self.t.zeros((self.delay, *shape)) for n, shape in self.shapes.items()}
        return joined(zeros, {BEGUN: self.t.lift(0)})

    def common_at_start(self) -> State:
        """State that learners in turn have in common before the first round."""
        if not self.states:
            return {}
        usual = {f"{USUAL}{s.name}": self.t.constant(middle(s), f"middle_{s.name}") for s in self.streams}
        return joined(usual, {OVER: self.t.lift(0)})

    def before_round(self, state: State) -> dict[str, Value]:
        """Levels as expected before this round, by their names."""
        if not self.states:
            return {}
        t, p = self.t, self.p
        p.note("levels before this round, from the last ones that are known and the rounds that are open")
        first = self.delay - (array(state, BEGUN) - array(state, OVER))
        kept = [array(state, f"{OPEN}{n}") for n in self.shapes]
        usual = {s.name: array(state, f"{USUAL}{s.name}") for s in self.streams}

        def moved(i: Value, *levels: Value) -> tuple[Value, ...]:
            values = dict(zip(self.shapes, (rows[i] for rows in kept), strict=True))
            own = dict(zip((s.name for s in self.states), levels, strict=True))
            assert p.round is not None
            view = Problem(t, p.spec, {**values, **usual, **own}, p.round + (i - self.delay), constants=p.constants)
            blocks = (values.get(b.name, t.zeros(b.shape)) for b in p.spec.canonical.blocks)
            x = p.units.inward(Point(tuple(blocks)))
            after = [t.reshape(view.values([e], x), s.shape) for e, s in zip(self.following, self.states, strict=True)]
            return tuple(t.where(i >= first, a, level) for a, level in zip(after, levels, strict=True))

        levels = [array(state, carried_field(s.name)) for s in self.states]
        expected = t.for_(self.delay, moved, levels)
        return {s.expected: t.name(s.expected, v) for s, v in zip(self.states, expected, strict=True)}

    def decided(self, x: Point, state: State) -> State:
        """State that this round hands to the next once it is decided."""
        if not self.states:
            return {}
        t, blocks = self.t, dict(zip(self.p.spec.decisions, self.p.units.outward(x).blocks, strict=True))
        left: State = {BEGUN: array(state, BEGUN) + 1}
        for n, shape in self.shapes.items():
            now = t.to_float(blocks[n] if n in blocks else self.p.seen[n])
            rows = t.concat(array(state, f"{OPEN}{n}")[1:], t.reshape(now, (1, *shape)))
            left = {**left, f"{OPEN}{n}": rows}
        return left

    def observed(self, state: State) -> State:
        """State that learners in turn have in common after this round."""
        if not self.states:
            return {}
        t, over = self.t, array(state, OVER) + 1
        rate = t.maximum(FORGETS, 1.0 / t.to_float(over))
        after: State = {OVER: over}
        for s in self.streams:
            usual = array(state, f"{USUAL}{s.name}")
            moved = usual + rate * (t.to_float(self.p.seen[s.name]) - usual)
            after = {**after, f"{USUAL}{s.name}": t.name("usual", moved)}
        return after


@lru_cache(maxsize=16)
def late_states(canonical: Canonical) -> tuple[StreamRange, ...]:
    """States that are known late."""
    return tuple(s for s in canonical.carried if s.expected)


def moved_by(canonical: Canonical) -> tuple[set[str], tuple[StreamRange, ...]]:
    """Names of what is known late of all that moves late states, these included, and the streams among it."""
    states = late_states(canonical)
    used = {n for s in states if s.following is not None for n in names(s.following, Kind.STREAM)}
    streams = tuple(s for s in canonical.revealed if not s.stream.known and s.name in used)
    return {s.name for s in (*states, *streams)}, streams


def in_common(canonical: Canonical) -> tuple[str, ...]:
    """Fields of the state that follow from data that come late, and that learners in turn have in common."""
    own = tuple(carried_field(s.name) for s in canonical.carried if s.late)
    if not late_states(canonical):
        return own
    return (*own, *(f"{USUAL}{s.name}" for s in moved_by(canonical)[1]), OVER)
