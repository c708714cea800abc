"""Comparison of two runs over the same rounds: the gain that chance alone may show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

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
    return float(-stdtrit(len(differences) - 1, CHANCE) * error) if math.isfinite(error) else math.inf
