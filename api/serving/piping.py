"""Events as JSON lines in, decisions as JSON lines out: the calls of a store without a network."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from queue import Queue
from threading import Thread
from typing import IO

from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, call_of, json_object, plain_json
from oco.serving.commits import GroupCommits
from oco.serving.metrics import Metrics
from oco.serving.problems import problem
from oco.serving.store import Store

NAMES = ("key", "round", "observe", "decide")
AHEAD = 2000
"""Lines that are read before the first of them is answered."""
Asked = tuple[str, "list[Future[Reply]] | OcoError"]


def pipe_lines(store: Store, lines: Iterable[str], out: IO[str]) -> int:
    """Answer each line, in order, once it is on the disk; returns the number of lines that were refused. Closes the store.

    A line is an object with `key`, and `round` and `observe` for the data of a round; `decide` has the contexts of the decision.
    """
    commits = GroupCommits(store, Metrics((*store.states.plan.program.labels, *store.states.plan.contract.equalities)))
    asked: Queue[Asked | BaseException | None] = Queue(AHEAD)
    reader = Thread(target=_read, args=(lines, commits, asked), daemon=True)
    reader.start()
    refused = 0
    try:
        while (line := asked.get()) is not None:
            if isinstance(line, BaseException):
                raise line
            text, right = _written(*line)
            refused += not right
            out.write(text + "\n")
            if asked.empty():
                out.flush()
        return refused
    finally:
        commits.close()


def _read(lines: Iterable[str], commits: GroupCommits, asked: Queue[Asked | BaseException | None]) -> None:
    """Submit the calls of all lines, and their answers to come in order."""
    try:
        for line in lines:
            if not line.strip():
                continue
            key = ""
            try:
                event = json_object(line)
                key = str(event.get("key", ""))
                asked.put((key, [commits.submit(call, wait=True) for call in calls_of(event)]))
            except OcoError as error:
                asked.put((key, error))
    except BaseException as error:
        asked.put(error)
    else:
        asked.put(None)


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


def _written(key: str, calls: list[Future[Reply]] | OcoError) -> tuple[str, bool]:
    """Line for the answers of an event, and True where none was refused; of several the first error."""
    try:
        if isinstance(calls, OcoError):
            raise calls
        *seen, decided = [future.result() for future in calls]
    except OcoError as error:
        return plain_json({"key": key, "error": problem(error)}), False
    text = decided.text
    return (f'{text[:-1]},"observed":{seen[0].text}}}' if seen else text), True
