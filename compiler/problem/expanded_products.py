"""Products of two affine functions of one decision, as linear terms and a square: what is earned at a price and the demand at it,

    price * (a - b price) = a price - b price^2.

Composition judges the right form by the sign of b, and steps solve it entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.problem.jacobians import diagonal
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.enclose import enclose
from oco.dsl.expressions import Expr, Index, Kind, Name, constant, names, rewrite, walk
from oco.dsl.intervals import Interval

OWN = "_own"


def with_products_expanded(function: Expr, ranges: Mapping[str, Interval]) -> Expr:
    """Function with each such product expanded whose square has a factor of one sign for all data in these ranges."""
    if not any(_is_product(n) for n in walk(function)):
        return function
    return rewrite(function, lambda node: _expanded(node, ranges) if _is_product(node) else node)


def _is_product(node: Expr) -> bool:
    return form_of(node) is forms.TIMES and all(names(c, Kind.DECISION) for c in node.children)


def _expanded(node: Expr, ranges: Mapping[str, Interval]) -> Expr:
    """Product as a sum, or as it is."""
    parts = _parts(node)
    if parts is None:
        return node
    entry, (u, du), (v, dv) = parts
    square = algebra.mul(du, dv)
    if not set(names(square)) <= ranges.keys():
        return node
    sign = enclose(square, ranges)
    if not (sign.least >= 0.0 or sign.greatest <= 0.0):
        return node
    linear = algebra.mul(algebra.add(algebra.mul(u, dv), algebra.mul(v, du)), entry)
    return algebra.add(algebra.add(algebra.mul(u, v), linear), algebra.mul(square, call("square", entry)))


def square_in(node: Expr) -> Expr | None:
    """Factor of the square in a product of two affine functions of one decision; None for any other expression."""
    parts = _parts(node) if _is_product(node) else None
    return None if parts is None else algebra.mul(parts[1][1], parts[2][1])


def _parts(product: Expr) -> tuple[Expr, tuple[Expr, Expr], tuple[Expr, Expr]] | None:
    """Decision, and the value at 0 and the slope of either factor, entry by entry; None where they are not affine in one decision."""
    entries = {e for c in product.children for e in _decided(c)}
    entry = entries.pop()
    if entries or any(e.shape != product.shape for e in (entry, *product.children)):
        return None
    own = Name(OWN, Kind.DECISION, shape=entry.shape)
    one, other = (_affine(rewrite(c, lambda n: own if n == entry else n)) for c in product.children)
    return None if one is None or other is None else (entry, one, other)


def _decided(expr: Expr) -> list[Expr]:
    """Decisions in an expression, with their indices where they are indexed."""
    nodes = list(walk(expr))
    indexed = [n for n in nodes if isinstance(n, Index) and isinstance(n.base, Name) and n.base.kind is Kind.DECISION]
    within = {id(n.base) for n in indexed}
    return [*indexed, *(n for n in nodes if isinstance(n, Name) and n.kind is Kind.DECISION and id(n) not in within)]


def _affine(expr: Expr) -> tuple[Expr, Expr] | None:
    """Value at 0 and slope, entry by entry, of an expression that is affine in `OWN` alone; None for others."""
    if set(names(expr, Kind.DECISION)) != {OWN} or not is_affine(expr, (OWN,)):
        return None
    slope = diagonal(expr, OWN)
    zero = algebra.broadcast(constant(0.0), known(expr.shape))
    return (
        None
        if slope is None
        else (rewrite(expr, lambda n: zero if isinstance(n, Name) and n.name == OWN else n), slope)
    )
