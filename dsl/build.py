"""Typed expressions from parts: shapes are inferred and checked in this one place, for both the text and the builder."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS, Atom
from oco.dsl.atoms.expression_names import describe
from oco.dsl.atoms.index import index_shape
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.dims import Shape, show
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, constant
from oco.dsl.source import Span

Operand = Expr | float | int | np.ndarray[Any, Any]


def call(
    atom: str, *args: Operand, span: Span | None = None, shape: Shape | None = None, **options: int | float
) -> Call:
    """Apply an atom to arguments, inferring its shape.

    Numbers and arrays among the arguments become constants. `shape` is for the internal atoms whose result is reshaped.
    Raises OcoError (OCO301 to OCO308) when the arguments do not fit.
    """
    exprs = tuple(a if isinstance(a, Expr) else constant(a) for a in args)
    return applied(atom, exprs, tuple(options.items()), span, shape)


def applied(
    atom: str,
    args: tuple[Expr, ...],
    options: tuple[tuple[str, int | float], ...] = (),
    span: Span | None = None,
    shape: Shape | None = None,
) -> Call:
    """Apply an atom as `call` does, with the parts as they stand in a node."""
    if atom not in ATOMS:
        raise InternalError(f"there is no atom {atom}")
    row = ATOMS[atom]
    args, given = _by_name(row, args, dict(options))
    _check_arity(row, len(args), span)
    draft = Call(atom, args, _options(row, args, given, span), shape=shape or (), span=span)
    result = row.shape(draft)
    return Call(
        atom, args, draft.options, shape=result, integer=row.integer(draft) if row.integer else False, span=span
    )


def index(base: Expr, items: tuple[Expr, ...], span: Span | None = None) -> Index:
    """Index `base[items]` by NumPy's rules; known items are checked against the base's shape (OCO310 to OCO314)."""
    shape = index_shape(base, items, span)
    return Index(base, items, shape=shape, integer=base.integer, span=span)


def array(items: tuple[Expr, ...], span: Span | None = None) -> Array | Constant:
    """Array `[a, b, c]`: entries of one shape, stacked along a new first axis. Plain numbers make a constant."""
    if not items:
        raise fail("OCO315", "an array needs at least one entry", span)
    for i, item in enumerate(items):
        if item.shape != items[0].shape:
            first, other = (f"has shape {show(e.shape)}" if e.shape else "is a number" for e in (items[0], item))
            raise fail(
                "OCO315", f"the entries of an array have one shape: entry 0 {first}, entry {i} {other}", item.span
            )
    integer = all(item.integer for item in items)
    if all(isinstance(item, Constant) for item in items):
        return constant(np.array([item.value.array for item in items if isinstance(item, Constant)]), span)
    return Array(items, shape=(len(items), *items[0].shape), integer=integer, span=span)


def _by_name(
    row: Atom, args: tuple[Expr, ...], options: dict[str, int | float]
) -> tuple[tuple[Expr, ...], dict[str, int | float]]:
    """Arguments in order, with those given by name moved to their places: huber(x, M = 2)."""
    for place, name in enumerate(row.by_name, start=1):
        if name in options and len(args) == place:
            args = (*args, constant(options.pop(name)))
    return args, options


def _check_arity(row: Atom, given: int, span: Span | None) -> None:
    least, greatest = row.arity
    if given >= least and (greatest is None or given <= greatest):
        return
    wanted = f"at least {least}" if greatest is None else str(least) if least == greatest else f"{least} to {greatest}"
    hint = ""
    if row.several and greatest is not None and given > greatest:
        hint = f"for the {row.several} of several arguments, entry by entry, write {row.several}(...)"
    elif "axis" in row.options and given == 2:
        hint = f"an axis is given by name: {row.name}(x, axis = 0)"
    plural = "" if wanted == "1" else "s"
    raise fail("OCO303", f"{row.name} takes {wanted} argument{plural}, here it has {given}", span, hint)


def _options(
    row: Atom, args: tuple[Expr, ...], given: dict[str, int | float], span: Span | None
) -> tuple[tuple[str, int | float], ...]:
    for name in given:
        if name not in row.options:
            takes = (*row.by_name, *row.options)
            known = f"it takes {', '.join(takes)}" if takes else "it takes none"
            known = f"{name} is given already" if name in row.by_name else known
            raise fail("OCO304", f"{row.name} has no option {name}", span, known)
    if "axis" in given:
        rank, axis = len(args[0].shape), given["axis"]
        if int(axis) != axis or not -rank <= axis < rank:
            message = ("a number has no axes", "its only axis is 0", "its axes are 0 and 1")
            last = message[rank] if rank < len(message) else f"its axes are 0 to {rank - 1}"
            raise fail("OCO305", f"{describe(args[0], 'the argument')} has no axis {axis}", span, last)
        given = given | {"axis": int(axis) % rank}
    return tuple(sorted(given.items()))
