"""Stated predictions over streams that rounds leave to the next: what statistics of the rounds before are made of.

    last(s)       s of the round before
    ewma(s, a)    e <- e + max(a, 1/t) (s - e)
    mean(s, k)    mean of the last k rounds
    season(s, k)  s of k rounds before; of the round before, where there are fewer

The last k rounds stand in a window of k rows, round t in row (t - 1) mod k. Before round 1 each is the middle of the range of s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.compiler.problem.folding import Folding
from oco.compiler.problem.stream_ranges import StreamRange, middle
from oco.dsl import algebra
from oco.dsl.build import applied, call
from oco.dsl.expressions import Expr, Kind, Name, rewrite
from oco.dsl.model import Model
from oco.dsl.statements import Stream
from oco.dsl.statistics import Statistic, statistic_of

_NOW = Name("t", Kind.ROUND, integer=True)


@dataclass(frozen=True)
class StatedPredictions:
    """Prediction of each stream that has one, and the values that rounds leave to the next for them."""

    of: Mapping[str, Expr]
    statistics: tuple[StreamRange, ...]


def stated_predictions(model: Model, folding: Folding, streams: Sequence[StreamRange]) -> StatedPredictions:
    """Predictions that the model states."""
    own = _Statistics({s.name: s for s in streams}, set(model.table()))
    made = [(p.stream, rewrite(folding.fold(p.value), own.of)) for p in model.predictions]
    return StatedPredictions({n: algebra.broadcast(e, own.streams[n].shape) for n, e in made}, tuple(own.kept.values()))


class _Statistics:
    """Expressions of statistics, and the values that they keep, by name."""

    def __init__(self, streams: dict[str, StreamRange], taken: Collection[str]) -> None:
        self.streams, self.taken = streams, taken
        self.kept: dict[str, StreamRange] = {}

    def of(self, node: Expr) -> Expr:
        """Expression in the place of the name of a statistic; any other node as it is."""
        s = statistic_of(node.name) if isinstance(node, Name) else None
        if s is None:
            return node
        stream = self.streams[s.stream]
        now = call("add", Name(stream.name, Kind.STREAM, shape=stream.shape, integer=stream.integer), 0.0)
        match s.kind:
            case "last":
                return self.value(f"last_{s.stream}", stream, middle(stream), lambda own: now)
            case "ewma":
                return self.average(s, stream, now)
        rounds = int(s.number)
        window = self.window(stream, rounds, now)
        before = call("sub", _NOW, 1)
        if s.kind == "mean":
            count = call("maximum", call("minimum", before, rounds), 1)
            return call("div", applied("sum", (window,), (("axis", 0),)), count)
        whole = call("_positive", call("sub", before, rounds - 0.5))
        latest = algebra.index(window, (call("mod", call("maximum", call("sub", _NOW, 2), 0), rounds),))
        past = algebra.index(window, (call("mod", before, rounds),))
        return call("add", latest, call("mul", whole, call("sub", past, latest)))

    def value(self, name: str, stream: StreamRange, first: Any, following: Callable[[Name], Expr]) -> Name:
        """Value kept under a name, which is none of the model's: what it is in round 1, and after each round."""
        while name in self.taken:
            name += "_"
        first = np.asarray(first, dtype=np.float64)
        declared, own = Stream(name, (), first.shape, None, known=True), Name(name, Kind.STREAM, shape=first.shape)
        ends = stream.lower, stream.upper
        self.kept[name] = StreamRange(name, first.shape, *ends, False, declared, first=first, following=following(own))
        return own

    def average(self, s: Statistic, stream: StreamRange, now: Expr) -> Expr:
        """Average that forgets; of all rounds so far where these are few."""
        rate = call("maximum", s.number, call("div", 1.0, _NOW))
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
