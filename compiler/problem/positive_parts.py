"""Kinks of expressions as positive parts of affine rows: max(a, b) = b + [a - b]_+, min(a, b) = a - [a - b]_+, and rows that are multiples
of each other, whose kinks lie in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.named_products import any_product, with_products_named
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, names, rewrite, walk
from oco.dsl.records import dataclass

ROUNDING = 1e-9
"""Relative difference up to which slopes are the same."""
Slopes = Mapping[str, np.ndarray[Any, Any]]
"""Slopes of an affine expression by name; under "" its value at 0."""


@dataclass(frozen=True, eq=False)
class PositivePart:
    """Expression `rest` + [row]_+ where it `adds`, else `rest` - [row]_+, with a row that is affine in the decisions."""

    row: Expr
    rest: Expr
    adds: bool


def positive_part(node: Expr, decisions: tuple[str, ...]) -> PositivePart | None:
    """Largest or smallest of two, entry by entry, as a positive part; None for any other node, and where decisions do not enter or where
    other names of kind decision stand in it."""
    form = form_of(node)
    if not isinstance(node, Call) or not isinstance(form, forms.Extreme) or form.over:
        return None
    pieces, own = form.pieces(algebra, *node.args), set(names(node, Kind.DECISION))
    if len(pieces) != 2 or not own or not own <= set(decisions):
        return None
    more, less = pieces
    above = algebra.mul(algebra.number(2), more) if form is forms.SIZE else algebra.sub(more, less)
    row = algebra.broadcast(above, node.shape)
    return PositivePart(row, less if form.largest else more, form.largest) if is_affine(row, decisions) else None


def without_entrywise_sums(node: Expr) -> Expr:
    """Expression with the total of an entrywise atom as a sum: norm1(v) as sum(abs(v))."""
    form = form_of(node)
    if not isinstance(node, Call) or not isinstance(form, forms.Total) or not form.entrywise or node.options:
        return node
    part = call(form.of, node.args[0])
    return call("sum", part) if node.args[0].shape else part


def slopes_of(expr: Expr) -> Slopes | None:
    """Value at 0 and slopes with respect to all names of an expression, products of names counting as names; None where it is not affine in
    them."""
    named, _ = with_products_named(expr, any_product)
    free = rewrite(named, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) else n)
    variables = {n.name: n.shape for n in walk(free) if isinstance(n, Name)}
    if not is_affine(free, tuple(variables)):
        return None
    zero = evaluate(free, {n: np.zeros(known(shape)) for n, shape in variables.items()})
    slopes = jacobian(free, tuple(variables))
    return {"": np.asarray(zero), **{n: np.asarray(evaluate(e, {})) for n, e in slopes.items()}}


def multiple(one: Slopes | None, other: Slopes | None) -> float:
    """Factor k where one expression is k times the other; else 0."""
    if one is None or other is None or one.keys() != other.keys():
        return 0.0
    a, b = (np.concatenate([np.broadcast_to(s[n], one[n].shape).ravel() for n in one]) for s in (one, other))
    at = int(np.argmax(abs(b)))
    k = float(a[at] / b[at]) if b[at] else 0.0
    return k if np.allclose(a, k * b, rtol=ROUNDING, atol=ROUNDING * abs(k)) else 0.0
