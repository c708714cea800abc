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


class RowFile:
    """Array of floats (rows, width) that is written row after row, `rows` or fewer: in memory, or where it is large by calls to a
    temporary file that is mapped once it is whole, since the first touch of a mapped page takes longer than writing it.
    """

    def __init__(self, rows: int, width: int, among: int = 1) -> None:
        self._shape, self._count = (rows, width), 0
        self._array, self._file = np.empty(0), None
        if 8 * rows * width * among > LARGE and rows * width:
            try:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed once it is mapped)
                _take_room(self._file.fileno(), 8 * rows * width)
            except OSError:  # as for `spacious`
                self._file = None
        if self._file is None:
            self._array = np.empty(self._shape)

    def add(self, part: Array) -> None:
        """Write the next rows, a contiguous array (k, width) of floats."""
        if self._file is None:
            self._array[self._count : self._count + len(part)] = part
        else:
            left = part.data.cast("B")
            while left:
                left = left[self._file.write(left) :]
        self._count += len(part)

    def array(self) -> Array:
        """Rows that were written. No more can be."""
        if self._file is not None:
            with self._file as file:
                self._array = np.memmap(file, np.float64, "r+", shape=self._shape).view(np.ndarray)
            self._file = None
        return self._array[: self._count]


def _take_room(file: int, size: int) -> None:
    """Reserve the disk blocks of a file: a shortage found later would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
