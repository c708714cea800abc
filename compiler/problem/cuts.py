"""Domains as written, with affine cuts: `box(0, 1) with sum(x) <= 3`. Alike ones are one set, so that what it costs is paid once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from oco.compiler.domains import Domain, cut, make_domain
from oco.compiler.domains.programs import MOST_STEPS
from oco.compiler.domains.rows import check_rows
from oco.compiler.problem.jacobians import jacobian
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import known
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.model import Model
from oco.dsl.source import Span
from oco.dsl.statements import DomainSpec, Relation

Floats = np.ndarray[Any, Any]
FEWEST_STEPS = 5_000_000
"""Least limit on the steps of the linear programs of one decision: some ten small ones."""


class Sets:
    """The domains of a model, one object for all that are alike: what is worked out of it is worked out once."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Domain] = {}

    def made(self, spec: DomainSpec, shape: tuple[int, ...], values: Mapping[str, Any], steps: int) -> Domain:
        """The set that `spec` writes, as `make_domain` has it."""
        base = make_domain(spec, shape, values, steps)
        key = (type(base), *(_identity(getattr(base, f.name)) for f in fields(base)))
        return self._known.setdefault(key, base)

    def narrowed(
        self, base: Domain, name: str, cuts: Sequence[tuple[Expr, Relation, Span | None]], steps: int
    ) -> Domain:
        """{ x in base : each expression stands in its relation to 0 }. Errors where one is not affine, or where nothing is left."""
        rows = _all_rows(base, name, cuts)
        key = (id(base), *map(_identity, rows))
        if key not in self._known:
            try:
                self._known[key] = cut(base, *rows, steps)
            except OcoError as error:
                raise OcoError(*(replace(d, span=d.span or cuts[0][2]) for d in error.diagnostics)) from None
        return self._known[key]


def _identity(value: Any) -> Hashable:
    return (value.shape, value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value


def _all_rows(
    base: Domain, name: str, cuts: Sequence[tuple[Expr, Relation, Span | None]]
) -> tuple[Floats, Floats, Floats, Floats]:
    """A, b, E, f of A x <= b and E x = f."""
    inequalities, equalities = [_nothing(base)], [_nothing(base)]
    for expr, relation, span in cuts:
        A, b = _rows(expr, name, base, span)
        if relation is Relation.EQ:
            equalities.append((A, b))
        else:
            inequalities.append((A, b) if relation is Relation.LE else (-A, -b))
    (A, b), (E, f) = (
        tuple(np.concatenate(parts) for parts in zip(*result, strict=True)) for result in (inequalities, equalities)
    )
    return A, b, E, f


def _nothing(base: Domain) -> tuple[Floats, Floats]:
    return np.zeros((0, base.size)), np.zeros(0)


def _rows(expr: Expr, name: str, base: Domain, span: Span | None) -> tuple[Floats, Floats]:
    """A of shape (k, size) and b with A x - b = expr, entry by entry."""
    shape = known(expr.shape)
    count = int(np.prod(shape, dtype=np.int64))
    check_rows(count, base.size, f"the domain of `{name}`", span)
    slopes = jacobian(expr, (name,))[name]
    if names(slopes, Kind.DECISION):
        raise fail("OCO419", f"what narrows the domain of `{name}` must be affine in it", span)
    A = np.broadcast_to(np.asarray(evaluate(slopes, {}), dtype=np.float64), (*shape, *base.shape))
    at_zero = np.broadcast_to(evaluate(expr, {name: np.zeros(base.shape)}), shape)
    return A.reshape(count, base.size), -np.asarray(at_zero, dtype=np.float64).reshape(count)


def steps_each(model: Model) -> int:
    """Limit on the steps of the linear programs of one decision: a share of those of all."""
    polyhedra = sum(DOMAINS[d.domain.kind].polyhedral or bool(d.domain.cuts) for d in model.decisions)
    return max(MOST_STEPS // max(1, polyhedra), FEWEST_STEPS)
