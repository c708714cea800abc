"""Random arrays of an algorithm that a caller gives in place of drawn ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail


def given_draw(
    draws: Mapping[str, np.ndarray[Any, Any]], name: str, round: int, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Random array of a round among those that were given, rounds first. Raises OCO849 where it is missing or not finite."""
    rounds = draws.get(name, np.empty(0))
    if len(rounds) < round or rounds.shape[1:] != shape:
        message = f"draws[{name!r}] has the shape {rounds.shape}; round {round} needs ({round}, *{shape})"
        raise fail("OCO849", message)
    drawn: np.ndarray[Any, Any] = rounds[round - 1]
    if not np.isfinite(drawn).all():
        raise fail("OCO849", f"draws[{name!r}] of round {round} holds numbers that are not finite")
    return drawn
