"""One entry of an array expression as an expression of its own: the index is pushed down to the names and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import form_of, forms, is_entrywise
from oco.dsl.build import call, index
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Slice, constant

Position = tuple[int, ...]


def entry(expr: Expr, at: Position) -> Expr:
    """`expr[at]`, a number: `(A @ x - b)[1]` is `A[1] @ x - b[1]`."""
    if not expr.shape:
        return expr
    match expr:
        case Constant(value=data):
            return _constant(data.array[at], expr)
        case Call() if is_entrywise(expr):
            return call(expr.atom, *(entry(a, aligned(a, at)) for a in expr.args))
        case Call() if (result := _of_call(expr, at)) is not None:
            return result
        case Array(items=items):
            return entry(items[at[0]], at[1:])
        case Index(base=base, items=items) if len(at) == len(items) == len(base.shape) and _pairs(items):
            return index(base, tuple(entry(i, aligned(i, at)) for i in items))
    return index(expr, tuple(constant(i) for i in at))


def _of_call(expr: Call, at: Position) -> Expr | None:
    """An entry of a product, a transpose or a sum along an axis."""
    match form_of(expr), expr.args:
        case forms.MATRIX_PRODUCT, (left, right):
            row = part(left, at[0]) if len(left.shape) == 2 else left
            column = part(right, at[-1], axis=1) if len(right.shape) == 2 else right
            return call("matmul", row, column)
        case forms.TRANSPOSE, (base,):
            return entry(base, at[::-1])
        case forms.TOTAL, (base,) if len(base.shape) == 2 and len(at) == 1:
            return call(expr.atom, part(base, at[0], axis=1 - int(expr.option("axis") or 0)))
    return None


def part(expr: Expr, position: int, axis: int = 0) -> Expr:
    """Row (`axis` 0) or column (1) `position` of a matrix, with the index pushed down."""
    match expr:
        case Constant(value=data):
            return _constant(np.take(data.array, position, axis=axis), expr)
        case Call() if is_entrywise(expr):
            return call(expr.atom, *(_part_of(a, position, axis) for a in expr.args))
    match form_of(expr), expr.children:
        case forms.MATRIX_PRODUCT, (left, right):
            if axis == 0:
                return call("matmul", part(left, position), right)
            return call("matmul", left, part(right, position, axis=1))
        case forms.TRANSPOSE, (base,) if len(base.shape) == 2:
            return part(base, position, axis=1 - axis)
    at = constant(position)
    return index(expr, (at,) if axis == 0 else (Slice(), at))


def _part_of(arg: Expr, position: int, axis: int) -> Expr:
    """The part of an argument that stretches to a matrix."""
    rank = len(arg.shape)
    if rank == 2:
        return part(arg, position if arg.shape[axis] != 1 else 0, axis)
    if rank == 1 and axis == 1:
        return entry(arg, (position if arg.shape[0] != 1 else 0,))
    return arg


def aligned(arg: Expr, at: Position) -> Position:
    """The position in an argument that stretches to the shape in which `at` is a position."""
    own = at[len(at) - len(arg.shape) :] if arg.shape else ()
    return tuple(0 if dim == 1 else i for dim, i in zip(arg.shape, own))


def _pairs(items: tuple[Expr, ...]) -> bool:
    return not any(isinstance(i, Slice) for i in items)


def _constant(value: Any, origin: Constant) -> Constant:
    made = constant(np.asarray(value))
    return Constant(made.value, shape=made.shape, integer=origin.integer)
