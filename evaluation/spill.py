"""Arrays too large to keep in memory: they lie in a file without a name, mapped, so that the system holds of them what fits."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 64 << 20
"""Bytes of an array that is better mapped. The files lie where `tempfile` puts them (TMPDIR), and go with the last use of the array."""


def spacious(shape: tuple[int, ...], dtype: Any = np.float64, among: int = 1) -> Array:
    """An array to be filled: in memory, or mapped where it, or `among` arrays like it, are large."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size * among <= LARGE:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        return np.memmap(file, dtype, "r+", shape=shape).view(np.ndarray)
