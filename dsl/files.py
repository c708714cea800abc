"""Fixed data from files: csv, npy, npz, json and parquet beside the model file. Nothing here runs code from a file or reads elsewhere."""

from __future__ import annotations

import csv
import json
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.limits import MOST_NUMBERS
from oco.dsl.source import Span

Array = np.ndarray[Any, Any]

MOST_BYTES = 16 * MOST_NUMBERS
UNREADABLE = (
    tokenize.TokenError,
    ValueError,
    RuntimeError,
    EOFError,
    SyntaxError,
    csv.Error,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers raise for a damaged file (RuntimeError: nested too deep, encrypted, packed in an unknown way)."""
MOST_TEXT = 2**28
"""Bytes of a text file: numbers in text take several times their place while they are read."""


def read_array(path: str, folder: Path | None, name: str, span: Span | None) -> Array:
    """The numbers in the file `path` beside the model, as int64 or float64.

    `name` is the param's: it chooses the array of an npz file that holds several.
    """
    place = locate(path, folder, span)
    reader = READERS.get(place.suffix.lower())
    if reader is None:
        known = ", ".join(s.lstrip(".") for s in READERS)
        raise fail("OCO803", f"`{path}` is of no kind that can be read", span, f"the kinds are {known}")
    if place.stat().st_size > (MOST_TEXT if place.suffix.lower() in (".csv", ".json") else MOST_BYTES):
        hint = "save large data as npy or parquet" if place.stat().st_size <= MOST_BYTES else ""
        raise fail("OCO805", f"`{path}` is too large to be read", span, hint)
    try:
        array = reader(place, name)
    except OcoError:
        raise
    except OSError as error:
        raise fail("OCO801", f"`{path}` cannot be read: {error.strerror or error}", span) from None
    except UNREADABLE as error:
        raise fail("OCO804", f"`{path}` cannot be read as {place.suffix.lstrip('.')}: {error}", span) from None
    return _numbers(array, path, span)


def locate(path: str, folder: Path | None, span: Span | None) -> Path:
    """The file that a model means by `path`; an error where that is outside the model's folder."""
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
    from oco.dsl.suggest import did_you_mean

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
    return array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)


def _read_csv(path: Path, name: str) -> Array:
    """Rows of numbers; a first row without any number is taken for the names of the columns."""
    rows: list[Array] = []
    with path.open(newline="", encoding="utf-8-sig") as stream:
        for number, cells in enumerate(csv.reader(stream, strict=True), start=1):
            if not cells or (number == 1 and not any(_is_number(c) for c in cells)):
                continue
            rows.append(np.array([_cell(c, number, column) for column, c in enumerate(cells, start=1)]))
            if len(rows[-1]) != len(rows[0]):
                raise ValueError(f"row {number} has {len(rows[-1])} cells, the rows before it {len(rows[0])}")
    array = np.array(rows)
    whole = array.astype(np.int64) if array.size and np.abs(array).max() < 2**53 else array
    return whole if np.array_equal(whole, array) else array


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cell(cell: str, row: int, column: int) -> float:
    if not cell.strip():
        raise ValueError(f"row {row}, column {column} is empty")
    if not _is_number(cell):
        raise ValueError(f"row {row}, column {column} is {cell.strip()[:30]!r}, not a number")
    return float(cell)


def _check_header(stream: IO[bytes]) -> None:
    """Refuse an npy header that promises more numbers than may be read, or objects, before anything is allocated."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects; save plain numbers")
    count = 1
    for length in shape:
        count *= int(length)
    if count > MOST_NUMBERS:
        raise ValueError(f"it says that it holds {count:,} numbers; at most {MOST_NUMBERS:,} are read")


def _read_npy(path: Path, name: str) -> Array:
    with path.open("rb") as stream:
        _check_header(stream)
        stream.seek(0)
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _read_npz(path: Path, name: str) -> Array:
    """The array called like the param, or the only one."""
    with zipfile.ZipFile(path) as archive:
        there = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        stems = [info.filename.removesuffix(".npy") for info in there]
        if name not in stems and len(there) != 1:
            raise ValueError(
                f"it holds the arrays {', '.join(stems[:10]) or 'none'}; one of them must be called {name}"
            )
        chosen = there[stems.index(name) if name in stems else 0]
        if chosen.file_size > MOST_BYTES:
            raise ValueError(f"an array has at most {MOST_NUMBERS:,} numbers")
        with archive.open(chosen) as stream:
            _check_header(stream)
        with archive.open(chosen) as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _read_json(path: Path, name: str) -> Array:
    """A number, or lists of numbers, nested as the shape says; or an object that has them under the param's name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, dict):
        if name not in content:
            raise ValueError(f"it is an object without the key {name}")
        content = content[name]
    _check_nested(content, ())
    return np.array(content)


def _check_nested(content: Any, where: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of nested lists of numbers."""
    place = f"entry [{', '.join(map(str, where))}]" if where else "the content"
    if not isinstance(content, list):
        if isinstance(content, bool) or not isinstance(content, (int, float)):
            raise ValueError(f"{place} is {json.dumps(content)[:30]}, not a number")
        if abs(content) >= 2**63 and isinstance(content, int):
            raise ValueError(f"{place} is too large for a whole number")
        return ()
    if len(where) > 30:
        raise ValueError("its lists are nested too deeply")
    shapes = [_check_nested(item, (*where, i)) for i, item in enumerate(content)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(f"the lists in {place} differ in length: entry {i} does not fit entry 0")
    return (len(content), *(shapes[0] if shapes else ()))


def _read_parquet(path: Path, name: str) -> Array:
    """The columns of a table, in order."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError("reading parquet needs the package pyarrow: pip install pyarrow") from None
    file = parquet.ParquetFile(path)
    if file.metadata.num_rows * file.metadata.num_columns > MOST_NUMBERS:
        raise ValueError(f"a table has at most {MOST_NUMBERS:,} numbers")
    table = file.read()
    columns = []
    for number, column in enumerate(table.columns):
        values = column.to_numpy()
        if values.dtype.kind not in "iubf":
            raise ValueError(f"column {table.column_names[number]} does not hold numbers")
        columns.append(values)
    return np.stack(columns, axis=1) if columns else np.empty(0)


READERS: dict[str, Callable[[Path, str], Array]] = {
    ".csv": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
