"""Events of learners by key as JSON objects: the calls that an event makes, and the line that answers it."""

from __future__ import annotations

from collections.abc import Sequence

from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, call_of, plain_json
from oco.serving.problems import problem

NAMES = ("key", "round", "observe", "decide")


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


def written(key: str, replies: Sequence[Reply | OcoError]) -> tuple[str, bool]:
    """Line for the answers of an event, and True where none was refused; of several the first error."""
    done: list[Reply] = []
    for reply in replies:
        if isinstance(reply, OcoError):
            return plain_json({"key": key, "error": problem(reply)}), False
        done.append(reply)
    *seen, decided = done
    text = decided.text
    return (f'{text[:-1]},"observed":{seen[0].text}}}' if seen else text), True
