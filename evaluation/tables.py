"""Sources of rounds as tables: files, arrays and data frames. Nothing here depends on a model; `data.py` maps columns
to streams.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.labels import labels_of
from oco.dsl.limits import MOST_ROUNDS
from oco.dsl.readers.npy import Header, member_header, members, read_header, read_member
from oco.dsl.readers.quota import UNREADABLE, Quota, QuotaExceeded
from oco.dsl.spill import spacious
from oco.evaluation.arrow_tables import read_arrow_table, table_of_arrow
from oco.evaluation.table import COLUMN, Array, Table, array_of, check_header, table_of
from oco.evaluation.text_tables import read_text_table

ARROW = (".parquet", ".arrow", ".feather")
FORMS = "a path, a dict of arrays with the round first, an array, a data frame"
KINDS = (".csv", ".tsv", ".txt", *ARROW, ".npy", ".npz")
ROUNDS = ("round", "time")
"""Names of the dimension of an array of xarray that counts the rounds; without them it is the first."""
CELL = 80
"""Approximate bytes of a text in memory besides its characters."""


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Path of an existing file. Raises OCO820."""
    result = Path(path)
    if not result.is_file():
        raise fail("OCO820", f"there is no file {result}", hint="give the path of a file with one row a round")
    return result


def read_table(path: str | Path, quota: Quota | None = None) -> Table:
    """Read a CSV (also .tsv, .txt, and any of them with .gz), Parquet, Arrow (.arrow, .feather), NPY or NPZ file.

    Raises OCO820 for what cannot be read, OCO834 for what would take more memory than the quota allows.
    """
    path = existing_file(path)
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix not in KINDS:
        kinds = ", ".join(KINDS)
        hint = f"kinds that are: {kinds}; text with one row a round under another name can be renamed"
        raise fail("OCO820", f"{path.name} is not a kind of file that is read here", hint=hint)
    quota = quota or Quota(MOST_ROUNDS)
    try:
        quota.open(path.stat().st_size)
        if suffix in ARROW:
            return read_arrow_table(path, suffix, quota)
        if suffix in (".npy", ".npz"):
            return _read_numpy(path, quota)
        return read_text_table(path, quota)
    except QuotaExceeded as error:
        raise fail("OCO834", f"{path.name} is too large: {error}", hint=error.hint) from None
    except MemoryError:
        raise fail("OCO834", f"{path.name} does not fit into memory") from None
    except (OSError, csv.Error, *UNREADABLE) as error:
        message, hint = str(error), ""
        if "objects" in message:
            hint = "rows of different lengths are objects: save arrays of numbers, with np.savez one for each stream"
        elif isinstance(error, UnicodeDecodeError):
            hint = "save it as text in UTF-8"
        raise fail("OCO820", f"{path.name} cannot be read: {message}", hint=hint) from error


def table_of_arrays(arrays: Mapping[str, Any], name: str = "the data") -> Table:
    """Table of a dict of arrays with the round first, or of any object with columns by name, such as a data frame.

    An array with labels along later axes (a frame of pandas, an array of xarray) is a column for each of its labels.
    """
    columns: dict[str, Array] = {}
    for key in arrays:
        columns |= _labelled(str(key), arrays[key]) or {str(key): array_of(str(key), arrays[key], name)}
    return table_of(name, columns)


def _labelled(key: str, given: Any) -> dict[str, Array]:
    """Columns of a labelled array `price`: `price.NYC`, with more axes `price[NYC, 0]`; with the times of its rounds, if it has some.
    None where it has no labels.
    """
    over: Any = getattr(given, "dims", ())
    if (rounds := [d for d in over if str(d) in ROUNDS]) and over[0] not in rounds:
        given = given.transpose(rounds[0], *(d for d in over if d != rounds[0]))
    labelled = labels_of(given)
    if labelled is None:
        return {}
    array, labels = labelled
    times = _times_of(given)
    if array.ndim < 2 or all(own is None for own in labels[1:]):
        return {key: array_of(key, array, key), **times}
    entries = [own or list(map(str, range(size))) for own, size in zip(labels[1:], array.shape[1:])]
    form = f"{key}.{{}}" if array.ndim == 2 else f"{key}[{{}}]"
    flat = array.reshape(len(array), -1)
    return {form.format(", ".join(name)): flat[:, k] for k, name in enumerate(product(*entries))} | times


def _times_of(given: Any) -> dict[str, Array]:
    """Times of the rounds of a labelled array or a frame, by the name of their axis."""
    if hasattr(given, "dims") and hasattr(given, "coords"):
        name = given.dims[0] if len(given.dims) else ""
        times = given.coords[name].to_numpy() if name in given.coords else np.empty(0)
    else:
        index = getattr(given, "index", None)
        name, times = getattr(index, "name", None) or "time", np.asarray(index)
    return {str(name): times} if times.dtype.kind == "M" else {}


def _read_numpy(path: Path, quota: Quota) -> Table:
    """Table of an NPY file, mapped into memory, or of the arrays of an NPZ file."""
    if path.suffix.lower() == ".npy":
        with path.open("rb") as stream:
            header = read_header(stream, path.stat().st_size)
        quota.add(_cost(header) if header.dtype not in (np.float64, np.int64) else 0)
        quota.add(COLUMN * header.shape[1] if len(header.shape) == 2 else 0)
        return _by_position(np.load(path, mmap_mode="r", allow_pickle=False), path.name)
    with ZipFile(path) as archive:
        there = members(archive)
        for member in there.values():
            quota.add(_cost(member_header(archive, member)))
        arrays = {name: read_member(archive, member, spacious) for name, member in there.items()}
    return table_of(path.name, arrays, row_word="row")


def _cost(header: Header) -> int:
    """Bytes of an array once its entries are numbers, or texts where they are not numbers."""
    return header.unpacked if header.dtype.kind in "iubfM" else header.count * CELL + 4 * header.nbytes


def _by_position(array: Array, name: str) -> Table:
    """Columns without names: those of a matrix, or one with all that a round holds."""
    columns = {"": array} if array.ndim != 2 else {str(i): array[:, i] for i in range(array.shape[1])}
    return table_of(name, columns, row_word="row", headed=False)


def readable(source: Any) -> bool:
    """True where `read` accepts the object as a source."""
    framed = any(hasattr(source, name) for name in ("collect_schema", "column_names", "columns"))
    return framed or isinstance(source, Table | str | os.PathLike | Mapping | np.ndarray)


def read(source: Any) -> Table:
    """Table from a path, a mapping of arrays, an array (by position, as a NPY file), or a data frame."""
    if not readable(source):
        message = f"data cannot be read from an object of type {type(source).__name__}"
        raise fail("OCO820", message, hint=f"give {FORMS}, an iterator of dicts, or None to draw")
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike):
        return read_table(os.fspath(source))
    if isinstance(source, Mapping):
        return table_of_arrays(source)
    if isinstance(source, np.ndarray) and source.dtype.names is None:
        return _by_position(array_of("", source, "the array"), "the array")
    if isinstance(source, np.ndarray):
        return table_of_arrays({name: source[name] for name in source.dtype.names or ()})
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        source = source.collect()  # a lazy frame of polars
    if hasattr(source, "schema") and hasattr(source, "column_names"):
        return table_of_arrow(source, "the Arrow table")
    names = [_name_of(column) for column in source.columns]
    check_header(names, "the data frame")
    columns = {n: np.asarray(source[column]) for n, column in zip(names, source.columns)}
    return table_of_arrays({**_times_of(source), **columns}, "the data frame")


def _name_of(column: Any) -> str:
    """Name of a column; `price.CAPITL` for one of several levels."""
    return ".".join(filter(None, map(str, column))) if isinstance(column, tuple) else str(column)
