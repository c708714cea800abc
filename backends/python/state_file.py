"""Saved states: one line with version and checksum, then JSON. This text is also part of every emitted module.

Arrays are stored in the JSON as base64 of their little-endian bytes, so that they read back bit for bit.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

STATE_FORMAT = "oco-state 1"
LAST_ROUND = 2**53
"""Largest round that is exact as a float in the formulas in t; no learner comes so far."""
EXPLAINED = True
"""True where errors say in which way a file is wrong; an emitted module says that it is."""


class StateError(ValueError):
    """Error for a file that is not a complete saved state of this learner."""


def pack(array: Any) -> dict[str, Any]:
    """JSON values of an array."""
    little = np.asarray(array)
    little = little.astype(little.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(little.shape), "data": data}


def unpack(packed: Mapping[str, Any]) -> Any:
    """Array from its JSON values; a number where it has no axes."""
    if packed["dtype"] not in ("<f8", "<i8", "|b1"):
        raise StateError(f"arrays of {packed['dtype']} have no place in a saved state")
    array = np.frombuffer(base64.b64decode(packed["data"], validate=True), packed["dtype"])
    return array.reshape(packed["shape"]).astype(array.dtype.newbyteorder("="))[()]


def entry_of(name: str, packed: Mapping[str, Any], shape: tuple[int, ...], kind: str) -> Any:
    """Array of a state, of this shape and kind ("f", "i" or "b"). Learners keep finite numbers alone."""
    result = unpack(packed)
    if result.dtype.kind != kind or result.shape != shape:
        raise StateError(f"{name} is {result.dtype}{result.shape}, not of the kind {kind!r} and {shape}")
    if not np.isfinite(result).all():
        raise StateError(f"{name} holds numbers that are not finite")
    return result


def check_round(round: int) -> None:
    """Check the number of a round. Raises StateError for one that no learner is in."""
    if not 1 <= round <= LAST_ROUND:
        raise StateError(f"it says that it is in round {round}")


def write_state(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write JSON values to a file that is at every moment either the old one or the new one, complete."""
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    folder, name = os.path.split(os.path.abspath(path))
    handle, neighbour = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_head(body) + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(neighbour, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # an interruption came after the replacement
            os.unlink(neighbour)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name, too, is to be on the disk
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove files beside a state that were left by writers who were killed an hour ago or more."""
    folder, name = os.path.split(os.path.abspath(path))
    with os.scandir(folder) as entries:
        left = [e for e in entries if e.name.startswith(f".{name}.") and e.name.endswith(".part")]
    for entry in left:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - entry.stat().st_mtime > 3600:
                os.unlink(entry.path)


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """JSON values of a saved state. Raises StateError for a file that was damaged, cut or made by another version."""
    with open(path, "rb") as file:
        head, _, body = file.read().partition(b"\n")
    if head != _head(body):
        wrong = _fault(head) if EXPLAINED else f"is damaged, or no file of the format {STATE_FORMAT}"
        raise StateError(f"{os.fspath(path)!r} {wrong}")
    return _content(os.fspath(path), body) if EXPLAINED else json.loads(body)


def _head(body: bytes) -> bytes:
    """First line of a file: its format, and the checksum of the rest."""
    return f"{STATE_FORMAT} {hashlib.sha256(body).hexdigest()}".encode()


def _fault(head: bytes) -> str:
    """Reason why a first line is not that of the rest."""
    version = head.rpartition(b" ")[0]
    if version == STATE_FORMAT.encode():
        return "is damaged: its checksum does not fit"
    number = version.removeprefix(b"oco-state ")
    if number == version or not number.isdigit():
        return "is not a saved state, or its first line is damaged"
    age = "a newer" if int(number) > int(STATE_FORMAT.split()[1]) else "an older"
    return f"was saved in the format of {age} version, {number[:20].decode()}; this reads 1"


def _content(name: str, body: bytes) -> dict[str, Any]:
    """JSON values of a file. Raises StateError where they are none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise StateError(f"{name!r} is not a saved state: {error}") from None
    if not isinstance(content, dict):
        raise StateError(f"{name!r} is not a saved state")
    return content
