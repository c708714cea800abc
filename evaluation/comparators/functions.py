"""Losses and constraints over many rounds as smooth functions of the flattened decision, with first and second
derivatives.

Wherever a function is evaluated, `x` has one row for each of the rounds `rows`, or a single row for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import hessian_vector, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, names, walk
from oco.dsl.records import dataclass
from oco.dsl.spill import release
from oco.evaluation.batch import RoundArray, evaluate_rounds, values_of
from oco.evaluation.comparators.products import applied
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[str, tuple[int, ...]], ...]

TOGETHER = 1 << 18
"""Numbers of rounds that are evaluated together: 2 MB, so that what is made of them stays in the cache."""
_WEIGHTS = "_weights"
_TOWARDS = "_towards_"


@dataclass(frozen=True, eq=False)
class RoundArrays:
    """Rounds of a problem: arrays of the streams with the round first, and the rounds' numbers from 1.

    `layout` names the arrays that make up the vector x: the decisions of the problem, or their replacements.
    """

    problem: Canonical
    streams: Mapping[str, Array]
    numbers: Array
    layout: Layout

    @classmethod
    def of(cls, problem: Canonical, streams: Mapping[str, Array], numbers: Array) -> RoundArrays:
        """Rounds over the decisions of the problem."""
        return cls(problem, streams, numbers, tuple((b.name, b.shape) for b in problem.blocks))

    @classmethod
    def read(cls, problem: Canonical, data: Data, start: int = 0, stop: int | None = None) -> RoundArrays:
        """Rounds of the data from `start` up to, not including, `stop` (from 0), or to the last."""
        end = data.rounds if stop is None else stop
        return cls.of(problem, data.read(start, end), np.arange(start, end) + 1)

    @classmethod
    def none(cls, problem: Canonical) -> RoundArrays:
        """No rounds, for the layout alone."""
        return cls.of(problem, {}, np.arange(0))

    def under(self, problem: Canonical) -> RoundArrays:
        """Rounds of the same data, over the decisions of another problem."""
        return RoundArrays.of(problem, self.streams, self.numbers)

    def over(self, layout: Layout) -> RoundArrays:
        """Rounds for functions of other arrays."""
        return replace(self, layout=layout)

    def first(self, count: int) -> RoundArrays:
        """First rounds alone."""
        return self.between(0, count)

    def between(self, start: int, stop: int) -> RoundArrays:
        """Rounds from `start` up to, not including, `stop` (from 0)."""
        for values in self.streams.values():
            release(values[:start])
        streams = {n: v[start:stop] for n, v in self.streams.items()}
        return replace(self, streams=streams, numbers=self.numbers[start:stop])

    def one(self, row: int) -> RoundArrays:
        """Single round."""
        streams = {n: v[row : row + 1] for n, v in self.streams.items()}
        return replace(self, streams=streams, numbers=self.numbers[row : row + 1])

    @property
    def count(self) -> int:
        """Number of rounds."""
        return len(self.numbers)

    @property
    def everything(self) -> Array:
        """Indices of all rounds."""
        return np.arange(self.count)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the arrays in x."""
        return tuple(name for name, _ in self.layout)

    @cached_property
    def places(self) -> dict[str, slice]:
        """Slice of each array in x."""
        ends = np.cumsum([int(np.prod(shape, dtype=np.int64)) for _, shape in self.layout])
        starts = [0, *ends[:-1]]
        return {name: slice(int(a), int(b)) for (name, _), a, b in zip(self.layout, starts, ends)}

    @property
    def size(self) -> int:
        """Number of entries of x."""
        return max((place.stop for place in self.places.values()), default=0)

    def arrays(self, x: Array) -> dict[str, Array]:
        """Arrays by name (B, *shape) of points x (B, n or more), which begin with them."""
        return {name: x[:, self.places[name]].reshape(len(x), *shape) for name, shape in self.layout}

    def split(self, x: Array) -> dict[str, Any]:
        """Arrays of x by name; a single row represents all rounds."""
        return {name: part[0] if len(x) == 1 else RoundArray(part) for name, part in self.arrays(x).items()}

    def join(self, parts: Mapping[str, Any], rounds: int) -> Array:
        """Derivatives by name as one array (rounds, n). An array smaller than its variable is constant over the
        entries.
        """
        joined = np.zeros((rounds, self.size))
        for name, shape in self.layout:
            values = values_of(parts[name], rounds)
            missing = len(shape) + 1 - values.ndim
            aligned = values.reshape(rounds, *[1] * missing, *values.shape[1:])
            joined[:, self.places[name]] = np.broadcast_to(aligned, (rounds, *shape)).reshape(rounds, -1)
        return joined

    def evaluate(self, expr: Expr, x: Array, rows: Array, extra: Mapping[str, Any] | None = None) -> Any:
        """Expression in the rounds `rows`, not yet broadcast over rounds where it is constant."""
        env: dict[str, Any] = {n: RoundArray(pick(self.streams[n], rows)) for n in names(expr) if n in self.streams}
        env.update(self.split(x))
        env.update(extra or {})
        return evaluate_rounds(expr, env, len(rows), self.numbers[rows])

    def at_each(self, expr: Expr, x: Array, rows: Array | None = None) -> Array:
        """Values (b, *shape) of an expression in some rounds, or in all, at points x (b, n), one for each of them or for all: in parts that
        stay in the cache.
        """
        one = len(x) == 1 or x.strides[0] == 0
        entries = self.size + sum(self.streams[n][:1].size for n in names(expr) if n in self.streams)
        step, chosen = max(1, TOGETHER // max(1, entries)), self.everything if rows is None else rows
        parts = []
        for start in range(0, max(1, len(chosen)), step):
            own = chosen[start : start + step]
            parts.append(values_of(self.evaluate(expr, x[:1] if one else x[start : start + step], own), len(own)))
            for array in self.streams.values() if start else ():
                release(array[: own[0]])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def inequalities_at(self, x: Array) -> Array:
        """Values (T, N) of all inequalities at points x (T, n), or at one for all rounds."""
        each = [self.evaluate(c.expr, x, self.everything) for c in self.problem.inequalities]
        values = [values_of(v, self.count).reshape(self.count, -1) for v in each]
        return np.concatenate([np.zeros((self.count, 0)), *values], axis=1)

    def enters(self, expr: Expr) -> bool:
        """True where an expression depends on the round's data or number."""
        return any(isinstance(n, Name) and (n.name in self.streams or n.kind is Kind.ROUND) for n in walk(expr))


def pick(array: Array, rows: Array) -> Array:
    """Rows `array[rows]`, without a copy where they are consecutive."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and bool(np.all(rows[1:] > rows[:-1])):
        return array[rows[0] : rows[-1] + 1]
    return array[rows]


def stretches(cuts: Array, length: int) -> list[slice]:
    """Consecutive parts of `length` rows; each begins at one of `cuts`, the first at 0."""
    return [slice(int(a), int(b)) for a, b in zip(cuts, [*cuts[1:], length])]


PAIRS = 1024  # pairs of a member and a round that are evaluated in one call
ALL = np.zeros(1, dtype=np.int64)
"""Value of `cuts` for a single stretch."""


def calls(x: Array, starts: Array, ends: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Evaluation calls that members with few rounds share: members, points, rounds, and the place where each member's
    begin.
    """
    first = 0
    while first < len(ends):
        lengths = np.cumsum(ends[first:] - starts[first:])
        last = first + max(1, int(np.searchsorted(lengths, PAIRS, side="right")))
        members = slice(first, last)
        if last - first == 1:
            yield members, x[members], np.arange(starts[first], ends[first]), ALL
        else:
            counts = ends[members] - starts[members]
            rows = np.concatenate([np.arange(a, b) for a, b in zip(starts[members], ends[members])])
            yield members, np.repeat(x[members], counts, axis=0), rows, np.append(0, np.cumsum(counts)[:-1])
        first = last


class OfRounds(ABC):
    """Vector of `entries` functions of x in each round. `diagonal` is True where all their Hessians are."""

    entries: int
    diagonal: bool

    def values(self, x: Array, rows: Array) -> Array:
        """Values (b, entries)."""
        return self.jet(x, rows)[0]

    @abstractmethod
    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        """Values (b, entries) and gradients (b, entries, n)."""

    @abstractmethod
    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        """Hessian of sum_k weights_k f_k in each round, for weights (b, entries): (b, n) if diagonal, else (b, n, n)."""

    def added_jet(self, x: Array, rows: Array, cuts: Array) -> tuple[Array, Array]:
        """Sums over each of the stretches of `rows` that begin at `cuts`: values (S, entries) and gradients (S,
        entries, n).
        """
        values, slopes = self.jet(x, rows)
        return np.add.reduceat(values, cuts, axis=0), np.add.reduceat(slopes, cuts, axis=0)

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        """Sums of `hessian` over stretches: (S, n) if diagonal, else (S, n, n). No matrix is stored for each round."""
        return np.asarray(np.add.reduceat(self.hessian(x, weights, rows), cuts, axis=0))

    def jet_upto(self, x: Array, ends: Array) -> tuple[Array, Array]:
        """Sums over the first ends_b rounds at x_b, for rising ends: values (B, entries) and gradients (B, entries, n)."""
        parts = [self.added_jet(*part) for _, *part in calls(x, np.zeros_like(ends), ends)]
        values, slopes = (np.concatenate(p) for p in zip(*parts))
        return values, slopes

    def hessian_between(self, x: Array, weights: Array, starts: Array, ends: Array) -> Array:
        """Sum of `hessian` over the rounds from starts_b to ends_b at x_b with weights_b (entries,), for each b."""
        parts = []
        for members, points, rows, cuts in calls(x, starts, ends):
            spread = np.repeat(weights[members], ends[members] - starts[members], axis=0)
            parts.append(self.added_hessian(points, spread, rows, cuts))
        return np.concatenate(parts)

    @property
    def same_slope(self) -> bool:
        """True where the rounds are known to differ by a constant alone."""
        return False

    @property
    def affine_in(self) -> int:
        """Number of variables where all functions are known to be affine, else 0."""
        return 0


@dataclass(frozen=True, eq=False)
class General(OfRounds):
    """Functions given by an expression of any curvature and degree."""

    rounds: RoundArrays
    expr: Expr
    entries: int
    diagonal: bool

    @cached_property
    def _jacobian(self) -> dict[str, Expr]:
        return vector_jacobian(self.expr, Name(_WEIGHTS, Kind.STREAM, shape=self.expr.shape), self.rounds.variables)

    @cached_property
    def _hessian(self) -> dict[str, Expr]:
        weighted = algebra.mul(self.expr, Name(_WEIGHTS, Kind.STREAM, shape=self.expr.shape))
        total = weighted if weighted.shape == () else algebra.call("sum", weighted)
        towards = {name: Name(_TOWARDS + name, Kind.STREAM, shape=shape) for name, shape in self.rounds.layout}
        return hessian_vector(total, towards)

    @cached_property
    def same_slope(self) -> bool:
        return not any(self.rounds.enters(part) for part in self._jacobian.values())

    def values(self, x: Array, rows: Array) -> Array:
        return self.rounds.at_each(self.expr, x, rows).reshape(len(rows), self.entries)

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        jacobian = np.empty((len(rows), self.entries, self.rounds.size))
        for k, unit in enumerate(np.eye(self.entries)):
            extra = {_WEIGHTS: unit.reshape(known(self.expr.shape))}
            parts = {name: self.rounds.evaluate(part, x, rows, extra) for name, part in self._jacobian.items()}
            jacobian[:, k] = self.rounds.join(parts, len(rows))
        return self.values(x, rows), jacobian

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        if self.diagonal:
            return self.along(x, weights, np.ones(self.rounds.size), rows)
        return np.stack([self.along(x, weights, unit, rows) for unit in np.eye(self.rounds.size)], axis=2)

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        def added(direction: Array) -> Array:
            return np.asarray(np.add.reduceat(self.along(x, weights, direction, rows), cuts, axis=0))

        if self.diagonal:
            return added(np.ones(self.rounds.size))
        return np.stack([added(unit) for unit in np.eye(self.rounds.size)], axis=2)

    def along(self, x: Array, weights: Array, direction: Array, rows: Array) -> Array:
        """Hessian of each round times one direction (n,): (b, n)."""
        extra: dict[str, Any] = {_WEIGHTS: RoundArray(weights.reshape(len(rows), *known(self.expr.shape)))}
        for name, shape in self.rounds.layout:
            extra[_TOWARDS + name] = direction[self.rounds.places[name]].reshape(shape)
        parts = {name: self.rounds.evaluate(part, x, rows, extra) for name, part in self._hessian.items()}
        return self.rounds.join(parts, len(rows))


@dataclass(frozen=True, eq=False)
class QuadraticRounds(OfRounds):
    """Functions f_k(x) = constant_k + linear_k x + x' square_k x / 2, by coefficients (B or 1, entries, ...); affine if
    `square` is None.

    Coefficients that are equal in all rounds are stored once.
    """

    constant: Array
    linear: Array
    square: Array | None
    diagonal: bool

    @property
    def entries(self) -> int:  # type: ignore[override]
        """Number of functions in each round."""
        return int(self.constant.shape[1])

    @property
    def same_slope(self) -> bool:
        parts = [self.linear] + ([] if self.square is None else [self.square])
        return all(len(p) == 1 or bool(np.all(p == p[:1])) for p in parts)

    def values(self, x: Array, rows: Array) -> Array:
        if self.square is None and len(x) == 1:
            return np.broadcast_to(
                _rows(self.constant, rows) + _rows(self.linear, rows) @ x[0], (len(rows), self.entries)
            )
        return self.jet(x, rows)[0]

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        x = np.broadcast_to(x, (len(rows), x.shape[1]))
        constant, linear = _rows(self.constant, rows), _rows(self.linear, rows)
        if self.square is None:
            return constant + applied(linear, x), np.broadcast_to(linear, (len(rows), *linear.shape[1:]))
        square = _rows(self.square, rows)
        product = square * x[:, None, :] if self.diagonal else np.einsum("bkij,bj->bki", square, x)
        return constant + applied(linear + 0.5 * product, x), linear + product

    @property
    def affine_in(self) -> int:
        return int(self.linear.shape[2]) if self.square is None else 0

    @property
    def differs(self) -> bool:
        """True where the function is affine with slopes that differ by the round."""
        return self.square is None and not self.same_slope

    @property
    def apart(self) -> QuadraticRounds:
        """Affine functions one by one: entry k of round t, counted from 0, is that of the round t entries + k."""
        return QuadraticRounds(
            self.constant.reshape(-1, 1), self.linear.reshape(-1, 1, self.linear.shape[2]), None, True
        )

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        if self.square is None:
            return np.zeros((len(rows), x.shape[1]))
        square = _rows(self.square, rows)
        return np.asarray(np.einsum("bk,bk...->b...", weights, np.broadcast_to(square, (len(rows), *square.shape[1:]))))

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        if self.square is None:
            return np.zeros((len(cuts), x.shape[1]))
        if len(self.square) == 1:
            return np.asarray(np.einsum("bk,k...->b...", np.add.reduceat(weights, cuts, axis=0), self.square[0]))
        parts = stretches(cuts, len(rows))
        return np.stack([np.einsum("bk,bk...->...", weights[p], self.square[rows[p]]) for p in parts])


def _rows(coefficients: Array, rows: Array) -> Array:
    return coefficients if len(coefficients) == 1 else pick(coefficients, rows)
