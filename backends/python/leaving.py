"""Loops that lanes leave one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def until_done(turn: Callable[..., Any], on: Any, around: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Values of a loop that each lane leaves in its own time; lanes are the last axis of all arrays.

    turn    function of the number of lanes that are left, of what the loop reads and of its values: which of them go on, and the values
    on      lanes that take the first turn
    around  arrays that the loop reads
    """
    results = [np.array(v, order="C") for v in values]
    left = np.arange(len(on))
    while True:
        if not on.all():
            stay, leave = np.flatnonzero(on), np.flatnonzero(~on)
            for whole, value in zip(results, values):
                whole[..., left[leave]] = value.take(leave, axis=-1)
            if not len(stay):
                return results
            if len(stay) == 1:  # NumPy adds up the entries of a lane alone in another order
                stay = stay.repeat(2)
            left = left[stay]
            around, values = ([a.take(stay, axis=-1) for a in arrays] for arrays in (around, values))
        on, *values = turn(len(left), *around, *values)
