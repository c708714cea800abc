"""Predictions of a round's data from the rounds before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stream_ranges import middle
from oco.dsl.expressions import Call, Expr, Index, Kind, Name, names, rewrite, walk
from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import Game

Array = np.ndarray[Any, Any]


class Predictor(Protocol):
    """Prediction of every round of a stream."""

    @property
    def words(self) -> str:
        """Prediction in words."""

    def __call__(self, values: Array, first: Array) -> Array:
        """Predictions (T, *shape) of values (T, *shape), row t from the rows before t; `first` where there are none."""


@dataclass(frozen=True)
class Last:
    """Value of the round `lag` before; of the round before where there are fewer."""

    lag: int = 1

    @property
    def words(self) -> str:
        """Prediction in words."""
        return "the last values" if self.lag == 1 else f"the values of {self.lag} rounds before"

    def __call__(self, values: Array, first: Array) -> Array:
        rows = np.arange(len(values))
        before = values[np.maximum(np.where(rows >= self.lag, rows - self.lag, rows - 1), 0)].astype(np.float64)
        before[:1] = first
        return before


@dataclass(frozen=True)
class Mean:
    """Mean of the last `window` rounds; of all rounds so far where it is None."""

    window: int | None = None

    @property
    def words(self) -> str:
        """Prediction in words."""
        return "the mean of all rounds so far" if self.window is None else f"the mean of the last {self.window} rounds"

    def __call__(self, values: Array, first: Array) -> Array:
        rows = np.arange(len(values))
        start = np.zeros_like(rows) if self.window is None else np.maximum(rows - self.window, 0)
        sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0, dtype=np.float64)])
        count = np.maximum(rows - start, 1).reshape(-1, *[1] * (values.ndim - 1))
        result = (sums[rows] - sums[start]) / count
        result[:1] = first
        return np.asarray(result)


@dataclass(frozen=True)
class Stated:
    """Stated mean, or the middle of the range where none is stated."""

    words: str = "the stated means"

    def __call__(self, values: Array, first: Array) -> Array:
        return np.broadcast_to(first, values.shape)


def predicted(game: Game, predictor: Predictor, contexts: bool = True) -> dict[str, Array]:
    """Predictions of all streams (T, *shape): contexts as they are, the stated mean where there is one, else the
    predictor's; the last value of a stream that picks entries, since a mean picks none.

    contexts  False where a rule does not look at contexts: they are predicted as other streams are
    """
    picking = indices(game.problem)
    results = {}
    for stream in game.problem.streams:
        values, first = game.streams[stream.name], middle(stream)
        if contexts and stream.stream.known:
            results[stream.name] = values if stream.name in picking else values.astype(np.float64)
        elif stream.name in picking:
            results[stream.name] = Last()(values, np.floor(first)).astype(np.int64)
        else:
            own = predictor if stream.mean is None else Stated()
            results[stream.name] = own(values, first)
    return results


def indices(problem: Canonical) -> set[str]:
    """Names of the streams that pick entries of arrays."""
    exprs = (problem.objective, *(c.expr for c in problem.constraints))
    items = [i for e in exprs for n in walk(e) if isinstance(n, Index) for i in n.items]
    return {name for i in items for name in names(i, Kind.STREAM)}


def as_real(expr: Expr, kept: set[str]) -> Expr:
    """Expression whose integer streams may take any value, but for those in `kept`."""

    def real(node: Expr) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.STREAM and node.integer and node.name not in kept:
            return Name(node.name, node.kind, shape=node.shape)
        if isinstance(node, Call) and node.integer and set(names(node, Kind.STREAM)) - kept:
            return Call(node.atom, node.args, node.options, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, real)


def unstated(problem: Canonical) -> bool:
    """True where some stream has no stated mean, so that predictors differ."""
    return any(s.mean is None and not s.stream.known for s in problem.streams)


Streams = Mapping[str, Array]
