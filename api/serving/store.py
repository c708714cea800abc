"""Store of learners by key in one SQLite database: a batch of calls is one transaction, so that each counts exactly once.

    about     key, value                               version of the format and of oco, hashes of model and plan, backend, seed, recipe
    learners  key, round, saved, rest, checksum        state after the last call, as `KeyedStates.row` gives it
    rounds    key, round, given, decision, seen, result  decision of a round and what was observed in it, with hashes of what was given

A call whose round is recorded is answered by the record. A state is in the database with the decisions that came of it, or neither is.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import oco
from oco.backends.database import Database, Durability
from oco.backends.identity import model_hash, plan_hash
from oco.backends.learner import Learner
from oco.backends.saved import other_model
from oco.dsl.diagnostics import OcoError, fail
from oco.serving.answering import Answering, Record
from oco.serving.calls import Call, Reply, plain_json
from oco.serving.states import KeyedStates, Row

FORMAT = "1"
SCHEMA = {
    "about": "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "learners": "CREATE TABLE learners (key TEXT PRIMARY KEY, round INTEGER NOT NULL, saved BLOB, rest TEXT NOT NULL, "
    "checksum TEXT NOT NULL) WITHOUT ROWID",
    "rounds": "CREATE TABLE rounds (key TEXT, round INTEGER, given TEXT NOT NULL, decision TEXT NOT NULL, seen TEXT, result TEXT, "
    "PRIMARY KEY (key, round)) WITHOUT ROWID",
}
Round = tuple[int, str, str, str | None, str | None]
"""Row of `rounds` without its key."""
NAMED = 20
"""Keys that stand in the metrics by name."""


class Store(Answering, Database):
    """Learners by key, of one plan, for one process and one of its threads at a time.

    keep  rounds of each key that are kept to answer repeated calls
    live  learners that are kept in memory
    size  number of learners that are recorded; `first_keys` are the keys of some of them
    """

    kind = "store"
    reopening = "open the store again"

    def __init__(
        self,
        path: Path,
        states: KeyedStates,
        keep: int = 100,
        live: int = 10_000,
        durability: Durability = Durability.DISK,
    ) -> None:
        super().__init__(path, SCHEMA, durability)
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
        own |= {"plan_hash": plan_hash(states.plan.program, contract.of_one_turn), "version": oco.__version__}
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
            hint = f"`{self.path}` can be served without the model: it knows its plan; {_carries(self.path)}"
            raise other_model(f"{self.path} belongs", recipe, self.states.plan.contract, hint)
        for name in ("recipe", "backend", "seed", "on_out_of_bounds"):
            if known[name] != own[name]:
                words = (
                    "another plan of its model" if name == "recipe" else f"{name} {known[name]!r}, not {own[name]!r}"
                )
                hint = f"serve {self.path} itself: it knows its plan; {_carries(self.path)}; or name another --store"
                raise fail("OCO851", f"{self.path} was begun with {words}", hint=hint)
        if known.get("plan_hash", own["plan_hash"]) != own["plan_hash"]:
            message = f"{self.path} was begun by oco {known.get('version')}, whose plan of its model this version does not give"
            raise fail("OCO851", message, hint="serve it with that version, or begin with another --store")

    def adopt(self, learners: Iterable[tuple[str, Learner, Sequence[Round]]]) -> None:
        """Let learners that were elsewhere go on under keys that are new, with records of their rounds; nothing where a key has one."""
        with self._whole():
            for key, learner, rounds in learners:
                if self._stored(key) is None:
                    self._put(key, learner)
                    self._base.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?)", ((key, *r) for r in rounds))
                    self.size += 1
                    self.first_keys += [key][: NAMED - len(self.first_keys)]

    def contents(self) -> Iterator[tuple[str, Learner, list[Round]]]:
        """Key, learner and records of rounds of each key, in the order of keys. Raises OCO854."""
        with self._errors():
            for (key,) in self._base.execute("SELECT key FROM learners ORDER BY key"):
                rounds = self._base.execute(
                    "SELECT round, given, decision, seen, result FROM rounds WHERE key = ? ORDER BY round", (key,)
                )
                yield key, cast(Learner, self._stored(key)), rounds.fetchall()

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
                answers = [self.answered(call) for call in calls]
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

    # Records.

    def _record(self, key: str, round: int) -> Record | None:
        rows = self._base.execute(
            "SELECT given, decision, seen, result FROM rounds WHERE key = ? AND round = ?", (key, min(round, 2**62))
        )
        record: Record | None = rows.fetchone()
        return record

    def _begin_round(self, key: str, round: int, given: str, decision: str) -> None:
        self._base.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, NULL, NULL)", (key, round, given, decision))

    def _end_round(self, key: str, round: int, seen: str, result: str) -> None:
        self._base.execute(
            "UPDATE rounds SET seen = ?, result = ? WHERE key = ? AND round = ?", (seen, result, key, round)
        )
        last = round - self.keep
        if last > 0:
            self._base.execute("DELETE FROM rounds WHERE key = ? AND round <= ? AND result IS NOT NULL", (key, last))

    def _drop_round(self, key: str, round: int) -> None:
        self._base.execute("DELETE FROM rounds WHERE key = ? AND round = ?", (key, round))

    def _put(self, key: str, learner: Learner) -> None:
        round, row = learner.round, self.states.row(learner)
        values = key, round, *row, _checksum(key, round, row)
        self._base.execute("INSERT OR REPLACE INTO learners VALUES (?, ?, ?, ?, ?)", values)

    def _is_new(self, key: str) -> bool:
        return key in self._unrecorded

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


def _carries(path: Path) -> str:
    """Way out of a store of another plan that keeps its learners."""
    return f"`oco migrate {path} MODEL.oco -o NEW.db` carries its learners to the plan of a model"


def _checksum(key: str, round: int, row: Row) -> str:
    saved, rest = row
    return hashlib.sha256(f"{key} {round} {rest} ".encode() + (saved or b"")).hexdigest()[:32]
