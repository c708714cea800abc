"""Levels at which the values of stores stand, as a learner's state shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.algorithms.stored_value import LEAST_CELL
from oco.compiler.algorithms.value_grid import OUTER


def grid_of(learner: Any, store: int, lower: float, upper: float, wide: float, unsure: float = 0.0) -> Any:
    """Levels of a store entry with this range, whose flows of a round are `wide` apart at most and whose drift is so much off, in
    order.
    """
    used, inner = learner.value("reached")[:, store], learner.value("value").shape[1] - 2 * OUTER - 1
    wide = max(wide, 0.5 * (inner * LEAST_CELL * unsure - (used[1] - used[0])))
    first, last = max(used[0] - wide, lower), min(used[1] + wide, upper)
    parts = ((lower, first, OUTER), (first, last, inner), (last, upper, OUTER))
    return np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in parts), [upper]])
