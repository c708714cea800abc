"""Journal of a learner: every decision and the data of every round, on disk before they count.

A folder with one SQLite database, in write-ahead mode and with full synchronization: a decision is committed before
`decide` returns it, a round's data before the state moves. SQLite replaces log segments and their rotation: it moves
committed records from the log into the database as it grows, and reuses the space of old rounds where they are not
kept.

    about      key, value       version of the format, hash of the model, name of the backend snapshots  round, content
    states, as `Learner.state` gives them: the first, and the last two of those taken every n rounds decided    round,
    content   the decisions and the contexts, in the model's order revealed   round, content   the inputs by name, after they were checked,
    and the warnings that they caused

Each content is JSON with arrays as in saved states, beside a SHA-256 of its table, round and text.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oco.backends.database import Database
from oco.backends.feedback import Feedback
from oco.backends.identity import model_hash
from oco.backends.known import recorded
from oco.backends.python.state_file import pack, unpack
from oco.backends.saved import UNREADABLE, other_model
from oco.dsl.diagnostics import OcoError, fail

if TYPE_CHECKING:
    from oco.backends.learner import Learner

FORMAT, SKIPPED = "1", "skipped"
FILE = "journal.sqlite"
_TABLES = ("snapshots", "decided", "revealed")
_COLUMNS = "round INTEGER PRIMARY KEY, content TEXT NOT NULL, checksum TEXT NOT NULL"
_SCHEMA = {"about": "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"} | {
    table: f"CREATE TABLE {table} ({_COLUMNS})" for table in _TABLES
}
"""Complete content of a journal's database, and nothing else: triggers and views would run when records are written."""
LARGE = 1e6
"""Bytes of a round above which a warning is given."""
PACKED = 8 * 4 / 3
"""Bytes of a number in a record, as text in base 64."""


class Journal(Database):
    """Journal used by a learner, which calls `decide`, `reveal` and `complete` in every round, and `again` for an
    earlier round.

    every  rounds between snapshots
    keep   least number of rounds to keep; None: all
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 100, keep: int | None = None) -> None:
        if every < 1 or (keep is not None and keep < 0):
            raise fail(
                "OCO858", "a journal takes a snapshot after one round or more, and keeps no negative number of rounds"
            )
        super().__init__(Path(os.fsdecode(folder)) / FILE, _SCHEMA)
        self.every = every
        self.keep = keep
        self._decided = self._revealed = self._warned = (
            0  # the last rounds of which there are records; warnings that are recorded
        )

    # Records.

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

    def read(self, table: str, where: str, *values: int) -> Iterator[tuple[int, Any]]:
        """Records in the order of their rounds, each checked."""
        with self._errors():
            rows = self._base.execute(f"SELECT round, content, checksum FROM {table} {where}", values).fetchall()
        for round, text, checksum in rows:
            if checksum != _checksum(table, round, text):
                raise fail("OCO854", f"the record of round {round} in `{table}` of {self.path} is damaged")
            with self._readable_record(table, round):
                content = json.loads(text)
            yield round, content

    @contextmanager
    def _readable_record(self, table: str, round: int) -> Iterator[None]:
        """Content of a record; an error where its checksum is right and its form is not what this version writes."""
        try:
            yield
        except (*UNREADABLE, RecursionError) as error:
            message = f"the record of round {round} in `{table}` of {self.path} is not whole: {error}"
            raise fail("OCO854", message) from None

    def _one(self, table: str, round: int) -> Any:
        """Record of a round; None where there is none."""
        return next((content for _, content in self.read(table, "WHERE round = ?", round)), None)

    def _last(self, table: str) -> int:
        with self._errors():
            result = self._base.execute(f"SELECT max(round) FROM {table}").fetchone()[0]
        return 0 if result is None else int(result)

    # What the learner calls.

    def decide(self, round: int, decisions: Sequence[Any], context: Mapping[str, Any]) -> None:
        """Record the decisions of a round, once, and after them its contexts. Raises OCO857 where others are recorded."""
        packed = [pack(d) for d in (*decisions, *context.values())]
        if round > self._decided:
            with self._counted():
                with self._whole():
                    self._put("decided", round, packed)
                self._decided = round
        elif packed != self._one("decided", round):
            raise fail("OCO857", f"round {round} of {self.path} was decided otherwise")

    @property
    def decided(self) -> int:
        """Last round of which the decision is recorded."""
        return self._decided

    def forget(self, round: int) -> None:
        """Take back the decision of a round that is left out, and count it."""
        with self._counted():
            with self._whole():
                self._base.execute("DELETE FROM decided WHERE round = ?", (round,))
                self._base.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (SKIPPED, str(self.skipped + 1)))
            self._decided = min(self._decided, round - 1)

    @property
    def skipped(self) -> int:
        """Number of rounds that were left out."""
        return int(self._about().get(SKIPPED, 0))

    def reveal(self, feedback: Feedback, warnings: Sequence[str]) -> None:
        """Record the data of a round, with its decisions if `decide` was not called; compare where the round is
        recorded.
        """
        now, values = feedback.round, {n: pack(v) for n, v in feedback.values.items()}
        if now <= self._revealed:
            self._same(now, values)
            return
        with self._counted():
            with self._whole():
                if now > self._decided:
                    known = (feedback.values[n] for n in feedback.compiled.program.context)
                    self._put("decided", now, [pack(d) for d in (*feedback.decisions, *known)])
                self._put("revealed", now, {"streams": values, "warnings": list(warnings[self._warned :])})
            self._decided, self._revealed, self._warned = now, now, len(warnings)

    def _same(self, round: int, values: Mapping[str, Any]) -> None:
        """Check that an earlier round was observed with this data. Raises OCO856 for other data, or where the round is
        no longer kept.
        """
        known = self._one("revealed", round)
        if known is None:
            raise fail("OCO856", f"round {round} is not kept in {self.path} any more")
        with self._readable_record("revealed", round):
            other = next((n for n, value in values.items() if value != known["streams"][n]), None)
        if other is not None:
            raise fail("OCO856", f"round {round} was observed with another {other}")

    def complete(self, learner: Learner) -> None:
        """Take a snapshot where one is due. After a failure a later round takes it: the replay is longer then, and
        loses nothing.
        """
        if (learner.round - 1) % self.every == 0 and learner.round > self._revealed:
            try:
                self.snapshot(learner)
            except OcoError as error:
                learner.warn(f"no snapshot was taken before round {learner.round}: {error.message}")

    def snapshot(self, learner: Learner) -> None:
        """Record the state, and delete rounds that are not kept."""
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
        """Feedback of an earlier round, if these are its streams. Raises OCO856."""
        warnings = list(learner.warnings)
        try:
            given = learner.checked({**self._known(learner, round), **streams})
        finally:
            learner.warnings = warnings
        self._same(round, {n: pack(v) for n, v in given.items()})
        with self._readable_record("decided", round):
            decided = self._one("decided", round)[: len(learner.compiled.program.decision)]
            decisions = tuple(map(unpack, decided))
        return Feedback(round, given, decisions, learner.compiled)

    def _known(self, learner: Learner, round: int) -> dict[str, Any]:
        """Values that a learner had before it decided a round, by name. Raises OCO854 where they are not kept."""
        decided, revealed = self._one("decided", round), self._one("revealed", round)
        with self._readable_record("decided", round):
            return recorded(learner.compiled.program, decided, revealed)

    # Opening.

    def begin(self, learner: Learner) -> None:
        """Record a learner before its first round."""
        with self._whole():
            about = {"format": FORMAT, "model_hash": model_hash(learner.contract), "backend": learner.compiled.backend}
            for key, value in about.items():
                self._base.execute("INSERT INTO about VALUES (?, ?)", (key, value))
            self._put("snapshots", learner.round, learner.state())

    @property
    def begun(self) -> bool:
        """True where the journal has a snapshot."""
        return self._last("snapshots") > 0

    def tell_size(self, learner: Learner) -> None:
        """Warn where every round that is kept takes much disk space: its decision and its data are stored in full."""
        program, T = learner.compiled.program, learner.contract.horizon
        size = PACKED * sum(prod(f.type.shape) for f in (*program.decision, *program.feedback))
        if size > LARGE and self.keep is None:
            whole = f", all {T:,} rounds {size * T / 1e9:,.1f} GB" if T else ""
            message = f"a round takes about {size / 1e6:,.1f} MB of the journal{whole}: its decision and its data are there in full"
            learner.warn(f"{message}; `oco.open(..., keep_rounds=N)` keeps the last N of them")

    def _about(self) -> dict[str, str]:
        with self._errors():
            rows = self._base.execute("SELECT key, value FROM about").fetchall()
        return {key: str(value) for key, value in rows}

    @property
    def backend(self) -> str | None:
        """Name of the backend that began it; None where it has not begun, or did so before names were recorded."""
        return self._about().get("backend")

    def check_owner(self, learner: Learner) -> None:
        """Check the owner. Raises OCO851 where the journal is of another model, plan or backend, OCO854 where its
        format differs.
        """
        known, ours = self._about(), learner.compiled.backend
        if known.get("format") != FORMAT:
            raise fail("OCO854", f"{self.path} has the format {known.get('format')!r}; this version reads {FORMAT}")
        if known.get("model_hash") != model_hash(learner.contract):
            raise other_model(f"{self.path} belongs", self.state(first=True).get("recipe", {}), learner.contract)
        if (began := known.get("backend", ours)) != ours:
            message = f"{self.path} was begun with the backend {began!r}, this is {ours!r}: their decisions differ in the last bits"
            raise fail("OCO851", message, hint=f"give backend={began!r}, for a run --backend {began}")

    def state(self, first: bool) -> dict[str, Any]:
        """First or last snapshot."""
        round, state = next(self.read("snapshots", f"ORDER BY round {'ASC' if first else 'DESC'} LIMIT 1"))
        with self._readable_record("snapshots", round):
            return dict(state)

    def seek(self) -> None:
        """Treat earlier records as recorded already."""
        self._decided, self._revealed = self._last("decided"), self._last("revealed")

    def replay(self, learner: Learner) -> None:
        """Bring a learner from a snapshot to its last round: every round again, its decision as it was recorded. Raises
        OCO854, OCO857.
        """
        for round, revealed in self.read("revealed", "WHERE round >= ? ORDER BY round", learner.round):
            if round != learner.round:
                raise fail(
                    "OCO854", f"round {learner.round} is missing in {self.path}: the next there is round {round}"
                )
            with self._readable_record("revealed", round):
                for message in revealed["warnings"]:
                    learner.warn(str(message))
                values = {f.name: unpack(revealed["streams"][f.name]) for f in learner.compiled.program.feedback}
            feedback = learner.feedback(values)
            self.decide(round, feedback.decisions, learner.contexts.needed(round))
            learner.update(feedback)
        if learner.round <= self._decided:
            learner.learn_context(self._known(learner, learner.round))
            self.decide(learner.round, learner.decisions(), learner.contexts.needed(learner.round))
            learner._answered = learner.round
        self._warned = len(learner.warnings)


def _checksum(table: str, round: int, text: str) -> str:
    return hashlib.sha256(f"{table} {round} {text}".encode()).hexdigest()
