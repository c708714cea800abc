"""Saved states: one line with version and checksum, then JSON. This text is also part of every emitted module.

The arrays stand in the JSON as base64 of their little-endian bytes, so that what is read back is bit for bit what was written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

STATE_FORMAT = "oco-state 1"


class StateError(ValueError):
    """A file that is not a whole saved state of this learner."""


def pack(array: Any) -> dict[str, Any]:
    """An array as JSON values."""
    little = np.asarray(array)
    little = little.astype(little.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(little.shape), "data": data}


def unpack(packed: Mapping[str, Any]) -> Any:
    """The array again; a number where it has no axes."""
    if packed["dtype"] not in ("<f8", "<i8", "|b1"):
        raise StateError(f"arrays of {packed['dtype']} have no place in a saved state")
    array = np.frombuffer(base64.b64decode(packed["data"], validate=True), packed["dtype"])
    return array.reshape(packed["shape"]).astype(array.dtype.newbyteorder("="))[()]


def write_state(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write JSON values to a file that is, at every moment, the old one or the new one whole."""
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    head = f"{STATE_FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".oco-state-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(head + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON values of a saved state; a file that was damaged, cut or made by another version is a StateError."""
    with open(path, "rb") as file:
        head, _, body = file.read().partition(b"\n")
    version, _, checksum = head.rpartition(b" ")
    if version != STATE_FORMAT.encode():
        kind = "a saved state of another version" if version.startswith(b"oco-state ") else "not a saved state"
        raise StateError(f"{os.fspath(path)} is {kind}")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        raise StateError(f"{os.fspath(path)} is damaged: its checksum does not fit")
    content: dict[str, Any] = json.loads(body)
    return content
