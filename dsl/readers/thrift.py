"""Structs in Thrift's compact protocol, as Parquet writes them: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md"""

from __future__ import annotations

import struct
from typing import Any

STOP, TRUE, FALSE, BYTE, SMALL, MIDDLE, LARGE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
VARINT_BYTES = 10


class Compact:
    """Reader of bytes from `position` on. Raises EOFError past their end, ValueError for invalid structs.

    It refuses encodings that readers interpret differently: a field that occurs twice, an integer with more bits than
    its kind.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position

    def struct(self) -> dict[int, Any]:
        """Fields by number, nested structs included. Values of lists, sets and maps are skipped."""
        fields: dict[int, Any] = {}
        last = 0
        while (head := self._take(1)[0]) != STOP:
            last = last + (head >> 4) if head >> 4 else self._integer(16)
            kind = head & 15
            if last in fields:
                raise ValueError(f"a header has field {last} twice")
            fields[last] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:  # booleans in a list take a byte each
                return self._take(1)[0]
            case 4 | 5 | 6:
                return self._integer(1 << kind)
            case 7:
                return struct.unpack("<d", self._take(8))[0]
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                return self._pass_list()
            case 11:
                return self._pass_map()
            case 12:
                return self.struct()
        raise ValueError(f"a header has a field of unknown kind {kind}")

    def _pass_list(self) -> None:
        head = self._take(1)[0]
        for _ in range(head >> 4 if head >> 4 != 15 else self._varint()):
            self._value(head & 15)

    def _pass_map(self) -> None:
        length = self._varint()
        kinds = self._take(1)[0] if length else 0
        for _ in range(length):
            self._value(kinds >> 4)
            self._value(kinds & 15)

    def _integer(self, bits: int) -> int:
        """Signed integer in zigzag encoding."""
        number = self._varint()
        if number >> bits:
            raise ValueError(f"a header has an integer of more than {bits} bits")
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = 0
        for k in range(VARINT_BYTES):
            byte = self._take(1)[0]
            number |= (byte & 127) << (7 * k)
            if byte < 128:
                return number
        raise ValueError("a header has a number that does not end")

    def _take(self, count: int) -> bytes:
        result = self.data[self.position : self.position + count]
        if len(result) < count:
            raise EOFError("a header ends before its last field")
        self.position += count
        return result
