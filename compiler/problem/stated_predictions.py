"""Stated predictions over streams that rounds leave to the next: what statistics of the rounds before are made of.

    last(s)       s of the round before
    ewma(s, a)    e <- e + max(a, 1/t) (s - e)
    mean(s, k)    mean of the last k rounds
    season(s, k)  s of k rounds before; of the round before, where there are fewer
    ahead(f)      entry 0 of the context f in this round, entry k of what is predicted of k rounds later

The last k rounds stand in a window of k rows, round t in row (t - 1) mod k. Before round 1 each is the middle of the range of s. Where
feedback is late these are the rounds whose feedback came, and row (t - 1) mod k is of round t - k or the last one before it that came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.feedback_delay import as_expected
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.stream_ranges import StreamRange, middle
from oco.dsl import algebra
from oco.dsl.build import applied, call
from oco.dsl.expressions import Expr, Kind, Name, constant, rewrite
from oco.dsl.model import Model
from oco.dsl.predictions import forecasts_in
from oco.dsl.records import dataclass
from oco.dsl.statements import Stream
from oco.dsl.statistics import Statistic, statistic_of

_NOW = Name("t", Kind.ROUND, integer=True)
_ENTRY = "_ahead_"


@dataclass(frozen=True)
class Lookahead:
    """Predictions of rounds to come: of each stream and context that has one, over the entries of the `contexts` that are for the round
    (`entry_name`); empty where the model states none.
    """

    of: tuple[tuple[str, Expr], ...] = ()
    contexts: tuple[str, ...] = ()


NO_LOOKAHEAD = Lookahead()


def entry_name(context: str) -> str:
    """Name of the entry of a context, along its first axis, for the round that is predicted."""
    return f"{_ENTRY}{context}"


@dataclass(frozen=True)
class StatedPredictions:
    """Prediction of each stream that has one, those of rounds to come, and the values that rounds leave to the next for them."""

    of: Mapping[str, Expr]
    ahead: Lookahead
    statistics: tuple[StreamRange, ...]

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All that is predicted, of this round and of rounds to come."""
        return *self.of.values(), *(e for _, e in self.ahead.of)


def stated_predictions(
    model: Model, folding: Folding, streams: Sequence[StreamRange], late: bool = False
) -> StatedPredictions:
    """Predictions that the model states; `late` where the feedback is."""
    own = _Statistics({s.name: s for s in streams}, set(model.table()), late)

    def made(value: Expr, stream: str) -> Expr:
        value = as_expected(rewrite(folding.fold(value), own.of), streams)
        return algebra.broadcast(value, own.streams[stream].shape)

    now = {p.stream: made(p.value, p.stream) for p in model.predictions if not own.streams[p.stream].stream.known}
    looks = [(p, forecasts_in(p.value)) for p in model.predictions]
    later = tuple((p.stream, made(rewrite(p.value, own.entry), p.stream)) for p, of in looks if of)
    ahead = Lookahead(later, tuple(dict.fromkeys(n for _, of in looks for n in of)))
    return StatedPredictions(now, ahead, tuple(own.kept.values()))


class _Statistics:
    """Expressions of statistics, and the values that they keep, by name."""

    def __init__(self, streams: dict[str, StreamRange], taken: Collection[str], late: bool) -> None:
        self.streams, self.taken, self.late = streams, taken, late
        self.kept: dict[str, StreamRange] = {}

    def of(self, node: Expr) -> Expr:
        """Expression in the place of the name of a statistic; any other node as it is."""
        s = statistic_of(node.name) if isinstance(node, Name) else None
        if s is None:
            return node
        stream = self.streams[s.stream]
        now = call("add", Name(stream.name, Kind.STREAM, shape=stream.shape, integer=stream.integer), 0.0)
        match s.kind:
            case "ahead":
                return algebra.index(now, (constant(np.array(0)),))
            case "last":
                return self.value(f"last_{s.stream}", stream, middle(stream), lambda own: now)
            case "ewma":
                return self.average(s, stream, now)
        rounds = int(s.number)
        window = self.window(stream, rounds, now)
        before = call("sub", _NOW, 1)
        came = self.came(stream, rounds) if self.late else None
        if s.kind == "mean":
            count = call("minimum", before, rounds) if came is None else applied("sum", (came,), ())
            return call("div", applied("sum", (window,), (("axis", 0),)), call("maximum", count, 1))
        phase = (call("mod", before, rounds),)
        if came is None:
            whole: Expr = call("_positive", call("sub", before, rounds - 0.5))
            latest: Expr = algebra.index(window, (call("mod", call("maximum", call("sub", _NOW, 2), 0), rounds),))
        else:
            whole = algebra.index(came, phase)
            latest = self.value(f"last_{stream.name}", stream, middle(stream), lambda own: now)
        past = algebra.index(window, phase)
        return call("add", latest, call("mul", whole, call("sub", past, latest)))

    def entry(self, node: Expr) -> Expr:
        """Entry of a context for a round to come, in the place of `ahead` of it; any other node as it is."""
        s = statistic_of(node.name) if isinstance(node, Name) else None
        if s is None or s.kind != "ahead":
            return node
        return Name(entry_name(s.stream), Kind.STREAM, shape=self.streams[s.stream].shape[1:])

    def value(self, name: str, stream: StreamRange, first: Any, following: Callable[[Name], Expr]) -> Name:
        """Value kept under a name, which is none of the model's: what it is in round 1, and after each round."""
        while name in self.taken:
            name += "_"
        first = np.asarray(first, dtype=np.float64)
        declared, own = Stream(name, (), first.shape, None, known=True), Name(name, Kind.STREAM, shape=first.shape)
        ends = stream.lower, stream.upper
        after = following(own)
        self.kept[name] = StreamRange(
            name, first.shape, *ends, False, declared, first=first, following=after, late=self.late
        )
        return own

    def average(self, s: Statistic, stream: StreamRange, now: Expr) -> Expr:
        """Average that forgets; of all rounds so far where these are few."""
        rounds = call("add", self.count(stream), 1.0) if self.late else _NOW
        rate = call("maximum", s.number, call("div", 1.0, rounds))
        name = re.sub(r"\W", "_", f"ewma_{s.stream}_{s.number:g}")

        def moved(own: Name) -> Expr:
            return call("add", own, call("mul", rate, call("sub", now, own)))

        return self.value(name, stream, middle(stream), moved)

    def window(self, stream: StreamRange, rounds: int, now: Expr) -> Name:
        """Last `rounds` rounds of a stream, a row each."""
        first = np.zeros((rounds, *stream.shape))
        first[0] = middle(stream)
        row = call("mod", call("sub", _NOW, 1), rounds)
        mask = call("_scatter", np.ones(stream.shape), row, shape=first.shape)

        def put(own: Name) -> Expr:
            return call("add", own, call("mul", mask, call("sub", now, own)))

        return self.value(f"last_{rounds}_{stream.name}", stream, first, put)

    def count(self, stream: StreamRange) -> Name:
        """Number of the rounds that came."""
        ends = replace(stream, lower=np.asarray(0.0), upper=np.asarray(np.inf))
        return self.value(f"rounds_of_{stream.name}", ends, 0.0, lambda own: call("add", own, 1.0))

    def came(self, stream: StreamRange, rounds: int) -> Name:
        """1 for the rows of the window whose round came, else 0."""
        ends = replace(stream, lower=np.asarray(0.0), upper=np.asarray(1.0))
        row = call("_scatter", 1.0, call("mod", call("sub", _NOW, 1), rounds), shape=(rounds,))
        name = f"came_{rounds}_{stream.name}"
        return self.value(name, ends, np.zeros(rounds), lambda own: call("maximum", own, row))
