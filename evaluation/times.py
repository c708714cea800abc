"""Times of rounds: cells of a column of times as instants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BY_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?$")
SECONDS = np.dtype("datetime64[s]")


def instants(cells: Array) -> Array | None:
    """Cells as datetime64[s]: ISO 8601 (with an offset: in UTC), or month/day/year, day/month/year where a number above 12 comes first.

    None where a cell is neither.
    """
    if cells.dtype.kind == "M":
        return None if np.isnat(cells).any() else cells.astype(SECONDS)
    texts = [str(cell).strip() for cell in cells]
    try:
        slashed = [m.groups() for m in map(_BY_SLASHES.match, texts) if m]
        if len(slashed) == len(texts):
            return _of_slashes(slashed)
        return np.array([_naive(datetime.fromisoformat(text)) for text in texts], dtype=SECONDS)
    except ValueError:
        return None


def _naive(time: datetime) -> datetime:
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _of_slashes(parts: Sequence[tuple[str | None, ...]]) -> Array:
    numbers = [[int(p or 0) for p in part] for part in parts]
    first, second = (1, 0) if any(n[0] > 12 for n in numbers) else (0, 1)
    times = (datetime(n[2] + 2000 * (n[2] < 100), n[first], n[second], n[3], n[4], n[5]) for n in numbers)
    return np.array(list(times), dtype=SECONDS)
