"""A progress bar on stderr while rounds are played: rounds a second, loss and violation so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oco.cli.output import console

if TYPE_CHECKING:
    from oco.evaluation.run import Progress


@contextmanager
def watched(title: str, rounds: int) -> Iterator[Progress | None]:
    """Gives the callback of `run`; None where stderr is not a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[sums]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(title, total=rounds, speed="", sums="")

        def show(done: int, loss: float, violation: float) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f} rounds/s"
            bar.update(task, completed=done, speed=rate, sums=f"loss {loss:.5g}  violation {violation:.4g}")

        yield show
