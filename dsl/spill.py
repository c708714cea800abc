"""Arrays too large for memory: they are mapped from an unnamed temporary file, so that the system keeps in memory as
much as fits.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 4 << 20
"""Bytes from which an array is mapped. The files lie where `tempfile` puts them (TMPDIR), and vanish with the last use of the array."""


class _Mapping(mmap.mmap):
    """Mapping of a temporary file, which all changes reach."""

    @cached_property
    def address(self) -> int:
        """Address of its first byte."""
        return np.frombuffer(self, np.uint8, 1).ctypes.data


def _mapped(file: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Array in a file."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, _Mapping(file, size))


def release(values: Array) -> None:
    """Take a part of an array that lies in a temporary file out of the process's memory, until it is used again; other arrays stay."""
    base: Any = values
    while base is not None and not isinstance(base, _Mapping):
        base = getattr(base, "base", None)
    if base is None or not values.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    first = values.__array_interface__["data"][0] - base.address
    length = sum((n - 1) * stride for n, stride in zip(values.shape, values.strides)) + values.itemsize
    whole = first // mmap.PAGESIZE * mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, whole, first + length - whole)


def spacious(shape: tuple[int, ...], dtype: Any = np.float64, among: int = 1) -> Array:
    """Uninitialized array: in memory, or mapped where it, or `among` arrays like it, are large and a file can be made."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size * among <= LARGE:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            _take_room(file.fileno(), size)
            return _mapped(file.fileno(), shape, dtype)
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

    def rows(self, start: int, stop: int) -> Array:
        """Rows that were written already, while others may be written in another thread."""
        if self._file is None:
            return self._array[start:stop]
        width = self._shape[1]
        read = os.pread(self._file.fileno(), 8 * (stop - start) * width, 8 * start * width)
        return np.frombuffer(read).reshape(stop - start, width)

    def array(self) -> Array:
        """Rows that were written. No more can be."""
        if self._file is not None:
            with self._file as file:
                self._array = _mapped(file.fileno(), self._shape, np.float64)
            self._file = None
        return self._array[: self._count]


def _take_room(file: int, size: int) -> None:
    """Reserve the disk blocks of a file: a shortage found later would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
