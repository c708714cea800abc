"""Streams that multiply decisions in a constraint in a share of the rounds, as they are predicted.

What a mix of machines, suppliers or assets does hangs on which of them are relied on: at a fixed value of the streams the constraint
would not tell them apart. It is met at what is predicted of them instead: as the model states, as the one context of their shape says, or
an average a <- a + max(r, 1/t) (s_t - a) of the rounds before, of all or of the last ones, whichever was off least. Averages of what has no
differences that last, as those of returns, are noise, which decisions would run after: unless the averages are better for sure, all entries
are predicted at the fixed values and one shift of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.kept_values import kept_range, round_of
from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.records import dataclass

FORGETTING = (0.0, 0.1)
"""Least rates at which averages forget: they are of all rounds, and of some ten."""
MISSED_RATE = 0.02
"""Least rate at which averages of squared errors forget."""
SURELY = 0.9
"""Part of the squared error of one level of all entries that that of averages of each has to be below."""


@dataclass(frozen=True)
class Followed:
    """Predictions of streams that multiply decisions, and what rounds leave to the next for them.

    predictions  of each stream, within its range
    ranges       averages that are kept
    stated       streams whose predictions the model states, or a context is
    """

    predictions: Mapping[str, Expr]
    ranges: tuple[StreamRange, ...] = field(repr=False)
    stated: tuple[str, ...] = ()

    def within(self, expr: Expr) -> Expr:
        """Expression with predictions in the place of these streams."""

        def predicted(node: Expr) -> Expr:
            return self.predictions.get(node.name, node) if isinstance(node, Name) else node

        return rewrite(expr, predicted)


def multiplying(expr: Expr, decisions: Iterable[str], streams: Iterable[str]) -> tuple[str, ...]:
    """Streams on which the slope of an expression towards the decisions hangs."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    slopes = vector_jacobian(expr, weights, decisions).values()
    used = {n for g in slopes for n in names(g, Kind.STREAM)}
    return tuple(n for n in streams if n in used)


def followed_streams(
    label: str, streams: Mapping[str, StreamRange], stated: Mapping[str, Expr], taken: Iterable[str], turns: int
) -> Followed:
    """Predictions of streams for the constraint `label`: the stated ones, averages of the others.

    taken  names that no kept value has
    turns  learners that take turns where feedback is late, each with averages of its own
    """
    predictions, kept, used = dict[str, Expr](), list[StreamRange](), frozenset(taken)
    for place, (name, s) in enumerate(streams.items()):
        if name in stated:
            low, high = (np.broadcast_to(end, s.shape) for end in (s.lower, s.upper))
            predictions[name] = call("maximum", call("minimum", stated[name], high), low)
            continue
        averages = _Averages(
            s, f"of_{place}_{label}", used, round_of(turns)
        )  # names of streams and labels may add up alike
        kept += averages.ranges
        predictions[name] = averages.prediction
    return Followed(predictions, tuple(kept), tuple(n for n in streams if n in stated))


class _Averages:
    """Averages of one stream and of their squared errors, and the prediction that is made of them."""

    def __init__(self, s: StreamRange, suffix: str, taken: frozenset[str], round_: Expr) -> None:
        self.ranges: list[StreamRange] = []
        self._round, self._taken = round_, taken
        now = call("add", Name(s.name, Kind.STREAM, shape=s.shape, integer=s.integer), 0.0)
        first = np.broadcast_to((s.lower + s.upper) / 2 if s.mean is None else s.mean, s.shape)
        size = float(np.prod(s.shape, dtype=np.int64))
        averages, errors = list[Expr](), list[Expr]()
        for k, rate in enumerate(FORGETTING):
            own = self._moving(f"average_{k}_{suffix}", s.shape, first, (s.lower, s.upper), rate, now)
            averages.append(own)
            errors.append(self._missed(f"missed_{k}_{suffix}", call("sub", now, own), size))
        width = np.asarray(s.upper - s.lower, dtype=np.float64).max()
        apart = call("div", call("sum", call("sub", now, constant(first))), size)
        shift = self._moving(f"shift_{suffix}", (), 0.0, (-width, width), 0.0, apart)
        level = call("add", constant(first), shift)
        missed = self._missed(f"missed_{suffix}", call("sub", now, level), size)
        overall, recent = averages
        best = _chosen(recent, overall, call("sub", errors[0], errors[1]))
        surely = call("sub", call("mul", SURELY, missed), call("minimum", errors[0], errors[1]))
        self.prediction = _chosen(best, level, surely)

    def _missed(self, name: str, error: Expr, size: float) -> Expr:
        """Average of the squared errors of the entries."""
        ends = np.asarray(0.0), np.asarray(np.inf)
        return self._moving(name, (), 0.0, ends, MISSED_RATE, call("div", call("sum_squares", error), size))

    def _moving(
        self,
        name: str,
        shape: tuple[int, ...],
        first: Floats | float,
        ends: tuple[Floats, Floats],
        rate: float,
        now: Expr,
    ) -> Expr:
        """Average of a value, kept under a name that is none of the model's."""
        while name in self._taken:
            name += "_"
        own = Name(name, Kind.STREAM, shape=shape)
        rate_now = call("maximum", rate, call("div", 1.0, self._round))
        following = call("add", own, call("mul", rate_now, call("sub", now, own)))
        self.ranges.append(kept_range(own, following, first, ends))
        return own


def _chosen(a: Expr, b: Expr, by: Expr) -> Expr:
    """The one value where `by` is positive, else the other."""
    return call("add", b, call("mul", call("_positive", by), call("sub", a, b)))
