"""Things that can be served: a model, the plan of a saved state or a journal, a store from before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from oco.backends.database import Durability
from oco.backends.journal import FILE, Journal
from oco.backends.python.state_file import STATE_FORMAT
from oco.backends.registry import usable
from oco.backends.saved import read_saved
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.pipeline import open
from oco.plan import Plan
from oco.serving.states import KeyedStates
from oco.serving.store import Store

NAME = "learners.db"
"""Name of a store in a folder."""
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Options:
    """Options of a store that is begun; one that is continued keeps its own, and None stands for those. `keep` and `durability` are of
    this process alone.
    """

    backend: str | None = None
    seed: int | None = None
    on_out_of_bounds: str | None = None
    keep: int = 100
    durability: Durability = Durability.DISK


def open_store(place: Path, store: Path | None, options: Options, compiled: Callable[[Path], Plan]) -> Store:
    """Store of what stands at `place`: a model file, a saved state, the folder of a journal or of a store, or a store.

    store     path of the database, by default `learners.db` in the folder, or the name of the file with the ending .db
    compiled  makes the plan of a model file

    The learner of a saved state or of a journal goes on in a store that is new, under the name of its model.

    Raises OCO668 where there is nothing to serve, OCO851 for a store of another plan, OCO854, OCO855 and OCO858 as journals do.
    """
    database = _database(place) if store is None else store
    known = about_store(database) if database.exists() else {}
    plan, state = _plan(place, known, compiled)
    backend = options.backend or usable(known.get("backend"))
    seed = int(known.get("seed", 0)) if options.seed is None else options.seed
    outside = options.on_out_of_bounds or str(known.get("on_out_of_bounds", "error"))
    opened = Store(database, KeyedStates(plan, backend, seed, outside), options.keep, durability=options.durability)
    if state is not None and not known:
        opened.adopt([(plan.model.name, opened.states.moved(state), ())])
    return opened


def _database(place: Path) -> Path:
    """Path of the store beside what is served."""
    if place.is_dir():
        return place / NAME
    return place if is_store(place) else place.with_suffix(".db")


def _plan(
    place: Path, known: Mapping[str, Any], compiled: Callable[[Path], Plan]
) -> tuple[Plan, Mapping[str, Any] | None]:
    """Plan of what is served, and the state from which the learner of the model's name goes on, if there is one."""
    if (known and place.is_dir()) or is_store(place):
        return Plan.from_recipe(json.loads((known if place.is_dir() else about_store(place))["recipe"])), None
    if place.is_dir():
        return _of_journal(place)
    if _starts(place, STATE_FORMAT.split()[0].encode()):
        state = read_saved(place)
        return Plan.from_recipe(state.get("recipe")), state
    return compiled(place), None


def _of_journal(folder: Path) -> tuple[Plan, Mapping[str, Any]]:
    """Plan of a journal and the state after its last round. Raises OCO668 where there is none."""
    if not (folder / FILE).exists():
        hint = f"name a folder with a store ({NAME}) or with a journal, or a model"
        raise fail("OCO668", f"there is nothing to serve in {folder}", hint=hint)
    with closing(Journal(folder)) as journal:
        plan = Plan.from_recipe(journal.state(first=False).get("recipe"))
    with open(plan, folder) as learner:
        return plan, learner.state()


def about_store(path: Path) -> dict[str, Any]:
    """Table `about` of a store, read without opening it for writing; empty where it has not begun. Raises OCO854, OCO855."""
    try:
        with closing(sqlite3.connect(f"file:{path.absolute()}?mode=ro", uri=True, timeout=0)) as base:
            return dict(base.execute("SELECT key, value FROM about").fetchall())
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise fail("OCO855", f"{path} is in use by another process") from None
        raise fail("OCO854", f"{path} is not a store: {error}") from None
    except sqlite3.DatabaseError as error:
        raise fail("OCO854", f"{path} is not a store: {error}") from None


def is_store(path: Path) -> bool:
    """True where a file is a database of SQLite, as stores are."""
    return _starts(path, _SQLITE)


def _starts(path: Path, head: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(head)) == head
