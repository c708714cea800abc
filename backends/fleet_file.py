"""Fleets as files: an NPZ file with the arrays of all learners, the learner first, and JSON values that name their plan.

A fleet of fleets in turn (delayed feedback) has the parts of each of them, `0/state.0`, `1/state.0`, ...
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from oco.backends.python.state_file import check_round
from oco.backends.saved import UNREADABLE
from oco.compiler.ir.program import Field
from oco.compiler.ir.verifier import KINDS
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.writing import reason_of, replacing

Array = np.ndarray[Any, Any]
FORMAT = "oco-fleet 1"
ABOUT = "about"
DAMAGED = (*UNREADABLE, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""Exceptions from reading files that are no NPZ files, or not whole."""


@dataclass(frozen=True, eq=False)
class SavedFleet:
    """State of a fleet: JSON values about it, and arrays with the learner first, `state.K` in the order of the program's fields,
    `drawn.K` of its random arrays, and `random` (n, 6) of its generators.
    """

    about: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def part(self, turn: int) -> SavedFleet:
        """State of one of several fleets in turn."""
        own = {n.removeprefix(f"{turn}/"): a for n, a in self.arrays.items() if n.startswith(f"{turn}/")}
        return SavedFleet(self.about["members"][turn], own)

    def fields(self, prefix: str, fields: Sequence[Field]) -> dict[str, Array]:
        """Arrays of fields by name, checked: (n, *shape), finite. Raises OCO850."""
        size = self.about["size"]
        results = {}
        for k, f in enumerate(fields):
            array, kind = self.arrays.get(f"{prefix}.{k}"), KINDS[f.type.dtype]
            if array is None or array.dtype != kind or array.shape != (size, *f.type.shape):
                raise _not_whole(f"it has no {f.name} of {size} learners")
            if not np.isfinite(array).all():
                raise _not_whole(f"{f.name} holds numbers that are not finite")
            results[f.name] = array
        return results

    def states(self, fields: Sequence[Field]) -> dict[str, Array]:
        """States of all learners, which are in one round, by the names of the fields. Raises OCO850."""
        values = self.fields("state", fields)
        rounds = next(iter(values.values()))
        try:
            check_round(int(rounds[0]))
        except UNREADABLE as error:
            raise _not_whole(str(error)) from None
        if (rounds != rounds[0]).any():
            raise _not_whole("its learners are in different rounds")
        return values

    @property
    def generators(self) -> Array:
        """States of the random generators, shape (n, 6). Raises OCO850."""
        rows = self.arrays.get("random")
        if rows is None or rows.dtype != np.uint64 or rows.shape != (self.about["size"], 6):
            raise _not_whole("it has no random generators")
        return rows


def in_turn(about: Mapping[str, Any], members: Iterable[SavedFleet]) -> SavedFleet:
    """State of fleets in turn."""
    parts = list(members)
    arrays = {f"{i}/{name}": array for i, part in enumerate(parts) for name, array in part.arrays.items()}
    return SavedFleet({**about, "members": [dict(part.about) for part in parts]}, arrays)


def write_fleet(saved: SavedFleet, path: str | os.PathLike[str]) -> None:
    """Write a file completely or not at all. Raises OCO903."""
    with replacing(Path(path)) as neighbour, open(neighbour, "wb") as file:
        write_fleet_to(saved, file)
        file.flush()
        os.fsync(file.fileno())


def write_fleet_to(saved: SavedFleet, file: IO[bytes]) -> None:
    """Write the content of a file of a fleet."""
    text = json.dumps({"format": FORMAT, **saved.about}, sort_keys=True, allow_nan=False)
    arrays: dict[str, Any] = {ABOUT: np.frombuffer(text.encode(), np.uint8), **saved.arrays}
    np.savez(file, **arrays)


def read_fleet(path: str | os.PathLike[str]) -> SavedFleet:
    """State in a file that `write_fleet` wrote. Raises OCO850 for any other, and for one that is damaged."""
    try:
        with open(path, "rb") as file:
            return read_fleet_from(file, os.fspath(path))
    except OSError as error:
        raise fail("OCO850", f"{os.fspath(path)!r} cannot be read: {reason_of(error)}") from None


def read_fleet_from(file: IO[bytes], name: str) -> SavedFleet:
    """State in an open file, of the name in messages. Raises OCO850."""
    try:
        content = np.load(file, allow_pickle=False)
        arrays = {array: content[array] for array in content.files}
        about = json.loads(arrays.pop(ABOUT).tobytes().decode())
        if about["format"] != FORMAT or not isinstance(about["size"], int) or about["size"] < 1:
            raise ValueError(f"it is of the format {about['format']!r}")
    except OSError:
        raise
    except DAMAGED as error:
        message = f"{name!r} is no saved fleet, or damaged: {error}"
        raise fail("OCO850", message, hint="give a file that `fleet.save` wrote, as it was written") from None
    return SavedFleet(about, arrays)


def _not_whole(why: str) -> Exception:
    return fail("OCO850", f"the saved fleet is not whole: {why}")
