"""Rules of `base[items]`: shape, meaning, ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from oco.dsl.atoms.expression_names import describe, with_shape
from oco.dsl.atoms.shapes import as_dim
from oco.dsl.diagnostics import fail
from oco.dsl.dims import Dim, Shape, SymbolicDim, add, broadcast, known, multiply, show
from oco.dsl.expressions import Call, Constant, Expr, Slice
from oco.dsl.source import Span


def index_shape(base: Expr, items: tuple[Expr, ...], span: Span | None) -> Shape:
    """Shape of `base[items]` by NumPy's rules; checks the known items.

    Arrays of integers pair by broadcasting. Their common axes stand where the arrays stood when these are
    neighbours, and first when a slice separates them; single numbers among arrays count as arrays.
    """
    if len(items) > len(base.shape):
        has = (
            f"{len(base.shape)} {'axis' if len(base.shape) == 1 else 'axes'}"
            if base.shape
            else "no axes: it is a number"
        )
        raise fail(
            "OCO310",
            f"{describe(base)} has {has}, here it has {len(items)} {'index' if len(items) == 1 else 'indices'}",
            span,
        )
    for item, dim, axis in zip(items, base.shape, range(len(items))):
        _check_item(base, item, dim, axis)
    kept: list[Dim] = []
    pairing: list[Shape] = []
    positions: list[int] = []
    for position, (item, dim) in enumerate(zip(items, base.shape)):
        if isinstance(item, Slice):
            kept.append(slice_length(item, dim))
        else:
            pairing.append(item.shape)
            positions.append(position)
    common = broadcast(*pairing) if pairing else ()
    if common is None:
        message = " and ".join(with_shape(i) for i in items if not isinstance(i, Slice) and i.shape)
        raise fail(
            "OCO314", f"these indices do not pair: {message}", span, "indices pair entry by entry: give them one length"
        )
    neighbours = all(b - a == 1 for a, b in pairwise(positions))
    place = positions[0] if positions and (neighbours or not common) else 0
    before = sum(isinstance(item, Slice) for item in items[:place])
    return (*kept[:before], *common, *kept[before:], *base.shape[len(items) :])


def slice_ends(item: Slice, dim: Dim) -> tuple[Dim, Dim]:
    """First position and the one after the last."""
    start: Dim = 0 if item.start is None else as_dim(item.start, "an end of a slice")
    stop: Dim = dim if item.stop is None else as_dim(item.stop, "an end of a slice")
    return start, stop


def slice_length(item: Slice, dim: Dim) -> Dim:
    """Length of a slice of an axis."""
    start, stop = slice_ends(item, dim)
    return add(stop, multiply(-1, start))


def _check_item(base: Expr, item: Expr, dim: Dim, axis: int) -> None:
    """Check an item before the round's data is known: integers, and constants against the length of the axis."""
    if isinstance(item, Slice):
        start, stop = slice_ends(item, dim)
        length = add(stop, multiply(-1, start))
        past = add(dim, multiply(-1, stop))
        if any(isinstance(d, int) and d < least for d, least in ((start, 0), (length, 1), (past, 0))):
            wrong = "is empty" if isinstance(length, int) and length < 1 else f"does not lie in 0:{dim}"
            raise fail("OCO313", f"the slice {start}:{stop} {wrong}", item.span, axis_words(base, dim, axis))
        return
    if not item.integer:
        raise fail(
            "OCO311",
            f"an index is an integer; {describe(item)} is not declared to be one",
            item.span,
            _integer_hint(item),
        )
    if isinstance(item, Constant):
        values = item.value.array
        low, high = int(values.min()), int(values.max())
        if low < 0 or (isinstance(dim, int) and high >= dim):
            outside = low if low < 0 else high
            raise fail("OCO312", f"index {outside} is outside 0..{_last(dim)}", item.span, axis_words(base, dim, axis))


def _integer_hint(item: Expr) -> str:
    return (
        "declare it with integers: `in 0..k-1`"
        if not isinstance(item, Constant)
        else "write it without a decimal point"
    )


def _last(dim: Dim) -> Dim:
    return add(dim, -1)


def axis_words(base: Expr, dim: Dim, axis: int) -> str:
    """Sentence with the length of an axis, for a message about an index."""
    entries = "entries" if len(base.shape) == 1 else f"entries along axis {axis}"
    length = f"{dim}" if isinstance(dim, (int, SymbolicDim)) else show((dim,))
    return f"{describe(base)} has {length} {entries}; indices count from 0, so the last one is {_last(dim)}"


def lower_index(o: Any, base: Any, shape: Shape, sizes: Shape, items: Sequence[Any]) -> Any:
    """Value of `base[items]` over the primitives, with base of shape `sizes`.

    An item is a pair (start, stop) for a slice, an integer, or a value.
    """
    if all(isinstance(i, (tuple, int)) for i in items):
        pairs = [i if isinstance(i, tuple) else (i, i + 1) for i in items]
        pairs += [(0, d) for d in sizes[len(items) :]]
        taken = o.slice(base, starts=tuple(a for a, _ in pairs), stops=tuple(b for _, b in pairs))
        return o.reshape(taken, shape=shape)
    return o.gather(base, *_paired(o, items))


def lower_scatter(o: Any, call: Call, values: Any, *items: Any) -> Any:
    """Transpose of `lower_index`: zeros of the call's shape, with the values added at the places of the items.

    In a slice None is an end of the axis.
    """
    sizes = known(call.shape)
    ends = [(i[0] or 0, size if i[1] is None else i[1]) if isinstance(i, tuple) else i for i, size in zip(items, sizes)]
    if all(isinstance(i, (tuple, int)) for i in ends):
        ends = [i if isinstance(i, tuple) else (i, i + 1) for i in ends] + [(0, d) for d in sizes[len(items) :]]
        values = o.reshape(values, shape=tuple(b - a for a, b in ends))
    return o.scatter_add(values, *_paired(o, ends), shape=sizes)


def places(sizes: Shape, items: Sequence[Expr], values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Positions of the entries of an index in the base of shape `sizes`, counted in C order; `values` are CVXPY
    constants.
    """
    chosen = tuple(
        slice(*known(slice_ends(item, size)))
        if isinstance(item, Slice)
        else np.rint(np.asarray(value.value)).astype(int).reshape(known(item.shape))
        for item, value, size in zip(items, values, sizes)
    )
    whole = known(sizes)
    return np.asarray(np.arange(math.prod(whole)).reshape(whole)[chosen])


def cvxpy_scatter(cp: Any, call: Call, values: Any, *items: Any) -> Any:
    """Transpose of selecting, as a sparse matrix of ones."""
    from scipy.sparse import csr_matrix

    whole = known(call.shape)
    flat = places(whole, call.args[1:], items).ravel()
    chosen = csr_matrix((np.ones(flat.size), (flat, np.arange(flat.size))), shape=(math.prod(whole), flat.size))
    return cp.reshape(chosen @ cp.vec(values, order="C"), whole, order="C")


def _paired(o: Any, items: Sequence[Any]) -> list[Any]:
    """Index arrays that pair to the selection of a mix of slices and arrays: one axis for each slice, the arrays' own
    in their place.
    """
    arrays = [i for i in items if not isinstance(i, tuple)]
    common = max((len(np.shape(i) if isinstance(i, int) else i.shape) for i in arrays), default=0)
    positions = [k for k, i in enumerate(items) if not isinstance(i, tuple)]
    neighbours = all(b - a == 1 for a, b in pairwise(positions))
    place = positions[0] if positions and (neighbours or not common) else 0
    before = sum(isinstance(i, tuple) for i in items[:place])
    slices = len(items) - len(arrays)
    rank, result, seen = slices + common, [], 0
    for item in items:
        if isinstance(item, tuple):
            axis = seen if seen < before else seen + common
            seen += 1
            whole = o.iota(n=item[1] - item[0]) + item[0] if item[0] else o.iota(n=item[1])
            result.append(o.reshape(whole, shape=tuple(item[1] - item[0] if k == axis else 1 for k in range(rank))))
        elif slices and not isinstance(item, int) and item.shape:
            result.append(o.reshape(item, shape=(*item.shape, *(1,) * (slices - before))))
        else:
            result.append(item)
    return result
