"""Numeric arguments of domains: read-only floats, all finite, and how they are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.dsl.diagnostics import fail

MOST_SHOWN = 300
"""Entries of an array that is written out."""


def finite(name: str, value: Any) -> Floats:
    """`value` as a read-only float array; an error unless every entry is a finite number."""
    array = np.array(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise fail("OCO413", f"`{name}` holds a value that is not a finite number", hint="every domain is bounded")
    array.setflags(write=False)
    return array


def number(name: str, value: Any) -> float:
    """`value`, an array of one entry, as a float."""
    return float(finite(name, value).reshape(()))


def filled_to(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """`value` as one number (shape ()) where it is one, else stretched to `shape`."""
    array = finite(name, value)
    return array.reshape(()) if array.size == 1 else np.broadcast_to(array, shape)


def written(value: float | Floats) -> str:
    """A number or array as the language writes it; a large one by its shape."""
    array = np.asarray(value)
    if array.size > MOST_SHOWN:
        return f"an array of {' x '.join(map(str, array.shape))}"
    if array.ndim:
        return "[" + ", ".join(written(row) for row in array) + "]"
    entry = float(array)
    return str(int(entry)) if entry.is_integer() and abs(entry) < 1e15 else repr(entry)
