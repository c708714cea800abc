"""Comparison of two runs over the same rounds: the gain that chance alone may show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BLOCKS = 10
"""Blocks of rounds whose means are compared: rounds next to each other are alike, blocks hardly."""
CHANCE = 0.01
"""Probability, at most, that what is no better than the default is taken: who chooses has the default for nothing."""


def block_differences(ours: Sequence[float] | Array, default: Sequence[float] | Array) -> Array:
    """Mean differences (`BLOCKS`,) of costs in blocks of rounds; none where one of the two has no costs."""
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(default, dtype=np.float64)
    if len(a) != len(b) or not len(a):
        return np.zeros(0)
    return np.array([part.mean() for part in np.array_split(a - b, min(BLOCKS, len(a)))])


def standard_error(differences: Array) -> float:
    """Standard error of the mean of differences; infinite for fewer than two."""
    return float(differences.std(ddof=1) / math.sqrt(len(differences))) if len(differences) > 1 else math.inf


def gain_by_chance(differences: Array) -> float:
    """Cost a round that what is no better than the default gains with a probability of `CHANCE`, by Student's t."""
    error = standard_error(differences)
    return exceeded_by_chance(len(differences) - 1) * error if math.isfinite(error) else math.inf


@cache
def exceeded_by_chance(degrees: int, share: float = CHANCE) -> float:
    """Number that Student's t with these degrees of freedom exceeds with this probability, below 1/2: SciPy takes a tenth of a second to
    load.
    """
    low, high = 0.0, 1.0
    while student_within(degrees, high) < 1.0 - 2.0 * share:
        high *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if student_within(degrees, middle) < 1.0 - 2.0 * share else (low, middle)
    return high


def student_within(degrees: int, t: float) -> float:
    """Probability that Student's t with these degrees of freedom is between -t and t: Abramowitz & Stegun 1964, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if not odd:
        return sine * total
    return 2.0 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
