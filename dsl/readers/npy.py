"""Arrays in NPY and NPZ files: headers first, then blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]
Maker = Callable[[tuple[int, ...], Any], Array]
BLOCK = 1 << 20
NUMBER = 8


@dataclass(frozen=True)
class Header:
    """Header of an NPY file."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries in the file."""
        return self.count * self.dtype.itemsize

    @property
    def unpacked(self) -> int:
        """Bytes of the entries as numbers in memory."""
        return self.count * max(NUMBER, self.dtype.itemsize)


def read_header(stream: IO[bytes], room: int) -> Header:
    """Header at the start of a stream of `room` bytes. Raises ValueError for objects, and for more entries than fit
    into the room.
    """
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header = Header(*read(stream))
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects; save plain numbers")
    if min(header.shape, default=0) < 0 or header.dtype.itemsize == 0:
        raise ValueError(f"its header is wrong: shape {header.shape}, entries of {header.dtype.itemsize} bytes")
    if header.nbytes > room - stream.tell():
        raise ValueError(f"it says that it holds {header.count:,} numbers, and is too short for them")
    return header


def read_entries(stream: IO[bytes], header: Header, make: Maker = np.empty) -> Array:
    """Array behind a header, read in blocks into the array of `make(shape, dtype)`."""
    array = make(header.shape[::-1] if header.fortran else header.shape, header.dtype)
    room = array.reshape(-1).view(np.uint8).data
    for start in range(0, header.nbytes, BLOCK):
        wanted = min(BLOCK, header.nbytes - start)
        block = stream.read(wanted)
        if len(block) != wanted:
            raise ValueError("it ends before its last number")
        room[start : start + wanted] = block
    return array.T if header.fortran else array


def members(archive: ZipFile) -> dict[str, ZipInfo]:
    """Arrays of an NPZ file by name."""
    return {i.filename.removesuffix(".npy"): i for i in archive.infolist() if i.filename.endswith(".npy")}


def member_header(archive: ZipFile, member: ZipInfo) -> Header:
    """Header of an array of an NPZ file. Raises ValueError for packings that unpack a block to any size, such as bzip2."""
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is packed in a way that NumPy does not write")
    with archive.open(member) as stream:
        return read_header(stream, member.file_size)


def read_member(archive: ZipFile, member: ZipInfo, make: Maker = np.empty) -> Array:
    """Array of an NPZ file whose header was checked before."""
    with archive.open(member) as stream:
        return read_entries(stream, read_header(stream, member.file_size), make)
