"""From an expression to functions of rounds, in the form that is cheapest to differentiate."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.build import index
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, constant
from oco.evaluation.comparators.composite import affine, composite
from oco.evaluation.comparators.functions import General, OfRounds, Quadratic, Rounds
from oco.evaluation.comparators.structure import degree, separable

Array = np.ndarray[Any, Any]


def functions(rounds: Rounds, expr: Expr) -> OfRounds:
    """One function for each entry of the expression, in every round: by coefficients where it is a polynomial of degree two."""
    found = implicit(rounds, expr)
    if isinstance(found, Quadratic) or degree(expr, rounds.variables) > 2:
        return found
    rows = rounds.everything if rounds.enters(expr) else np.arange(1)
    origin, unit = np.zeros((1, rounds.size)), np.eye(found.entries)
    values, slopes = found.jet(origin, rows)
    squares = [found.hessian(origin, np.broadcast_to(u, (len(rows), found.entries)), rows) for u in unit]
    return Quadratic(values, slopes, np.stack(squares, axis=1), found.diagonal)


def implicit(rounds: Rounds, expr: Expr) -> OfRounds:
    """The same without a matrix for each round: coefficients of affine functions alone."""
    entries = int(np.prod(known(expr.shape), dtype=np.int64))
    if degree(expr, rounds.variables) <= 1:
        return affine(rounds, expr)
    diagonal = all(separable(part, rounds.variables) for part in entries_of(expr))
    return (None if diagonal else composite(rounds, expr, entries)) or General(rounds, expr, entries, diagonal)


def total(rounds: Rounds, expr: Expr, weight: float) -> OfRounds | None:
    """weight times the sum over the rounds, by coefficients; None where it is no polynomial of degree two."""
    order = degree(expr, rounds.variables)
    if order > 2:
        return None
    found = implicit(rounds, expr)
    fixed = not rounds.enters(expr)
    rows = np.arange(1) if fixed else rounds.everything
    times = weight * (rounds.count if fixed else 1)
    origin, unit = np.zeros((1, rounds.size)), np.eye(found.entries)
    values, slopes = found.summed_jet(origin, rows)
    if order <= 1:
        return Quadratic(times * values[None], times * slopes[None], None, True)
    squares = [found.summed_hessian(origin, np.broadcast_to(u, (len(rows), found.entries)), rows) for u in unit]
    return Quadratic(times * values[None], times * slopes[None], times * np.stack(squares)[None], found.diagonal)


def entries_of(expr: Expr) -> tuple[Expr, ...]:
    """The entries of a vector expression as scalar ones."""
    if expr.shape == ():
        return (expr,)
    return tuple(index(expr, tuple(constant(int(i)) for i in place)) for place in np.ndindex(*known(expr.shape)))
