"""Inputs of a learner. This text is also part of every emitted module, above its table of streams."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NAMED = True
"""True where entries of streams may have names; an emitted module whose streams have none does without their code."""
INTEGERS = True
"""True where streams may hold integers; an emitted module whose streams hold none does without their code."""
ARRAYS = True
"""True where streams may have axes; an emitted module whose streams are numbers does without the code of columns for entries."""
DISTRIBUTED = True
"""True where streams may have distributions; an emitted module whose streams have none does without the word on them."""


class Stream(NamedTuple):
    """Shape of an input, range of its entries, its distribution in the model, and the names along each axis (None: counted from 0)."""

    shape: tuple[int, ...]
    lower: Any = -np.inf
    upper: Any = np.inf
    integer: bool = False
    distribution: str = ""
    names: tuple[tuple[str, ...] | None, ...] = ()
