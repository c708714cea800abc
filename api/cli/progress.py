"""What is said on stderr while something long goes on: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from oco.cli.output import console, note

if TYPE_CHECKING:
    from oco.evaluation.run import Progress

Told = Callable[[int, str], None]
"""Takes how much is done, and a few words on it."""
FIRST_LINE = 10.0  # seconds
LATER_LINES = 0.1  # of the time so far, if that is longer: a run of hours says some dozens of lines


@contextmanager
def told(title: str, total: int, unit: str, silent: bool = False) -> Iterator[Told]:
    """Gives what is to be called as the work goes on."""
    screen = console(stderr=True)
    if silent:
        yield lambda done, words: None
        return
    if not screen.is_terminal:
        yield _lines(title, total, unit)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words = (TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[words]}"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *words, TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(title, total=total, speed="", words="")

        def show(done: int, words: str) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.3g} {unit}/s" if speed < 100 else f"{speed:,.0f} {unit}/s"
            bar.update(task, completed=done, speed=rate, words=words)

        yield show


def _lines(title: str, total: int, unit: str) -> Told:
    from oco.backends.worth import duration

    began, due = perf_counter(), FIRST_LINE

    def show(done: int, words: str) -> None:
        nonlocal due
        passed = perf_counter() - began
        if passed < due or not 0 < done < total:
            return
        due = passed + max(FIRST_LINE, LATER_LINES * passed)
        left = duration(passed * (total - done) / done)
        note(f"{title}: {done:,} of {total:,} {unit} in {duration(passed)}, about {left} to go; {words}")

    return show


@contextmanager
def watched(title: str, rounds: int, silent: bool = False) -> Iterator[Progress]:
    """Gives the callback of `run`: rounds a second, loss and violation so far."""
    with told(title, rounds, "rounds", silent) as show:
        yield lambda done, loss, violation: show(done, f"loss {loss:.5g}, violation {violation:.4g}")
