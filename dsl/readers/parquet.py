"""Parquet files: unpacked sizes of the pages, from the pages' own headers, before one of them is unpacked.

The footer cannot be trusted, and readers allocate by the headers of pages, so these count.
Source: https://github.com/apache/parquet-format (parquet.thrift).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from oco.dsl.readers.quota import Quota
from oco.dsl.readers.thrift import Compact
from oco.dsl.records import dataclass

NUMBER = 8
CELL = 200
"""Approximate bytes of a text in memory besides its characters: it is kept with its place, since it is not a number."""
IN_LIST = 32
"""Bytes of a number in a list: with its levels, and as an entry of an array."""
PAGE = 1 << 14
"""Bytes that a page counts beside its content: reading its header takes as long as some thousand numbers."""
WINDOW, WIDEST = 1 << 12, 1 << 24
"""Bytes that are read first for the header of a page, and at most."""
DICTIONARY_PAGE = 2
CONTENTS = {0: (5, 2), DICTIONARY_PAGE: (7, 2), 3: (8, 4)}
"""Field of a page header, by kind, with the part that has the number of values (1), and field of that part with their encoding."""
DELTA_BYTE_ARRAY = 7
"""Encoding of each text as the length of its common prefix with the one before, and the rest: few bytes unpack to any size."""


@dataclass(frozen=True)
class Page:
    """Header of a page: its kind, bytes once it is unpacked, values in it (nulls and entries of lists included), their
    encoding.
    """

    kind: int
    unpacked: int
    values: int
    encoding: int


def check_sizes(path: Any, file: Any, quota: Quota) -> None:
    """Count the memory of a file, opened as pyarrow's `ParquetFile`. Raises TooMuch; ValueError where it contradicts
    itself.
    """
    metadata = file.metadata
    if metadata.num_rows != sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)):
        raise ValueError("its parts have another number of rows than it says")
    with open(path, "rb") as stream:
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group)
            for number in range(rows.num_columns):
                _check_chunk(stream, rows.column(number), metadata.schema.column(number), rows.num_rows, quota)


def _check_chunk(stream: IO[bytes], chunk: Any, column: Any, rows: int, quota: Quota) -> None:
    seen = 0
    for page in _pages(stream, chunk):
        if page.kind == DICTIONARY_PAGE:
            quota.add(page.values * NUMBER)
        else:
            seen += page.values
            quota.add(page.values * _cost(column))
        quota.add(PAGE + page.unpacked)
        if column.physical_type == "BYTE_ARRAY":
            quota.add(3 * page.unpacked)  # a character may take four bytes
            if page.encoding == DELTA_BYTE_ARRAY:
                message = "has texts written as differences, whose sizes are not known before they are read"
                raise ValueError(f"column {column.path} {message}")
    if max(rows, chunk.num_values) > seen:
        raise ValueError(f"column {column.path} has {seen:,} values for {rows:,} rows")


def _cost(column: Any) -> int:
    """Bytes of a value in memory."""
    if column.physical_type == "BYTE_ARRAY":
        return CELL
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return CELL + 4 * int(column.length)
    return IN_LIST if column.max_repetition_level else NUMBER


def _pages(stream: IO[bytes], chunk: Any) -> Iterator[Page]:
    """Pages of a column chunk."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
        start = chunk.dictionary_page_offset
    end = start + chunk.total_compressed_size
    while start < end:
        length, header = _header(stream, start)
        kind, unpacked, packed = (_integer(header, field) for field in (1, 2, 3))
        values = encoding = 0
        if kind in CONTENTS:
            field, place = CONTENTS[kind]
            content = header.get(field)
            if not isinstance(content, dict):
                raise ValueError("the header of a page lacks a part")
            values, encoding = _integer(content, 1), _integer(content, place)
        yield Page(kind, unpacked, values, encoding)
        start += length + packed


def _integer(fields: dict[int, Any], number: int) -> int:
    result = fields.get(number)
    if not isinstance(result, int) or result < 0:
        raise ValueError("the header of a page lacks a size")
    return result


def _header(stream: IO[bytes], start: int) -> tuple[int, dict[int, Any]]:
    """Length of the header of the page at a position, and its fields."""
    window = WINDOW
    while True:
        stream.seek(start)
        reader = Compact(stream.read(window))
        try:
            fields = reader.struct()
            return reader.position, fields
        except EOFError:
            if window >= WIDEST or len(reader.data) < window:
                raise
            window *= 16
