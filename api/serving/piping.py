"""Events as JSON lines in, decisions as JSON lines out: the calls of a store without a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from queue import Empty, Queue
from threading import Thread
from typing import IO

from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, call_of, json_object, plain_json
from oco.serving.problems import problem
from oco.serving.store import Store

NAMES = ("key", "round", "observe", "decide")
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
        _written(key, [asked] if isinstance(asked, OcoError) else [next(replies) for _ in asked])
        for key, asked in batch
    ]


def calls_of(event: dict[str, object]) -> list[Call]:
    """Calls of a line: data of a round, then the decision of the next; or a decision alone. Raises OCO660, OCO662."""
    other = [name for name in event if name not in NAMES]
    contexts, seen = event.get("decide", {}), event.get("observe")
    objects = isinstance(contexts, dict) and isinstance(seen, dict | None) and isinstance(event.get("key"), str)
    if other or not objects:
        hint = '{"key": "a"} or {"key": "a", "round": 1, "observe": {...}}; "decide": {...} has contexts'
        wrong = f"has the unknown name {other[0]!r:.60}" if other else "is not of the form of an event"
        raise fail("OCO662", f"the line {wrong}", hint=hint)
    assert isinstance(contexts, dict)
    key, round = str(event["key"]), {"round": event["round"]} if "round" in event else {}
    if not isinstance(seen, dict):
        return [call_of(key, Action.DECIDE, {**contexts, **round})]
    observe = call_of(key, Action.OBSERVE, {**seen, **round})
    assert observe.round is not None
    return [observe, Call(key, Action.DECIDE, observe.round + 1, contexts)]


def _written(key: str, replies: Sequence[Reply | OcoError]) -> tuple[str, bool]:
    """Line for the answers of an event, and True where none was refused; of several the first error."""
    done: list[Reply] = []
    for reply in replies:
        if isinstance(reply, OcoError):
            return plain_json({"key": key, "error": problem(reply)}), False
        done.append(reply)
    *seen, decided = done
    text = decided.text
    return (f'{text[:-1]},"observed":{seen[0].text}}}' if seen else text), True
