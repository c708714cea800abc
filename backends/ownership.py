"""Exclusive use: of a learner or a fleet by a thread, of a journal by a learner; a second user gets an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from oco.dsl.diagnostics import fail

LOCKS = Path("/proc/locks")
"""Table of file locks on Linux: kind, process, device and number of the file."""


class Owned:
    """Object that one thread uses at a time; `kind` is its name in the error."""

    kind = "learner"

    def __init__(self) -> None:
        self._owner = RLock()

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        raise NotImplementedError

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """Lock held while other threads must not see a partial change. Raises OCO853."""
        if not self._owner.acquire(blocking=False):
            raise fail("OCO853", f"another thread is using this {self.kind}, in round {self.round}")
        try:
            yield
        finally:
            self._owner.release()


def holder_of(path: Path) -> tuple[str, str]:
    """Words for the process that has a database open, with advice. Read from /proc/locks: opening and closing the file
    would release our locks.
    """
    holders = set()
    with suppress(OSError, ValueError):
        place = os.stat(path)
        wanted = f"{os.major(place.st_dev):02x}:{os.minor(place.st_dev):02x}:{place.st_ino}"
        rows = [line.split() for line in LOCKS.read_text(encoding="ascii").splitlines()]
        holders = {int(row[4]) for row in rows if len(row) > 5 and row[5] == wanted}
    if os.getpid() in holders:
        return "another learner of this process", "close that learner first: `learner.close()`"
    if pid := max(holders, default=0):
        return f"another process, number {pid}", ""
    return "another learner, of this process or of another", ""
