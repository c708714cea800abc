"""Arrays too large for memory: they are mapped from an unnamed temporary file, so that the system keeps in memory as
much as fits.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 4 << 20
"""Bytes from which an array is mapped. The files lie where `tempfile` puts them (TMPDIR), and vanish with the last use of the array."""


def spacious(shape: tuple[int, ...], dtype: Any = np.float64, among: int = 1) -> Array:
    """Uninitialized array: in memory, or mapped where it, or `among` arrays like it, are large and a file can be made."""
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
    """Reserve the disk blocks of a file: a shortage found later would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
