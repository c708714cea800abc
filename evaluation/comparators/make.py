"""Functions of rounds from expressions, in the form that is cheapest to differentiate."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.problem.degrees import degree
from oco.dsl.build import index
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, constant
from oco.evaluation.comparators.composite import affine, composite
from oco.evaluation.comparators.functions import ALL, General, OfRounds, QuadraticRounds, RoundArrays
from oco.evaluation.comparators.structure import separable

Array = np.ndarray[Any, Any]


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

    The coefficients are added up once, whatever the number of sums.
    """
    order = degree(expr, rounds.variables)
    if order > 2:
        return None
    result = implicit(rounds, expr)
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


def entries_of(expr: Expr) -> tuple[Expr, ...]:
    """Entries of a vector expression as scalar ones."""
    if expr.shape == ():
        return (expr,)
    return tuple(index(expr, tuple(constant(int(i)) for i in place)) for place in np.ndindex(*known(expr.shape)))
