"""Levels at which the values of stores stand, as a learner's state shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.algorithms.stored_value import INNER, OUTER


def grid_of(learner: Any, store: int, lower: float, upper: float, wide: float) -> Any:
    """Levels of a store entry with this range, whose flows of a round are `wide` apart at most, in order."""
    used = learner.value("used")[:, store]
    first, last = max(used[0] - wide, lower), min(used[1] + wide, upper)
    parts = ((lower, first, OUTER), (first, last, INNER), (last, upper, OUTER))
    return np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in parts), [upper]])
