"""A domain as written with affine cuts, `box(0, 1) with sum(x) <= 3`: from expressions to rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.domains import Domain, cut
from oco.compiler.jacobians import jacobian
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.model import Relation
from oco.dsl.source import Span

Floats = np.ndarray[Any, Any]
MOST_ENTRIES = 10**7
"""Entries of all rows together that are written out."""


def narrowed(base: Domain, name: str, cuts: Sequence[tuple[Expr, Relation, Span | None]], steps: int) -> Domain:
    """{ x in base : each expression stands in its relation to 0 }. Errors where one is not affine, or where nothing is left."""
    inequalities, equalities = [_nothing(base)], [_nothing(base)]
    for expr, relation, span in cuts:
        A, b = _rows(expr, name, base, span)
        if relation is Relation.EQ:
            equalities.append((A, b))
        else:
            inequalities.append((A, b) if relation is Relation.LE else (-A, -b))
    (A, b), (E, f) = (
        tuple(np.concatenate(parts) for parts in zip(*found, strict=True)) for found in (inequalities, equalities)
    )
    try:
        return cut(base, A, b, E, f, steps)
    except OcoError as error:
        raise OcoError(*(replace(d, span=d.span or cuts[0][2]) for d in error.diagnostics)) from None


def _nothing(base: Domain) -> tuple[Floats, Floats]:
    return np.zeros((0, base.size)), np.zeros(0)


def _rows(expr: Expr, name: str, base: Domain, span: Span | None) -> tuple[Floats, Floats]:
    """A of shape (k, size) and b with A x - b = expr, entry by entry."""
    shape = known(expr.shape)
    count = int(np.prod(shape, dtype=np.int64))
    if count * base.size > MOST_ENTRIES:
        said = f"{count} rows of {base.size} entries are more numbers than are written out"
        raise fail("OCO419", said, span, "narrow the domain by fewer rows")
    slopes = jacobian(expr, (name,))[name]
    if names(slopes, Kind.DECISION):
        raise fail("OCO419", f"what narrows the domain of `{name}` must be affine in it", span)
    A = np.broadcast_to(np.asarray(evaluate(slopes, {}), dtype=np.float64), (*shape, *base.shape))
    at_zero = np.broadcast_to(evaluate(expr, {name: np.zeros(base.shape)}), shape)
    return A.reshape(count, base.size), -np.asarray(at_zero, dtype=np.float64).reshape(count)
