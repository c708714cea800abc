"""Sizes of stored traces: bytes of NetCDF and Zarr once unpacked, before an array is read. Features that oco never
writes are refused.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.readers.quota import Quota

NUMBER = 8
PART = 512
"""Bytes that an array, an attribute or a text counts beside its content."""
CHUNK = 1 << 12
"""Bytes that a chunk counts beside its content: it has a file of its own."""
TOGETHER = 1 << 24
"""Approximate bytes of texts that are read together."""
REFERENCES = ("DIMENSION_LIST", "REFERENCE_LIST")
"""Attributes of NetCDF that point to dimensions, not read here."""
NUMPY_1_AXES = 32  # axes of an array of NumPy 1
BLOSC_HEADER = struct.Struct("<4xI8x")
"""Header of a chunk that Blosc packed: after four bytes, its unpacked size."""


def check_netcdf(path: Path, quota: Quota) -> None:
    """Add up the bytes of the arrays and attributes of a NetCDF file.

    Raises TooMuch; ValueError for links, arrays in other files, packed or virtual arrays, and values of variable length
    other than texts.
    """
    import h5py

    size = path.stat().st_size
    quota.open(size)
    with h5py.File(path, "r") as file:
        _check_attributes(file, quota)
        for name in file:
            if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
                raise ValueError(f"{name} is not an array of its own")
            _check_dataset(name, file[name], size, quota)
            _check_attributes(file[name], quota)


def _check_dataset(name: str, array: Any, size: int, quota: Quota) -> None:
    import h5py

    if array.external or array.is_virtual or array.id.get_create_plist().get_nfilters():
        raise ValueError(f"{name} is packed or lies in another file, as oco does not write it")
    text = h5py.check_string_dtype(array.dtype)
    if array.dtype.hasobject and text is None:
        raise ValueError(f"{name} has values of changing length")
    quota.add(PART + array.size * (PART if text else max(NUMBER, array.dtype.itemsize)))
    quota.add(math.prod(array.chunks or ()) * array.dtype.itemsize)
    if text is not None and text.length is None:
        flat, step = array.reshape(-1) if array.ndim == 0 else array, max(1, TOGETHER // max(1, size))
        for start in range(0, len(flat), step):
            quota.add(sum(map(len, np.ravel(flat[start : start + step]))))


def _check_attributes(item: Any, quota: Quota) -> None:
    import h5py

    for index in range(h5py.h5a.get_num_attrs(item.id)):
        attribute = h5py.h5a.open(item.id, index=index)
        name, kind, count = attribute.name.decode(), attribute.dtype, math.prod(attribute.shape)
        quota.add(PART + count * kind.itemsize)
        if name in REFERENCES:
            if name == REFERENCES[0] and count > NUMPY_1_AXES:
                raise ValueError(f"an array has {count:,} axes")
        elif kind.hasobject:
            if h5py.check_string_dtype(kind) is None or count > 1:
                raise ValueError(f"the attribute {name} has values of changing length")
            quota.add(len(item.attrs[name]))


def check_zarr(path: Path, quota: Quota) -> None:
    """Add up the bytes of the arrays of a Zarr store of format 2, and inspect every chunk. Raises TooMuch, ValueError,
    OSError.
    """
    raw = (path / ".zmetadata").read_bytes()
    quota.open(len(raw))
    quota.add(PART * raw.count(b"{"))
    metadata = json.loads(raw)["metadata"]
    for key, array in metadata.items():
        name, slash, kind = key.rpartition("/")
        if kind == ".zarray":
            if "/" in name or not slash:
                raise ValueError(f"{key} is not an array of a trace")
            _check_array(path / name, array, quota)


def _check_array(folder: Path, array: dict[str, Any], quota: Quota) -> None:
    shape, chunks, dtype = array["shape"], array["chunks"], np.dtype(array["dtype"])
    packer = array["compressor"]
    if dtype.hasobject or array["filters"] or array.get("dimension_separator", ".") != ".":
        raise ValueError(f"{folder.name} is stored as oco does not write it")
    if packer is not None and packer["id"] != "blosc":
        raise ValueError(f"{folder.name} is packed as oco does not pack it")
    if len(shape) != len(chunks) or not all(isinstance(n, int) and n >= 0 for n in (*shape, *chunks)):
        raise ValueError(f"{folder.name} has a wrong shape")
    count = math.prod(-(-n // max(1, k)) for n, k in zip(shape, chunks))
    size = math.prod(chunks) * dtype.itemsize
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    quota.open(sum(file.stat().st_size for file in files))
    quota.add(PART + count * CHUNK + max(count, 1) * math.prod(chunks) * max(NUMBER, dtype.itemsize))
    for file in files:
        if packer is None:
            unpacked = file.stat().st_size
        else:
            with file.open("rb") as stream:
                (unpacked,) = BLOSC_HEADER.unpack(stream.read(BLOSC_HEADER.size))
        if unpacked != size:
            raise ValueError(f"chunk {file.name} of {folder.name} unpacks to {unpacked:,} bytes instead of {size:,}")
