"""Exclusive use: of a learner or a fleet by a thread, of a journal by a learner; a second user gets an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from threading import TIMEOUT_MAX, RLock

from oco.dsl.diagnostics import fail, require
from oco.dsl.habits import OF_LEARNER, Suggesting

LOCKS = Path("/proc/locks")
"""Table of file locks on Linux: kind, process, device and number of the file."""


class Owned(Suggesting):
    """Object that one thread uses at a time; `kind` is its name in the error.

    timeout  seconds that a call waits for its turn while another thread is at work: 0 for an error at once, None for ever
    """

    _known_as, _lines = "a learner", OF_LEARNER
    kind = "learner"

    def __init__(self, timeout: float | None = 0.0) -> None:
        self._owner = RLock()
        self._answered = 0
        self.timeout = timeout

    @property
    def timeout(self) -> float | None:
        """Seconds that a call waits for its turn: 0 for an error at once, None for ever. Raises OCO526."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        require(seconds, (Real, type(None)), "a number of seconds as the timeout, or None to wait for ever")
        if seconds is not None and not 0 <= seconds <= TIMEOUT_MAX:
            raise fail(
                "OCO526", f"a timeout is a number of seconds from 0, or None to wait for ever; here it is {seconds}"
            )
        self._timeout = seconds
        self._share()

    @property
    def shared(self) -> bool:
        """True where calls of several threads wait for each other."""
        return self._timeout != 0

    def _share(self) -> None:
        """Follow a change of `shared`."""

    def _check_decided(self) -> None:
        """Check that `decide` has answered this round. Raises OCO863."""
        now = self.round
        if self._answered != now:
            before = f": the data of round {now - 1} were taken before" if now > 1 else ""
            hint = "call `decide` first, then `observe`, once each a round"
            raise fail("OCO863", f"round {now} is observed before it was decided{before}", hint=hint)

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        raise NotImplementedError

    @contextmanager
    def _owned(self, taken: bool = False) -> Iterator[None]:
        """Lock held while other threads must not see a partial change. Raises OCO853; after a round that is `taken` it waits."""
        if not self._owner.acquire(timeout=-1 if taken or self._timeout is None else self._timeout):
            waited = f", and was not done after {self._timeout:g} s" if self._timeout else ""
            raise fail("OCO853", f"another thread is using this {self.kind}, in round {self.round}{waited}")
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
