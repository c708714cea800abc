"""Ranges of streams: the values that each may take, with their distribution and mean where the model states them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.folding import Folding
from oco.dsl.build import call
from oco.dsl.diagnostics import fail
from oco.dsl.distributions import TruncatedDistribution, truncated
from oco.dsl.expressions import Expr, Kind, constant, names
from oco.dsl.labels import Axes
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback, Stream

Floats = np.ndarray[Any, Any]

LIKE_RANGES = 0.8
"""Least part of the two ranges together that a context and a stream share, where the one may be a forecast of the other."""


@dataclass(frozen=True, eq=False)
class StreamRange:
    """Range of a stream: `lower <= value <= upper` entrywise (both broadcast to `shape`; infinite where none is declared).

    `mean` is the expected value where it is known: of the distribution, cut to the bounds, or as declared after `iid`.
    `distribution` is the distribution, cut to the bounds, where the model states it: `distribution.sample(rng, rounds)` draws.
    `axes` names the entries along axes whose length is an index. `first` and `following` are of a value that a round leaves to the next:
    what it is in round 1, and what it is after a round, over the decisions and streams of that round; `at_once` what it counts as after a
    round whose feedback is still to come; `uncut` of a state before it is cut to its range. `expected` is of a state that is known late:
    the name of what stands for it before the decision, a value that rounds leave to the next and that `expects` it. What follows from data
    that come `late` is in common to learners in turn.
    """

    name: str
    shape: tuple[int, ...]
    lower: Floats
    upper: Floats
    integer: bool
    stream: Stream
    distribution: TruncatedDistribution | None = None
    mean: Floats | None = None
    axes: Axes = ()
    first: Floats | None = None
    following: Expr | None = None
    at_once: Expr | None = None
    uncut: Expr | None = None
    expected: str = ""
    expects: str = ""
    late: bool = False

    @property
    def word(self) -> str:
        """Word of the language that declares it: `context` or `stream`."""
        return "context" if self.stream.known else "stream"

    @property
    def stochastic(self) -> bool:
        """True if the values of different rounds are independent draws of one distribution."""
        return self.stream.iid or self.stream.distribution is not None


def may_forecast(context: StreamRange, stream: StreamRange) -> bool:
    """True where a context may be a forecast of a stream: of its shape, and of nearly its range, entry by entry."""
    if context.shape != stream.shape:
        return False
    ends = [(np.asarray(s.lower, dtype=np.float64), np.asarray(s.upper, dtype=np.float64)) for s in (context, stream)]
    if not all(np.isfinite(e).all() for pair in ends for e in pair):
        return False
    (a, b), (c, d) = ends
    return bool((np.minimum(b, d) - np.maximum(a, c) >= LIKE_RANGES * (np.maximum(b, d) - np.minimum(a, c))).all())


def stream_range(stream: Stream, folding: Folding) -> StreamRange:
    """Values that a stream may take: its bounds, cut to the support of its distribution, integers where it says so.

    Raises OCO426 where none is left.
    """
    shape = folding.shape(stream.shape, stream.span)
    lower, upper = np.asarray(-np.inf), np.asarray(np.inf)
    if stream.bounds is not None:
        lower, upper = (np.asarray(folding.array(b), dtype=np.float64) for b in stream.bounds)
    mean = None if stream.mean is None else np.asarray(folding.array(stream.mean), dtype=np.float64)
    distribution = None
    if stream.distribution is not None:
        distribution = truncated(
            stream.distribution, folding.array, shape, None if stream.bounds is None else (lower, upper)
        )
        lower, upper, mean = distribution.lower, distribution.upper, distribution.mean()
    if stream.integer:
        lower, upper = np.ceil(lower), np.floor(upper)
    if not bool(np.all(lower <= upper)):
        raise fail("OCO426", f"no value is left for the stream `{stream.name}`: its bounds are empty", stream.span)
    made = StreamRange(
        stream.name, shape, lower, upper, stream.integer, stream, distribution, mean, folding.axes(stream.dims)
    )
    return (
        made
        if stream.first is None or stream.following is None
        else _state(made, stream.first, stream.following, folding)
    )


def middle(stream: StreamRange) -> Floats:
    """Stated mean of a stream, or the middle of its range; its finite end, or 0, where that is unbounded."""
    if stream.mean is not None:
        return np.broadcast_to(np.asarray(stream.mean, dtype=np.float64), stream.shape)
    low, high = (np.broadcast_to(np.asarray(e, dtype=np.float64), stream.shape) for e in (stream.lower, stream.upper))
    finite = np.isfinite(low), np.isfinite(high)
    ends = np.where(finite[0], low, np.where(finite[1], high, 0.0)), np.where(finite[1], high, low)
    both = finite[0] & finite[1]
    return np.where(both, ends[0] / 2 + np.where(both, ends[1], 0.0) / 2, ends[0])


def _state(made: StreamRange, first: Expr, following: Expr, folding: Folding) -> StreamRange:
    """State with its value in round 1 and what a round leaves to the next, cut to the range. Raises OCO529."""
    if folding.model.feedback is not Feedback.FULL:
        feedback, after = folding.model.feedback, {d.name for d in folding.model.streams if not d.known}
        why = (
            f"what follows it needs the streams of the round, which {feedback} feedback does not reveal"
            if after.intersection(names(following, Kind.STREAM))
            else f"constraints known before the decision keep its range, which need full feedback, not {feedback}"
        )
        message = f"the state `{made.name}` cannot be kept: {why}"
        raise fail("OCO529", message, made.stream.span, "leave out the `feedback` line")
    start = np.broadcast_to(np.asarray(folding.array(first), dtype=np.float64), made.shape)
    uncut = folding.fold(following)
    kept = call("minimum", call("maximum", uncut, constant(made.lower)), constant(made.upper))
    return replace(made, first=start, following=kept, uncut=uncut)
