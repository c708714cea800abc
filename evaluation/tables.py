"""Files and arrays as named columns over rounds. Nothing here knows of a model; `data.py` maps columns to streams."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from oco.dsl.diagnostics import fail
from oco.evaluation.spill import spacious

Array = np.ndarray[Any, Any]

BATCH = 1 << 17  # numbers of a Parquet file that are read together
ARROW = (".parquet", ".arrow", ".feather")
FORMS = "a path, a dict of arrays with the round first, an array, a data frame"
KINDS = (".csv", ".tsv", ".txt", *ARROW, ".npy", ".npz")
_TIME_NAME = re.compile(r"(^|[\W_])(time|date|timestamp|datetime|time stamp)([\W_]|$)", re.IGNORECASE)
_TIME_CELL = re.compile(r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?$|^\d{1,2}/\d{1,2}/\d{2,4}( .*)?$")
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})


@dataclass(frozen=True)
class Table:
    """Columns (arrays with the round first, int64 or float64; NaN is a missing value) and what a message needs to name a cell.

    `texts` holds cells that are no numbers, by column and place: the row, or where a row has several numbers, row * width + entry;
    `times` the columns left out because they tell the time; `row_numbers` the number of each row as a person counts it (the line of a
    CSV file), with `row_word` before it.
    """

    name: str
    arrays: Mapping[str, Array]
    texts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    row_word: str = "round"
    row_numbers: Array | None = None
    headed: bool = True

    def width(self, column: str) -> int:
        """How many numbers a row of it has."""
        return prod(self.arrays[column].shape[1:])

    @property
    def rounds(self) -> int:
        return min((len(a) for a in self.arrays.values()), default=0)

    def where(self, row: int) -> str:
        """`line 17` for the row with index `row`."""
        number = row + 1 if self.row_numbers is None else int(self.row_numbers[row])
        return f"{self.row_word} {number}"


def found_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that is there. Raises OCO820."""
    found = Path(path)
    if not found.is_file():
        raise fail("OCO820", f"there is no file {found}", hint="give the path of a file with one row a round")
    return found


def read_table(path: str | Path) -> Table:
    """Read a CSV (also .tsv, .txt, and any of them with .gz), Parquet, Arrow (.arrow, .feather), NPY or NPZ file."""
    path = found_file(path)
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix not in KINDS:
        kinds = ", ".join(KINDS)
        hint = f"kinds that are: {kinds}; text with one row a round under another name can be renamed"
        raise fail("OCO820", f"{path.name} is not a kind of file that is read here", hint=hint)
    try:
        if suffix in ARROW:
            return _read_arrow(path, suffix)
        if suffix in (".npy", ".npz"):
            return _read_numpy(path)
        with gzip.open(path, "rt") if path.suffix.lower() == ".gz" else path.open(encoding="utf-8-sig") as file:
            return read_csv(file.read(), path.name)
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        said, hint = str(error), ""
        if "pickle" in said:
            said = "it holds objects of Python, or is no file of arrays"
            hint = (
                "rows of different lengths are such objects: save arrays of numbers, with np.savez one for each stream"
            )
        elif isinstance(error, UnicodeDecodeError):
            hint = "save it as text in UTF-8"
        raise fail("OCO820", f"{path.name} cannot be read: {said}", hint=hint) from error


def read_csv(text: str, name: str) -> Table:
    """Read text separated by commas, semicolons, tabs or spaces. A first row of numbers is data: columns are then called 0, 1, 2, ..."""
    numbered = _rows_of(text)
    if not numbered:
        raise fail("OCO820", f"{name} is empty", hint="a data file has one row a round")
    headed = not all(_is_number(cell) for cell in numbered[0][1])
    names = [cell.strip() for cell in numbered[0][1]] if headed else [str(i) for i in range(len(numbered[0][1]))]
    numbered = numbered[1:] if headed else numbered
    _check_header(names, name)
    _check_widths(numbered, len(names), name)
    lines = np.array([line for line, _ in numbered], dtype=np.int64)
    cells = list(zip(*(row for _, row in numbered))) if numbered else [()] * len(names)
    return _table(name, dict(zip(names, cells)), row_word="line", row_numbers=lines, headed=headed)


def _rows_of(text: str) -> list[tuple[int, list[str]]]:
    """The cells of each row that has some, with the number of its line."""
    first, *others = text.split("\n", 2)
    delimiter = max(",;\t", key=first.count)
    second = others[0].split() if others else []
    if delimiter not in first and 1 < len(second) == len(first.split()) and all(map(_is_number, second)):
        return [(number, cells) for number, line in enumerate(text.splitlines(), 1) if (cells := line.split())]
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    return [(reader.line_num, row) for row in reader if row]


def table_of_arrays(arrays: Mapping[str, Any], name: str = "the data") -> Table:
    """A dict of arrays with the round first; also anything with columns by name, such as a data frame."""
    return _table(name, {str(key): _array(str(key), arrays[key], name) for key in arrays})


def _array(key: str, given: Any, name: str) -> Array:
    """A column as an array; what is masked is missing, and cells that are lists are rows."""
    if isinstance(given, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(given.astype(np.float64), np.nan))
    try:
        found = np.asarray(given)
        if found.dtype == object and found.ndim == 1 and len(found) and np.ndim(found[0]):
            given = list(found)
            found = np.stack([np.asarray(row) for row in given])
        return found
    except ValueError:
        sizes = [np.size(row) for row in given]
        other = next((k for k, size in enumerate(sizes, 1) if size != sizes[0]), 1)
        said = f"round {other} of `{key}` in {name} has not as many numbers as the first"
        raise fail("OCO821", said, hint="give every round the same shape") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_header(names: Sequence[str], file: str) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        called = ", ".join(f"`{n}`" for n in twice)
        raise fail("OCO821", f"{file} has more than one column called {called}", hint="rename all but one of them")


def _check_widths(numbered: Sequence[tuple[int, list[str]]], width: int, file: str) -> None:
    wrong = [(line, len(row)) for line, row in numbered if len(row) != width]
    if wrong:
        line, found = wrong[0]
        more = f"; so it is in {len(wrong) - 1} more lines" if len(wrong) > 1 else ""
        raise fail(
            "OCO821",
            f"{file}, line {line} has {found} {'cell' if found == 1 else 'cells'} where the first line has {width}{more}",
        )


def _table(name: str, columns: Mapping[str, Any], **where: Any) -> Table:
    """Turn columns into numbers, and set aside those that tell the time."""
    arrays: dict[str, Array] = {}
    texts: dict[str, dict[int, str]] = {}
    times: list[str] = []
    for key, column in columns.items():
        if np.ndim(column) == 0:
            what = f"`{key}` in {name}" if key else name
            raise fail("OCO821", f"{what} is a single number", hint="the first axis of an array is the round")
        if _tells_time(key, column):
            times.append(key)
            continue
        arrays[key], wrong = _numbers(column)
        if wrong:
            texts[key] = wrong
    return Table(name, arrays, texts, tuple(times), **where)


def _tells_time(name: str, column: Any) -> bool:
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return True
    sample = next((str(cell) for cell in column if str(cell).strip()), "") if np.ndim(column[:1]) == 1 else ""
    named = bool(_TIME_NAME.search(name)) and not _is_number(sample)
    return named or bool(_TIME_CELL.match(sample.strip()))


def _numbers(column: Any) -> tuple[Array, dict[int, str]]:
    """The column as float64 with NaN for what is missing, and the cells that are no numbers, by place; int64 stays where it lies."""
    if isinstance(column, np.ndarray) and column.dtype == np.int64:
        return np.asarray(column), {}
    if getattr(column, "dtype", None) is None or column.dtype.kind != "c":
        try:
            return np.asarray(column, dtype=np.float64), {}
        except (ValueError, TypeError):
            pass
    shape = column.shape if isinstance(column, np.ndarray) else (len(column),)
    values = np.full(shape, np.nan)
    wrong: dict[int, str] = {}
    flat = values.reshape(-1)
    for place, cell in enumerate(column.reshape(-1) if isinstance(column, np.ndarray) else column):
        text = "" if cell is None else str(cell).strip()
        if _is_number(text):
            flat[place] = float(text)
        elif text.lower() not in _MISSING:
            wrong[place] = text
    return values, wrong


def _read_arrow(path: Path, suffix: str) -> Table:
    """A Parquet file, or one of Arrow (Feather is the same), as a file or as a stream."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        kind = "Parquet" if suffix == ".parquet" else "Arrow"
        raise fail(
            "OCO820", f"{path.name}: reading {kind} needs pyarrow", hint="pip install ocolang[parquet]"
        ) from None
    if suffix == ".parquet":
        with parquet.ParquetFile(path, pre_buffer=False) as rows:
            return _of_batches(rows, path.name)
    with pyarrow.memory_map(str(path)) as file:
        try:
            return _of_arrow(pyarrow.ipc.open_file(file).read_all(), path.name)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            return _of_arrow(pyarrow.ipc.open_stream(file).read_all(), path.name)


def _of_batches(file: Any, name: str) -> Table:
    """A Parquet file a block of rows after the other: no more than a block is in memory beside what is kept."""
    import pyarrow

    rounds, start = file.metadata.num_rows, 0
    arrays: dict[str, Array] = {}
    texts: dict[str, dict[int, str]] = {}
    found = _of_arrow(file.schema_arrow.empty_table(), name)
    for batch in file.iter_batches(batch_size=max(1, BATCH // max(1, file.metadata.num_columns)), use_threads=False):
        found = _of_arrow(pyarrow.Table.from_batches([batch]), name)
        for key, part in found.arrays.items():
            if key not in arrays:
                arrays[key] = spacious((rounds, *part.shape[1:]), among=len(found.arrays))
                arrays[key][:start] = np.nan
            arrays[key][start : start + len(part)] = part
            texts.setdefault(key, {}).update({start + row: cell for row, cell in found.texts.get(key, {}).items()})
        for key in arrays.keys() - found.arrays.keys():
            arrays[key][start : start + batch.num_rows] = np.nan
        start += batch.num_rows
    kept = {key: cells for key, cells in texts.items() if cells}
    return replace(found, arrays=arrays or found.arrays, texts=kept)


def _of_arrow(frame: Any, name: str) -> Table:
    """An Arrow table: times stay times, lists become rows of an array."""
    columns = {n: _cells(frame.column(n)) for n in frame.column_names}
    for n in frame.column_names:
        if str(frame.schema.field(n).type).startswith(("timestamp", "date")):
            columns[n] = columns[n].astype("datetime64[us]")
        elif columns[n].size and isinstance(columns[n][0], list):
            columns[n] = _array(n, list(columns[n]), name)
    return _table(name, columns, row_word="row")


def _cells(column: Any) -> Array:
    """The cells of an Arrow column: numbers as such, anything else as Python's objects."""
    if str(column.type) in ("double", "float", "int64", "int32", "int16", "int8") and not column.null_count:
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_pylist(), dtype=object)


def _read_numpy(path: Path) -> Table:
    loaded = np.load(path, mmap_mode="r" if path.suffix.lower() == ".npy" else None, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return _by_position(loaded, path.name)
    with loaded:
        return _table(path.name, {key: loaded[key] for key in loaded.files}, row_word="row")


def _by_position(array: Array, name: str) -> Table:
    """Columns that have no names: those of a matrix, or one with all that a round holds."""
    columns = {"": array} if array.ndim != 2 else {str(i): array[:, i] for i in range(array.shape[1])}
    return _table(name, columns, row_word="row", headed=False)


def readable(source: Any) -> bool:
    """Whether `read` makes a table of such a thing."""
    framed = any(hasattr(source, name) for name in ("collect_schema", "column_names", "columns"))
    return framed or isinstance(source, Table | str | os.PathLike | Mapping | np.ndarray)


def read(source: Any) -> Table:
    """A table from a path, a mapping of arrays, an array (by position, as a NPY file), or a data frame."""
    if not readable(source):
        said = f"data cannot be read from an object of type {type(source).__name__}"
        raise fail("OCO820", said, hint=f"give {FORMS}, an iterator of dicts, or None to draw")
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike):
        return read_table(os.fspath(source))
    if isinstance(source, Mapping):
        return table_of_arrays(source)
    if isinstance(source, np.ndarray) and source.dtype.names is None:
        return _by_position(_array("", source, "the array"), "the array")
    if isinstance(source, np.ndarray):
        return table_of_arrays({name: source[name] for name in source.dtype.names or ()})
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        source = source.collect()  # a lazy frame of polars
    if hasattr(source, "schema") and hasattr(source, "column_names"):
        return _of_arrow(source, "the Arrow table")
    names = [_name_of(column) for column in source.columns]
    _check_header(names, "the data frame")
    return table_of_arrays(
        {n: np.asarray(source[column]) for n, column in zip(names, source.columns)}, "the data frame"
    )


def _name_of(column: Any) -> str:
    """The name of a column; that of several levels as `price.CAPITL`."""
    return ".".join(filter(None, map(str, column))) if isinstance(column, tuple) else str(column)
