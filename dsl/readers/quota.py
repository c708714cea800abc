"""Memory that the contents of files may take."""

from __future__ import annotations

import struct
import tokenize
import zlib
from zipfile import BadZipFile

from oco.dsl.limits import RATIO

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


class QuotaExceeded(ValueError):
    """Error for a content that takes more memory than allowed; `hint` says how it may be read."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Quota:
    """Count of the unpacked bytes of files: at most `limit`, or 16 times their size on disk."""

    def __init__(self, limit: float) -> None:
        self.limit, self.stored, self.unpacked = limit, 0, 0

    def open(self, stored: int) -> None:
        """Count a file of so many bytes on disk."""
        self.stored += stored

    def add(self, unpacked: int) -> None:
        """Count bytes that are about to be unpacked. Raises TooMuch."""
        self.unpacked += unpacked
        if self.unpacked > max(self.limit, RATIO * self.stored):
            takes, most = (f"{size / 1e6:,.0f} MB" for size in (self.unpacked, self.limit))
            message = f"a file of {self.stored:,} bytes unpacks to {takes} or more; at most {most} are unpacked"
            raise QuotaExceeded(
                message, f"save it unpacked: a file may always take {RATIO} times its bytes on the disk"
            )
