"""Interval evaluation of an expression: the range of every node's value, given the ranges of the names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.index import slice_ends
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Name, Slice, walk
from oco.dsl.intervals import Interval, interval, point


def enclosures(root: Expr, names: Mapping[str, Interval]) -> dict[int, Interval]:
    """Interval of every node under `root`, by its `id`. Sound: each encloses every value that the node takes."""
    results: dict[int, Interval] = {}
    for node in walk(root):
        if not isinstance(node, Slice):
            results[id(node)] = enclose_node(
                node, tuple(results[id(c)] for c in node.children if id(c) in results), names
            )
    return results


def enclose(expr: Expr, names: Mapping[str, Interval]) -> Interval:
    """Interval that encloses every value of the expression."""
    return enclosures(expr, names)[id(expr)]


def enclose_node(node: Expr, children: tuple[Interval, ...], names: Mapping[str, Interval]) -> Interval:
    """Interval of one node from those of its children (slices have none)."""
    match node:
        case Constant(value=value):
            return point(value.array)
        case Name(name=name):
            return names[name]
        case Call(atom=atom):
            bounds: Interval = ATOMS[atom].bounds(node, *children)
            return bounds
        case Array():
            lo, hi = (np.stack([end.expanded()[side] for end in children]) for side in (0, 1))
            return Interval(lo, hi, lo.shape)
        case Index():
            return _indexed(node, children[0], children[1:])
    raise InternalError(f"no range of a {type(node).__name__}")


def _indexed(node: Index, base: Interval, positions: tuple[Interval, ...]) -> Interval:
    """Interval of an index: exact where every index is known; otherwise the hull along its axis."""
    shape = known(node.shape)
    if base.lo.size == 1 and base.hi.size == 1:
        return interval(base.lo.reshape(()), base.hi.reshape(()), shape)
    lo, hi = base.expanded()
    remaining = iter(positions)
    places: list[Any] = []
    for axis, item in enumerate(node.items):
        if isinstance(item, Slice):
            places.append(slice(*known(slice_ends(item, base.shape[axis]))))
            continue
        where = next(remaining)
        if where.is_point:
            places.append(np.broadcast_to(where.lo, where.shape).astype(int))
            continue
        first, last = max(0, int(where.least)), min(base.shape[axis] - 1, int(min(where.greatest, 2.0**53)))
        window = [slice(None)] * lo.ndim
        window[axis] = slice(first, last + 1)
        lo, hi = lo[tuple(window)].min(axis, keepdims=True), hi[tuple(window)].max(axis, keepdims=True)
        places.append(np.zeros(where.shape, dtype=int))
    return Interval(lo[tuple(places)], hi[tuple(places)], shape)
