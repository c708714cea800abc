"""Losses and constraints as batches of smooth functions of the flattened decision, with first and second derivatives.

Functions of degree two or less are turned into coefficients once; all others evaluate their derivatives as expressions. A batch
is over rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from oco.compiler.calculus import hessian_vector, vector_jacobian
from oco.compiler.canonical import Canonical
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, constant, walk
from oco.evaluation.batch import Batched, evaluate_rounds, values_of
from oco.evaluation.comparators.structure import degree, separable

Array = np.ndarray[Any, Any]

_WEIGHTS = "_weights"
_TOWARDS = "_towards_"


@dataclass(frozen=True, eq=False)
class Rounds:
    """The problem over some rounds: arrays of the streams with the round first, and the rounds' numbers from 1."""

    problem: Canonical
    streams: Mapping[str, Array]
    numbers: Array

    @property
    def count(self) -> int:
        return len(self.numbers)

    @cached_property
    def decisions(self) -> tuple[str, ...]:
        return tuple(b.name for b in self.problem.blocks)

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each decision stands in the flattened one."""
        ends = np.cumsum([b.domain.size for b in self.problem.blocks])
        return {b.name: slice(int(e) - b.domain.size, int(e)) for b, e in zip(self.problem.blocks, ends)}

    def split(self, x: Array) -> dict[str, Batched]:
        """x (B, n), one row a round, as decisions by name."""
        shapes = {b.name: b.shape for b in self.problem.blocks}
        return {name: Batched(x[:, place].reshape(len(x), *shapes[name])) for name, place in self.places.items()}

    def join(self, parts: Mapping[str, Any], rounds: int) -> Array:
        """Values by decision as one array (rounds, n)."""
        joined = np.zeros((rounds, self.problem.size))
        for name, place in self.places.items():
            part = values_of(parts[name], rounds).reshape(rounds, -1)
            joined[:, place] = part
        return joined

    def evaluate(self, expr: Expr, x: Array, rows: Array, extra: Mapping[str, Any] | None = None) -> Any:
        """The expression at x (b, n) in the rounds `rows` (b,), not yet spread over rounds where it is the same in all."""
        whole = len(rows) == self.count
        env: dict[str, Any] = {k: Batched(v if whole else v[rows]) for k, v in self.streams.items()}
        env.update(self.split(x))
        env.update(extra or {})
        return evaluate_rounds(expr, env, len(rows), self.numbers[rows])


class Smooth(Protocol):
    """`entries` functions of x, for every round of the batch."""

    @property
    def entries(self) -> int: ...

    @property
    def diagonal(self) -> bool: ...

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        """Values (b, entries) and gradients (b, entries, n)."""
        ...

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        """Of sum_k weights_k f_k: (b, n) if diagonal, else (b, n, n)."""
        ...


@dataclass(frozen=True, eq=False)
class General:
    """Functions given by an expression of any curvature and degree."""

    rounds: Rounds
    expr: Expr
    entries: int
    diagonal: bool

    @cached_property
    def _weights(self) -> Name:
        return Name(_WEIGHTS, Kind.STREAM, shape=self.expr.shape)

    @cached_property
    def _jacobian(self) -> dict[str, Expr]:
        return vector_jacobian(self.expr, self._weights, self.rounds.decisions)

    @cached_property
    def _hessian(self) -> dict[str, Expr]:
        weighted = algebra.mul(self.expr, self._weights)
        total = weighted if weighted.shape == () else algebra.call("sum", weighted)
        blocks = self.rounds.problem.blocks
        return hessian_vector(total, {b.name: Name(_TOWARDS + b.name, Kind.STREAM, shape=b.shape) for b in blocks})

    @cached_property
    def same_slope(self) -> bool:
        """Whether the rounds differ by a constant alone: no stream enters the gradient."""
        return not any(enters(part, self.rounds) for part in self._jacobian.values())

    def values(self, x: Array, rows: Array) -> Array:
        return values_of(self.rounds.evaluate(self.expr, x, rows), len(rows)).reshape(len(rows), self.entries)

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        jacobian = np.empty((len(rows), self.entries, self.rounds.problem.size))
        for k in range(self.entries):
            weights = np.zeros(self.entries)
            weights[k] = 1.0
            jacobian[:, k] = self._gradient(x, weights.reshape(self.expr.shape), rows)
        return self.values(x, rows), jacobian

    def _gradient(self, x: Array, weights: Array, rows: Array) -> Array:
        parts = {
            name: self.rounds.evaluate(part, x, rows, {_WEIGHTS: weights}) for name, part in self._jacobian.items()
        }
        return self.rounds.join(_whole(self.rounds, parts), len(rows))

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        size = self.rounds.problem.size
        if self.diagonal:
            return self.along(x, weights, np.ones(size), rows)
        columns = [self.along(x, weights, np.eye(size)[i], rows) for i in range(size)]
        return np.stack(columns, axis=2)

    def along(self, x: Array, weights: Array, direction: Array, rows: Array) -> Array:
        """The Hessian times one direction (n,): (b, n)."""
        extra: dict[str, Any] = {_WEIGHTS: Batched(weights.reshape(len(rows), *self.expr.shape))}
        for block in self.rounds.problem.blocks:
            extra[_TOWARDS + block.name] = direction[self.rounds.places[block.name]].reshape(block.shape)
        parts = {name: self.rounds.evaluate(part, x, rows, extra) for name, part in self._hessian.items()}
        return self.rounds.join(_whole(self.rounds, parts), len(rows))


def _whole(rounds: Rounds, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Derivatives spread to the shapes of their decisions: a constant zero stands for an array of zeros."""
    shapes = {b.name: b.shape for b in rounds.problem.blocks}
    return {name: _spread(part, shapes[name]) for name, part in parts.items()}


def _spread(part: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(part, Batched):
        missing = len(shape) - part.ndim
        aligned = part.array.reshape(len(part.array), *[1] * missing, *part.shape)
        return Batched(np.broadcast_to(aligned, (len(part.array), *shape)))
    return np.broadcast_to(part, shape)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """f_k(x) = constant_k + linear_k x + x' square_k x / 2, by coefficients (B or 1, entries, ...); `square` None: affine.

    Coefficients that are the same in all rounds are stored once.
    """

    constant: Array
    linear: Array
    square: Array | None
    diagonal: bool

    @property
    def entries(self) -> int:
        return int(self.constant.shape[1])

    def values(self, x: Array, rows: Array) -> Array:
        return self.jet(x, rows)[0]

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        constant, linear = _rows(self.constant, rows), _rows(self.linear, rows)
        if self.square is None:
            values = constant + np.einsum("bkn,bn->bk", linear, x)
            return values, np.broadcast_to(linear, (len(rows), *linear.shape[1:]))
        square = _rows(self.square, rows)
        product = square * x[:, None, :] if self.diagonal else np.einsum("bkij,bj->bki", square, x)
        return constant + np.einsum("bkn,bn->bk", linear + 0.5 * product, x), linear + product

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        if self.square is None:
            return np.zeros_like(x)
        square = _rows(self.square, rows)
        return np.asarray(np.einsum("bk,bk...->b...", weights, np.broadcast_to(square, (len(rows), *square.shape[1:]))))


def _rows(coefficients: Array, rows: Array) -> Array:
    return coefficients if len(coefficients) == 1 else coefficients[rows]


OfRounds = General | Quadratic


def smooth_function(rounds: Rounds, expr: Expr) -> OfRounds:
    """The expression as a batch of functions: coefficients where it is a polynomial of degree two at most."""
    entries = int(np.prod(known(expr.shape), dtype=np.int64))
    order = degree(expr, rounds.decisions)
    diagonal = order <= 1 or all(separable(part, rounds.decisions) for part in entries_of(expr))
    general = General(rounds, expr, entries, diagonal)
    return coefficients(general, order) if order <= 2 else general


def entries_of(expr: Expr) -> Sequence[Expr]:
    """The entries of a vector expression as scalar ones."""
    if expr.shape == ():
        return (expr,)
    return tuple(
        algebra.index(expr, tuple(constant(int(i)) for i in place)) for place in np.ndindex(*known(expr.shape))
    )


def coefficients(general: General, order: float) -> Quadratic:
    """Read the coefficients off the derivatives at zero; those of functions that no stream enters are kept for one round."""
    rounds = general.rounds
    fixed = not enters(general.expr, rounds)
    rows = np.arange(1 if fixed else rounds.count)
    origin = np.zeros((len(rows), rounds.problem.size))
    constant, linear = general.jet(origin, rows)
    if order <= 1:
        return Quadratic(constant, linear, None, True)
    unit = np.eye(general.entries)
    squares = [general.hessian(origin, np.broadcast_to(u, (len(rows), general.entries)), rows) for u in unit]
    return Quadratic(constant, linear, np.stack(squares, axis=1), general.diagonal)


def enters(expr: Expr, rounds: Rounds) -> bool:
    """Whether the round's data, or its number, enters an expression."""
    return any(isinstance(n, Name) and (n.name in rounds.streams or n.kind is Kind.ROUND) for n in walk(expr))
