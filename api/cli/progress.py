"""Progress on stderr: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import fsum, inf
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING

from oco.cli.output import console, is_terminal, note
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.evaluation.run import Progress

Advance = Callable[[int, str], None]
"""Callback that takes the amount done, and a short remark."""
Left = Callable[[int], float | None]
"""Estimate of the seconds left from the amount done; None where unknown."""
FIRST_SIGN = 1.0  # seconds, on a terminal
FIRST_LINE = 10.0  # seconds, elsewhere
LATER_LINES = 0.1  # of the time so far, if that is longer: a run of hours says some dozens of lines


class Pace:
    """Estimated time left for a set of separate runs, from the durations of those that ended; neither results that
    existed before nor start-up time count.

    `width` of them go on at once, or more where more are seen to overlap. The first run of each worker includes loading
    its libraries and is ignored once there are others.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._seconds: list[float] = []
        self._began = inf

    def took(self, seconds: float) -> None:
        """Record that a run of so many seconds has just ended."""
        self._began = min(self._began, perf_counter() - seconds)
        self._seconds.append(seconds)

    def left(self, runs: int) -> float | None:
        """Seconds that the remaining runs will take; None before the first one has ended."""
        if not self._seconds:
            return None
        width = max(self.width, sum(self._seconds) / max(perf_counter() - self._began, 1e-9))
        seconds = self._seconds[self.width :] or self._seconds
        return fsum(seconds) / len(seconds) * max(1.0, runs / width)


@contextmanager
def reporting(title: str, total: int, unit: str, silent: bool = False, left: Left | None = None) -> Iterator[Advance]:
    """Context that yields a callback for progress; `left` estimates the time left, by default from the rate so far."""
    screen = console(stderr=True)
    if silent:
        yield lambda done, words: None
        return
    if not screen.is_terminal:
        yield _lines(title, total, unit, left or _ByRate(total))
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    words = (TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[words]}"), TextColumn("{task.fields[left]}"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *words)
    left = left or _ByRate(total)
    with Progress(*columns, console=screen, transient=True) as bar:
        row = bar.add_task(title, total=total, speed="", words="", left="")

        def show(done: int, words: str) -> None:
            seconds = left(done) if done < total else None
            speed = (total - done) / seconds if seconds else None
            rate = "" if speed is None else f"{speed:,.3g} {unit}/s" if speed < 100 else f"{speed:,.0f} {unit}/s"
            bar.update(row, completed=done, speed=rate, words=words, left=_to_go(seconds))

        yield show


def _lines(title: str, total: int, unit: str, left: Left) -> Advance:
    from oco.backends.choose import duration

    began, due = perf_counter(), FIRST_LINE

    def show(done: int, words: str) -> None:
        nonlocal due
        passed, seconds = perf_counter() - began, left(done)
        if passed < due or not 0 < done < total:
            return
        due = passed + max(FIRST_LINE, LATER_LINES * passed)
        note(f"{title}: {done:,} of {total:,} {unit} in {duration(passed)}{_to_go(seconds, ', ')}; {words}")

    return show


def _to_go(seconds: float | None, before: str = "") -> str:
    from oco.backends.choose import duration

    return f"{before}about {duration(seconds)} to go" if seconds else ""


class _ByRate:
    """Estimate from the rate since the first call, which leaves out the time to start."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int) -> float | None:
        self._first = self._first or (done, perf_counter())
        since, began = self._first
        return None if done <= since else (perf_counter() - began) * (self.total - done) / (done - since)


@contextmanager
def watched(title: str, rounds: int, silent: bool = False) -> Iterator[Progress]:
    """Context that yields the progress callback of `run`: rounds a second, loss and violation so far."""
    with reporting(title, rounds, "rounds", silent) as show:
        yield lambda done, loss, violation: show(done, f"loss {loss:.5g}, violation {violation:.4g}")


@dataclass
class RoundsDone:
    """Rounds that some work is done with, in words; "" where it does not tell, or is done with all."""

    words: str = ""
    _left: _ByRate | None = None

    def __call__(self, done: int, total: int) -> None:
        """Take the rounds that are done, and the number of all."""
        if self._left is None or self._left.total != total:
            self._left = _ByRate(total)
        seconds = self._left(done) if done < total else None
        self.words = f", {done:,} of {total:,} rounds{_to_go(seconds, ', ')}" if done < total else ""


@contextmanager
def working(title: str, silent: bool = False) -> Iterator[RoundsDone]:
    """Show the elapsed time of work of unknown length on stderr: after a second on a terminal, in lines elsewhere.

    The context yields what may be told how many rounds are done, and of how many.
    """
    rounds = RoundsDone()
    if silent:
        yield rounds
        return
    over = Event()
    sign = Thread(target=_sign if is_terminal(stderr=True) else _sign_lines, args=(title, over, rounds), daemon=True)
    sign.start()
    try:
        yield rounds
    finally:
        over.set()
        sign.join()


def _sign(title: str, over: Event, rounds: RoundsDone) -> None:
    """Line on the terminal that is rewritten every second and removed at the end."""
    if over.wait(FIRST_SIGN):
        return
    from rich.text import Text

    from oco.backends.choose import duration

    began = perf_counter() - FIRST_SIGN
    with console(stderr=True).status(Text(title)) as status:
        while not over.wait(1.0):
            status.update(Text(f"{title}: {duration(perf_counter() - began)} so far{rounds.words}; Ctrl-C stops it"))


def _sign_lines(title: str, over: Event, rounds: RoundsDone) -> None:
    began, due = perf_counter(), FIRST_LINE
    while not over.wait(max(0.0, began + due - perf_counter())):
        from oco.backends.choose import duration

        passed = perf_counter() - began
        due = passed + max(FIRST_LINE, LATER_LINES * passed)
        note(f"{title}: {duration(passed)} so far{rounds.words}")
