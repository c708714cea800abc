"""Cost of a run as a function of the numbers that it begins with, which some backends differentiate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Prices:
    """Terms of the cost of a run, over the rounds from `start` (from 0) on: the sum of the losses, and each violation at its price.

    constraints  price of a unit of violation of each inequality (N,)
    hard         True where that is the sum of [g]_+ over the rounds; elsewhere it is [the sum of g]_+
    equalities   price of a unit of |the sum of h| (M,)
    """

    constraints: Array
    hard: Array
    equalities: Array
    start: int = 0


@dataclass(frozen=True, eq=False)
class RecordedInputs:
    """Inputs and random draws of all rounds in the order of the program's fields, the round first, and the first decisions by field."""

    inputs: Sequence[Array]
    draws: Sequence[Array]
    start: Mapping[str, Array]


class SettingsLoss(Protocol):
    """Cost of a run as a function of settings, by name, with its slopes.

    A call is the backend's own function of its own numbers, which its transformations take.
    """

    @property
    def settings(self) -> Mapping[str, float]:
        """Settings where the plan has them, by name."""
        ...

    def __call__(self, settings: Mapping[str, Any]) -> Any:
        """Cost of the run with these settings; those that are left out stay where the plan has them."""
        ...

    def value_and_slopes(self, settings: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        """Cost, and its derivative in each setting, as floats of 64 bits."""
        ...
