"""The journal of a learner: every decision and what every round revealed, on the disk before it counts.

A folder with one SQLite database, in write-ahead mode and with full synchronization: a decision is committed before `decide` returns it,
a round's data before the state moves. SQLite takes the place of log segments and their rotation: it moves what was committed from the
log into the database as it grows, and uses the space of old rounds again where they are not kept.

    about      key, value       version of the format, hash of the model
    snapshots  round, content   states, as `Learner.state` gives them: the first, and the last two of those taken every n rounds
    decided    round, content   the decisions, in the model's order
    revealed   round, content   the inputs by name, after they were checked, and warnings that they gave rise to

Each content is JSON with arrays as in saved states, beside a SHA-256 of its table, round and text.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oco.backends.identity import model_hash
from oco.backends.python.state_file import pack, unpack
from oco.backends.saved import UNREADABLE, other_model
from oco.dsl.diagnostics import OcoError, fail

if TYPE_CHECKING:
    from oco.backends.feedback import Feedback
    from oco.backends.learner import Learner

FORMAT = "1"
FILE = "journal.sqlite"
_TABLES = ("snapshots", "decided", "revealed")
LARGE = 1e6
"""Bytes of a round that are worth a word."""
PACKED = 8 * 4 / 3
"""Bytes that a number takes in a record, as text of base 64."""


class Journal:
    """Used by a learner, which calls `decide`, `reveal` and `settle` in every round, and `again` for a round that is over.

    every  rounds between snapshots
    keep   how many rounds are kept at least; None: all
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 100, keep: int | None = None) -> None:
        if every < 1 or (keep is not None and keep < 0):
            raise fail(
                "OCO858", "a journal takes a snapshot after one round or more, and keeps no negative number of rounds"
            )
        self.path = Path(folder) / FILE
        self.every = every
        self.keep = keep
        self._decided = self._revealed = self._warned = (
            0  # the last rounds of which there are records; warnings that are recorded
        )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            said = f"{folder} cannot be made: {(error.strerror or str(error)).lower()}"
            raise fail("OCO858", said, hint="name a folder that is there or can be made") from None
        with self._errors():
            self._base = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._prepare()
        except BaseException:
            self._base.close()
            raise

    def _prepare(self) -> None:
        for setting in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
            self._base.execute(f"PRAGMA {setting}").fetchall()
        with self._whole():
            self._base.execute("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
            for table in _TABLES:
                columns = "round INTEGER PRIMARY KEY, content TEXT NOT NULL, checksum TEXT NOT NULL"
                self._base.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def close(self) -> None:
        """Give the folder free for another process."""
        self._base.close()

    # Records.

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What SQLite says, in our words."""
        try:
            yield
        except UnicodeDecodeError:
            raise fail("OCO854", f"{self.path} is not a whole journal: it holds text that cannot be read") from None
        except sqlite3.DatabaseError as error:
            said = str(error)
            if "locked" in said:
                raise fail("OCO855", f"{self.path.parent} is in use by another process") from None
            damaged = not isinstance(error, sqlite3.OperationalError) or "malformed" in said or "no such" in said
            if damaged and not isinstance(error, sqlite3.ProgrammingError):
                raise fail("OCO854", f"{self.path} is not a whole journal: {said}") from None
            if "closed" in said:
                hint = "`oco.open` the folder again: it goes on where this learner ended"
                raise fail("OCO858", f"{self.path} was closed, and its learner with it", hint=hint) from None
            raise fail("OCO858", f"{self.path} cannot be written: {said.lower()}") from None

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of the statements within, or none."""
        with self._errors():
            try:
                self._base.execute("BEGIN IMMEDIATE")
                yield
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Records with the numbers of their rounds, which are read again where an interruption comes between the two."""
        try:
            yield
        except KeyboardInterrupt:
            self.seek()
            raise

    def _put(self, table: str, round: int, content: Any) -> None:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        self._base.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (round, text, _checksum(table, round, text)))

    def _read(self, table: str, where: str, *values: int) -> Iterator[tuple[int, Any]]:
        """Records in the order of their rounds, each checked."""
        with self._errors():
            rows = self._base.execute(f"SELECT round, content, checksum FROM {table} {where}", values).fetchall()
        for round, text, checksum in rows:
            if checksum != _checksum(table, round, text):
                raise fail("OCO854", f"the record of round {round} in `{table}` of {self.path} is damaged")
            yield round, json.loads(text)

    def _one(self, table: str, round: int) -> Any:
        """The record of a round; None where there is none."""
        return next((content for _, content in self._read(table, "WHERE round = ?", round)), None)

    def _last(self, table: str) -> int:
        with self._errors():
            found = self._base.execute(f"SELECT max(round) FROM {table}").fetchone()[0]
        return 0 if found is None else int(found)

    # What the learner calls.

    def decide(self, round: int, decisions: Sequence[Any]) -> None:
        """Record the decisions of a round, once."""
        packed = [pack(d) for d in decisions]
        if round > self._decided:
            with self._counted():
                with self._whole():
                    self._put("decided", round, packed)
                self._decided = round
        elif packed != self._one("decided", round):
            raise fail("OCO857", f"round {round} of {self.path} was decided otherwise")

    def reveal(self, feedback: Feedback, warnings: Sequence[str]) -> None:
        """Record what a round revealed, with its decisions if nobody has asked for them; compare, where the round is recorded."""
        now, values = feedback.round, {n: pack(v) for n, v in feedback.values.items()}
        if now <= self._revealed:
            self._same(now, values)
            return
        with self._counted():
            with self._whole():
                if now > self._decided:
                    self._put("decided", now, [pack(d) for d in feedback.decisions])
                self._put("revealed", now, {"streams": values, "warnings": list(warnings[self._warned :])})
            self._decided, self._revealed, self._warned = now, now, len(warnings)

    def _same(self, round: int, values: Mapping[str, Any]) -> None:
        """Raises OCO856 where a round that is over was observed with other data, or is not kept any more."""
        known = self._one("revealed", round)
        if known is None:
            raise fail("OCO856", f"round {round} is not kept in {self.path} any more")
        for name, value in values.items():
            if value != known["streams"][name]:
                raise fail("OCO856", f"round {round} was observed with another {name}")

    def settle(self, learner: Learner) -> None:
        """Take a snapshot where one is due. A failure leaves it to a later round: the replay is longer then, and loses nothing."""
        if (learner.round - 1) % self.every == 0 and learner.round > self._revealed:
            try:
                self.snapshot(learner)
            except OcoError as error:
                learner.warn(f"no snapshot was taken before round {learner.round}: {error.message}")

    def snapshot(self, learner: Learner) -> None:
        """Record the state, and let go of what is not kept."""
        with self._whole():
            self._base.execute("DELETE FROM snapshots WHERE round = ?", (learner.round,))
            self._put("snapshots", learner.round, learner.state())
            rows = self._base.execute("SELECT round FROM snapshots WHERE round > 1 ORDER BY round DESC").fetchall()
            for (round,) in rows[2:]:
                self._base.execute("DELETE FROM snapshots WHERE round = ?", (round,))
            if self.keep is not None and len(rows) > 1:
                first = min(learner.round - self.keep, rows[1][0])
                for table in ("decided", "revealed"):
                    self._base.execute(f"DELETE FROM {table} WHERE round < ?", (first,))

    def again(self, learner: Learner, round: int, streams: Mapping[str, Any]) -> Feedback:
        """The feedback of a round that is over, if these are its streams. Raises OCO856."""
        from oco.backends.feedback import Feedback

        warnings = list(learner.warnings)
        try:
            given = learner.checked(streams)
        finally:
            learner.warnings = warnings
        self._same(round, {n: pack(v) for n, v in given.items()})
        return Feedback(round, given, tuple(unpack(d) for d in self._one("decided", round)), learner.compiled)

    # Opening.

    def begin(self, learner: Learner) -> None:
        """The records of a learner before its first round."""
        with self._whole():
            for key, value in {"format": FORMAT, "model_hash": model_hash(learner.contract)}.items():
                self._base.execute("INSERT INTO about VALUES (?, ?)", (key, value))
            self._put("snapshots", learner.round, learner.state())

    @property
    def begun(self) -> bool:
        return self._last("snapshots") > 0

    def tell_size(self, learner: Learner) -> None:
        """Warn where every round that is kept takes much of the disk: its decision and its data lie there in full."""
        program, T = learner.compiled.program, learner.contract.horizon
        size = PACKED * sum(prod(f.type.shape) for f in (*program.decision, *program.feedback))
        if size > LARGE and self.keep is None:
            whole = f", all {T:,} rounds {size * T / 1e9:,.1f} GB" if T else ""
            said = f"a round takes about {size / 1e6:,.1f} MB of the journal{whole}: its decision and its data are there in full"
            learner.warn(f"{said}; `oco.open(..., keep_rounds=N)` keeps the last N of them")

    def check_owner(self, learner: Learner) -> None:
        """Raises OCO851 where the journal is of another model or plan, OCO854 where its format is another."""
        with self._errors():
            known = dict(self._base.execute("SELECT key, value FROM about").fetchall())
        if known.get("format") != FORMAT:
            raise fail("OCO854", f"{self.path} has the format {known.get('format')!r}; this version reads {FORMAT}")
        if known.get("model_hash") != model_hash(learner.contract):
            raise other_model(f"{self.path} belongs", self.state(first=True).get("recipe", {}), learner.contract)

    def state(self, first: bool) -> dict[str, Any]:
        """The first or the last snapshot."""
        _, state = next(self._read("snapshots", f"ORDER BY round {'ASC' if first else 'DESC'} LIMIT 1"))
        return dict(state)

    def seek(self) -> None:
        """Take what is recorded already as recorded."""
        self._decided, self._revealed = self._last("decided"), self._last("revealed")

    def replay(self, learner: Learner) -> None:
        """Bring a learner from a snapshot to where it was: every round again, its decision as it was recorded. Raises OCO854, OCO857."""
        for round, revealed in self._read("revealed", "WHERE round >= ? ORDER BY round", learner.round):
            if round != learner.round:
                raise fail(
                    "OCO854", f"round {learner.round} is missing in {self.path}: the next there is round {round}"
                )
            self.decide(round, learner.decisions())
            for message in revealed["warnings"]:
                learner.warn(message)
            try:
                values = {f.name: unpack(revealed["streams"][f.name]) for f in learner.compiled.program.feedback}
            except UNREADABLE as error:
                raise fail("OCO854", f"the record of round {round} in {self.path} is not whole: {error}") from None
            learner.update(learner.feedback(values))
        if learner.round <= self._decided:
            self.decide(learner.round, learner.decisions())
        self._warned = len(learner.warnings)


def _checksum(table: str, round: int, text: str) -> str:
    return hashlib.sha256(f"{table} {round} {text}".encode()).hexdigest()


def open_journal(
    fresh: Learner, folder: str | os.PathLike[str], every: int = 100, keep: int | None = None, rewind: bool = False
) -> Learner:
    """The learner of the journal in `folder`, where it was when the last round was recorded; `fresh`, where there is none yet.

    rewind  gives it as it was in its first round: rounds that are recorded are compared with their records, later ones are appended

    Raises OCO851 and OCO854 to OCO858.
    """
    journal = Journal(folder, every, keep)
    try:
        learner = fresh
        if not journal.begun:
            journal.begin(fresh)
        else:
            journal.check_owner(fresh)
            journal.seek()
            learner = type(fresh).from_state(journal.state(first=rewind), fresh.compiled, fresh.contract)
            if not rewind:
                journal.replay(learner)
        journal.tell_size(learner)
        with learner._owned():
            learner.journal = journal
        return learner
    except BaseException:
        journal.close()
        raise
