"""Trade between loss and violation: one number for a run, so that runs can be ordered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.objective import violation_units
from oco.compiler.theory.theorems import Situation
from oco.dsl.statements import Timing
from oco.evaluation.measures import equality_violation, violation

Array = np.ndarray[Any, Any]
STEADY = 0.02
"""Share of the sum of a constraint's sizes in the second half of a run within which its violation counts as the same: what fluctuates."""


class Measured(Protocol):
    """Numbers of a run, round first: loss (T,), constraints g (T, N), equalities h (T, M)."""

    @property
    def loss(self) -> Array:
        """Losses (T,)."""

    @property
    def constraints(self) -> Array:
        """Values of g (T, N)."""

    @property
    def equalities(self) -> Array:
        """Values of h (T, M)."""


@dataclass(frozen=True, eq=False)
class Trade:
    """Units of the loss and of each constraint (N + M,), and the weight of a unit of violation against one of loss.

    `hard` says of each inequality whether it binds each round; a constraint with unit 0 does not count. `scales` (N + M,) are the sizes of
    the constraints where the model states penalties, so that units say something else. `unpriced` (N + M,) are those that
    bind on average without a penalty.
    """

    hard: Array
    loss_unit: float
    units: Array
    weight: float
    scales: Array | None = None
    unpriced: Array | None = None

    @classmethod
    def of(cls, s: Situation, weight: float) -> Trade:
        """Trade in units of the loss's range and of the constraints' scales or penalties, as pilots and `--tradeoff` have it."""
        s = replace(s, canonical=s.canonical.whole)
        hard = hard_ones(s.canonical)

        def sizes(known: Array | None) -> Array:
            return np.ones(len(hard) + s.equalities) if known is None else np.asarray(known, dtype=np.float64)

        scales = sizes(s.constraint_scales) if any(c.penalties for c in s.canonical.constraints) else None
        stated = np.array([bool(c.penalties) for c in s.canonical.constraints for _ in range(c.size)], dtype=bool)
        unpriced = ~stated & ~np.append(hard, np.zeros(s.equalities, dtype=bool))
        units = sizes(violation_units(s, weight)) * weighed(s.canonical)
        return cls(hard, s.loss_range or 1.0, units, weight, scales, unpriced)

    @classmethod
    def at_price(cls, problem: Canonical, price: float) -> Trade:
        """Trade in the model's own units: a unit of violation costs `price` units of the loss."""
        hard = hard_ones(problem)
        return cls(hard, 1.0, weighed(problem), price)

    @property
    def words(self) -> str:
        """Sum by which runs are ordered, in words."""
        return f"loss + {self.weight:g} x violation" if self.scales is None else "loss + violations at their penalties"

    def broken(self, run: Measured) -> Array:
        """Violation of each constraint over all rounds (N + M,), in its own units: hard where it binds each round, else
        the excess of its sum.
        """
        last = np.zeros(0)
        if run.constraints.shape[1]:
            hard, soft = (violation(run.constraints, "hard")[-1], violation(run.constraints, "soft")[-1])
            last = np.where(self.hard, hard, soft)
        if run.equalities.shape[1]:
            last = np.concatenate([last, equality_violation(run.equalities)[-1]])
        return last

    def score(self, run: Measured) -> tuple[float, float, float]:
        """Loss and violation of a run per round, each in its units, and loss + weight x violation."""
        loss = float(run.loss.mean()) / self.loss_unit
        kept = self.units > 0
        total = float((self.broken(run)[kept] / self.units[kept]).sum()) / len(run.loss)
        return loss, total, loss + self.weight * total

    def grows(self, run: Measured) -> bool:
        """True if the violation of a constraint on average without a penalty is clearly larger after the last round than after half.

        What earlier rounds saved hides it from the sum of a short run, and no price says what it would cost in a long one.
        """
        T = len(run.loss)
        if self.unpriced is None or not self.unpriced.any() or T < 2:
            return False
        values = np.concatenate([run.constraints, run.equalities], axis=1)
        soft = np.concatenate([violation(run.constraints, "soft"), equality_violation(run.equalities)], axis=1)
        room = STEADY * np.abs(values[T // 2 :]).sum(axis=0)
        return bool(np.any((soft[-1] > soft[T // 2 - 1] + room)[self.unpriced]))

    @property
    def prices(self) -> Array:
        """Loss that a unit of violation of each constraint is worth (N + M,)."""
        kept = self.units > 0
        return np.where(kept, self.weight * self.loss_unit / np.where(kept, self.units, 1.0), 0.0)


def hard_ones(problem: Canonical) -> Array:
    """Flag of each entry of the inequalities: True where it binds each round (N,)."""
    return np.array([c.timing is Timing.EACH_ROUND for c in problem.inequalities for _ in range(c.size)], dtype=bool)


def weighed(problem: Canonical) -> Array:
    """1 for each entry of the constraints whose violation counts by its size, 0 for those in a share of the rounds (N + M,)."""
    margins = [c.margin is not None for c in problem.inequalities for _ in range(c.size)]
    return np.append(1.0 - np.array(margins, dtype=np.float64), np.ones(sum(c.size for c in problem.equalities)))
