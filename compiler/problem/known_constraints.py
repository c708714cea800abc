"""Constraints that are known before the decision of a round: those of contexts and previous decisions, ranges of states, and margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oco.compiler.problem.constraint_parts import difference
from oco.compiler.problem.feedback_delay import expected_names
from oco.compiler.problem.fixed_rows import is_exact
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.margins import ShareMargin
from oco.compiler.problem.parts import DecisionBlock, Inequality
from oco.compiler.problem.previous import is_known, of_previous, standing_still
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.expressions import Kind, constant, names
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing


@dataclass(frozen=True)
class KnownBefore:
    """Contexts among the streams, and previous decisions by their name in expressions: all that is known before a decision."""

    model: Model
    previous: Mapping[str, StreamRange]
    blocks: Sequence[DecisionBlock]
    streams: Sequence[StreamRange]

    def marked(self, c: Inequality) -> Inequality:
        """Constraint marked as known where the decision of each round can satisfy it: its streams are contexts or previous decisions."""
        if c.margin is not None:
            return self._with_margin(c, c.margin)
        if c.budget is not None or not is_exact(c, self.model):
            return c
        if not is_known(self.streams, c.expr, self.previous, self.blocks):
            return c
        if not set(names(c.expr, Kind.STREAM)) & set(self.previous):
            return replace(c, known=True)
        return replace(c, known=True, expr=standing_still(c.expr), moving=of_previous(c.expr, self._fields))

    def applied(self, inequalities: Sequence[Inequality], folding: Folding) -> list[Inequality]:
        """Constraints, those that are known marked so, and after them the ranges of states."""
        states = (s for s in self.streams if s.following is not None)
        return [*map(self.marked, inequalities), *(c for s in states for c in self.ranges(s, folding))]

    def ranges(self, s: StreamRange, folding: Folding) -> list[Inequality]:
        """Range of a state as known constraints on what a decision leaves to the next round; none where that is known only afterwards."""
        assert s.stream.following is not None
        following = folding.fold(s.stream.following)
        sides = {"least": difference(constant(s.lower), following), "most": difference(following, constant(s.upper))}
        labels = {end: f"{s.name}.{end}" for end in sides}
        made = (
            Inequality(labels[e], s.shape, x, Timing.EACH_ROUND, labels[e], s.stream.span) for e, x in sides.items()
        )
        return [c for c in map(self.marked, made) if c.known and names(c.expr, Kind.DECISION)]

    @property
    def _fields(self) -> dict[str, str]:
        return {name: s.name for name, s in self.previous.items()}

    def _with_margin(self, c: Inequality, margin: ShareMargin) -> Inequality:
        """Known constraint with the margin of the round; in hindsight decisions stand still, states are as they came, and M is kept."""
        own = self._fields
        worst, begin = (None if e is None else of_previous(e, own) for e in (margin.worst, margin.begin))
        usual, measured = of_previous(margin.usual, own), of_previous(margin.measured, own)
        moving = replace(margin, usual=usual, measured=measured, worst=worst, begin=begin)
        robust = of_previous(
            standing_still(margin.robust), {expected: name for name, expected in expected_names(self.streams).items()}
        )
        return replace(c, known=True, expr=robust, moving=moving.moving, margin=moving)
