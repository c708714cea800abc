"""Store of learners by key in one SQLite database: a batch of calls is one transaction, so that each counts exactly once.

    about     key, value                               version of the format, hash of the model, backend, seed, recipe of the plan
    learners  key, round, saved, rest, checksum        state after the last call, as `KeyedStates.row` gives it
    rounds    key, round, given, decision, seen, result  decision of a round and what was observed in it, with hashes of what was given

A call whose round is recorded is answered by the record. A state is in the database with the decisions that came of it, or neither is.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from oco.backends.database import Database
from oco.backends.identity import model_hash
from oco.backends.learner import Learner
from oco.backends.saved import other_model
from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, plain_json
from oco.serving.states import KeyedStates, Row

FORMAT = "1"
SCHEMA = {
    "about": "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "learners": "CREATE TABLE learners (key TEXT PRIMARY KEY, round INTEGER NOT NULL, saved BLOB, rest TEXT NOT NULL, "
    "checksum TEXT NOT NULL) WITHOUT ROWID",
    "rounds": "CREATE TABLE rounds (key TEXT, round INTEGER, given TEXT NOT NULL, decision TEXT NOT NULL, seen TEXT, result TEXT, "
    "PRIMARY KEY (key, round)) WITHOUT ROWID",
}
NAMED = 20
"""Keys that stand in the metrics by name."""
SKIPPED = "skipped"
"""Word in the place of the hash of a round's data, where they never came."""
Record = tuple[str, str, str | None, str | None]
"""Row of `rounds` without key and round."""


class Store(Database):
    """Learners by key, of one plan, for one process and one of its threads at a time.

    keep  rounds of each key that are kept to answer repeated calls
    live  learners that are kept in memory
    size  number of learners that are recorded; `first_keys` are the keys of some of them
    """

    kind = "store"
    reopening = "open the store again"

    def __init__(self, path: Path, states: KeyedStates, keep: int = 100, live: int = 10_000) -> None:
        super().__init__(path, SCHEMA)
        self.states, self.keep, self.live = states, keep, live
        self._learners: OrderedDict[str, Learner] = OrderedDict()
        self._unrecorded: set[str] = set()
        self._begun: list[str] = []
        self._changed: dict[str, None] = {}  # keys of a batch, in its order
        contract = states.plan.contract
        own = {
            "format": FORMAT,
            "model_hash": model_hash(contract),
            "backend": states.backend,
            "seed": str(states.seed),
        }
        own |= {"recipe": plain_json(dict(contract.recipe)), "on_out_of_bounds": states.on_out_of_bounds}
        try:
            self._begin(own)
            self.size = int(self._base.execute("SELECT count(*) FROM learners").fetchone()[0])
            rows = self._base.execute("SELECT key FROM learners ORDER BY key LIMIT ?", (NAMED,))
            self.first_keys = [key for (key,) in rows.fetchall()]
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> Path:
        """Path of the database."""
        return self.path

    def _begin(self, own: Mapping[str, str]) -> None:
        """Record the plan in a new store; compare it in one that has begun. Raises OCO851, OCO854."""
        with self._whole():
            known = dict(self._base.execute("SELECT key, value FROM about").fetchall())
            if not known:
                self._base.executemany("INSERT INTO about VALUES (?, ?)", own.items())
                return
        if known.get("format") != FORMAT:
            raise fail("OCO854", f"{self.path} has the format {known.get('format')!r}; this version reads {FORMAT}")
        recipe = json.loads(known["recipe"])
        if known["model_hash"] != own["model_hash"]:
            raise other_model(f"{self.path} belongs", recipe, self.states.plan.contract)
        for name in ("recipe", "backend", "seed", "on_out_of_bounds"):
            if known[name] != own[name]:
                words = (
                    "another plan of its model" if name == "recipe" else f"{name} {known[name]!r}, not {own[name]!r}"
                )
                hint = f"serve {self.path} itself: it knows its plan; or name another --store"
                raise fail("OCO851", f"{self.path} was begun with {words}", hint=hint)

    def adopt(self, key: str, state: Mapping[str, Any]) -> None:
        """Let a learner that was elsewhere go on under a key that is new; nothing where the key has one."""
        with self._whole():
            if self._stored(key) is None:
                self._put(key, self.states.moved(state))
                self.size, self.first_keys = self.size + 1, [*self.first_keys, key]

    # Batches.

    def apply(self, calls: Sequence[Call]) -> list[Reply | OcoError]:
        """Answers to a batch of calls, in their order, once all that they recorded is on the disk. Raises as `batch`."""
        with self.batch(calls) as answers:
            pass
        return answers

    @contextmanager
    def batch(self, calls: Sequence[Call]) -> Iterator[list[Reply | OcoError]]:
        """Transaction with the answers to calls, in their order; all that they recorded is on the disk after it.

        A call with wrong data gets an error, and its learner is as before it. Raises OCO854, OCO855, OCO858 where the batch cannot be
        recorded: then nothing of it happened.
        """
        try:
            with self._whole():
                answers = [self._answered(call) for call in calls]
                for key in self._changed:
                    self._put(key, self._learners[key])
                yield answers
        except BaseException:
            for call in calls:
                self._forget(call.key)  # what it holds is not on the disk
            self._begun.clear()
            self._changed.clear()
            raise
        self._changed.clear()
        self.size += len(self._begun)
        self.first_keys += self._begun[: NAMED - len(self.first_keys)]
        self._begun.clear()
        while len(self._learners) > self.live:
            self._forget(next(iter(self._learners)))

    def _forget(self, key: str) -> None:
        self._learners.pop(key, None)
        self._unrecorded.discard(key)

    def _answered(self, call: Call) -> Reply | OcoError:
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
        given = _digest(call.values)
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
        self._base.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, NULL, NULL)", (call.key, round, given, text))
        self._change(call.key)
        return Reply(text, new=True, warnings=tuple(learner.warnings[before:]))

    def _observe(self, call: Call) -> Reply:
        learner, round = self._known(call.key), cast(int, call.round)
        known, seen = self._record(call.key, round), _digest(call.values)
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
        self._end(call.key, round, seen, text)
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
            self._end(call.key, round, SKIPPED, text)
        else:
            learner.skip()
            self._base.execute("DELETE FROM rounds WHERE key = ? AND round = ?", (call.key, round))
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

    # Records.

    def _record(self, key: str, round: int) -> Record | None:
        rows = self._base.execute(
            "SELECT given, decision, seen, result FROM rounds WHERE key = ? AND round = ?", (key, min(round, 2**62))
        )
        record: Record | None = rows.fetchone()
        return record

    def _end(self, key: str, round: int, seen: str, text: str) -> None:
        """Record that a round is over, and forget those that are not kept."""
        self._base.execute(
            "UPDATE rounds SET seen = ?, result = ? WHERE key = ? AND round = ?", (seen, text, key, round)
        )
        last = round - self.keep
        if last > 0:
            self._base.execute("DELETE FROM rounds WHERE key = ? AND round <= ? AND result IS NOT NULL", (key, last))

    def _put(self, key: str, learner: Learner) -> None:
        round, row = learner.round, self.states.row(learner)
        values = key, round, *row, _checksum(key, round, row)
        self._base.execute("INSERT OR REPLACE INTO learners VALUES (?, ?, ?, ?, ?)", values)

    def _change(self, key: str) -> None:
        """Have the learner of a key written at the end of the batch."""
        self._changed[key] = None
        if key in self._unrecorded:
            self._unrecorded.discard(key)
            self._begun.append(key)

    def _stored(self, key: str) -> Learner | None:
        rows = self._base.execute("SELECT round, saved, rest, checksum FROM learners WHERE key = ?", (key,)).fetchall()
        if not rows:
            return None
        round, saved, rest, checksum = rows[0]
        if checksum != _checksum(key, round, (saved, rest)):
            raise fail("OCO854", f"the state of {key!r} in {self.path} is damaged")
        return self.states.learner(key, (saved, rest))

    def _learner(self, key: str) -> Learner:
        """Learner of a key; a fresh one for a key that is new."""
        learner = self._learners.get(key)
        if learner is None:
            learner = self._stored(key)
            if learner is None:
                learner = self.states.fresh(key)
                self._unrecorded.add(key)
            self._learners[key] = learner
        self._learners.move_to_end(key)
        return learner

    def _known(self, key: str) -> Learner:
        """Learner of a key that has decided before. Raises OCO661."""
        learner = self._learner(key)
        if key in self._unrecorded:
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


def _digest(values: Mapping[str, Any]) -> str:
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


def _checksum(key: str, round: int, row: Row) -> str:
    saved, rest = row
    return hashlib.sha256(f"{key} {round} {rest} ".encode() + (saved or b"")).hexdigest()[:32]
