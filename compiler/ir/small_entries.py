"""Entries of small arrays in row order, and the operations that only move them: no arithmetic is left of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from oco.compiler.ir.program import DType, Equation, Literal, Operand, Type

Entries = tuple[Operand, ...]
Place = tuple[int, ...]


def places(shape: Sequence[int]) -> Iterator[Place]:
    """Every index of a shape, in row order."""
    return product(*(range(n) for n in shape))


def flat(place: Sequence[int], shape: Sequence[int]) -> int:
    """Position of an entry in row order."""
    return sum(i * math.prod(shape[k + 1 :]) for k, i in enumerate(place))


def entry_of(parts: Entries, shape: Sequence[int], place: Place) -> Operand:
    """The entry that NumPy's broadcasting puts at a place of a larger shape."""
    own = place[len(place) - len(shape) :]
    return parts[flat([0 if n == 1 else i for i, n in zip(own, shape)], shape)]


def transpose_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    shape = e.args[0].type.shape
    return tuple(args[0][flat(place[::-1], shape)] for place in places(shape[::-1]))


def broadcast_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    return tuple(entry_of(args[0], e.args[0].type.shape, place) for place in places(e.attr("shape")))


def slice_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    shape, starts = e.args[0].type.shape, e.attr("starts")
    return tuple(args[0][flat([i + s for i, s in zip(place, starts)], shape)] for place in places(e.outs[0].type.shape))


def concat_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    axis, at = e.attr("axis"), dict[Place, Operand]()
    done = 0
    for part, arg in zip(args, e.args):
        for place, entry in zip(places(arg.type.shape), part, strict=True):
            at[(*place[:axis], place[axis] + done, *place[axis + 1 :])] = entry
        done += arg.type.shape[axis]
    return tuple(at[place] for place in places(e.outs[0].type.shape))


def gather_entries(e: Equation, args: Sequence[Entries]) -> Entries | None:
    """With indices that are known."""
    shape, indices = e.args[0].type.shape, e.args[1:]
    if not all(isinstance(i, Literal) for i in indices):
        return None
    first = [int(i.value) for i in indices if isinstance(i, Literal)]
    rest = e.outs[0].type.shape
    return tuple(args[0][flat([*first, *place], shape)] for place in places(rest))


def diag_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    made = e.outs[0].type
    if len(made.shape) == 1:
        return tuple(args[0][flat([i, i], e.args[0].type.shape)] for i in range(made.shape[0]))
    return tuple(args[0][i] if i == j else _number(0, made.dtype) for i, j in places(made.shape))


def _number(value: int, kind: DType) -> Literal:
    return Literal({DType.FLOAT: float, DType.INT: int, DType.BOOL: bool}[kind](value), Type(kind))


def same_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    """Entries of an operation that keeps their row order."""
    return args[0]


def stack_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    return tuple(entry for part in args for entry in part)


def full_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    copies: int = math.prod(e.attr("shape"))
    return args[0] * copies


def iota_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    return tuple(_number(i, DType.INT) for i in range(e.attr("n")))


def eye_entries(e: Equation, args: Sequence[Entries]) -> Entries:
    return tuple(_number(i == j, DType.FLOAT) for i, j in places(e.outs[0].type.shape))


EntryRule = Callable[[Equation, Sequence[Entries]], Entries | None]
"""Rule of an operation without arithmetic: an equation and the entries of its arguments -> those of the result, or None."""
