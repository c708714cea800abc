"""Ranges over many boxes at once: every name may carry a leading axis of cells, and so does the answer.

Covers the atoms of small expressions (entrywise ones, sums, norms, products, fixed indices); others are refused, never guessed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from oco.dsl.atoms import ATOMS, form_of, forms, is_entrywise
from oco.dsl.atoms.index import slice_ends
from oco.dsl.build import applied
from oco.dsl.dims import Shape, known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, walk
from oco.dsl.intervals import Interval, point

MOST_NUMBERS = 2_000_000  # in one array
CELL = 0.1  # steps that a number takes for each part of an expression


class NotCovered(Exception):
    """The expression holds something that is not evaluated over cells, or too many numbers."""


def over_cells(expr: Expr, box: Mapping[str, Interval], cells: Mapping[str, Interval], count: int) -> Interval:
    """The range of `expr` in each of `count` cells: shape (count, *expr.shape).

    `box` gives the ranges of the names that do not change from cell to cell, `cells` the others, with the cells first.
    Raises NotCovered where that cannot be done.
    """
    results: dict[int, Interval] = {}
    nodes = [n for n in walk(expr) if not isinstance(n, Slice)]
    waiting = Counter(id(c) for n in nodes for c in n.children)
    for node in nodes:
        results[id(node)] = _node(node, results, box, cells, count)
        for c in node.children:  # what every parent has read is let go, so that few arrays are held at a time
            waiting[id(c)] -= 1
            if not waiting[id(c)]:
                results.pop(id(c), None)
    return results[id(expr)]


def _node(
    node: Expr, results: Mapping[int, Interval], box: Mapping[str, Interval], cells: Mapping[str, Interval], count: int
) -> Interval:
    """Ranges of shape (1 or count, *shape)."""
    match node:
        case Constant(value=data):
            return _lead(point(data.array))
        case Name(name=name) if name in cells:
            return cells[name]
        case Name(name=name):
            return _lead(box[name])
        case Call() if is_entrywise(node):
            args = [_ranked(results[id(a)], len(node.shape)) for a in node.args]
            _within(math.prod(np.broadcast_shapes(*(end.shape for a in args for end in (a.lo, a.hi)))))
            result: Interval = ATOMS[node.atom].bounds(node, *args)
            return result
        case Call(args=(values, *items)) if isinstance(form_of(node), forms.Scattered):
            return _scattered(node, results[id(values)], tuple(items))
        case Call() if not any(isinstance(a, Slice) for a in node.args):
            return _call(node, [results[id(a)] for a in node.args])
        case Index(base=base, items=items):
            _within(math.prod(results[id(base)].shape))
            return _indexed(node, results[id(base)], items)
        case Array(items=items):
            parts = [results[id(i)] for i in items]
            lo = np.stack(np.broadcast_arrays(*(p.expanded()[0] for p in parts)), axis=1)
            hi = np.stack(np.broadcast_arrays(*(p.expanded()[1] for p in parts)), axis=1)
            return Interval(lo, hi, lo.shape)
    raise NotCovered


def _within(numbers: int) -> None:
    if numbers > MOST_NUMBERS:
        raise NotCovered


def _lead(x: Interval) -> Interval:
    return Interval(_padded(x.lo, len(x.shape)), _padded(x.hi, len(x.shape)), (1, *x.shape))


def _padded(end: np.ndarray, rank: int) -> np.ndarray:
    """An end that broadcasts to a shape of `rank` axes, with a first axis for the cells."""
    return end.reshape((1,) + (1,) * (rank - end.ndim) + end.shape)


def _ranked(x: Interval, rank: int) -> Interval:
    """Insert axes of length one after that of the cells, so that it aligns with an array of `rank` axes."""
    own = len(x.shape) - 1
    if own == rank:
        return x
    missing = (1,) * (rank - own)
    lo, hi = np.broadcast_arrays(x.lo, x.hi)
    lo, hi = (end.reshape((1,) * (own + 1 - end.ndim) + end.shape) for end in (lo, hi))
    return Interval(
        lo.reshape((lo.shape[0], *missing, *lo.shape[1:])),
        hi.reshape((hi.shape[0], *missing, *hi.shape[1:])),
        (x.shape[0], *missing, *x.shape[1:]),
    )


def _call(node: Call, args: list[Interval]) -> Interval:
    row, of = ATOMS[node.atom], tuple(known(a.shape) for a in node.args)
    match row.form, args:
        case _, (base,) if "axis" in row.options:
            return _along(node, base, of[0])
        case forms.Total(entry, mean=False, root=False), (base,) if entry:
            return _summed(ATOMS[entry].bounds(node, base))
        case forms.MATRIX_PRODUCT, (left, right):
            return _product(node, left, right)
        case forms.TRANSPOSE, (base,) if len(node.shape) < 3:
            _within(math.prod(base.shape))
            lo, hi = base.expanded()
            turned = (0, *range(len(node.shape), 0, -1))
            return Interval(lo.transpose(turned), hi.transpose(turned), (base.shape[0], *known(node.shape)))
        case forms.Stretched(), (base,):
            return _stretched(base, known(node.shape))
        case forms.Reshaped(), (base,):
            _within(math.prod(base.shape))
            return _reshaped(base, known(node.shape))
        case forms.Quadratic(), (vector, matrix):
            spread = _ranked(vector, 2).reshape((vector.shape[0], vector.shape[1], 1)) * _ranked(vector, 2) * matrix
            return _summed(spread)
    raise NotCovered


def _along(node: Call, base: Interval, of: tuple[int, ...]) -> Interval:
    """An atom of all entries, or of those along an axis: the atom along the axis behind that of the cells."""
    axis = node.option("axis")
    if axis is None and len(of) != 1:
        _within(math.prod(base.shape))
        base, of = _reshaped(base, (math.prod(of),)), (math.prod(of),)
    stacked = Name("cells", Kind.STREAM, shape=(base.shape[0], *of))
    whole = applied(node.atom, (stacked,), (("axis", 0 if axis is None else int(axis)),))
    shifted = replace(whole, options=(("axis", 1 if axis is None else int(axis) + 1),))
    result: Interval = ATOMS[node.atom].bounds(shifted, base)
    shape = known(node.shape)
    return result if result.shape[1:] == shape else _reshaped(result, shape)


def _stretched(x: Interval, shape: tuple[int, ...]) -> Interval:
    ranked = _ranked(x, len(shape))
    return Interval(ranked.lo, ranked.hi, (x.shape[0], *shape))


def _summed(x: Interval) -> Interval:
    while len(x.shape) > 1:
        x = x.sum(len(x.shape) - 1)
    return x


def _product(node: Call, left: Interval, right: Interval) -> Interval:
    """The matrix product, cell by cell: entrywise products, summed."""
    a, b = (known(arg.shape) for arg in node.args)
    if math.prod(a) * (b[-1] if len(b) == 2 else 1) * max(left.shape[0], right.shape[0]) > MOST_NUMBERS:
        raise NotCovered
    if len(a) == 1 and len(b) == 1:
        return _summed(left.square() if node.args[0] is node.args[1] else left * right)
    first = left if len(a) == 2 else _reshaped(left, (1, *a))
    second = right if len(b) == 2 else _reshaped(right, (*b, 1))
    rows, meet, columns = first.shape[1], first.shape[2], second.shape[2]
    product = _reshaped(first, (rows, meet, 1)) * _reshaped(second, (1, meet, columns))
    total = product.sum(2)
    return _reshaped(total, known(node.shape))


def _reshaped(x: Interval, shape: tuple[int, ...]) -> Interval:
    lo, hi = x.expanded()
    full = (x.shape[0], *shape)
    return Interval(lo.reshape(full), hi.reshape(full), full)


def _indexed(node: Index, base: Interval, items: tuple[Expr, ...]) -> Interval:
    """Indices that are known."""
    places = _places(items, node.base.shape)
    lo, hi = base.expanded()
    return Interval(lo[places], hi[places], (base.shape[0], *known(node.shape)))


def _scattered(node: Call, values: Interval, items: tuple[Expr, ...]) -> Interval:
    """Zeros, but for values at places that are known, each at a place of its own."""
    shape = known(node.shape)
    _within(values.shape[0] * math.prod(shape))
    places = _places(items, node.shape)
    taken = np.arange(math.prod(shape)).reshape(shape)[places[1:]]
    if len(set(taken.ravel().tolist())) < taken.size:
        raise NotCovered
    full = (values.shape[0], *shape)
    lo, hi = np.zeros(full), np.zeros(full)
    lo[places], hi[places] = values.expanded()
    return Interval(lo, hi, full)


def _places(items: tuple[Expr, ...], shape: Shape) -> tuple[slice | np.ndarray, ...]:
    """The index into an array with cells before its axes."""
    places: list[slice | np.ndarray] = [slice(None)]
    for item, dim in zip(items, shape):
        if isinstance(item, Slice):
            start, stop = slice_ends(item, dim)
            places.append(slice(int(str(start)), int(str(stop))))
        elif isinstance(item, Constant):
            places.append(np.asarray(item.value.array))
        else:
            raise NotCovered
    if _separated(places[1:]):
        raise NotCovered
    return tuple(places)


def _separated(places: list[slice | np.ndarray]) -> bool:
    """True if NumPy would move the axes of the arrays to the front: arrays with a slice between them."""
    arrays = [k for k, p in enumerate(places) if not isinstance(p, slice)]
    return bool(arrays) and arrays[-1] - arrays[0] + 1 != len(arrays)
