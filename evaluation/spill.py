"""Arrays too large to keep in memory: they lie in a file without a name, mapped, so that the system holds of them what fits."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 4 << 20
"""Bytes of an array that is better mapped. The files lie where `tempfile` puts them (TMPDIR), and go with the last use of the array."""


def spacious(shape: tuple[int, ...], dtype: Any = np.float64, among: int = 1) -> Array:
    """An array to be filled: in memory, or mapped where it, or `among` arrays like it, are large and a file can be made for it."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size * among <= LARGE:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            _take_room(file.fileno(), size)
            return np.memmap(file, dtype, "r+", shape=shape).view(np.ndarray)
    except OSError:  # no folder to write in, no room there, or too many open files
        return np.empty(shape, dtype)


def _take_room(file: int, size: int) -> None:
    """Blocks of the disk for all of a file now: where they are missing later, the process would end."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
