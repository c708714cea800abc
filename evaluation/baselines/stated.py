"""Margins from what the model states: standard deviations and quantiles of its distributions, ends of its ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.expressions import Kind, names
from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import MEMORY, RuleUnavailable
from oco.evaluation.baselines.predictions import indices
from oco.evaluation.baselines.resolve import TIMES, Resolving, repeated

Array = np.ndarray[Any, Any]


class DeviationSet(Protocol):
    """Distances of streams from their predictions, and their sum for a constraint."""

    @property
    def words(self) -> str:
        """Margin in words."""

    def ends(self, stream: StreamRange) -> tuple[Array, Array] | None:
        """Low and high value of each entry (*shape); None where the stream stays as predicted."""

    def total(self, low: Array, high: Array) -> Array:
        """Margins (R, N) from the changes (E, R, N) of the constraints as each of E entries is at its low or high end."""


@dataclass(frozen=True)
class OfModel:
    """Margin that follows from the model and the decision alone."""

    deviations: DeviationSet

    @property
    def words(self) -> str:
        """Margin in words."""
        return self.deviations.words

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n)."""
        margins = of.zeros()
        x = of.solved(margins)
        for _ in range(TIMES):
            before, margins = margins, self.margins(of, x)
            if np.allclose(margins, before, rtol=1e-6, atol=1e-12):
                break
            x = of.solved(margins)
        return x

    def margins(self, of: Resolving, x: Array) -> Array:
        """Margins (T, N) at decisions x (T, n). Equal rounds are looked at once."""
        chosen, back = of.different([x])
        different = replace(of, data={n: v[chosen] for n, v in of.data.items()})
        return repeated(self._margins(different, x[chosen]), back)

    def _margins(self, of: Resolving, x: Array) -> Array:
        moved = self._ends(of)
        entries = sum(int(np.prod(stream.shape, dtype=np.int64)) for stream, _ in moved)
        if (needed := 16 * entries * len(x) * of.constraints) > MEMORY:
            raise RuleUnavailable(f"what {entries:,} entries of streams change takes {needed / 2**30:.3g} GiB")
        of.game.meter.count_evaluations(2 * entries, entries * len(x))
        middle, low, high = of.expected(x), [], []
        for data in _moved(of, moved):
            changes = [of.expected(x, d) - middle for d in data]
            low.append(changes[0])
            high.append(changes[1])
        return self.deviations.total(np.array(low), np.array(high)) if low else of.zeros(len(x))

    def _ends(self, of: Resolving) -> list[tuple[StreamRange, tuple[Array, Array]]]:
        """Streams of the constraints that deviate, with the low and the high value of each entry."""
        pairs = [(s, ends) for s in in_constraints(of.game.problem) if (ends := self.deviations.ends(s)) is not None]
        for stream, ends in pairs:
            if not all(np.isfinite(e).all() for e in ends):
                raise RuleUnavailable(f"`{stream.name}` has no finite range")
        return pairs


def _moved(
    of: Resolving, moved: list[tuple[StreamRange, tuple[Array, Array]]]
) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
    """Data with one entry of a stream at its low end, and at its high end: the arrays are written anew for each entry."""
    for stream, ends in moved:
        known = of.data[stream.name]
        low, high = known.copy(), known.copy()
        for place in np.ndindex(*stream.shape):
            for values, end in zip((low, high), ends):
                values[:, *place] = end[place]
            yield {**of.data, stream.name: low}, {**of.data, stream.name: high}
            for values in (low, high):
                values[:, *place] = known[:, *place]


def in_constraints(problem: Canonical) -> list[StreamRange]:
    """Streams that enter the inequalities as numbers and are not known before the decision."""
    used = {n for c in problem.inequalities for n in names(c.expr, Kind.STREAM)} - indices(problem)
    return [s for s in problem.streams if s.name in used and not s.stream.known]


def stated_in_constraints(problem: Canonical) -> bool:
    """True where a stream of known distribution enters an inequality."""
    return any(s.distribution is not None for s in in_constraints(problem))


@dataclass(frozen=True)
class Deviations:
    """So many standard deviations of the constraint, for independent entries of stated distributions.

    Exact where the constraint is affine in the data; else the change from one deviation below the mean to one above.
    """

    count: float

    @property
    def words(self) -> str:
        """Margin in words."""
        return f"stated mean + {self.count:g} sd"

    def ends(self, stream: StreamRange) -> tuple[Array, Array] | None:
        """Mean less and plus one standard deviation; a tail without variance counts by its quartiles."""
        if stream.distribution is None:
            return None
        mean, variance = stream.distribution.mean(), stream.distribution.variance()
        if not np.isfinite(variance).all():
            raise RuleUnavailable(f"`{stream.name}` has no variance")
        return mean - np.sqrt(variance), mean + np.sqrt(variance)

    def total(self, low: Array, high: Array) -> Array:
        """Deviations of sums of independent parts."""
        return np.asarray(self.count * np.sqrt((((high - low) / 2) ** 2).sum(axis=0)))


@dataclass(frozen=True)
class Quantile:
    """Each entry of stated distribution at a quantile, on its worse side."""

    share: float

    @property
    def words(self) -> str:
        """Margin in words."""
        return f"{100 * self.share:g}% quantile of the stated distribution"

    def ends(self, stream: StreamRange) -> tuple[Array, Array] | None:
        """Quantiles on both sides."""
        if stream.distribution is None:
            return None
        low, high = (stream.distribution.quantile(q) for q in (1 - self.share, self.share))
        return low.astype(np.float64), high.astype(np.float64)

    def total(self, low: Array, high: Array) -> Array:
        """Sum of the worse changes."""
        return worse(low, high)


@dataclass(frozen=True)
class WorstOfRange:
    """Each entry at the worse end of its range."""

    words: str = "constraints at the worst of the ranges"

    def ends(self, stream: StreamRange) -> tuple[Array, Array] | None:
        """Ends of the range."""
        low, high = (
            np.broadcast_to(np.asarray(e, dtype=np.float64), stream.shape) for e in (stream.lower, stream.upper)
        )
        return low, high

    def total(self, low: Array, high: Array) -> Array:
        """Sum of the worse changes."""
        return worse(low, high)


def worse(low: Array, high: Array) -> Array:
    """Sum over the entries of the larger of two changes: (R, N) from (E, R, N)."""
    return np.asarray(np.maximum(np.maximum(low, high), 0.0).sum(axis=0))
