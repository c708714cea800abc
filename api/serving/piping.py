"""Events as JSON lines in, decisions as JSON lines out: the calls of a store without a network."""

from __future__ import annotations

from collections.abc import Iterable
from queue import Empty, Queue
from threading import Thread
from typing import IO

from oco.dsl.diagnostics import OcoError
from oco.serving.calls import Call, json_object
from oco.serving.events import calls_of, written
from oco.serving.store import Store

AHEAD = 2000
"""Lines that are read before the first of them is answered."""
MOST_IN_BATCH = 1000
"""Lines of one transaction: more would make the first of them wait long."""
Line = tuple[str, "list[Call] | OcoError"]


def pipe_lines(store: Store, lines: Iterable[str], out: IO[str]) -> int:
    """Answer each line, in order, once it is on the disk; returns the number of lines that were refused. Closes the store.

    A line is an object with `key`, and `round` and `observe` for the data of a round; `decide` has the contexts of the decision. Lines
    that come while a batch is written make the next one.
    """
    read: Queue[Line | BaseException | None] = Queue(AHEAD)
    Thread(target=_read, args=(lines, read), daemon=True).start()
    refused, end = 0, False
    with store:
        while not end:
            batch, end = _batch(read)
            for text, right in _answers(store, batch):
                refused += not right
                out.write(text + "\n")
            out.flush()
    return refused


def _read(lines: Iterable[str], read: Queue[Line | BaseException | None]) -> None:
    """Calls of all lines, with their keys; an error in the place of calls that are wrong, and of lines that cannot be read."""
    try:
        for line in lines:
            if not line.strip():
                continue
            key = ""
            try:
                event = json_object(line)
                key = str(event.get("key", ""))
                read.put((key, calls_of(event)))
            except OcoError as error:
                read.put((key, error))
    except BaseException as error:
        read.put(error)
    else:
        read.put(None)


def _batch(read: Queue[Line | BaseException | None]) -> tuple[list[Line], bool]:
    """Lines that have come, at least one, and True where they are the last. Raises what reading them raised, after those before it."""
    batch: list[Line] = []
    while len(batch) < MOST_IN_BATCH:
        try:
            line = read.get(block=not batch)
        except Empty:
            break
        if isinstance(line, BaseException):
            if not batch:
                raise line
            read.put(line)
            break
        if line is None:
            return batch, True
        batch.append(line)
    return batch, False


def _answers(store: Store, batch: list[Line]) -> list[tuple[str, bool]]:
    """Lines for the answers of a batch, and True for each that was not refused."""
    calls = [call for _, asked in batch if not isinstance(asked, OcoError) for call in asked]
    try:
        replies = iter(store.apply(calls))
    except OcoError as error:
        replies = iter([error] * len(calls))
    return [
        written(key, [asked] if isinstance(asked, OcoError) else [next(replies) for _ in asked]) for key, asked in batch
    ]
