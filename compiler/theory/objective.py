"""The sum of bounds that free constants minimize and algorithms are compared by, in which a vacuous bound has no weight.

Each bound is divided by the scale of what it measures: regret by the range of the loss, violations by the scale of their constraints, or
at the penalties that the model states. A bound is vacuous where it is no less than the trivial one, T times the most that a round can
add to it; then the trivial one stands in the sum, whatever its number. The search may not make a vacuous bound larger than the paper's
constants make it, nor vacuous one that is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.theory.guarantees import Bound, Guarantee
from oco.compiler.theory.theorems import Floats, Situation
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

ANY_HORIZON = 10_000
"""Rounds at which guarantees are compared where the model leaves the horizon unknown."""
ROUNDING = 1e-9
"""Relative differences that are no differences."""


@dataclass(frozen=True)
class SumTerm:
    """One bound in the sum, over its scale and times its weight. `number` is None for a rate; `trivial` is infinite where it is unknown."""

    number: float | None
    trivial: float
    vacuous: bool

    @property
    def counted(self) -> float:
        """Number in the sum: never more than the trivial bound, which also stands for a bound without a number."""
        return self.trivial if self.number is None else min(self.number, self.trivial)


Terms = tuple[SumTerm, ...]


def terms(s: Situation, guarantee: Guarantee, weight: float = 1.0) -> Terms:
    """The bounds of a guarantee as terms of the sum; `weight` multiplies the violations."""
    rounds = guarantee.horizon or ANY_HORIZON
    return tuple(_term(s, b, rounds, 1.0 if b.measure.endswith("regret") else weight) for b in guarantee.bounds)


def stated_prices(constraints: Iterable[Inequality | Equality]) -> Floats:
    """Penalties of constraints, entry by entry, in the units of the problem, shape (N,); 0 where none is stated."""
    return np.array([p for c in constraints for p in c.penalties or (0.0,) * c.size])


def violation_units(s: Situation, weight: float) -> Floats | None:
    """Violation of each constraint that counts as much as `weight` ranges of the loss, shape (N + M,); None where one is unknown.

    The scale of the constraint, or what its stated penalty makes worth as much.
    """
    stated = stated_prices(s.canonical.constraints)
    priced = stated > 0
    scales = s.constraint_scales
    if not priced.any() or (scales is None and not priced.all()):
        return scales
    own = weight * (s.loss_range or 1.0) / np.where(priced, stated, 1.0)
    return own if scales is None else np.where(priced, own, scales)


def _term(s: Situation, bound: Bound, rounds: int, weight: float) -> SumTerm:
    """Term of a bound in the sum.

    Of constraints with scales of their own only the sum of violations is bounded, so it is divided by the least one.
    """
    scale = s.loss_range if bound.measure.endswith("regret") else _least_unit(s, weight)
    per = weight / scale if scale else weight
    number, most = bound.number(rounds), math.inf if bound.worst is None else bound.worst * rounds
    return SumTerm(None if number is None else number * per, most * per, bound.vacuous(rounds))


@lru_cache(maxsize=4)
def _least_unit(s: Situation, weight: float) -> float | None:
    """Least unit of a violation that is not 0: a search asks in every step."""
    units = violation_units(s, weight)
    return None if units is None or not (units > 0).any() else float(units[units > 0].min())


def total(results: Terms) -> float | None:
    """The sum by which settings are compared; None where a bound has no number.

    Where every bound is vacuous it is the sum of their numbers, which is above all sums in which one says something.
    """
    numbers = [t.number for t in results if t.number is not None]
    if len(numbers) < len(results):
        return None
    return sum(numbers) if all_vacuous(results) else sum(t.counted for t in results)


def normalized_sum(s: Situation, guarantee: Guarantee, weight: float = 1.0) -> float | None:
    """`total` of a guarantee."""
    return total(terms(s, guarantee, weight))


Objective = Callable[[Terms], float]
"""A function of the bounds that a search minimizes, infinite for those that it may not take."""


def summed(results: Terms) -> float:
    """The sum of the numbers, vacuous or not."""
    numbers = [math.inf if t.number is None or math.isnan(t.number) else t.number for t in results]
    return sum(numbers)


def most_vacuous(results: Terms) -> float:
    """The largest share of a bound in its trivial one: below 1 every bound says something."""
    return max((math.inf if t.number is None or math.isnan(t.number) else _share(t) for t in results), default=0.0)


@dataclass(frozen=True)
class Counted:
    """Sum of the bounds; where all are vacuous, the larger the farther the nearest one is from saying something.

    usual  the terms under the paper's constants: no bound may be vacuous and larger than there
    """

    usual: Terms

    def __call__(self, results: Terms) -> float:
        if not math.isfinite(summed(results)) or any(t.vacuous and _larger(t, u) for t, u in zip(results, self.usual)):
            return math.inf
        known = sum(t.counted for t in results)
        return (known * min(map(_share, results)) if all_vacuous(results) else known) - self._idle

    @property
    def _idle(self) -> float:
        """The part that does not move while what is vacuous under the paper's constants stays so: gains are measured against the rest."""
        return 0.0 if all_vacuous(self.usual) else sum(t.trivial for t in self.usual if t.vacuous)


@dataclass(frozen=True)
class Spare:
    """The sum of the vacuous bounds, at no cost to the others.

    taken  the terms that were found: what counts may not become more
    """

    taken: Terms

    def __call__(self, results: Terms) -> float:
        most = sum(t.counted for t in self.taken) * (1 + ROUNDING)
        numbers = [t.number for t, known in zip(results, self.taken) if known.vacuous]
        return summed(results) if numbers and sum(t.counted for t in results) <= most else math.inf


def all_vacuous(results: Terms) -> bool:
    """True where every term says nothing."""
    return all(t.vacuous for t in results)


def _larger(t: SumTerm, usual: SumTerm) -> bool:
    return (t.number or 0.0) > (usual.number or 0.0) * (1 + ROUNDING)


def _share(t: SumTerm) -> float:
    """A bound in units of the trivial one; 0 where nothing can go wrong."""
    return (t.number or 0.0) / t.trivial if t.trivial else 0.0


def checked_tradeoff(weight: float) -> float:
    """The weight of the violations: a positive number whose square is one too. Raises OCO709."""
    if not 1e-100 <= weight <= 1e100:
        message = f"the tradeoff is a positive number from 1e-100 to 1e100, not {weight}"
        raise fail("OCO709", message, None, "1 counts both alike")
    return weight
