"""Data outside the bounds of the model, where the user allows it: clipped to them, or used unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.backends.python.intake import Intake, StreamError

CHOICES = ("error", "clip", "accept")
NOTES = {"clip": "clipped to them", "accept": "used as it is; what rests on the bounds may fail"}


def repaired(take: Intake, given: Mapping[str, Any], choice: str) -> list[Any]:
    """Inputs of a round in order, numbers where they have no axes. Raises StreamError for data that cannot be repaired.

    Values that are not finite are never replaced. Integers select entries of arrays, so they are never used out of
    bounds.
    """
    values = take.arrays(given)
    for (name, stream), value in zip(take.streams.items(), values):
        _require(np.isfinite(value), "finite", name, value, "which is not a finite number")
        if stream.integer and choice == "accept":
            inside = (stream.lower <= value) & (value <= stream.upper)
            _require(
                inside, "bounds", name, value, "an integer outside its range: it chooses an entry that is not there"
            )
    if choice == "accept":
        return [v[()] for v in values]
    return [np.clip(v, s.lower, s.upper).astype(v.dtype)[()] for v, s in zip(values, take.streams.values())]


def _require(good: Any, rule: str, name: str, value: Any, words: str) -> None:
    for place in np.argwhere(~good)[:1]:
        index = [int(i) for i in place]
        raise StreamError(rule, f"{name}{index or ''} is {value[tuple(index)]}, {words}")
