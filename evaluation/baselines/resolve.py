"""Re-solving: the problem of each round with predictions in place of its data, and a margin on its constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical, Inequality, StreamRange
from oco.dsl import algebra
from oco.dsl.expressions import Kind, Name, names
from oco.dsl.records import dataclass
from oco.dsl.statements import Stream
from oco.evaluation.baselines.base import UNTIMED, Game, Played, RuleUnavailable, measured, stacked
from oco.evaluation.baselines.predictions import Predictor, as_real, indices, predicted
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]

PREFIX = "_margin_"
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd number whose powers weigh the entries of a hash (Knuth, The Art of Computer Programming 3, section 6.4)."""
TIMES = 3  # times that a margin which depends on the decision is found anew


class Margin(Protocol):
    """Margin on each inequality, in its own units."""

    @property
    def words(self) -> str:
        """Margin in words; "" for none."""

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n) with this margin."""


@dataclass(frozen=True)
class Resolve:
    """Rule that decides what would be best if the data were as predicted, with a margin on the constraints."""

    predictor: Predictor
    margin: Margin
    fixed: bool = False
    """True where the decision is the same in all rounds."""

    @property
    def name(self) -> str:
        """Rule in words."""
        head = "constant" if self.fixed else f"re-solve with {self.predictor.words}"
        return f"{head}, {self.margin.words}" if self.margin.words else head

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        return self.margin.solve(Resolving(game, predicted(game, self.predictor, contexts=not self.fixed)))


@dataclass(frozen=True, eq=False)
class Resolving:
    """Problems of all rounds with predicted data (T, *shape), to be solved with margins."""

    game: Game
    data: dict[str, Array]

    @cached_property
    def problem(self) -> Canonical:
        """Problem over predictions, with a stream for the margin of each inequality."""
        problem, kept = self.game.problem, indices(self.game.problem)
        margins = tuple(_margin(c, k) for k, c in enumerate(problem.inequalities))
        with_margin = tuple(
            replace(c, expr=algebra.add(as_real(c.expr, kept), Name(m.name, Kind.STREAM, shape=c.shape)))
            for c, m in zip(problem.inequalities, margins)
        )
        equalities = tuple(replace(c, expr=as_real(c.expr, kept)) for c in problem.equalities)
        objective = as_real(problem.objective, kept)
        streams = (*problem.streams, *margins)
        still = replace(problem, objective=objective, moving=None, streams=streams)
        return replace(still, inequalities=with_margin, equalities=equalities)

    @cached_property
    def constraints(self) -> int:
        """Number N of the entries of all inequalities."""
        return sum(c.size for c in self.problem.inequalities)

    @property
    def dated(self) -> bool:
        """True where the round's number enters."""
        exprs = (self.problem.objective, *(c.expr for c in self.problem.constraints))
        return any(names(e, Kind.ROUND) for e in exprs)

    def different(self, beside: Sequence[Array]) -> tuple[Array, Array]:
        """First place of each different round in predictions and arrays (R, ...) of the first R rounds, and which of them each is."""
        rounds = len(beside[0])
        if self.dated:
            return np.arange(rounds), np.arange(rounds)
        return distinct([*(values[:rounds] for values in self.data.values()), *beside])

    def zeros(self, rounds: int | None = None) -> Array:
        """No margin, for the first rounds or for all of them (rounds, N), stored once."""
        return np.broadcast_to(0.0, (self.game.rounds if rounds is None else rounds, self.constraints))

    def solved(self, margins: Array) -> Array:
        """Best decisions (R, n) of the first R rounds as predicted, with margins (R, N). Equal rounds are solved once.

        Raises RuleUnavailable where the solver ends without a decision.
        """
        rounds = len(margins)
        given = {name: values[:rounds] for name, values in self.data.items()}
        chosen, back = self.different([margins])
        given = {name: values[chosen] for name, values in given.items()}
        column = 0
        for k, c in enumerate(self.problem.inequalities):
            part = margins[chosen, column : column + c.size]
            given[f"{PREFIX}{k}"] = part.reshape(len(chosen), *c.shape)
            column += c.size
        data = Data(self.problem, len(chosen), MappingProxyType(given))
        self.game.meter.count(1, len(chosen), self.problem.size + self.constraints)
        best = compare(self.problem, data, "dynamic", UNTIMED)
        if best.losses is None:
            raise RuleUnavailable(best.why)
        parts = [best.decision[b.name].reshape(len(chosen), -1) for b in self.problem.blocks]
        return repeated(np.concatenate(parts, axis=1), back)

    def expected(self, x: Array, data: dict[str, Array] | None = None) -> Array:
        """Constraints at x (R, n) with the predicted data, or with other data of these rounds (R, N)."""
        given = data or {name: values[: len(x)] for name, values in self.data.items()}
        problem, kept = self.game.problem, indices(self.game.problem)
        table = RoundArrays.of(problem, given, np.arange(len(x)) + 1)
        return stacked(table, [as_real(c.expr, kept) for c in problem.inequalities], x)

    def true(self, x: Array) -> Played:
        """Losses and constraints of x (R, n) in the first R rounds, as they came."""
        return measured(self.game.table.first(len(x)), "", x)

    def prediction_errors(self, x: Array) -> Array:
        """Excess of the constraints at x (R, n) over what was predicted (R, N)."""
        return self.true(x).constraints - self.expected(x)


def distinct(arrays: Sequence[Array]) -> tuple[Array, Array]:
    """First place (D,) of each different round in arrays with the round first, and which of them each round is (R,).

    By hashes, since sorting whole rows takes longer than the solver; where two different rounds have the same one, by sorting. Arrays that
    are stored once for all rounds do not differ.
    """
    rounds = len(arrays[0])
    flat = [v.reshape(rounds, -1) for v in map(np.asarray, arrays) if rounds > 1 and v.size and v.strides[0]]
    if not flat:
        return np.zeros(1, dtype=np.int64), np.broadcast_to(np.int64(0), (rounds,))
    hashes, factor = np.zeros(rounds, dtype=np.uint64), np.uint64(1)
    for column in (column for v in flat for column in v.T):
        with np.errstate(over="ignore"):
            factor = factor * MULTIPLIER
            hashes += np.ascontiguousarray(column, dtype=np.float64).view(np.uint64) * factor
    _, chosen, back = np.unique(hashes, return_index=True, return_inverse=True)
    first = chosen[back]
    if all(np.array_equal(v, v[first]) for v in flat):
        return chosen, back
    _, chosen, back = np.unique(np.concatenate(flat, axis=1), axis=0, return_index=True, return_inverse=True)
    return chosen, np.ravel(back)


def repeated(values: Array, back: Array) -> Array:
    """Values of different rounds (D, ...) for all rounds, `back` being which of them each is: a single one is stored once."""
    if len(values) == 1:
        return np.broadcast_to(values, (len(back), *values.shape[1:]))
    return np.asarray(values[back])


def _margin(constraint: Inequality, index: int) -> StreamRange:
    name, (low, high) = f"{PREFIX}{index}", (np.asarray(-np.inf), np.asarray(np.inf))
    stream = Stream(name, (), constraint.shape, None)
    return StreamRange(name, constraint.shape, low, high, False, stream)


@dataclass(frozen=True)
class NoMargin:
    """No margin."""

    words: str = ""

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n)."""
        return of.solved(of.zeros())


@dataclass(frozen=True)
class WorstSeen:
    """Largest excess over the prediction in the rounds before."""

    words: str = "constraints at the worst seen so far"

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n)."""
        return of.solved(self.margins(of, of.solved(of.zeros())))

    def margins(self, of: Resolving, x: Array) -> Array:
        """Margins (R, N), from the excess at decisions x (R, n) that have none."""
        worst = np.maximum.accumulate(np.maximum(of.prediction_errors(x), 0.0), axis=0)
        return np.concatenate([of.zeros(1), worst[:-1]])


@dataclass(frozen=True)
class Learned:
    """Quantile of the excess over the prediction in the last `window` rounds."""

    share: float
    window: int = 200

    @property
    def words(self) -> str:
        """Margin in words."""
        return f"margin: {self.share:.4g} quantile of the last {self.window} errors"

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n)."""
        errors, margins = of.prediction_errors(of.solved(of.zeros())), of.zeros().copy()
        for t in range(1, len(margins)):
            margins[t] = np.quantile(errors[max(0, t - self.window) : t], self.share, axis=0)
        return of.solved(margins)


@dataclass(frozen=True)
class TunedMargin:
    """Quantile of the excess in the first rounds that costs least in them; until then the worst excess seen so far."""

    shares: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
    words: str = "margin tuned on the first fifth"

    def solve(self, of: Resolving) -> Array:
        """Decisions of all rounds (T, n)."""
        first = of.game.first
        plain = of.solved(of.zeros(first))
        errors = of.prediction_errors(plain)
        choices = [np.zeros(of.constraints), *np.unique([np.quantile(errors, q, axis=0) for q in self.shares], axis=0)]
        costs = [of.game.trade.score(of.true(plain))[2]]
        for choice in choices[1:]:
            costs.append(of.game.trade.score(of.true(of.solved(np.broadcast_to(choice, (first, len(choice))))))[2])
        margins = np.tile(choices[int(np.argmin(costs))], (of.game.rounds, 1))
        margins[:first] = WorstSeen().margins(of, plain)
        return of.solved(margins)
