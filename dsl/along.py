"""Reductions along the axis of an index, `sum(x, over = zone)`, and sums by groups of entries, `sum(x, by = at)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oco.dsl import build
from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.expression_names import describe
from oco.dsl.axes import axis_lengths
from oco.dsl.diagnostics import fail
from oco.dsl.dims import Dim, Shape, symbol
from oco.dsl.expressions import Constant, Expr, Kind, Name, constant
from oco.dsl.members import members_of
from oco.dsl.scope import Scope, check_fixed
from oco.dsl.source import Span
from oco.dsl.statements import Param

OVER, BY = "over", "by"
NAMED = (OVER, BY)
"""Options that are expressions; all others are numbers."""


def applied_along(
    atom: str, args: tuple[Expr, ...], options: Mapping[str, Any], scope: Scope, span: Span | None
) -> Expr:
    """Call of an atom with options, of which `over` is an index in the place of an axis, and `by` a group for each entry.

    Raises OCO551 where no axis, or more than one, is meant, and OCO552 where entries have no groups.
    """
    chosen = [n for n in ("axis", *NAMED) if n in options and n in ATOMS[atom].options]
    if len(args) != 1 or not set(chosen) & set(NAMED):
        return build.call(atom, *args, span=span, shape=None, **options)
    if len(chosen) > 1:
        both = " and ".join(f"`{n}`" for n in chosen)
        raise fail("OCO551", f"{both} each say which entries belong together", span, "keep one of them")
    if chosen == [BY]:
        return _totals(args[0], options[BY], scope, span)
    plain = {n: v for n, v in options.items() if n != OVER} | {"axis": _axis_over(args[0], options[OVER], scope)}
    return build.call(atom, *args, span=span, shape=None, **plain)


def _axis_over(x: Expr, index: Expr, scope: Scope) -> int:
    """Number of the axis of x whose entries an index names. Raises OCO551."""
    lengths = axis_lengths(x, scope.declared, scope.indexes)
    own = scope.declared.get(index.name) if isinstance(index, Name) else None
    if not isinstance(own, Param) or not own.is_index:
        message = f"`over` takes the name of an index; {describe(index, 'this')} is none"
        raise fail("OCO551", message, index.span, _axes_of(lengths))
    places = [k for k, length in enumerate(lengths) if length == symbol(own.name)]
    if len(places) == 1:
        return places[0]
    if not places:
        message = f"{describe(x, 'the argument')} has no axis over `{own.name}`"
        raise fail("OCO551", message, index.span, _axes_of(lengths))
    message = f"{describe(x, 'the argument')} has {len(places)} axes over `{own.name}`"
    raise fail("OCO551", message, index.span, f"say which: {' or '.join(f'`axis = {k}`' for k in places)}")


def _axes_of(lengths: Shape) -> str:
    """Axes of an argument as a message lists them: "its axes are `plant` (axis = 0) and 24 entries (axis = 1)"."""
    if not lengths:
        return "a number has no axes"
    parts = [_entries(length) for length in lengths]
    listed = " and ".join(f"{part} (axis = {k})" for k, part in enumerate(parts))
    return f"its axes are {listed}" if len(parts) > 1 else f"its only axis is {listed}"


def _entries(length: Dim) -> str:
    return f"{length} entries" if isinstance(length, int) else f"`{length}`"


def _totals(x: Expr, at: Expr, scope: Scope, span: Span | None) -> Expr:
    """Sums of the entries of x that belong to each group, as the product with a matrix of 0 and 1: `x @ eye(zone)[at]`."""
    groups = _number_of_groups(at, scope)
    members = scope.resolved(build.index(scope.resolved(build.call("eye", groups)), (at,), at.span))
    (length,) = axis_lengths(at, scope.declared, scope.indexes)
    lengths = axis_lengths(x, scope.declared, scope.indexes)
    places = [k for k, own in enumerate(lengths) if own == length]
    places = places or [k for k, own in enumerate(x.shape) if own == at.shape[0]]
    if len(places) != 1 or len(x.shape) > 2:
        message = f"{describe(at, 'this')} has a group for each of {_entries(length)}"
        if not places:
            raise fail("OCO552", f"{message}, and no axis of the argument has these", at.span, _axes_of(lengths))
        raise fail("OCO552", f"{message}, which is no one axis of a vector or a matrix", span, _axes_of(lengths))
    if places == [1] or len(x.shape) == 1:
        return build.call("matmul", x, members, span=span)
    return build.call("matmul", scope.resolved(build.call("transpose", members)), x, span=span)


def _number_of_groups(at: Expr, scope: Scope) -> Expr:
    """Length of the axis of groups: one more than the greatest number of one. Raises OCO552."""
    check_fixed(at, "what stands after `by`")
    own = scope.declared.get(at.name) if isinstance(at, Name) and at.kind is Kind.PARAM else None
    if not isinstance(own, Param) or own.bounds is None or not own.integer or len(own.shape) != 1:
        message = f"`by` takes a param with a group for each entry; {describe(at, 'this')} is none"
        hint = "declare one: `param at[plant] in zone = [...]`, or `param at[6] in 0..2 = [...]`"
        raise fail("OCO552", message, at.span, hint)
    last = own.bounds[1]
    for name in scope.declared.values():
        if isinstance(name, Param) and name.is_index and last == members_of(scope.name(name.name))[1]:
            return scope.name(name.name)
    return build.call("add", last, 1) if not isinstance(last, Constant) else constant(last.value.array + 1)
