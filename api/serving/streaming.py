"""Learners by key in an engine of streams, which keeps their states with its own place in the stream, and moves them between machines."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol, Self

from oco.backends.learner import Learner
from oco.dsl.diagnostics import OcoError, fail
from oco.plan import Plan
from oco.serving.answering import Answering, Record
from oco.serving.calls import json_object, plain_json
from oco.serving.events import calls_of, written
from oco.serving.states import KeyedStates, Row

STATE = "learner"
"""Name of the value that has the bytes of emitted C."""
REST = "rest"
"""Name of the value that has the rest of a learner's state, as JSON."""


class Kept(Protocol):
    """Values that an engine keeps of one key: `learner`, `rest`, and a record of each of the last rounds."""

    def get(self, name: str) -> bytes | None:
        """Value of a name; None where there is none."""

    def set(self, name: str, value: bytes) -> None:
        """Keep a value under a name."""

    def delete(self, name: str) -> None:
        """Forget the value of a name."""


class StreamLearners(Answering):
    """Answers to events, each with what the engine keeps of its key: the lines of `oco pipe` get the same answers here.

    keep  rounds of each key that are kept to answer events that come again
    live  learners that are kept in memory, for as long as the engine's values of them are theirs
    """

    def __init__(self, states: KeyedStates, keep: int = 100, live: int = 10_000) -> None:
        self.states, self.live = states, live
        # By the end of a round all those before it are over which feedback of this delay can leave open.
        self.keep = max(keep, states.plan.contract.delay + 1)
        self._learners: OrderedDict[str, tuple[Row, Learner]] = OrderedDict()
        self._changed = False

    @classmethod
    def of_recipe(
        cls,
        recipe: Mapping[str, Any],
        backend: str | None = None,
        seed: int = 0,
        keep: int = 100,
        on_out_of_bounds: str = "error",
    ) -> Self:
        """Learners of the plan that a recipe (`Plan.recipe`) makes again, with the other options of `KeyedStates`."""
        return cls(KeyedStates(Plan.from_recipe(recipe), backend, seed, on_out_of_bounds), keep)

    def answer(self, line: str | bytes, kept: Kept, under: str | None = None) -> tuple[str, bool]:
        """Line that answers an event, and False where the event is wrong and changed nothing.

        kept   values of the key of the event (`key_of`)
        under  key that the engine keeps them under, where it does not come of the event

        Raises OCO850, OCO851, OCO854 where these are damaged or of another plan.
        """
        try:
            event = json_object(line)
            calls = calls_of(event)
            if under not in (None, calls[0].key):
                hint = "give the message the key of its event: by it the engine keeps learners"
                raise fail("OCO662", f"the event of {calls[0].key!r} came under the key {under!r:.60}", hint=hint)
        except OcoError as error:
            return written(key_of(line), [error])
        key, self._kept, self._changed = calls[0].key, kept, False
        try:
            self._learner(key)
            replies = [self.answered(call) for call in calls]
            if self._changed:
                self._keep(key)
        except BaseException:
            self._forget(key)  # what it holds may not be what is kept
            raise
        while len(self._learners) > self.live:
            self._learners.popitem(last=False)
        return written(key, replies)

    # States.

    def _learner(self, key: str) -> Learner:
        row = self._row()
        if key in self._learners and (self._changed or self._learners[key][0] == row):
            self._learners.move_to_end(key)
            return self._learners[key][1]
        learner = self.states.fresh(key) if row == (None, "") else self.states.learner(key, row)
        self._learners[key] = row, learner
        return learner

    def _row(self) -> Row:
        """State of the learner as it is kept; (None, "") of one that has not begun."""
        return self._kept.get(STATE), (self._kept.get(REST) or b"").decode()

    def _keep(self, key: str) -> None:
        learner = self._learners[key][1]
        saved, rest = row = self.states.row(learner)
        if saved is None:
            self._kept.delete(STATE)
        else:
            self._kept.set(STATE, saved)
        self._kept.set(REST, rest.encode())
        self._learners[key] = row, learner

    def _is_new(self, key: str) -> bool:
        return not self._changed and self._kept.get(REST) is None

    def _forget(self, key: str) -> None:
        self._learners.pop(key, None)

    def _change(self, key: str) -> None:
        self._changed = True

    # Rounds.

    def _record(self, key: str, round: int) -> Record | None:
        text = self._kept.get(_name(round))
        return None if text is None else _record_of(text)

    def _begin_round(self, key: str, round: int, given: str, decision: str) -> None:
        self._set(round, (given, decision, None, None))

    def _end_round(self, key: str, round: int, seen: str, result: str) -> None:
        record = self._record(key, round)
        if record is not None:
            self._set(round, (*record[:2], seen, result))
        self._drop_round(key, round - self.keep)

    def _drop_round(self, key: str, round: int) -> None:
        if round > 0:
            self._kept.delete(_name(round))

    def _set(self, round: int, record: Record) -> None:
        self._kept.set(_name(round), plain_json(record).encode())


def key_of(line: str | bytes) -> str:
    """Key of an event, by which an engine divides its stream; empty where the line cannot be read."""
    try:
        key = json.loads(line)["key"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return key if isinstance(key, str) else ""


def _name(round: int) -> str:
    return f"round/{round}"


def _record_of(text: bytes) -> Record:
    given, decision, seen, result = json.loads(text)
    return given, decision, seen, result
