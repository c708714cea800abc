"""Delay of the feedback: a number of rounds, and what is known late with it.

What a round leaves to the next is known with its decision where it is made of decisions, contexts and what rounds before left: previous
decisions, and states that no stream moves (`proximal.handing_on`). States that streams move are known late, with the feedback of all rounds
before, which is why it comes in the order of the rounds then. Before a decision stands for them what is expected of them
(`proximal.expected_levels`); what they are off is revealed with the round, like a stream. What was spent of a budget counts at its worst
until it is known, and margins of shares of rounds are those of each learner in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from oco.compiler.problem.folding import Folding
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Constant, Expr, Index, Kind, Name, names, rewrite, walk
from oco.dsl.limits import LONGEST_DELAY
from oco.dsl.model import Model
from oco.dsl.statements import Stream

ERROR = "error_of_"


def delay_of(model: Model, folding: Folding) -> int:
    """Rounds after which the feedback of a round is there at the latest; 0 where it comes at once. Raises OCO540 for what is no such
    number."""
    if model.delay is None:
        return 0
    folded = folding.fold(model.delay)
    value = folded.value.array if isinstance(folded, Constant) else None
    if value is None or value.shape or value.dtype.kind != "i" or not 0 <= int(value) <= LONGEST_DELAY:
        message = f"a delay is a number of rounds from 0 to {LONGEST_DELAY:,}, known before the first round"
        raise fail("OCO540", message, model.delay.span, "write `feedback full delayed 3`")
    return int(value)


def with_late_states(
    streams: Sequence[StreamRange], delay: int, taken: Collection[str]
) -> tuple[tuple[StreamRange, ...], tuple[StreamRange, ...]]:
    """Streams whose late states say so, and what stands for these before a decision, under names that are not `taken`.

    Raises OCO540 where a stream that comes late picks entries in what follows a state.
    """
    if not delay:
        return tuple(streams), ()
    late = {s.name for s in streams if not s.stream.known and s.following is None}
    states = {s.name: s for s in streams if s.following is not None}
    while more := {n for n, s in states.items() if n not in late and late & _used(s)}:
        late |= more
    expected = dict[str, StreamRange]()
    for s in (s for s in states.values() if s.name in late):
        assert s.following is not None
        picks = [i for n in walk(s.following) if isinstance(n, Index) for i in n.items]
        if positions := [n for i in picks for n in names(i, Kind.STREAM) if n in late]:
            message = f"the state `{s.name}` cannot stand beside delayed feedback: `{positions[0]}` picks entries of what moves it"
            hint = f"give what is known of it then as `context {s.name}`, or write `feedback` without `delayed`"
            raise fail("OCO540", message, s.stream.span, hint)
        name = f"expected_{s.name}"
        while name in taken:
            name += "_"
        own = Stream(name, (), s.shape, None, known=True)
        expected[s.name] = StreamRange(name, s.shape, s.lower, s.upper, False, own, first=s.first, expects=s.name)
    marked = (
        replace(s, stream=replace(s.stream, known=False), expected=expected[s.name].name, late=True)
        if s.name in expected
        else s
        for s in streams
    )
    return tuple(marked), tuple(expected.values())


def expected_names(streams: Sequence[StreamRange]) -> dict[str, str]:
    """Names of late states, each with that of what is expected of it."""
    return {s.name: s.expected for s in streams if s.expected}


def _used(s: StreamRange) -> set[str]:
    assert s.following is not None
    return set(names(s.following, Kind.STREAM))


def as_expected(expr: Expr, streams: Sequence[StreamRange], errors: Mapping[str, str] | None = None) -> Expr:
    """Expression with what is expected of late states in their place, with their errors by name beside it where these are given."""
    own = expected_names(streams)

    def other(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.name not in own:
            return node
        expected = Name(own[node.name], Kind.STREAM, shape=node.shape, span=node.span)
        if errors is None:
            return expected
        return algebra.add(expected, Name(errors[node.name], Kind.STREAM, shape=node.shape))

    return rewrite(expr, other) if own else expr


def errors_of(streams: Sequence[StreamRange]) -> dict[str, StreamRange]:
    """Errors of what is expected of late states, by the states: streams that come after the decision."""
    results = dict[str, StreamRange]()
    for s in (s for s in streams if s.expected):
        width, name = np.asarray(s.upper) - np.asarray(s.lower), f"{ERROR}{s.name}"
        results[s.name] = StreamRange(name, s.shape, -width, width, False, Stream(name, (), s.shape, None))
    return results
