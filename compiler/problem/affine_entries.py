"""Entries of expressions that are affine in decisions and streams, as multiples of the entries of another one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite

Floats = np.ndarray[Any, Any]
SAME = 1e-9
"""Relative difference up to which two numbers of a model are one."""


def affine_rows(canonical: Canonical, expr: Expr, shape: tuple[int, ...]) -> Floats | None:
    """Entries of an expression that is affine in decisions and streams: its value at 0, then its slopes, (entries, 1 + variables); None
    for others.
    """
    sizes = {b.name: b.shape for b in canonical.blocks} | {o.name: o.shape for o in canonical.streams}
    own = rewrite(expr, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in sizes else n)
    if not set(names(own)) <= set(sizes) or not is_affine(own, tuple(sizes)):
        return None
    slopes, size = jacobian(algebra.broadcast(own, shape), sizes), math.prod(shape)
    at_zero = evaluate(own, {n: np.zeros(size) for n, size in sizes.items()})
    parts = [np.broadcast_to(at_zero, shape).reshape(size, 1)]
    for n, e in slopes.items():
        parts.append(np.broadcast_to(evaluate(e, {}), (*shape, *sizes[n])).reshape(size, -1))
    return np.concatenate(parts, axis=1)


def factors_and_ends(canonical: Canonical, expr: Expr, following: Floats) -> list[tuple[int, float, float]] | None:
    """Entry i, factor k and end e of each entry k (z_i - e) of an expression, where z has these rows; None where one has another form."""
    own = affine_rows(canonical, expr, known(expr.shape))
    if own is None:
        return None
    result = list[tuple[int, float, float]]()
    for row in own:
        fits = [(i, k) for i, z in enumerate(following) if (k := _factor(row[1:], z[1:]))]
        if len(fits) != 1:
            return None
        (i, k) = fits[0]
        result.append((i, k, float(following[i, 0] - row[0] / k)))
    return result


def _factor(row: Floats, z: Floats) -> float:
    """k with row = k z; 0 where there is none."""
    at = int(np.argmax(np.abs(z)))
    k = float(row[at] / z[at]) if z[at] else 0.0
    return k if k and np.allclose(row, k * z, rtol=SAME, atol=SAME * abs(k)) else 0.0
