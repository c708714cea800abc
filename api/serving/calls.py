"""Calls of learners by key, and their answers: values between those who take requests and the store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NoReturn

from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

KEY = re.compile(r"[\w.:@+-]{1,200}", re.ASCII)
"""Form of keys: safe in addresses, in logs and in labels of metrics."""


class Action(StrEnum):
    """Things that a call asks of a learner; those that record a round, and those that only read."""

    DECIDE = "decide"
    OBSERVE = "observe"
    SKIP = "skip"
    CERTIFICATE = "certificate"
    STATE = "state"

    @property
    def records(self) -> bool:
        """True where the learner changes."""
        return self in (Action.DECIDE, Action.OBSERVE, Action.SKIP)


@dataclass(frozen=True)
class Call:
    """Call of the learner of a key.

    round   that the call is about; None: the one that the learner is in
    values  contexts for `decide`, streams for `observe`, by name
    """

    key: str
    action: Action
    round: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if KEY.fullmatch(self.key) is None:
            hint = "a key has 1 to 200 letters, digits and . : @ + - _"
            raise fail("OCO660", f"{self.key[:60]!r} is no key of a learner", hint=hint)
        if self.round is None and self.action is Action.OBSERVE:
            hint = 'give it with the data: {"round": 7, ...}, as `decide` answered it'
            raise fail("OCO662", "`observe` needs the number of its round, so that it can be sent again", hint=hint)


@dataclass(frozen=True)
class Reply:
    """Reply to a call.

    text    JSON object, the same for every repetition of a call
    new     True where this call recorded it
    loss, violation  of a round that was observed: a number, and one for each constraint by label
    warnings  that the call caused
    """

    text: str
    new: bool = False
    loss: float | None = None
    violation: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def call_of(key: str, action: Action, given: Mapping[str, Any]) -> Call:
    """Call with the values of a JSON object, in which `round` stands beside the streams. Raises OCO660, OCO662."""
    values = {name: value for name, value in given.items() if name != "round"}
    round = given.get("round")
    if round is not None and (not isinstance(round, int) or isinstance(round, bool) or round < 1):
        raise fail("OCO662", f"`round` is an integer from 1, not {round!r:.60}")
    return Call(key, action, round, values)


def json_object(text: bytes | str) -> dict[str, Any]:
    """Object of a strict JSON text: no NaN, no infinity, no name twice. Raises OCO662."""
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise fail("OCO662", f"the call is not JSON: {str(error) or 'nested too deeply'}") from None
    if not isinstance(value, dict):
        raise fail("OCO662", f"a call is a JSON object, not of type {type(value).__name__}")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return result


_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def plain_json(value: Any) -> str:
    """Compact JSON text, which reads back bit for bit."""
    return _COMPACT.encode(value)
