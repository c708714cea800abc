"""Memory that the contents of files may take."""

from __future__ import annotations

import math
import struct
import tokenize
import zlib
from zipfile import BadZipFile

from oco.dsl.meter import allowed

MOST_FIXED = 160 * 10**6
"""Bytes that the files of a model may unpack to: twenty million numbers, as many as its formulas may make."""

MOST_ROUNDS = 2**30
"""Bytes that a file with the rounds of a run, or a trace, may unpack to."""

RATIO = 16
"""Bytes in memory for one on the disk that need no limit: `1,` in a text is a number of eight bytes in a row of its own."""

UNREADABLE = (
    tokenize.TokenError,
    ValueError,
    RuntimeError,
    EOFError,
    SyntaxError,
    struct.error,
    BadZipFile,
    zlib.error,
)
"""Errors of readers over damaged files (RuntimeError: nested too deep, encrypted, packed in an unknown way)."""


class TooMuch(ValueError):
    """A content that takes more memory than it may; `hint` says what allows it."""

    def __init__(self, said: str, hint: str = "") -> None:
        super().__init__(said)
        self.hint = hint


class Quota:
    """Bytes that contents of files take once they are unpacked: at most `limit`, or 16 times what the files take on the disk."""

    def __init__(self, limit: float) -> None:
        self.limit, self.stored, self.unpacked = limit, 0, 0

    def open(self, stored: int) -> None:
        """Count a file of so many bytes."""
        self.stored += stored

    def add(self, unpacked: int) -> None:
        """Count bytes that are about to be unpacked. Raises TooMuch."""
        self.unpacked += unpacked
        if self.unpacked > max(self.limit, RATIO * self.stored):
            takes, most = (f"{size / 1e6:,.0f} MB" for size in (self.unpacked, self.limit))
            said = f"a file of {self.stored:,} bytes unpacks to {takes} or more; at most {most} are unpacked"
            times = math.ceil(self.unpacked / self.limit * limit_of(1.0))
            raise TooMuch(said, f"if it is yours, allow more: `oco --effort {times} ...`, `with oco.effort({times}):`")


def limit_of(most: float) -> float:
    """Bytes that may be unpacked where `most` are usual, at the effort that is wanted."""
    return allowed(most)
