"""Numbers and arrays of Python as constants of a model, with the line to write in the place of what is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, constant
from oco.dsl.habits import MODELERS, unmixed
from oco.dsl.source import Span
from oco.dsl.text.tokens import INT64_MAX


def constant_of(value: Any, span: Span | None) -> Expr:
    """Constant of a number, an array or nested lists. Raises OCO524 for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise fail("OCO524", "the rows of this array differ in length", span) from None
    if array.dtype.kind not in "iubf":
        raise fail("OCO524", f"a {type(value).__name__} cannot stand in an expression", span, _instead_of(value, array))
    if array.size == 0:
        raise fail("OCO524", "an array in an expression needs at least one entry", span)
    if not np.isfinite(array).all():
        place, wrong = next((i, v) for i, v in np.ndenumerate(array) if not np.isfinite(v))
        which = f"entry {list(place)} is" if place else "here it is"
        hint = "fill what is missing before it is given; where there is no bound, leave the bound out"
        raise fail("OCO524", f"the numbers in an expression are finite; {which} {wrong}", span, hint)
    if array.dtype.kind in "iu" and (array.max() > INT64_MAX or array.min() < -INT64_MAX):
        raise fail("OCO524", f"integers in an expression lie within {INT64_MAX}", span)
    return constant(array, span)


def _instead_of(value: Any, array: np.ndarray[Any, Any]) -> str:
    """Line to write in the place of what is no array of numbers."""
    package = type(value).__module__.partition(".")[0]
    if package in MODELERS and array.dtype.kind == "O":
        return unmixed(package)
    if isinstance(value, str):
        return f'data of a file are `oco.file("{value}")`; numbers have no quotes' if len(value) <= 40 else ""
    return "a function of an expression is `oco.log(x)`, not `np.log(x)`" if array.dtype.kind == "O" else ""
