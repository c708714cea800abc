"""Trade between loss and violation: one number for a run, so that runs can be ordered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.objective import violation_units
from oco.compiler.theory.theorems import Situation
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.measures import last_violation, summed

Array = np.ndarray[Any, Any]
STEADY = 0.02
"""Share of a constraint's mean size within which its mean counts as 0."""
CLEAR = 2.0
"""Standard errors within which it does, too: prices that move hold a mean near 0 and not at it."""
TREND = 3.0
"""Such shares or standard errors by which the second half of some rounds breaks a constraint more than the first where violation rises."""


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


@dataclass(frozen=True)
class SteadyCost:
    """Cost of a run where it has come to rest, a round: in units of the trade, and loss and violation in the model's own.

    grows  the violation of a constraint on average without a penalty does not end (`Trade.grows`)
    """

    value: float
    grows: bool = False
    loss: float = 0.0
    violation: float = 0.0
    own_loss: float = 0.0
    own_violation: float = 0.0

    @property
    def order(self) -> tuple[bool, float]:
        """Key by which costs are ordered: what grows comes last."""
        return self.grows, self.value


@dataclass(frozen=True, eq=False)
class PartOfRounds:
    """Stretch of a run: loss (T,), constraints (T, N), equalities (T, M)."""

    loss: Array
    constraints: Array
    equalities: Array

    @classmethod
    def of(cls, run: Measured, start: int, end: int | None = None) -> PartOfRounds:
        """Rounds from `start` (from 0) on, those before `end`."""
        return cls(run.loss[start:end], run.constraints[start:end], run.equalities[start:end])


@dataclass(frozen=True, eq=False)
class Trade:
    """Units of the loss and of each constraint (N + M,), and the weight of a unit of violation against one of loss.

    `hard` says of each inequality whether it binds each round; a constraint with unit 0 does not count. `scales` (N + M,) are the sizes of
    the constraints, of which rounding is a part; None where they are not known. `unpriced` (N + M,) are those that
    bind on average without a penalty. `penalties` (N + M,) are those of the model, 0 where it states none; None where it states none
    at all.
    """

    hard: Array
    loss_unit: float
    units: Array
    weight: float
    scales: Array | None = None
    unpriced: Array | None = None
    penalties: Array | None = None

    @classmethod
    def of(cls, s: Situation, weight: float, problem: Canonical | None = None) -> Trade:
        """Trade in units of the loss's range and of the constraints' scales or penalties, as pilots and `--tradeoff` have it.

        problem  that of the runs, whose constraints are those of the situation, perhaps in another order
        """
        s = replace(s, canonical=(problem or s.canonical).whole)
        hard = hard_ones(s.canonical)

        def sizes(known: Array | None) -> Array:
            return np.ones(len(hard) + s.equalities) if known is None else np.asarray(known, dtype=np.float64)

        stated = np.array([bool(c.penalties) for c in s.canonical.constraints for _ in range(c.size)], dtype=bool)
        unpriced = ~stated & ~np.append(hard, np.zeros(s.equalities, dtype=bool))
        units = sizes(violation_units(s, weight)) * weighed(s.canonical)
        scales, penalties = sizes(s.constraint_scales), stated_penalties(s.canonical)
        return cls(hard, s.loss_range or 1.0, units, weight, scales, unpriced, penalties)

    @classmethod
    def at_price(cls, problem: Canonical, price: float) -> Trade:
        """Trade in the model's own units: a unit of violation costs `price` units of the loss."""
        hard = hard_ones(problem)
        return cls(hard, 1.0, weighed(problem), price, penalties=stated_penalties(problem))

    @property
    def words(self) -> str:
        """Sum by which runs are ordered, in words."""
        by_weight = self.penalties is None or self.scales is None
        return f"loss + {self.weight:g} x violation" if by_weight else "loss + violations at their penalties"

    def broken(self, run: Measured) -> Array:
        """Violation of each constraint over all rounds (N + M,), in its own units: hard where it binds each round, else
        the excess of its sum.
        """
        last = np.zeros(0)
        if run.constraints.shape[1]:
            hard, soft = (last_violation(run.constraints, kind) for kind in ("hard", "soft"))
            last = np.where(self.hard, hard, soft)
        if run.equalities.shape[1]:
            last = np.concatenate([last, np.abs(summed(run.equalities))])
        return last

    def score(self, run: Measured) -> tuple[float, float, float]:
        """Loss and violation of a run per round, each in its units, and loss + weight x violation."""
        loss = float(run.loss.mean()) / self.loss_unit
        kept = self.units > 0
        total = float((self.broken(run)[kept] / self.units[kept]).sum()) / len(run.loss)
        return loss, total, loss + self.weight * total

    def steady(self, run: Measured, start: int | None = None) -> SteadyCost:
        """Cost of a run in its rounds from `start` (from 0; None: in the second half of its rounds), whatever it earned or saved before.

        Early rounds show how a rule comes from its first decision to where it stays; a long run is made of those after them.
        """
        later = PartOfRounds.of(run, len(run.loss) // 2 if start is None else start)
        loss, violation, cost = self.score(later)
        own = float(later.loss.mean()), float(self.broken(later).sum()) / len(later.loss)
        return SteadyCost(cost, self.grows(later), loss, violation, *own)

    def projected(self, run: Measured, rounds: int | None) -> SteadyCost:
        """Cost a round of so many rounds (None: of endlessly many) that begin as the first half of the run, and go on as its second half.

        How a rule comes from its first decision to where it stays counts once, where it stays for all rounds to come.
        """
        half = len(run.loss) // 2
        steady = self.steady(run, half)
        if rounds is None or rounds <= half or not half:
            return steady
        early, share = self.score(PartOfRounds.of(run, 0, half)), half / rounds
        now = (steady.loss, steady.violation, steady.value)
        loss, violation, value = (share * a + (1 - share) * b for a, b in zip(early, now, strict=True))
        return replace(steady, loss=loss, violation=violation, value=value)

    def each(self, run: Measured) -> Array:
        """Cost of each round (T,) in units of the trade, with the mean that `score` gives: where a constraint on average is broken over all
        rounds together, each counts what it adds to the sum, else nothing.
        """
        whole = np.concatenate([run.constraints, run.equalities], axis=1)
        hard = np.append(self.hard, np.zeros(run.equalities.shape[1], dtype=bool))
        sums = summed(whole)
        signed = np.arange(len(hard)) < run.constraints.shape[1]
        sides = np.where(sums > 0, 1.0, np.where(signed, 0.0, -1.0))
        kept = self.units > 0
        broken = np.where(hard, np.maximum(whole, 0.0), sides * whole)[:, kept] / self.units[kept]
        return np.asarray(run.loss / self.loss_unit + self.weight * broken.sum(axis=1))

    def grows(self, run: Measured) -> bool:
        """True if a constraint on average without a penalty is clearly broken over these rounds, or ever more in their second half.

        Where a run has come to rest such a violation grows for ever, and no price says what that would cost.
        """
        if self.unpriced is None or not self.unpriced.any() or not len(run.loss):
            return False
        values, half = np.concatenate([run.constraints, run.equalities], axis=1)[:, self.unpriced], len(run.loss) // 2
        signed = np.arange(len(self.unpriced))[self.unpriced] < run.constraints.shape[1]

        def violation(part: Array) -> Array:
            return np.asarray(np.where(signed, part.mean(axis=0), np.abs(part.mean(axis=0))))

        size, error = STEADY * np.abs(values).mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
        broken = violation(values) > np.maximum(size, CLEAR * error)
        if half:
            broken |= violation(values[half:]) > np.maximum(violation(values[:half]), 0.0) + TREND * np.maximum(
                size, error
            )
        return bool(broken.any())

    @property
    def prices(self) -> Array:
        """Loss that a unit of violation of each constraint is worth (N + M,)."""
        kept = self.units > 0
        return np.where(kept, self.weight * self.loss_unit / np.where(kept, self.units, 1.0), 0.0)


def hard_ones(problem: Canonical) -> Array:
    """Flag of each entry of the inequalities: True where it binds each round (N,)."""
    return np.array([c.timing is Timing.EACH_ROUND for c in problem.inequalities for _ in range(c.size)], dtype=bool)


def stated_penalties(problem: Canonical) -> Array | None:
    """Penalty of each entry of the constraints (N + M,), 0 where none is stated; None where none is at all."""
    penalties = [p or 0.0 for c in problem.constraints for p in c.penalties or (None,) * c.size]
    return np.array(penalties) if any(penalties) else None


def weighed(problem: Canonical) -> Array:
    """1 for each entry of the constraints whose violation counts by its size, 0 for those in a share of the rounds (N + M,)."""
    margins = [c.margin is not None for c in problem.inequalities for _ in range(c.size)]
    return np.append(1.0 - np.array(margins, dtype=np.float64), np.ones(sum(c.size for c in problem.equalities)))
