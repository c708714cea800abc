"""Constants in C: their entries written out so that they read back to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oco.backends.c99.expressions import C_TYPES, literal
from oco.compiler.ir.program import Literal, Type

_WIDTH = 110


def array_lines(name: str, made: Type, values: np.ndarray[Any, Any]) -> Iterator[str]:
    """Definition of a constant: `static const double name[3] = {1.0, 2.0, 3.0};`"""
    if values.size > _WIDTH and not values.any() and not np.signbit(values).any():
        yield f"static const {C_TYPES[made.dtype]} {name}[{values.size}] = {{0}};"
        return
    texts = [literal(Literal(v.item(), Type(made.dtype))).code for v in np.asarray(values).ravel()]
    kind = C_TYPES[made.dtype]
    if not made.shape:
        yield f"static const {kind} {name} = {texts[0]};"
        return
    line = f"static const {kind} {name}[{max(len(texts), 1)}] = {{{', '.join(texts) or '0'}}};"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"static const {kind} {name}[{len(texts)}] = {{"
    row = "   "
    for text in texts:
        if len(row) + len(text) + 2 > _WIDTH:
            yield row
            row = "   "
        row += f" {text},"
    yield row
    yield "};"
