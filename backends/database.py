"""Database of one owner: SQLite in write-ahead mode, and by default what is committed is on the disk."""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Self

from oco.backends.ownership import holder_of
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.writing import reason_of


class Durability(StrEnum):
    """Event that a commit outlives, once it has returned."""

    DISK = "disk"
    """A power cut: it waits for the disk."""
    SYSTEM = "system"
    """The end of this process, however it ends. A power cut may take commits since `Database.synchronize` away, the last ones first, and
    leaves a whole database.
    """


# "NORMAL" synchronizes when pages move from the log into the database, and in the order that keeps it whole. The log may be longer there:
# it is the one time that commits wait for the disk. With "FULL" a log that grows costs more, since its length is written with each commit.
_SETTINGS = {
    Durability.DISK: ("synchronous = FULL",),
    Durability.SYSTEM: ("synchronous = NORMAL", "wal_autocheckpoint = 8000"),
}


class Database:
    """Open database, which belongs to this object until `close`: a second owner gets OCO855.

    schema  statement that makes each table, by its name: a file with anything else is refused, since triggers and views would run when
            records are written
    """

    kind = "journal"
    """Noun for messages."""
    reopening = "`oco.open` the folder again"
    """Way to go on after the database was closed."""

    def __init__(self, path: Path, schema: Mapping[str, str], durability: Durability = Durability.DISK) -> None:
        self.path, self.durability = path, durability
        self._process = os.getpid()
        self._places: dict[str, tuple[int, int]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            message = f"{str(path.parent)!r} cannot be made: {reason_of(error)}"
            raise fail("OCO858", message, hint="name a folder that is there or can be made") from None
        with self._errors():
            self._base = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        # Whoever closes a database takes its log away: a forked process must not, not even when it ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._base))
        try:
            with self._errors():
                self._prepare(dict(schema))
        except BaseException:
            self._base.close()
            raise

    @property
    def place(self) -> Path:
        """Folder or file that messages name."""
        return self.path.parent

    def _prepare(self, schema: dict[str, str]) -> None:
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        known = dict(self._base.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        if known and known != schema:
            message = f"{self.path} is not a {self.kind}: it is a database with other tables than one has"
            raise fail("OCO854", message)
        for setting in ("journal_mode = WAL", *_SETTINGS[self.durability]):
            self._base.execute(f"PRAGMA {setting}").fetchall()
        with self._whole():
            for statement in () if known else schema.values():
                self._base.execute(statement)

    def synchronize(self) -> None:
        """Put what was committed before on the disk, beside commits in another thread. Raises OCO858."""
        # SQLite holds its locks on the database: closing another descriptor of the log lets go of none.
        try:
            log = os.open(f"{self.path}-wal", os.O_RDWR)
            try:
                os.fsync(log)
            finally:
                os.close(log)
        except OSError as error:
            raise fail("OCO858", f"{self.path} cannot be put on the disk: {reason_of(error)}") from None

    def close(self) -> None:
        """Release the database for another process."""
        if os.getpid() == self._process:
            self._base.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_base"):
            self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Context that translates errors of SQLite. Raises OCO854, OCO855 or OCO858."""
        if os.getpid() != self._process:
            message = f"{self.place} is in use by the process that this one was forked from"
            raise fail("OCO855", message, hint=f"open a {self.kind} after the fork, in a folder of its own")
        try:
            yield
        except UnicodeDecodeError:
            message = f"{self.path} is not a whole {self.kind}: it holds text that cannot be read"
            raise fail("OCO854", message) from None
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from None

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Transaction: all statements within, or none."""
        with self._errors():
            try:
                self._base.execute("BEGIN IMMEDIATE")
                self._see_files()
                yield
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise
            self._see_files()

    def _see_files(self) -> None:
        """Check that database and log are still in place: otherwise commits would be lost. Raises OCO858."""
        for path in (str(self.path), f"{self.path}-wal"):
            try:
                result = os.stat(path)
            except OSError:
                place = None
            else:
                place = result.st_dev, result.st_ino
            known = self._places.get(path)
            if known is None and place is not None:
                self._places[path] = place
            elif known != place:
                hint = f"put it back or take a backup, and {self.reopening}"
                raise fail("OCO858", f"{path} was removed or exchanged while its learner was at work", hint=hint)

    def _translated(self, error: sqlite3.DatabaseError) -> OcoError:
        """Error of the records in words: OCO854, OCO855 or OCO858."""
        message = str(error)
        if "locked" in message:
            who, way_out = holder_of(self.path)
            return fail("OCO855", f"{self.place} is in use by {who}", hint=way_out)
        damaged = not isinstance(error, sqlite3.OperationalError) or "malformed" in message or "no such" in message
        if damaged and not isinstance(error, sqlite3.ProgrammingError):
            return fail("OCO854", f"{self.path} is not a whole {self.kind}: {message}")
        if "closed" in message:
            hint = f"{self.reopening}: it goes on where this learner ended"
            return fail("OCO858", f"{self.path} was closed, and its learner with it", hint=hint)
        return fail("OCO858", f"{self.path} cannot be written: {message.lower()}")
