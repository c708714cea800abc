"""A clock for laws on models at random: what has not ended in time is left, in the middle of whatever it does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

AGAIN = 0.5
"""Seconds after which the interruption is raised anew, where the first was dropped, as within `__del__`."""


class OutOfTime(BaseException):
    """The time is over. No `except Exception` takes it for something else."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block once the time is over; a call into C ends first.

    The shorter of two that are nested counts. Without signals, as on Windows or in a second thread, the block is not interrupted.
    """
    if seconds <= 0:
        raise OutOfTime
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    begun, before = monotonic(), signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left or seconds), AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (monotonic() - begun), 1e-3), AGAIN)


def _over(_number: int, _frame: object) -> None:
    raise OutOfTime
