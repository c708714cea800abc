"""Fixed data from files: csv, npy, npz, json and parquet beside the model file. Nothing here runs code from a file or reads elsewhere."""

from __future__ import annotations

import csv
import json
from array import array as packed
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.limits import MOST_BYTES, MOST_NUMBERS, MOST_TEXT_BYTES
from oco.dsl.readers.columns import read_columns
from oco.dsl.readers.decimals import decimal, lines_of
from oco.dsl.readers.npy import Header, member_header, members, read_entries, read_header, read_member
from oco.dsl.readers.quota import UNREADABLE, Quota, QuotaExceeded
from oco.dsl.source import Span
from oco.dsl.suggest import did_you_mean

Array = np.ndarray[Any, Any]
Content = TypeVar("Content")

NUMBER = 8
IN_LIST, LIST = 10, 96
"""Bytes of lists of numbers in memory: for each byte of their text, and for each list."""
BLOCK = 1 << 17
"""Numbers that are read together."""


def read_array(path: str, folder: Path | None, name: str, span: Span | None, quota: Quota) -> Array:
    """Numbers in the file `path` beside the model, as int64 or float64.

    `name` is the param's: it selects the array of an npz file that holds several. `quota` counts the memory that they
    take.
    """
    kinds = {kind: partial(_read_as, reader, name, quota) for kind, reader in READERS.items()}
    return _numbers(_read(path, folder, span, quota, kinds), path, span)


def _read_as(reader: Callable[[Path, str, Quota], Array], name: str, quota: Quota, place: Path) -> Array:
    return reader(place, name, quota)


def read_table(path: str, folder: Path | None, span: Span | None, quota: Quota) -> dict[str, list[str]]:
    """Cells of a csv file with a header, by column."""
    return _read(path, folder, span, quota, {".csv": partial(read_columns, quota=quota)})


def _read(
    path: str, folder: Path | None, span: Span | None, quota: Quota, kinds: Mapping[str, Callable[[Path], Content]]
) -> Content:
    """Content of a file by the reader of its kind. Raises OCO801 to OCO805."""
    place = locate(path, folder, span)
    reader = kinds.get(place.suffix.lower())
    if reader is None:
        known = ", ".join(s.lstrip(".") for s in kinds)
        raise fail("OCO803", f"`{path}` is of no kind that can be read", span, f"the kinds are {known}")
    size = place.stat().st_size
    if size > (MOST_TEXT_BYTES if place.suffix.lower() in (".csv", ".json") else MOST_BYTES):
        hint = "save large data as npy or parquet" if size <= MOST_BYTES else ""
        raise fail("OCO805", f"`{path}` is too large to be read", span, hint)
    try:
        quota.open(size)
        return reader(place)
    except OcoError:
        raise
    except QuotaExceeded as error:
        raise fail("OCO805", f"`{path}` is too large: {error}", span, error.hint) from None
    except OSError as error:
        raise fail("OCO801", f"`{path}` cannot be read: {error.strerror or error}", span) from None
    except MemoryError:
        raise fail("OCO805", f"`{path}` does not fit into memory", span) from None
    except (csv.Error, *UNREADABLE) as error:
        raise fail("OCO804", f"`{path}` cannot be read as {place.suffix.lstrip('.')}: {error}", span) from None


def locate(path: str, folder: Path | None, span: Span | None) -> Path:
    """File that a model names by `path`. Raises OcoError where it is outside the model's folder."""
    if folder is None:
        raise fail(
            "OCO802",
            f"`{path}` has no place: this model is not in a folder",
            span,
            "give the folder of its files with `folder=`",
        )
    windows = PureWindowsPath(path)
    if "\0" in path or PurePosixPath(path).is_absolute() or windows.is_absolute() or windows.drive:
        raise fail(
            "OCO802", f"`{path}` is not a path relative to the model file", span, "put the file beside the model"
        )
    root = folder.resolve()
    try:
        place = (root / path).resolve()
    except (OSError, RuntimeError):
        raise fail("OCO801", f"there is no file `{path}`", span) from None
    if place == root or not place.is_relative_to(root):
        raise fail("OCO802", f"`{path}` is outside the folder of the model", span, "put the file beside the model")
    if not place.is_file():
        raise fail("OCO801", f"there is no file `{path}` beside the model", span, _similar(place, root))
    return place


def _similar(place: Path, root: Path) -> str:
    if not place.parent.is_dir():
        return "its folder does not exist"
    there = sorted(p.relative_to(root).as_posix() for p in place.parent.iterdir() if p.suffix.lower() in READERS)
    return did_you_mean(place.relative_to(root).as_posix(), there[:1000], "paths are relative to the model file")


def _numbers(array: Array, path: str, span: Span | None) -> Array:
    if array.size > MOST_NUMBERS:
        raise fail("OCO805", f"`{path}` is too large: fixed data has at most {MOST_NUMBERS:,} numbers", span)
    if array.size == 0:
        raise fail("OCO804", f"`{path}` holds no numbers", span)
    if array.dtype.kind not in "iubf":
        raise fail("OCO804", f"`{path}` holds {array.dtype} and not real numbers", span)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        where = ", ".join(map(str, wrong[0]))
        raise fail("OCO804", f"entry [{where}] of `{path}` is {array[tuple(wrong[0])]}, not a finite number", span)
    return array.astype(np.int64 if array.dtype.kind in "iub" else np.float64, copy=False)


def _read_csv(path: Path, name: str, quota: Quota) -> Array:
    """Rows of numbers; a first row without any number is a header."""
    result, width = packed("d"), 0
    with path.open(newline="", encoding="utf-8-sig") as stream:
        for number, cells in enumerate(csv.reader(lines_of(stream), strict=True), start=1):
            if not cells or (number == 1 and all(decimal(c) is None for c in cells)):
                continue
            width = width or len(cells)
            if len(cells) != width:
                raise ValueError(f"row {number} has {len(cells)} cells, the rows before it {width}")
            _check_count(len(result) + width)
            result.extend([_cell(c, number, column) for column, c in enumerate(cells, start=1)])
    array = np.frombuffer(result) if result else np.empty(0)
    quota.add(array.nbytes)
    whole = array.astype(np.int64) if array.size and np.abs(array).max() < 2**53 else array
    return (whole if np.array_equal(whole, array) else array).reshape(-1, max(1, width))


def _cell(cell: str, row: int, column: int) -> float:
    if not cell.strip():
        raise ValueError(f"row {row}, column {column} is empty")
    value = decimal(cell)
    if value is None:
        raise ValueError(f"row {row}, column {column} is {cell.strip()[:30]!r}, not a number")
    return value


def _check_count(count: int) -> None:
    if count > MOST_NUMBERS:
        raise QuotaExceeded(f"it holds {count:,} numbers or more; at most {MOST_NUMBERS:,} are read")


def _check_header(header: Header) -> None:
    """Refuse a header that announces more than may be read, before anything is allocated."""
    if header.dtype.kind not in "iubf":
        raise ValueError(f"it holds {header.dtype} and not real numbers")
    _check_count(header.count)


def _read_npy(path: Path, name: str, quota: Quota) -> Array:
    with path.open("rb") as stream:
        header = read_header(stream, path.stat().st_size)
        _check_header(header)
        quota.add(header.unpacked)
        return read_entries(stream, header)


def _read_npz(path: Path, name: str, quota: Quota) -> Array:
    """Array with the name of the param, or the only one."""
    with ZipFile(path) as archive:
        there = members(archive)
        if name not in there and len(there) != 1:
            raise ValueError(
                f"it holds the arrays {', '.join(list(there)[:10]) or 'none'}; one of them must be called {name}"
            )
        member = there.get(name) or next(iter(there.values()))
        header = member_header(archive, member)
        _check_header(header)
        quota.add(header.unpacked)
        return read_member(archive, member)


def _read_json(path: Path, name: str, quota: Quota) -> Array:
    """Number, or lists of numbers nested by the shape; or an object that has them under the param's name."""
    raw = path.read_bytes()
    quota.add(IN_LIST * len(raw) + LIST * (raw.count(b"[") + raw.count(b"{")))
    content = json.loads(raw.decode("utf-8"))
    if isinstance(content, dict):
        if name not in content:
            raise ValueError(f"it is an object without the key {name}")
        content = content[name]
    _check_nested(content, ())
    return np.array(content)


def _check_nested(content: Any, where: tuple[int, ...]) -> tuple[int, ...]:
    """Check the shape of nested lists of numbers."""
    place = f"entry [{', '.join(map(str, where))}]" if where else "the content"
    if not isinstance(content, list):
        if isinstance(content, bool) or not isinstance(content, (int, float)):
            raise ValueError(f"{place} is {json.dumps(content)[:30]}, not a number")
        if abs(content) >= 2**63 and isinstance(content, int):
            raise ValueError(f"{place} is too large for an integer")
        return ()
    if len(where) > 30:
        raise ValueError("its lists are nested too deeply")
    if content and {*map(type, content)} <= {int, float} and all(abs(n) < 2**63 for n in (min(content), max(content))):
        return (len(content),)
    shapes = [_check_nested(item, (*where, i)) for i, item in enumerate(content)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(f"the lists in {place} differ in length: entry {i} does not fit entry 0")
    return (len(content), *(shapes[0] if shapes else ()))


def _read_parquet(path: Path, name: str, quota: Quota) -> Array:
    """Columns of a table, in order."""
    try:
        import pyarrow
        from pyarrow import parquet, types
    except ImportError:
        raise ValueError("reading parquet needs the package pyarrow: pip install pyarrow") from None
    from oco.dsl.readers.parquet import check_sizes

    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            rows, width = file.metadata.num_rows, len(file.schema_arrow)
            _check_count(rows * width)
            for field in file.schema_arrow:
                if not (types.is_integer(field.type) or types.is_floating(field.type) or types.is_boolean(field.type)):
                    raise ValueError(f"column {field.name} does not hold numbers")
            check_sizes(path, file, quota)
            kinds = {field.type.to_pandas_dtype() for field in file.schema_arrow}
            result, start = np.empty((rows, width), np.result_type(*kinds) if kinds else float), 0
            for batch in file.iter_batches(batch_size=max(1, BLOCK // max(1, width)), use_threads=False):
                for place, column in enumerate(batch.columns):
                    if column.null_count:
                        raise ValueError(f"column {batch.schema.names[place]} lacks a value")
                    result[start : start + len(column), place] = column.to_numpy(zero_copy_only=False)
                start += batch.num_rows
            if start != rows:
                raise ValueError(f"it has {start:,} rows and says {rows:,}")
    except (pyarrow.ArrowException, KeyError, TypeError, IndexError) as error:
        raise ValueError(str(error)) from error
    return result


READERS: dict[str, Callable[[Path, str, Quota], Array]] = {
    ".csv": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
