"""Functions of rounds from expressions, in the form that is cheapest to differentiate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from oco.compiler.problem.degrees import degree
from oco.dsl.build import index
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, constant
from oco.dsl.records import dataclass
from oco.evaluation.comparators.composite import affine, composite
from oco.evaluation.comparators.functions import ALL, General, OfRounds, QuadraticRounds, RoundArrays
from oco.evaluation.comparators.structure import separable

Array = np.ndarray[Any, Any]
TOGETHER = 1 << 20
"""Second derivatives of rounds that are in memory at once while sums are formed: 8 MB, of which the cache holds most."""


def functions(rounds: RoundArrays, expr: Expr) -> OfRounds:
    """Function for each entry of the expression, in every round: by coefficients where it is a polynomial of degree
    two.
    """
    result = implicit(rounds, expr)
    if isinstance(result, QuadraticRounds) or degree(expr, rounds.variables) > 2:
        return result
    rows = rounds.everything if rounds.enters(expr) else np.arange(1)
    origin, unit = np.zeros((1, rounds.size)), np.eye(result.entries)
    values, slopes = result.jet(origin, rows)
    squares = [result.hessian(origin, np.broadcast_to(u, (len(rows), result.entries)), rows) for u in unit]
    return QuadraticRounds(values, slopes, np.stack(squares, axis=1), result.diagonal)


def implicit(rounds: RoundArrays, expr: Expr) -> OfRounds:
    """Function of the expression without a matrix for each round: coefficients of affine functions alone."""
    entries = int(np.prod(known(expr.shape), dtype=np.int64))
    if degree(expr, rounds.variables) <= 1:
        return affine(rounds, expr)
    diagonal = all(separable(part, rounds.variables) for part in entries_of(expr))
    return (None if diagonal else composite(rounds, expr, entries)) or General(rounds, expr, entries, diagonal)


def total(rounds: RoundArrays, expr: Expr, ends: Array, weights: Array) -> QuadraticRounds | None:
    """Sum over the first ends_b rounds times weights_b, by coefficients; None where it is not a polynomial of degree
    two.

    The coefficients are added up once, whatever the number of sums, and those of a part of the rounds at a time.
    """
    if degree(expr, rounds.variables) > 2:
        return None
    step = max(1, TOGETHER // max(1, rounds.size**2))
    if ends[-1] <= step or not rounds.enters(expr):
        return _at_once(rounds, expr, ends, weights)
    result = RunningSum(expr)
    for start in range(0, int(ends[-1]), step):
        part = rounds.between(start, min(start + step, int(ends[-1])))
        result.add(part, ends[(ends > start) & (ends <= start + part.count)] - start)
    return result.times(weights)


def _at_once(rounds: RoundArrays, expr: Expr, ends: Array, weights: Array) -> QuadraticRounds:
    """Sums of a polynomial of degree two at most, from the coefficients of all rounds."""
    order, result = degree(expr, rounds.variables), implicit(rounds, expr)
    fixed = not rounds.enters(expr) or rounds.count == 1
    rows, cuts = (np.arange(1), ALL) if fixed else (np.arange(ends[-1]), np.append(0, ends[:-1]))

    def cumulated(parts: Array) -> Array:
        sums = parts * ends.reshape(-1, *[1] * (parts.ndim - 1)) if fixed else np.cumsum(parts, axis=0)
        return np.asarray(sums * weights.reshape(-1, *[1] * (parts.ndim - 1)))

    origin, unit = np.zeros((1, rounds.size)), np.eye(result.entries)
    values, slopes = map(cumulated, result.added_jet(origin, rows, cuts))
    if order <= 1:
        return QuadraticRounds(values, slopes, None, True)
    each = (result.added_hessian(origin, np.broadcast_to(u, (len(rows), result.entries)), rows, cuts) for u in unit)
    return QuadraticRounds(values, slopes, np.stack([cumulated(e) for e in each], axis=1), result.diagonal)


@dataclass(eq=False)
class RunningSum:
    """Sums of an expression over the first rounds, for rising ends, from consecutive parts of the rounds."""

    expr: Expr
    before: QuadraticRounds | None = None
    blocks: list[QuadraticRounds] = field(default_factory=list)

    def add(self, part: RoundArrays, ends: Array) -> None:
        """Add a part, which contains these ends (counted from its beginning)."""
        cuts = np.union1d(ends, part.count)
        more = _at_once(part, self.expr, cuts, np.ones(len(cuts)))
        assert more is not None
        whole = more if self.before is None else _of_parts(np.add, self.before, more)
        self.blocks.append(_of_parts(lambda a: a[: len(ends)], whole))
        self.before = _of_parts(lambda a: a[-1:], whole)

    def times(self, weights: Array) -> QuadraticRounds:
        """Sums, each times its weight."""
        together = _of_parts(lambda *a: np.concatenate(a), *self.blocks)
        return _of_parts(lambda a: a * weights.reshape(-1, *[1] * (a.ndim - 1)), together)


def _of_parts(change: Callable[..., Array], *of: QuadraticRounds) -> QuadraticRounds:
    """Coefficients made from those of quadratic functions, kind by kind."""
    squares = [q.square for q in of]
    square = None if any(s is None for s in squares) else change(*squares)
    return QuadraticRounds(change(*(q.constant for q in of)), change(*(q.linear for q in of)), square, of[0].diagonal)


def entries_of(expr: Expr) -> tuple[Expr, ...]:
    """Entries of a vector expression as scalar ones."""
    if expr.shape == ():
        return (expr,)
    return tuple(index(expr, tuple(constant(int(i)) for i in place)) for place in np.ndindex(*known(expr.shape)))
