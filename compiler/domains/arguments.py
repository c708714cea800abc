"""Checks of a domain's numeric arguments, with errors in the user's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.dsl.diagnostics import fail


def finite(kind: str, name: str, value: Any) -> Floats:
    """`value` as a float array; an error unless every entry is a finite number."""
    array = np.array(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise fail("OCO413", f"`{name}` of `{kind}` holds a value that is not a finite number")
    array.setflags(write=False)
    return array


def positive(kind: str, name: str, value: Any) -> float:
    """`value` as one number greater than zero."""
    array = finite(kind, name, value)
    if array.size != 1:
        raise fail("OCO412", f"`{name}` of `{kind}` is one number, not an array of shape {array.shape}")
    number = float(array.reshape(()))
    if number <= 0:
        raise fail("OCO411", f"`{name}` of `{kind}` must be greater than 0, but it is {number:g}")
    return number


def fitted(kind: str, name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """`value` as a finite number (shape ()) or an array that fills `shape`."""
    array = finite(kind, name, value)
    if array.size == 1 and array.ndim <= len(shape):
        return array.reshape(())
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise fail(
            "OCO412", f"`{name}` of `{kind}` has shape {array.shape}, which does not fill a decision of shape {shape}"
        ) from None


def written(value: float | Floats) -> str:
    """A number or array as the language writes it."""
    array = np.asarray(value)
    if array.ndim:
        return "[" + ", ".join(written(row) for row in array) + "]"
    number = float(array)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
