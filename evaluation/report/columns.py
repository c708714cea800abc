"""Columns of large arrays: equal ones, and the largest. Nothing of an array's size is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]

LOOKED_AT = 64  # rows, about, that tell columns apart
ENTRIES = 1 << 20  # that are looked at together
ODD, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True)
class Column:
    """Column `index` of array `part`, which represents `count` equal columns."""

    part: int
    index: int
    count: int


def largest(parts: Sequence[Array], size: Callable[[Array], Array], most: int) -> tuple[list[Column], int]:
    """Select at most `most` columns of arrays (T, n), the largest by `size` in their original order; also the number of
    distinct columns.

    size(array) gives a number for each column.
    """
    keys = np.concatenate([np.zeros(0, dtype=np.uint64), *map(_keys, parts)])
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    sizes = np.concatenate([np.zeros(0), *(_by_columns(size, part) for part in parts)])
    order = np.argsort(-sizes[first], kind="stable")[:most]
    order = order[np.argsort(first[order])]
    starts = np.cumsum([0, *(part.shape[1] for part in parts)])
    which = np.searchsorted(starts, first[order], side="right") - 1
    result = zip(which, first[order] - starts[which], counts[order])
    return [Column(int(part), int(index), int(count)) for part, index, count in result], len(first)


def _keys(values: Array) -> Array:
    """Hash for each column, equal where all sampled rows have the same bits; 0.0 and -0.0 count as one."""
    keys = np.zeros(values.shape[1], dtype=np.uint64)
    for row in values[:: max(1, len(values) // LOOKED_AT)]:
        bits = (np.asarray(row, dtype=np.float64) + 0.0).view(np.uint64)
        keys = (keys ^ bits) * ODD
        keys ^= keys >> HALF
    return keys


def _by_columns(size: Callable[[Array], Array], values: Array) -> Array:
    step = max(1, ENTRIES // max(1, len(values)))
    return np.concatenate([np.zeros(0), *(size(values[:, k : k + step]) for k in range(0, values.shape[1], step))])
