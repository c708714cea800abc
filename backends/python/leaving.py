"""Loops that lanes leave one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def until_done(
    turn: Callable[..., Any], on: Any, around: Sequence[Any], values: Sequence[Any], count: int
) -> list[Any]:
    """First `count` values of a loop that each lane leaves in its own time; lanes are the last axis of all arrays.

    Lanes that have left go along until the others are few enough to be worth packing together.

    turn    function of the number of lanes, of what the loop reads, of the lanes that are meant and of the values: which of them go on,
            and the values after it
    on      lanes that take the first turn
    around  arrays that the loop reads
    """
    results, place, many = [np.array(v, order="C") for v in values[:count]], None, int(np.count_nonzero(on))
    while many:
        if 4 * many < 3 * len(on) and len(on) > 2:
            stay = np.flatnonzero(on)
            if many == 1:  # NumPy adds up the entries of a lane alone in another order
                stay = stay.repeat(2)
            place = stay if place is None else place[stay]
            around, values = ([a.take(stay, axis=-1) for a in arrays] for arrays in (around, values))
            on, many = on[stay], len(stay)
        going, *values = turn(len(on), *around, on, *values)
        left, last = many, on != going
        on, many = going, int(np.count_nonzero(going))
        if many == left:
            continue
        if place is None:
            for whole, value in zip(results, values):
                np.copyto(whole, value, where=last)
            continue
        (last,) = last.nonzero()
        for whole, value in zip(results, values):
            whole[..., place[last]] = value.take(last, axis=-1)
    return results
