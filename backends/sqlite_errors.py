"""Errors of SQLite in the words of a journal's user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from oco.backends.ownership import holder_of
from oco.dsl.diagnostics import OcoError, fail


def translated(error: sqlite3.DatabaseError, path: Path) -> OcoError:
    """Error of the journal in the database `path`: OCO854, OCO855 or OCO858."""
    message = str(error)
    if "locked" in message:
        who, way_out = holder_of(path)
        return fail("OCO855", f"{path.parent} is in use by {who}", hint=way_out)
    damaged = not isinstance(error, sqlite3.OperationalError) or "malformed" in message or "no such" in message
    if damaged and not isinstance(error, sqlite3.ProgrammingError):
        return fail("OCO854", f"{path} is not a whole journal: {message}")
    if "closed" in message:
        hint = "`oco.open` the folder again: it goes on where this learner ended"
        return fail("OCO858", f"{path} was closed, and its learner with it", hint=hint)
    return fail("OCO858", f"{path} cannot be written: {message.lower()}")
