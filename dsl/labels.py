"""Names of entries: the axes whose length is an `index`, and data that come by these names in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import Shape, SymbolicDim, symbol
from oco.dsl.expressions import Expr, Name
from oco.dsl.records import dataclass
from oco.dsl.source import Span
from oco.dsl.statements import Param
from oco.dsl.suggest import did_you_mean

SHOWN = 8
"""Names that a message lists."""
MOST_NAMED = 3  # constraints, or rounds, that a sentence names one by one


@dataclass(frozen=True)
class Axis:
    """Axis with a name for each entry, by the name of its index."""

    index: str
    names: tuple[str, ...]

    def place(self, name: str, role: str, span: Span | None = None) -> int:
        """Number of the entry called `name`. Raises OCO327."""
        if name not in self.names:
            hint = did_you_mean(name, self.names, f"there are {listed(self.names)}")
            raise fail("OCO327", f"{role} has no entry `{name}`: it is none of the names of `{self.index}`", span, hint)
        return self.names.index(name)


Axes = tuple[Axis | None, ...]
"""Axes of an array; None for one whose entries have numbers alone."""


def listed(names: Iterable[str]) -> str:
    """`a, b, c`; of many the first, with the number of the others."""
    every = list(names)
    rest = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return f"{', '.join(every[:SHOWN])}{rest}"


def checked_names(index: str, names: Sequence[Any], span: Span | None) -> tuple[str, ...]:
    """Names of an index. Raises OCO218 where there are none, or where one is empty, holds a quote or stands twice."""
    hint = 'list them: `[NYC, WEST]`, in quotes where they are no words: `["N.Y.C.", "MHK VL"]`'
    if not len(names):
        raise fail("OCO218", f"the index `{index}` has no names", span, hint)
    texts = tuple(str(name) for name in names)
    for text in texts:
        if not text.strip() or text != text.strip() or set(text) & set('"\n[]'):
            raise fail("OCO218", f"{text!r} cannot be a name of `{index}`", span, hint)
    if len(set(texts)) < len(texts):
        twice = next(text for k, text in enumerate(texts) if text in texts[:k])
        raise fail("OCO218", f"`{twice}` stands twice in the index `{index}`", span, "keep one of the two")
    return texts


def axis_of(dim: Expr, indexes: Mapping[str, tuple[str, ...]]) -> Axis | None:
    """Axis that has this length: an index stands alone as it."""
    return Axis(dim.name, indexes[dim.name]) if isinstance(dim, Name) and indexes.get(dim.name) else None


def axes_of(dims: Sequence[Expr], indexes: Mapping[str, tuple[str, ...]]) -> Axes:
    """Axes of a declaration; empty where none has names."""
    axes = tuple(axis_of(d, indexes) for d in dims)
    return axes if any(axes) else ()


def indexes_of(params: Iterable[Param]) -> dict[str, tuple[str, ...]]:
    """Names of the indexes among params."""
    return {p.name: p.labels for p in params if p.labels}


def symbolic(shape: Shape, axes: Axes) -> Shape:
    """Shape with the index of each axis that has names in the place of its length."""
    return tuple(symbol(a.index) if a is not None else d for d, a in zip(shape, axes or (None,) * len(shape)))


def axes_in(shape: Shape, indexes: Mapping[str, tuple[str, ...]]) -> Axes:
    """Axes of a shape in which indexes stand for lengths, the inverse of `symbolic`."""
    axes = tuple(
        Axis(str(d), indexes[str(d)]) if isinstance(d, SymbolicDim) and str(d) in indexes else None for d in shape
    )
    return axes if any(axes) else ()


def entry_name(axes: Axes, place: Sequence[int]) -> str:
    """`NYC, 3`: an entry by the names of its axes, and by numbers along the others."""
    named = axes or (None,) * len(place)
    return ", ".join(str(i) if axis is None else axis.names[i] for i, axis in zip(place, named, strict=True))


def fitted(role: str, given: Iterable[Any], axis: Axis, wrong: Callable[[str, str], OcoError]) -> list[int]:
    """Place in `given` of each name of the axis. Raises `wrong(message, hint)` where one is missing, unknown or there twice."""
    there = [str(g) for g in given]
    unknown, missing = [g for g in there if g not in axis.names], [n for n in axis.names if n not in there]
    if unknown or missing:
        parts = [f"has no {listed(missing)}"] if missing else []
        parts += [f"has {listed(unknown)}, which the index `{axis.index}` does not have"] if unknown else []
        near = did_you_mean(unknown[0], missing or axis.names, f"its names are {listed(axis.names)}") if unknown else ""
        raise wrong(f"{role} {' and '.join(parts)}", near or "give a value for every name")
    if len(set(there)) < len(there):
        twice = next(g for k, g in enumerate(there) if g in there[:k])
        raise wrong(f"{role} has `{twice}` twice", "keep one of the two")
    places = {g: k for k, g in enumerate(there)}
    return [places[name] for name in axis.names]


def arranged(role: str, value: Any, axes: Axes, wrong: Callable[[str, str], OcoError]) -> Any:
    """Value with its entries in the order of the axes, as an array where it came by names: a dict, a series or a frame of pandas, an
    array of xarray with coordinates. Anything else is returned as it is.
    """
    if not axes:
        return value
    if isinstance(value, Mapping):
        if axes[0] is None:
            raise wrong(f"{role} is a dict, and its first axis has no names", "give an array")
        order, parts = fitted(role, value, axes[0], wrong), list(value.values())
        return np.stack([np.asarray(arranged(role, parts[k], axes[1:], wrong)) for k in order])
    labels = labels_of(value, [a.index if a is not None else "" for a in axes])
    if labels is None:
        return value
    array, names = labels
    for k, (axis, own) in enumerate(zip(axes, names)):
        if axis is not None and own is not None:
            array = np.take(array, fitted(role, own, axis, wrong), axis=k)
    return array


def labels_of(value: Any, order: Sequence[str] = ()) -> tuple[np.ndarray[Any, Any], list[list[str] | None]] | None:
    """Array of a labelled value, and the labels of each axis (None where they are counted from 0); None for other values.

    order  names of dimensions, as far as known, into whose order an array of xarray is brought
    """
    if hasattr(value, "coords") and hasattr(value, "dims"):
        if set(filter(None, order)) <= set(map(str, value.dims)) and len(order) == len(value.dims):
            rest = iter(d for d in value.dims if str(d) not in order)
            value = value.transpose(*(name or next(rest) for name in order))
        present = [value.coords[d].to_numpy().tolist() if d in value.coords else None for d in value.dims]
    elif hasattr(value, "iloc") and hasattr(value, "index"):
        present = [list(value.index), *([list(value.columns)] if hasattr(value, "columns") else [])]
    else:
        return None
    counted = [None if own is None or own == list(range(len(own))) else [str(o) for o in own] for own in present]
    return np.asarray(value), counted
