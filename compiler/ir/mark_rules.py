"""Rules of operations on marks: the entry of the decisions that each entry depends on (see `compiler/problem/structure.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NONE, SUM, MIXED = -1, -2, -3
"""A mark is the number of an entry, from 0, or no entry; a sum of functions of single entries; anything else."""

Marks = np.ndarray[Any, Any]
MarkRule = Callable[..., Marks]


def first_marks(a: Marks) -> Marks:
    return a


def add_marks(*parts: Marks) -> Marks:
    """Marks of a sum."""
    first, *rest = np.broadcast_arrays(*parts)
    for other in rest:
        worst = np.where(np.minimum(first, other) == MIXED, MIXED, SUM)
        first = np.where(
            first == NONE, other, np.where((other == NONE) | ((first == other) & (first > NONE)), first, worst)
        )
    return first


def apply_marks(*parts: Marks) -> Marks:
    """Marks of a function of several arguments, nonlinear in each."""
    first, *rest = np.broadcast_arrays(*parts)
    first = np.where(first == SUM, MIXED, first)
    for other in rest:
        other = np.where(other == SUM, MIXED, other)
        first = np.where(first == NONE, other, np.where((other == NONE) | (first == other), first, MIXED))
    return first


def times_marks(a: Marks, b: Marks) -> Marks:
    a, b = np.broadcast_arrays(a, b)
    return np.where(a == NONE, b, np.where(b == NONE, a, apply_marks(a, b)))


def divide_marks(a: Marks, b: Marks) -> Marks:
    a, b = np.broadcast_arrays(a, b)
    return np.where(b == NONE, a, apply_marks(a, b))


def reduce_marks(marks: Marks, axis: int | None, several: int) -> Marks:
    """Marks of a reduction: of one argument its own, of `several` different ones the given mark."""
    flat = marks.reshape(-1) if axis is None else np.moveaxis(marks, axis, -1)
    least = np.min(np.where(flat >= 0, flat, np.iinfo(np.int64).max), axis=-1, initial=np.iinfo(np.int64).max)
    most = np.max(np.where(flat >= 0, flat, NONE), axis=-1, initial=NONE)
    lowest = np.min(flat, axis=-1, initial=NONE)
    one = np.where(most == NONE, NONE, np.where(least == most, most, several))
    nonlinear = np.where(lowest == MIXED, MIXED, several)
    return np.asarray(np.where(lowest < NONE, nonlinear, one))


def matmul_marks(a: Marks, b: Marks) -> Marks:
    shape = np.matmul(np.zeros(a.shape), np.zeros(b.shape)).shape
    if (a == NONE).all():
        return np.broadcast_to(reduce_marks(b, 0, SUM), shape)
    if (b == NONE).all():
        kept = reduce_marks(a, -1, SUM)
        return np.broadcast_to(kept[..., None] if b.ndim > 1 else kept, shape)
    if a.ndim == b.ndim == 1:
        return reduce_marks(times_marks(a, b), None, SUM)
    return np.full(shape, MIXED)


def where_marks(condition: Marks, a: Marks, b: Marks) -> Marks:
    return add_marks(a, b) if (condition == NONE).all() else apply_marks(condition, a, b)


def sum_marks(a: Marks, axis: int | None = None) -> Marks:
    return reduce_marks(a, axis, SUM)


def mixed_marks(a: Marks, axis: int | None = None) -> Marks:
    """Marks of a reduction that is no sum."""
    return reduce_marks(a, axis, MIXED)


def outer_marks(a: Marks, b: Marks) -> Marks:
    return times_marks(a.reshape(a.shape + (1,) * b.ndim), b)


def diag_marks(a: Marks) -> Marks:
    return np.diagonal(a) if a.ndim == 2 else np.where(np.eye(len(a), dtype=bool), np.diag(a), NONE)
