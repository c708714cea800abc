"""Powers of t over stretches of rounds, each worked out once: searches ask for multiples of the same few, hundreds of times."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

Floats = np.ndarray[Any, Any]
Interval = tuple[Floats, Floats]

MOST = 32
"""Exponents whose powers are kept."""


class Powers:
    """t^q over stretches of rounds: the last round of each, the one before its first, and how many it has; each of shape (stretches,)."""

    def __init__(self, last: Floats, before: Floats, count: Floats) -> None:
        self.last, self.before, self.count = last, before, count
        self._ranges: dict[float, Interval] = {}
        self._sums: dict[float, Floats] = {}

    def range(self, q: float) -> Interval:
        """The least and the greatest t^q from the round before each stretch to its last."""
        if q not in self._ranges:
            self._make_room()
            self._ranges[q] = hull(self.before**q, self.last**q)
        return self._ranges[q]

    def sums(self, q: float) -> Floats:
        """1^q + ... + t^q at the last round t of each stretch, or a little more."""
        if q not in self._sums:
            slope = q * self.range(q - 1)[0 if q > 0 else 1]
            self._sums[q] = np.cumsum(total(self.count, self.last**q, slope, self.range(q)[1]))
        return self._sums[q]

    def _make_room(self) -> None:
        if len(self._ranges) >= MOST:
            self._ranges.clear()
            self._sums.clear()


def total(count: Floats, last: Floats, rise: Floats, most: Floats) -> Floats:
    """At least the sum over each stretch of `count` rounds of what is `last` in the last, `rise` or more above the round before, and
    at most `most`."""
    with np.errstate(all="ignore"):
        backwards = count * last - count * (count - 1) / 2 * rise
        return np.asarray(np.where(count > 1, np.minimum(backwards, count * most), last))


def hull(first: Floats, *others: Floats) -> Interval:
    """The least and the greatest of some arrays, entry by entry."""
    return reduce(np.minimum, others, first), reduce(np.maximum, others, first)


def times(a: Interval, b: Interval) -> Interval:
    """Products of numbers of two intervals, entry by entry."""
    return hull(a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])


def scaled(k: Any, a: Interval) -> Interval:
    """Multiples of numbers of an interval."""
    return (k * a[0], k * a[1]) if k >= 0 else (k * a[1], k * a[0])


def plus(a: Interval, b: Interval) -> Interval:
    """Sums of numbers of two intervals."""
    return a[0] + b[0], a[1] + b[1]
