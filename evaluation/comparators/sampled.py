"""Estimate of what the best decisions of all rounds lose, from some that lie evenly over the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.evaluation.comparators.base import Estimate
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
NORMAL = 1.96
"""Standard deviations on either side of a mean within which it lies with a probability of 95%."""


def evenly_spaced(data: Data, count: int) -> tuple[dict[str, Array], Array]:
    """Arrays of so many rounds at equal distances, the first among them, with their numbers (from 1)."""
    places = np.arange(count) * data.rounds // count
    rows = [row for _, row in data.at(places.tolist())]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}, places + 1


def estimate_of(losses: Array, rounds: int) -> Estimate:
    """Estimate of the total of all rounds from the losses of at least two of them (n,), with the variance of a mean of rounds drawn without
    replacement (Cochran 1977, theorem 2.2).
    """
    count = len(losses)
    deviation = np.sqrt(np.var(losses, ddof=1) / count * (1 - count / rounds))
    return Estimate(count, rounds * float(np.mean(losses)), NORMAL * rounds * float(deviation))
