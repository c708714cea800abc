"""Arrow files and streams: unpacked sizes of their batches, from the messages' headers, before a buffer is unpacked.

Source: https://arrow.apache.org/docs/format/Columnar.html (encapsulated messages; Message.fbs, read as FlatBuffers).
"""

from __future__ import annotations

import struct
from typing import Any

from oco.dsl.readers.quota import Quota

FILE_MAGIC = b"ARROW1\0\0"
"""First bytes of a file; a stream follows, and an index that is not needed."""
NUMBER, CELL = 8, 200
"""Bytes of a number, and of a text, which is kept with its place."""
MESSAGE = 1 << 14
"""Bytes that a message counts beside its content: it is read by itself."""
DICTIONARY_BATCH, RECORD_BATCH = 2, 3


def start_of(file: Any) -> int:
    """Position where the stream begins in a memory map of pyarrow."""
    file.seek(0)
    start = len(FILE_MAGIC) if file.read(len(FILE_MAGIC)) == FILE_MAGIC else 0
    file.seek(start)
    return start


def check_sizes(file: Any, texts: int, quota: Quota) -> int:
    """Count the bytes of the batches from here on, and return their rows. `texts` is the number of columns with texts.

    Raises TooMuch; ValueError and struct.error where a header is damaged.
    """
    from pyarrow import ipc

    rows = 0
    reader = ipc.MessageReader.open_stream(file)
    while (message := _next(reader)) is not None:
        header = bytes(message.metadata)
        table = _Table(header, _at(header, "<I", 0))
        kind = table.scalar(1, "<B")
        batch = table.table(2)
        if kind == DICTIONARY_BATCH:
            batch = batch.table(1)
        if kind not in (DICTIONARY_BATCH, RECORD_BATCH):
            continue
        length = batch.scalar(0, "<q")
        entries = [length, *(n for n, _ in batch.pairs(1))]
        if min(entries) < 0:
            raise ValueError("a batch has a negative length")
        cells = texts * length if kind == RECORD_BATCH else length
        quota.add(MESSAGE + NUMBER * sum(entries) + CELL * cells + _unpacked(batch, message.body))
        rows += length if kind == RECORD_BATCH else 0
    return rows


def _next(reader: Any) -> Any:
    try:
        return reader.read_next_message()
    except StopIteration:
        return None


def _unpacked(batch: _Table, body: Any) -> int:
    """Bytes of the buffers of a batch; each begins with its size where they are packed."""
    packed = batch.table(3).there
    content, total = memoryview(body) if body is not None else memoryview(b""), 0
    for offset, length in batch.pairs(2):
        size = _at(content, "<q", offset) if packed and length else length
        size = length if size == -1 else size  # this buffer is not packed
        if min(size, offset, length) < 0:
            raise ValueError("a buffer has a negative size")
        total += size
    return total


class _Table:
    """Table of FlatBuffers at a position in some bytes, or an absent one (position 0)."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self.there = place > 0

    def _field(self, number: int) -> int:
        """Position of a field; 0 where it is absent."""
        if not self.there:
            return 0
        index = self._place - _at(self._data, "<i", self._place)
        if 4 + 2 * number >= _at(self._data, "<H", index):
            return 0
        offset: int = _at(self._data, "<H", index + 4 + 2 * number)
        return self._place + offset if offset else 0

    def scalar(self, number: int, form: str) -> int:
        place = self._field(number)
        return _at(self._data, form, place) if place else 0

    def table(self, number: int) -> _Table:
        place = self._field(number)
        return _Table(self._data, place + _at(self._data, "<I", place) if place else 0)

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """Vector of structs of two 64-bit integers."""
        place = self._field(number)
        if not place:
            return []
        start = place + _at(self._data, "<I", place)
        count = _at(self._data, "<I", start)
        values = struct.unpack_from(f"<{2 * count}q", self._data, start + 4)
        return list(zip(values[::2], values[1::2]))


def _at(data: bytes | memoryview, form: str, place: int) -> int:
    if place < 0:
        raise ValueError("a header points before its beginning")
    result: int = struct.unpack_from(form, data, place)[0]
    return result
