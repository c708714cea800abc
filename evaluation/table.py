"""Named columns over rounds: cells become numbers, and columns of times are set aside. Nothing here depends on a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.readers.decimals import decimal, decimals
from oco.dsl.readers.quota import Quota
from oco.dsl.records import dataclass
from oco.dsl.spill import RowFile, spacious

Array = np.ndarray[Any, Any]

BATCH = 1 << 17
"""Numbers of a file that are read together."""
MOST_FILES = 64
"""Stems of columns that have arrays of their own, each of which may be an open file while the rows are read."""
WRONG_CELL = 200
"""Approximate bytes of a cell that is kept because it is not a number."""
COLUMN = 512
"""Approximate bytes of a column besides its numbers."""
SHOWN = 60
"""Characters of a cell that a message quotes."""
_ENTRY = re.compile(r"[\[.].*|(_\d+)+$")
"""End of a column's name that says which entry of a stream it has."""
_TIME_NAME = re.compile(r"(^|[\W_])(time|date|timestamp|datetime|time stamp)([\W_]|$)", re.IGNORECASE)
_TIME_CELL = re.compile(r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?$|^\d{1,2}/\d{1,2}/\d{2,4}( .*)?$")
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})


@dataclass(frozen=True)
class Table:
    """Table of columns (arrays with the round first, int64 or float64; NaN is a missing value), with the positions that
    messages name.

    `texts` holds cells that are not numbers, by column and place: the row, or where a row has several numbers, row *
    width + entry; `times` are the cells of columns left out because they hold times; `row_numbers` gives each row's number for
    messages (the line of a CSV file), with `row_word` before it.
    """

    name: str
    arrays: Mapping[str, Array]
    texts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    times: Mapping[str, Array] = field(default_factory=dict)
    row_word: str = "round"
    row_numbers: Array | None = None
    headed: bool = True

    def width(self, column: str) -> int:
        """Number of entries in a row of a column."""
        return prod(self.arrays[column].shape[1:])

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return min((len(a) for a in self.arrays.values()), default=0)

    def where(self, row: int) -> str:
        """Name of the row with index `row`, as `line 17`."""
        number = row + 1 if self.row_numbers is None else int(self.row_numbers[row])
        return f"{self.row_word} {number}"


def table_of(name: str, columns: Mapping[str, Any], **where: Any) -> Table:
    """Table of columns as numbers; columns of times are set aside."""
    arrays: dict[str, Array] = {}
    texts: dict[str, dict[int, str]] = {}
    times: dict[str, Array] = {}
    for key, column in columns.items():
        if np.ndim(column) == 0:
            what = f"`{key}` in {name}" if key else name
            raise fail("OCO821", f"{what} is a single number", hint="the first axis of an array is the round")
        if _tells_time(key, column):
            times[key] = np.asarray(column)
            continue
        arrays[key], wrong = _numbers(column)
        if wrong:
            texts[key] = wrong
    return Table(name, arrays, texts, times, **where)


class Parts:
    """Table that is read part by part, `rows` rows or fewer: no more than a part is in memory beside what is kept."""

    def __init__(self, name: str, rows: int, quota: Quota | None = None) -> None:
        self.name, self._rows, self._quota = name, rows, quota
        self._arrays: dict[str, Array] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._times: dict[str, list[Array]] | None = None
        self._names: list[str] = []
        self._floats: list[tuple[list[str], RowFile]] = []
        self._count = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add the next rows. The first part determines which columns hold times, and which hold floats: those of one stem lie side by
        side.
        """
        first = self._times is None
        if self._times is None:
            self._times = {key: [] for key, column in columns.items() if _tells_time(key, column)}
        for key, cells in self._times.items():
            cells.append(np.asarray(columns[key]))
        rows, kept = len(next(iter(columns.values()), ())), dict[str, Array]()
        for key, column in columns.items():
            if key in self._times:
                continue
            kept[key], wrong = _numbers(column)
            if wrong:
                self._count_wrong(len(wrong))
                width = prod(kept[key].shape[1:])
                self._texts.setdefault(key, {}).update({self._count * width + p: cell for p, cell in wrong.items()})
        if first:
            self._names = [*kept]
            stems = _stems([key for key, part in kept.items() if part.ndim == 1 and part.dtype == np.float64])
            self._floats = [(keys, RowFile(self._rows, len(keys), len(stems))) for keys in stems]
        for keys, file in self._floats:
            file.add(self._side_by_side(rows, {key: kept.pop(key) for key in keys}))
        for key, part in kept.items():
            self._room(key, part, len(kept))[self._count : self._count + len(part)] = part
        self._count += rows

    def _side_by_side(self, rows: int, parts: Mapping[str, Array]) -> Array:
        """Parts of columns of floats in one array (rows, columns). Raises OCO821 where cells have become rows."""
        result = np.empty((rows, len(parts)))
        for k, (key, part) in enumerate(parts.items()):
            if part.ndim > 1:
                raise uneven(key, self._count + 1, self.name)
            result[:, k] = part
        return result

    def table(self, **where: Any) -> Table:
        """Table of all rows that were added."""
        own = {key: column for keys, file in self._floats for key, column in zip(keys, file.array().T, strict=True)}
        own |= {key: array[: self._count] for key, array in self._arrays.items()}
        arrays = {key: own[key] for key in self._names}
        times = {key: np.concatenate(cells) for key, cells in (self._times or {}).items()}
        return Table(self.name, arrays, self._texts, times, **where)

    def _room(self, key: str, part: Array, among: int) -> Array:
        """Array of a column that takes the part. Raises OCO821 where its rows have other shapes than those before."""
        array = self._arrays.get(key)
        if array is None:
            array = spacious((self._rows, *part.shape[1:]), part.dtype, among)
        elif array.shape[1:] != part.shape[1:]:
            raise uneven(key, self._count + 1, self.name)
        elif array.dtype != part.dtype:
            array = array.astype(np.float64)
        self._arrays[key] = array
        return array

    def _count_wrong(self, cells: int) -> None:
        if self._quota is not None:
            self._quota.add(WRONG_CELL * cells)


def _stems(keys: Sequence[str]) -> list[list[str]]:
    """Columns by what their names begin with, before `[`, `.` or numbers after `_`: those of a stream lie side by side then."""
    stems: dict[str, list[str]] = {}
    for key in keys:
        stems.setdefault(_ENTRY.sub("", key), []).append(key)
    return [*stems.values()] if len(stems) <= MOST_FILES else [list(keys)]


def uneven(key: str, round_: int, name: str) -> Exception:
    """Error for a round of a column whose shape differs from that of the first."""
    message = f"round {round_} of `{key}` in {name} has not as many numbers as the first"
    return fail("OCO821", message, hint="give every round the same shape")


def check_header(names: Sequence[str], file: str) -> None:
    """Check the names of the columns. Raises OCO821 where two are equal."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        called = ", ".join(f"`{n}`" for n in twice)
        raise fail("OCO821", f"{file} has more than one column called {called}", hint="rename all but one of them")


def array_of(key: str, given: Any, name: str) -> Array:
    """Column as an array; masked values are missing, and cells that are lists are rows."""
    if isinstance(given, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(given.astype(np.float64), np.nan))
    try:
        result = np.asarray(given)
        if result.dtype == object and result.ndim == 1 and len(result) and np.ndim(result[0]):
            given = list(result)
            result = np.stack([np.asarray(row) for row in given])
        return result
    except ValueError:
        sizes = [np.size(row) for row in given]
        other = next((k for k, size in enumerate(sizes, 1) if size != sizes[0]), 1)
        raise uneven(key, other, name) from None


def _tells_time(name: str, column: Any) -> bool:
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return True
    sample = next((str(cell) for cell in column if str(cell).strip()), "") if np.ndim(column[:1]) == 1 else ""
    named = bool(_TIME_NAME.search(name)) and decimal(sample) is None
    return named or bool(_TIME_CELL.match(sample.strip()))


def _numbers(column: Any) -> tuple[Array, dict[int, str]]:
    """Column as float64 with NaN for missing values, and the cells that are not numbers, by place; int64 is not copied."""
    if isinstance(column, np.ndarray) and column.dtype == np.int64:
        return np.asarray(column), {}
    array = column if isinstance(column, np.ndarray) else np.asarray(column, dtype=object)
    flat = array.reshape(-1)
    texts = array.dtype.kind in "OUS" and any(isinstance(cell, str | bytes) for cell in flat)
    if not texts and array.dtype.kind != "c":
        try:
            return np.asarray(array, dtype=np.float64), {}
        except (ValueError, TypeError):
            pass
    if texts and all(type(cell) is str for cell in flat) and (plain := decimals(flat)) is not None:
        return plain.reshape(array.shape), {}
    values = np.full(array.shape, np.nan)
    wrong: dict[int, str] = {}
    for place, cell in enumerate(flat):
        text = "" if cell is None else _text(cell).strip()
        number = decimal(text)
        if number is not None:
            values.reshape(-1)[place] = number
        elif text[:SHOWN].lower() not in _MISSING:
            wrong[place] = text[:SHOWN]
    return values, wrong


def _text(cell: Any) -> str:
    return cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
