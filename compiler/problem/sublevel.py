"""Rows g <= 0 with the sublevel set of a constraint, in forms under which a nearest point is found.

Where a constraint is a sum with one term that has kinks,

    max_i u_i(x) + r(x) <= 0   is   u_i(x) + r(x) <= 0 for all i,
    |v(x)| + r <= 0            is   |v(x)|^2 <= max(-r, 0)^2 for r without decisions, else v(x) = 0 is as near as it gets.

So `abs(x - prev(x)) <= ramp` is two affine rows, and `norm2(x - prev(x)) <= r` a smooth one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.problem.parts import DecisionBlock, Inequality
from oco.compiler.problem.structure import is_affine, is_separable
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms, kink_of, regularity_of
from oco.dsl.atoms.base import Regularity
from oco.dsl.build import applied
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, names, walk


def sublevel_rows(constraints: Sequence[Inequality], decisions: tuple[str, ...]) -> tuple[Inequality, ...]:
    """Inequalities that hold together where the constraints do; each keeps the label of the one that it comes from."""
    return tuple(replace(c, expr=e, shape=known(e.shape)) for c in constraints for e in _rows(c.expr, decisions))


def has_nearest_point(expr: Expr, blocks: Sequence[DecisionBlock]) -> bool:
    """True where the step knows the nearest point at which expr <= 0, for a convex one: under affine rows in every domain, under
    others where these are sums of functions of single entries over a box, or decisions are small and kinks finite in number.
    """
    decisions, boxes = tuple(b.name for b in blocks), all(b.domain.is_box for b in blocks)
    small = sum(b.domain.size for b in blocks) <= MAX_DENSE_ORDER
    return all(
        is_affine(row, decisions) or (boxes and is_separable(row, decisions)) or (small and _is_piecewise_smooth(row))
        for row in _rows(expr, decisions)
    )


def _is_piecewise_smooth(expr: Expr) -> bool:
    nonlinear = (n for n in walk(expr) if isinstance(n, Call) and names(n, Kind.DECISION))
    return all(regularity_of(n) is Regularity.SMOOTH or kink_of(n) is not None for n in nonlinear)


def _rows(expr: Expr, decisions: tuple[str, ...]) -> tuple[Expr, ...]:
    terms = list(_terms(expr, 1.0))
    nonlinear = [k for k, (_, e) in enumerate(terms) if names(e, Kind.DECISION) and not is_affine(e, decisions)]
    if len(nonlinear) != 1:
        return (expr,)
    weight, term = terms[nonlinear[0]]
    rest = _total([t for k, t in enumerate(terms) if k != nonlinear[0]])
    match form_of(term), term:
        case forms.Extreme() as form, Call() if form.largest == (weight > 0) and _over_all(term):
            pieces = form.pieces(algebra, *term.args)
            return tuple(r for u in pieces for r in _rows(_total([(weight, u), (1.0, rest)]), decisions))
        case forms.Total(root=True, mean=False) as form, Call() if weight > 0 and not names(rest, Kind.DECISION):
            squares = applied("sum", (algebra.call(form.of, *term.args),), term.options)
            side = algebra.call("pos", algebra.mul(algebra.number(-1.0 / weight), rest))
            return (algebra.sub(squares, algebra.mul(side, side)),)
    return (expr,)


def _over_all(call: Call) -> bool:
    """True for an extreme entry by entry, or over all entries: its pieces stretch to the rest of the row by themselves."""
    form = form_of(call)
    return isinstance(form, forms.Extreme) and (not form.over or call.option("axis") is None)


def _terms(expr: Expr, weight: float) -> Iterator[tuple[float, Expr]]:
    """Weights and terms of a sum."""
    match form_of(expr), expr:
        case forms.Signed(signs), Call(args=args):
            for sign, arg in zip(signs, args, strict=True):
                yield from _terms(arg, sign * weight)
        case forms.TIMES, Call(args=(Constant() as factor, other)) | Call(args=(other, Constant() as factor)) if (
            factor.shape == ()
        ):
            yield from _terms(other, weight * float(factor.value.array))
        case _:
            yield weight, expr


def _total(terms: Sequence[tuple[float, Expr]]) -> Expr:
    total: Expr = algebra.number(0.0)
    for weight, e in terms:
        total = algebra.add(total, e if weight == 1 else algebra.mul(algebra.number(weight), e))
    return total
