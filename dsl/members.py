"""Params whose values are names of entries of an index: `param at[plant] in zone = [NYC, WEST]`.

They are whole numbers from 0, the places of the names, so that `limit[at]` and `sum(x, by = at)` are ordinary expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.dsl import build
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import EntryNames, Expr, Name, constant
from oco.dsl.labels import Axis
from oco.dsl.source import Span

Bounds = tuple[Expr, Expr]


def members_of(index: Expr) -> Bounds:
    """Range `0..zone-1` of the numbers of the entries of an index."""
    return constant(0, index.span), build.call("sub", index, 1, span=index.span)


def index_within(bounds: Bounds | None) -> Name | None:
    """Name whose entries a range `0..zone-1` numbers; None for another range."""
    name = next((c for c in bounds[1].children if isinstance(c, Name)), None) if bounds else None
    return name if name is not None and bounds == members_of(name) else None


def names_in(value: Any, span: Span | None) -> EntryNames | None:
    """Names that an array or a list holds; None where it holds anything but texts."""
    array = np.asarray(value, dtype=object) if isinstance(value, (list, tuple, np.ndarray)) else np.array(None)
    if array.ndim != 1 or not array.size or not all(isinstance(v, str) for v in array):
        return None
    return EntryNames(tuple(map(str, array)), shape=array.shape, integer=True, span=span)


def places(
    role: str, given: Sequence[str], bounds: Bounds | None, indexes: Mapping[str, tuple[str, ...]], span: Span | None
) -> np.ndarray[Any, Any] | None:
    """Numbers of the entries that have these names; None while the names of the index are not known.

    Raises OCO553 where the values lie in no index, OCO327 for a name that the index does not have.
    """
    index = index_within(bounds)
    if index is None:
        message = f"the values of {role} are names, and its range is that of no index"
        raise fail("OCO553", message, span, "say whose names they are: `param at[plant] in zone = ...`")
    if index.name not in indexes:
        return None
    axis = Axis(index.name, indexes[index.name])
    return np.array([axis.place(name, role, span) for name in given], dtype=np.int64)
