"""Answers to calls of learners by key, wherever their states and rounds are kept: each round counts once, however often its calls come."""

from __future__ import annotations

import base64
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from oco.backends.learner import Learner
from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, plain_json
from oco.serving.states import KeyedStates

SKIPPED = "skipped"
"""Word in the place of the hash of a round's data, where they never came."""
Record = tuple[str, str, str | None, str | None]
"""Record of a round: hash of the contexts and the decision; hash of the data and the result, once they came."""


class Answering(ABC):
    """Answers of learners by key, with records of their rounds, by which a call that comes again is answered.

    A subclass keeps learners and records, all of a call or nothing of it.
    """

    states: KeyedStates

    @abstractmethod
    def _learner(self, key: str) -> Learner:
        """Learner of a key; a fresh one for a key that is new."""

    @abstractmethod
    def _is_new(self, key: str) -> bool:
        """True for a key of which nothing is recorded."""

    @abstractmethod
    def _forget(self, key: str) -> None:
        """Let go of a learner: the next call takes what is recorded of it."""

    @abstractmethod
    def _change(self, key: str) -> None:
        """Record the learner of a key, which has changed, with the other records of the call."""

    @abstractmethod
    def _record(self, key: str, round: int) -> Record | None:
        """Record of a round, if it is kept."""

    @abstractmethod
    def _begin_round(self, key: str, round: int, given: str, decision: str) -> None:
        """Record the decision of a round."""

    @abstractmethod
    def _end_round(self, key: str, round: int, seen: str, result: str) -> None:
        """Record that a round is over, and forget those that are not kept."""

    @abstractmethod
    def _drop_round(self, key: str, round: int) -> None:
        """Forget a round."""

    def answered(self, call: Call) -> Reply | OcoError:
        """Reply to a call, or the error of a call that is wrong, which changes nothing. Raises OCO854, OCO855, OCO858."""
        try:
            match call.action:
                case Action.DECIDE:
                    return self._decide(call)
                case Action.OBSERVE:
                    return self._observe(call)
                case Action.SKIP:
                    return self._skip(call)
                case Action.CERTIFICATE:
                    return self._certificate(call)
                case Action.STATE:
                    learner = self._known(call.key)
                    return self._state(call.key, learner)
        except OcoError as error:
            if error.code in ("OCO854", "OCO855", "OCO858"):
                raise
            return error

    # Actions.

    def _decide(self, call: Call) -> Reply:
        learner = self._learner(call.key)
        now = learner.round
        if call.round is None and learner.contract.delay:
            hint = f'the next one is {{"round": {now}}}'
            raise fail("OCO662", "where feedback is delayed, `decide` needs the number of its round", hint=hint)
        round = now if call.round is None else call.round
        known = self._record(call.key, round)
        given = digest(call.values)
        if known is not None:
            if call.values and known[0] != given:
                raise fail("OCO860", f"round {round} was decided with another context")
            return Reply(known[1])
        if round < now:
            raise fail(
                "OCO856", f"round {round} of {call.key!r} is not kept any more", hint=f"the learner is in round {now}"
            )
        if round > now:
            raise fail("OCO847", f"round {round} cannot be decided: {call.key!r} is in round {now}")
        before = len(learner.warnings)
        decision = learner.decide(**call.values)
        text = plain_json({"key": call.key, "round": round, "decision": _lists(decision)})
        self._begin_round(call.key, round, given, text)
        self._change(call.key)
        return Reply(text, new=True, warnings=tuple(learner.warnings[before:]))

    def _observe(self, call: Call) -> Reply:
        learner, round = self._known(call.key), cast(int, call.round)
        known, seen = self._record(call.key, round), digest(call.values)
        if known is not None and known[3] is not None:
            if known[2] != seen:
                raise fail("OCO856", f"round {round} of {call.key!r} was observed with other data")
            return Reply(known[3])
        if known is None and round < learner.round:
            raise fail(
                "OCO856",
                f"round {round} of {call.key!r} is not kept any more",
                hint=f"the learner is in round {learner.round}",
            )
        before = len(learner.warnings)
        named = {} if round == learner.round and not learner.contract.delay else {"round": round}  # without it: in C
        feedback = learner.observe(**named, **call.values)
        labels = (*learner.compiled.program.labels, *learner.contract.equalities)
        violation = {label: float(v) for label, v in zip(labels, feedback.violation)}
        warnings = learner.warnings[before:]
        result = {"loss": _finite(float(feedback.loss)), "violation": {n: _finite(v) for n, v in violation.items()}}
        text = plain_json({"key": call.key, "round": round, **result, "warnings": warnings})
        self._end_round(call.key, round, seen, text)
        self._change(call.key)
        return Reply(text, True, result["loss"], violation, tuple(warnings))  # type: ignore[arg-type]

    def _skip(self, call: Call) -> Reply:
        """Leave a round out whose data never come; nothing where it is not open, as when the call comes again."""
        learner = self._known(call.key)
        round = learner.round if call.round is None else call.round
        text = plain_json({"key": call.key, "round": round, "skipped": True})
        known = self._record(call.key, round)
        if known is None or known[2] == SKIPPED:
            return Reply(text)
        if known[3] is not None:
            raise fail("OCO856", f"round {round} of {call.key!r} was observed: it cannot be left out")
        if learner.contract.delay:
            cast(Any, learner).skip(round=round)
            self._end_round(call.key, round, SKIPPED, text)
        else:
            learner.skip()
            self._drop_round(call.key, round)
        self._change(call.key)
        return Reply(text, new=True)

    def _state(self, key: str, learner: Learner) -> Reply:
        """State as JSON values, and in the bytes of emitted C as base64 where these are all of it."""
        saved = None if learner.compiled.program.draws else self.states.row(learner)[0]
        text = None if saved is None else base64.b64encode(saved).decode("ascii")
        return _answer({"key": key, "round": learner.round, "bytes": text, "state": learner.state()})

    def _certificate(self, call: Call) -> Reply:
        learner = self._known(call.key)
        proof = learner.certificate()
        numbers = {"regret": _finite(proof.bound), "loss": _finite(proof.loss), "least": _finite(proof.least)}
        shares = {"broken": dict(proof.broken), "share_broken": dict(proof.share_broken)}
        statement = {"statement": proof.statement, "guarantee": list(learner.guarantee)}
        return _answer({"key": call.key, "rounds": proof.rounds, **numbers, **shares, **statement})

    def _known(self, key: str) -> Learner:
        """Learner of a key that has decided before. Raises OCO661."""
        learner = self._learner(key)
        if self._is_new(key):
            self._forget(key)
            raise fail("OCO661", f"there is no learner {key!r}", hint="`decide` begins one")
        return learner


def _answer(content: Mapping[str, Any]) -> Reply:
    return Reply(plain_json(content))


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _lists(decision: Any) -> Any:
    """Decision as nested lists; of several decisions by name."""
    if isinstance(decision, Mapping):
        return {name: np.asarray(value).tolist() for name, value in decision.items()}
    return np.asarray(decision).tolist()


_SORTED = json.JSONEncoder(sort_keys=True)
_OF_NOTHING = hashlib.sha256(b"{}").hexdigest()[:32]


def digest(values: Mapping[str, Any]) -> str:
    """Hash of what a call gives: numbers count as floats, names in any order."""
    if not values:
        return _OF_NOTHING
    text = _SORTED.encode(_numbers(values))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _numbers(value: Any) -> Any:
    """JSON value with integers as floats where these are exact."""
    if isinstance(value, dict):
        return {name: _numbers(v) for name, v in value.items()}
    if isinstance(value, list):
        return value if {*map(type, value)} == {float} else [_numbers(v) for v in value]
    return float(value) if type(value) is int and abs(value) <= 2**53 else value
