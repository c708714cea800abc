"""Entries of expressions that are affine in decisions and streams, as multiples of the entries of another one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.problem.by_round import by_round, cycle_of, over_like_rounds
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.named_products import scaled_by_data, with_products_named
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
SAME = 1e-9
"""Relative difference up to which two numbers of a model are one."""


@dataclass(frozen=True, eq=False)
class Multiple:
    """Entry of an expression that is k (z_i - e), with z an entry of another one: k and i are the same in all rounds in which it `holds`.

    entry   i
    factor  k
    end     e in each round, (P,); 0 where it does not hold
    holds   rounds in which it is that, (P,)
    """

    entry: int
    factor: float
    end: Floats
    holds: Floats


def affine_rows(canonical: Canonical, expr: Expr, shape: tuple[int, ...]) -> Floats | None:
    """Entries of an expression that is affine in what is decided, its products with data of which states are made, and streams: their
    value at 0, then their slopes, a table by the round, (P, entries, 1 + variables); None for others.
    """
    products = decided_products(canonical)
    named, own = with_products_named(expr, scaled_by_data)
    if not own.keys() <= products.keys():
        return None
    decided, streams = ((o.name, o.shape) for o in canonical.blocks), ((o.name, o.shape) for o in canonical.streams)
    sizes = (*decided, *((n, known(e.shape)) for n, e in products.items()), *streams)
    return _rows(named, shape, sizes, canonical.horizon)


@lru_cache(maxsize=16)
def decided_products(canonical: Canonical) -> dict[str, Expr]:
    """Products of what is decided and of data in what follows states, by name."""
    by_state = (with_products_named(s.uncut, scaled_by_data)[1] for s in canonical.streams if s.uncut is not None)
    return {name: product for own in by_state for name, product in own.items()}


@lru_cache(maxsize=16)
def _rows(
    expr: Expr, shape: tuple[int, ...], variables: tuple[tuple[str, tuple[int, ...]], ...], horizon: int | None
) -> Floats | None:
    """Rows of an expression that is affine in these variables."""
    sizes = dict(variables)
    own = rewrite(expr, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in sizes else n)
    if not set(names(own)) <= {*sizes, *names(own, Kind.ROUND)} or not is_affine(own, tuple(sizes)):
        return None
    cycle, size = cycle_of(horizon, own), math.prod(shape)
    if cycle is None:
        return None
    at_zero = by_round(algebra.broadcast(own, shape), cycle, {n: np.zeros(size) for n, size in sizes.items()})
    parts = [at_zero.reshape(-1, size, 1)]
    for n, e in jacobian(algebra.broadcast(own, shape), sizes).items():
        table = by_round(algebra.broadcast(e, (*shape, *sizes[n])), cycle)
        parts.append(table.reshape(len(table), size, -1))
    return np.concatenate(over_like_rounds(parts), axis=2)


def multiples(canonical: Canonical, expr: Expr, following: Floats) -> list[Multiple] | None:
    """Entries of an expression as multiples of entries of that with these rows, (P, entries, 1 + variables), less ends; None where one has
    that form in no round, or another one from round to round.
    """
    own = affine_rows(canonical, expr, known(expr.shape))
    if own is None:
        return None
    own, following = over_like_rounds([own, following])
    result = [_multiple(own[:, j], following) for j in range(own.shape[1])]
    return None if None in result else [m for m in result if m is not None]


def _multiple(rows: Floats, following: Floats) -> Multiple | None:
    """Entry with these rows by the round, (P, 1 + variables), as a multiple of one of those that follow, (P, entries, 1 + variables)."""
    row, z = rows[:, None, 1:], following[:, :, 1:]
    at = np.argmax(abs(z), axis=2)[:, :, None]
    of_row, of_z = np.take_along_axis(np.broadcast_to(row, z.shape), at, 2), np.take_along_axis(z, at, 2)
    k = np.divide(of_row, of_z, out=np.zeros_like(of_z), where=of_z != 0)
    near = abs(row - k * z) <= SAME * abs(k) * (1 + abs(z))
    fits = near.all(axis=2) & (k[:, :, 0] != 0)
    holds = fits.sum(axis=1) == 1
    if not holds.any():
        return None
    entries, factors = np.argmax(fits, axis=1)[holds], k[:, :, 0][fits & holds[:, None]]
    i, factor = int(entries[0]), float(factors[0])
    if (entries != i).any() or (abs(factors - factor) > SAME * abs(factor)).any():
        return None
    return Multiple(i, factor, np.where(holds, following[:, i, 0] - rows[:, 0] / factor, 0.0), holds)
