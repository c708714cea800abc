"""Entries of expressions that are affine in decisions and streams, as multiples of the entries of another one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.by_round import by_round, cycle_of, over_like_rounds
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
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
    """Entries of an expression that is affine in decisions and streams: their value at 0, then their slopes, a table by the round, (P,
    entries, 1 + variables); None for others.
    """
    sizes = {b.name: b.shape for b in canonical.blocks} | {o.name: o.shape for o in canonical.streams}
    own = rewrite(expr, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in sizes else n)
    if not set(names(own)) <= {*sizes, *names(own, Kind.ROUND)} or not is_affine(own, tuple(sizes)):
        return None
    cycle, size = cycle_of(canonical, own), math.prod(shape)
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
    fits = {
        t: [(i, k) for i, z in enumerate(all_) if (k := _factor(row[1:], z[1:]))]
        for t, (row, all_) in enumerate(zip(rows, following, strict=True))
    }
    fitting = {t: own[0] for t, own in fits.items() if len(own) == 1}
    if not fitting:
        return None
    (i, k), *others = fitting.values()
    if any(j != i or abs(f - k) > SAME * abs(k) for j, f in others):
        return None
    holds = np.array([t in fitting for t in fits])
    return Multiple(i, k, np.where(holds, following[:, i, 0] - rows[:, 0] / k, 0.0), holds)


def _factor(row: Floats, z: Floats) -> float:
    """k with row = k z; 0 where there is none."""
    at = int(np.argmax(np.abs(z)))
    k = float(row[at] / z[at]) if z[at] else 0.0
    return k if k and np.allclose(row, k * z, rtol=SAME, atol=SAME * abs(k)) else 0.0
