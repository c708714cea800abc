"""Tables as text: rows of cells between commas, semicolons, tabs or spaces."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.readers.decimals import decimal, lines_of
from oco.dsl.readers.quota import Quota
from oco.evaluation.table import BATCH, COLUMN, Array, Parts, Table, check_header

BLOCK = 1 << 20
CHARACTER, NUMBER, BREAK = 4, 8, 24
"""Bytes in memory of a character, of a number, and of a row besides its numbers: its line, and a list while it is read."""
ENCODING = "utf-8-sig"
Row = tuple[int, list[str]]


def read_text_table(path: Path, quota: Quota) -> Table:
    """Table from a file with cells between commas, semicolons, tabs or spaces, also packed with gzip.

    A first row of numbers is data: columns are then named 0, 1, 2, ... The file is read twice, in blocks: for its size, then for its
    numbers.
    """
    packed = path.suffix.lower() == ".gz"
    with gzip.open(path) if packed else path.open("rb") as stream:
        size, breaks = _measure(stream.read, quota)
    with gzip.open(path, "rt", encoding=ENCODING) if packed else path.open(encoding=ENCODING) as file:
        return _read(file, path.name, size, breaks, quota)


def _measure(read: Callable[[int], bytes], quota: Quota) -> tuple[int, int]:
    """Size in bytes of a text and its number of lines, counted against the quota with the memory for its rows. Raises
    TooMuch.
    """
    size = breaks = 0
    while block := read(BLOCK):
        ends = block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
        between = len(block) - len(block.translate(None, b",;\t "))
        quota.add(CHARACTER * len(block) + NUMBER * between + BREAK * ends)
        size, breaks = size + len(block), breaks + ends
    return size, breaks


def _read(file: IO[str], name: str, size: int, breaks: int, quota: Quota) -> Table:
    rows = _rows_of(file)
    first = next(rows, None)
    if first is None:
        raise fail("OCO820", f"{name} is empty", hint="a data file has one row a round")
    headed = any(decimal(cell) is None for cell in first[1])
    width = len(first[1])
    names = [cell.strip() for cell in first[1]] if headed else [str(i) for i in range(width)]
    quota.add(COLUMN * width)
    check_header(names, name)
    most = 2 + min(breaks, size // width)  # a row has a cell for each column, and what ends or parts them
    parts, lines = Parts(name, most, quota), list[Array]()
    rows = _checked(rows if headed else chain([first], rows), width, name)
    while block := list(islice(rows, max(1, BATCH // width))):
        parts.add(dict(zip(names, zip(*(cells for _, cells in block)))))
        lines.append(np.array([line for line, _ in block], dtype=np.int64))
    if not lines:
        parts.add(dict.fromkeys(names, ()))
    numbers = np.concatenate(lines) if lines else np.zeros(0, dtype=np.int64)
    return parts.table(row_word="line", row_numbers=numbers, headed=headed)


def _rows_of(file: IO[str]) -> Iterator[Row]:
    """Cells of each nonempty row, with the number of its line; an empty line between those of a single column is an empty cell."""
    lines = lines_of(file)
    begin = list(islice(lines, 2))
    if not begin:
        return
    delimiter = max(",;\t", key=begin[0].count)
    second = begin[1].split() if len(begin) > 1 else []
    spaced = delimiter not in begin[0] and 1 < len(second) == len(begin[0].split())
    lines = chain(begin, lines)
    if spaced and all(decimal(cell) is not None for cell in second):
        yield from ((number, cells) for number, line in enumerate(lines, 1) if (cells := line.split()))
        return
    reader = csv.reader(lines, delimiter=delimiter)
    width, empty = 0, list[int]()
    for row in reader:
        if not row:
            empty += [reader.line_num] if width == 1 else []
            continue
        yield from ((line, [""]) for line in empty)
        empty.clear()
        width = width or len(row)
        yield reader.line_num, row


def _checked(rows: Iterator[Row], width: int, file: str) -> Iterator[Row]:
    """Rows, as long as they have as many cells as the first. Raises OCO821 at the end where one has not."""
    wrong, first = 0, (0, 0)
    for line, cells in rows:
        if len(cells) != width:
            wrong, first = wrong + 1, first if wrong else (line, len(cells))
        elif not wrong:
            yield line, cells
    if wrong:
        more = f"; so it is in {wrong - 1} more lines" if wrong > 1 else ""
        there = f"{first[1]} {'cell' if first[1] == 1 else 'cells'}"
        raise fail("OCO821", f"{file}, line {first[0]} has {there} where the first line has {width}{more}")
