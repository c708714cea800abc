"""Plans whose learners watch what the model states of its streams: the rule for the rounds after an alarm, which rests on none of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.evidence.bets import stated_entries
from oco.compiler.evidence.watched_streams import AlertTerms, BetTables
from oco.compiler.ir.program import Program
from oco.compiler.lowering.round_problem import TraceSpec
from oco.compiler.problem.canonical import Canonical, StreamRange, canonical
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.played_round import trace_spec
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import constant
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback, Stream

OTHER = "after_alarm_"
"""Beginning of the fields and random arrays of the rule after an alarm."""
GOES_ON = "the rule rests on none of it and goes on"


@dataclass(frozen=True, eq=False)
class TracedAlert:
    """Alert as a program is traced with it.

    algorithm, spec  rule after an alarm; None where the rule stays
    centred          True where its guarantee is from the middle of the domain, and not from the decision reached
    """

    problem: Canonical
    alpha: float
    algorithm: Algorithm | None = None
    spec: TraceSpec | None = None
    centred: bool = False


@dataclass(frozen=True, eq=False)
class Alert:
    """Test of what a model states of its streams, with false alarms of probability alpha at most, and the rule after an alarm.

    choice  of that rule; None where the rule stays, and `why` says so
    """

    problem: Canonical
    alpha: float
    choice: Choice | None
    why: str

    @property
    def terms(self) -> AlertTerms:
        """Terms in which learners speak of it."""
        return AlertTerms(self.alpha, BetTables.of(self.problem).statements, self.why)

    @property
    def distributions(self) -> dict[str, str]:
        """Distribution of each random array that the rule after an alarm draws, by name."""
        spec = self.traced.spec
        return {} if spec is None else {OTHER + f.name: own for f, own in spec.drawn().items()}

    @property
    def traced(self) -> TracedAlert:
        """Alert for a trace."""
        if self.choice is None or self.choice.winner is None:
            return TracedAlert(self.problem, self.alpha)
        winner = self.choice.winner
        centred = winner.guarantee is not None and winner.guarantee.from_centre
        return TracedAlert(self.problem, self.alpha, winner.algorithm, trace_spec(self.choice), centred)


def check_watched(problem: Canonical, alpha: float) -> None:
    """Raise OCO872 where there is nothing to watch, or alpha is no probability."""
    if not 0 < alpha < 1:
        raise fail("OCO872", f"alpha is a probability between 0 and 1, not {alpha!r}")
    if problem.feedback is not Feedback.FULL or problem.delay:
        raise fail("OCO872", "streams are watched under full feedback that comes in each round")
    if not stated_entries(problem):
        message = "the model states no distribution, and no mean of an `iid` stream: there is nothing to watch"
        raise fail("OCO872", message, hint="write `stream s in [lo, hi] iid mean = m`, or `stream s ~ poisson(8)`")


def alert_of(
    problem: Canonical, alpha: float, program: Program, without: Callable[[], tuple[Choice, Program]]
) -> Alert:
    """Alert of a plan with this problem and program; `without` plans the model without what is watched.

    Raises OCO872, also where the other rule does not fit into the state of a learner.
    """
    check_watched(problem, alpha)
    try:
        choice, other = without()
    except OcoError as error:
        return Alert(problem, alpha, None, f"the rule stays, since there is no other: {error.message}")
    if is_same_rule(program, other):
        return Alert(problem, alpha, None, GOES_ON)
    assert choice.winner is not None
    named = f"`{choice.winner.name}`"
    if program.factored or other.factored:
        raise fail("OCO872", f"{named} would take over on an alarm, and one of both rules keeps decisions as factors")
    if {own for _, own in program.previous} - {f.name for f in other.state}:
        raise fail(
            "OCO872", f"{named} would take over on an alarm, and it does not carry what rounds leave to the next"
        )
    return Alert(problem, alpha, choice, f"{named} takes over, which rests on none of it")


def without_statements(model: Model) -> Model:
    """Model whose streams have ranges alone: any sequence within them may come. `using` is left out: what it names may rest on more.

    A distribution's support is the range where no other is written. Raises OCO872 where a stream is unbounded then.
    """
    ranges = {s.name: s for s in canonical(model).streams}
    streams = tuple(_bare(s, ranges[s.name]) if s.iid or s.distribution is not None else s for s in model.streams)
    return replace(model, streams=streams, using=None)


def _bare(stream: Stream, own: StreamRange) -> Stream:
    low, high = float(np.min(own.lower)), float(np.max(own.upper))
    if not (np.isfinite(low) and np.isfinite(high)):
        message = f"the stream `{stream.name}` has no range, so that no rule is known for any sequence of it"
        raise fail("OCO872", message, stream.span, f"write `{stream.name} ~ ... in [lo, hi]`")
    bounds = stream.bounds or (constant(low), constant(high))
    return replace(stream, bounds=bounds, iid=False, mean=None, distribution=None)


def is_same_rule(before: Program, after: Program) -> bool:
    """True where two programs are the same equations with the same numbers."""
    mine, theirs = ({g.var.name: g.value for g in p.constants} for p in (before, after))
    same = mine.keys() == theirs.keys() and all(np.array_equal(mine[n], theirs[n], equal_nan=True) for n in mine)
    return (
        same
        and [(f.name, f.type) for f in before.state] == [(f.name, f.type) for f in after.state]
        and str(replace(before, certificate=None)) == str(replace(after, certificate=None))
    )
