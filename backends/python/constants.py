"""Arrays as Python source that gives back the same bits, as short as their pattern allows."""

from __future__ import annotations

import base64
import textwrap
import zlib
from typing import Any

import numpy as np

from oco.backends.python.expressions import literal, shape_text
from oco.compiler.ir.program import DType, Literal, Type

Array = np.ndarray[Any, Any]
_WRITTEN_OUT = 2000
_WIDTH = 96


def array_source(array: Array) -> str:
    """Source of an array, as `np.array([1.0, 2.0])`, `np.ones(5)`, `np.repeat(np.arange(5), 10)`; many entries without
    a pattern are packed.
    """
    if array.shape == ():
        return number(array[()])
    if (pattern := _pattern(array)) is not None:
        return pattern
    if array.size <= _WRITTEN_OUT:
        return _written_out(array)
    return _packed(array)


def number(value: Any) -> str:
    """Source of one entry."""
    plain = value.item()
    kind = DType.BOOL if isinstance(plain, bool) else DType.INT if isinstance(plain, int) else DType.FLOAT
    return literal(Literal(plain, Type(kind))).code


def _same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _pattern(array: Array) -> str | None:
    """Source of a constant array, a range, or entries each repeated equally often."""
    if not array.size:
        return f"np.empty({shape_text(array.shape)}, {_kind(array)})"
    first = array.flat[0]
    if _same_bits(array, np.full(array.shape, first, array.dtype)):
        word = {"0.0": "zeros", "1.0": "ones"}.get(number(first))
        shape = shape_text(array.shape)
        return f"np.{word}({shape})" if word else f"np.full({shape}, {number(first)})"
    if array.ndim != 1:
        return None
    count = max(int(np.argmax(array != first)), 1)
    heads = array[::count]
    if not _same_bits(array, np.repeat(heads, count)) or (count == 1 and array.dtype != np.int64):
        return None
    start, stop = int(heads[0]), int(heads[0]) + heads.size
    if _same_bits(heads, np.arange(start, stop)):
        entries = f"np.arange({start}, {stop})" if start else f"np.arange({stop})"
        return entries if count == 1 else f"np.repeat({entries}, {count})"
    return f"np.repeat({_rows(heads, '')}, {count})" if count > 1 and heads.size < 12 else None


def _kind(array: Array) -> str:
    return {"f": "float", "i": "np.int64", "b": "bool"}[array.dtype.kind]


def _rows(array: Array, margin: str) -> str:
    """Nested lists, one row a line where they do not fit on one."""
    if array.ndim == 1:
        entries = "[" + ", ".join(map(number, array)) + "]"
        if len(margin) + len(entries) <= _WIDTH:
            return entries
        filled = textwrap.fill(
            entries[1:-1] + ",", _WIDTH - 4, initial_indent=margin + "    ", subsequent_indent=margin + "    "
        )
        return f"[\n{filled}\n{margin}]"
    inner = ",\n".join(f"{margin}    {_rows(row, margin + '    ')}" for row in array)
    return f"[\n{inner},\n{margin}]"


def _written_out(array: Array) -> str:
    short = array.dtype == np.float64 and array.size > 4 and bool((np.abs(array) < 1e15).all())
    whole = short and _same_bits(array, array.astype(np.int64).astype(np.float64))
    rows = _rows(array.astype(np.int64) if whole else array, "")
    one_line = " ".join(rows.split()).replace("[ ", "[").replace(", ]", "]").replace(",]", "]")
    return f"np.array({one_line if len(one_line) < _WIDTH - 30 else rows}{', dtype=float' if whole else ''})"


def _packed(array: Array) -> str:
    """Entries as little-endian bytes, compressed, in base64."""
    little = array.astype(array.dtype.newbyteorder("<"))
    text = base64.b64encode(zlib.compress(little.tobytes(), 9)).decode("ascii")
    lines = "\n".join(f'    "{text[k : k + _WIDTH - 8]}"' for k in range(0, len(text), _WIDTH - 8))
    return f'unpacked(\n{lines},\n    "{little.dtype.str}", {array.shape},\n)'
