"""Types of comparators in hindsight: a decision, its losses, and a certificate of how close it is to the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from time import perf_counter
from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.numbers import number

Array = np.ndarray[Any, Any]


class ComparatorStatus(StrEnum):
    """Strength of the claim "best in hindsight"."""

    CERTIFIED = "certified"
    INTERVAL = "interval"
    LEAST_VIOLATING = "least violating"
    NOT_COMPUTED = "not computed"

    @classmethod
    def of_gap(cls, value: float, bound: float, size: float = 0.0) -> ComparatorStatus:
        """Status of a decision that satisfies the constraints: certified where its loss is within `GAP` of a lower bound.

        size  change of the loss over the set of decisions, which counts where the loss itself is about zero
        """
        return cls.CERTIFIED if value - bound <= GAP * max(abs(value), size) else cls.INTERVAL


GAP = 1e-6
"""Share of its size within which a loss is certified by a lower bound."""
FAST, USUAL, EXACT = 5.0, 30.0, 600.0
"""Seconds of one comparator: at least, where it may take as long as the run did; usually, and then at most; and on request."""


@dataclass(frozen=True)
class ComparatorBudget:
    """Limits of a comparator's computation: seconds of time, bytes of working memory; `wanted` False leaves it out.

    progress  called with the rounds whose best decision is found, and the number of all
    """

    seconds: float = USUAL
    memory: int = 2 << 30
    wanted: bool = True
    progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)

    def solved(self, rounds: int, of: int) -> None:
        """Report progress where that is asked for."""
        if self.progress is not None:
            self.progress(rounds, of)

    def like(self, run: float) -> ComparatorBudget:
        """Budget of about as many seconds as a run took, so that a short run is not followed by long comparators."""
        return replace(self, seconds=min(max(FAST, run), USUAL))

    def left(self, began: float, share: float = 1.0) -> ComparatorBudget:
        """Budget of a share of the seconds that are left since the time `began`, and of all the memory."""
        return replace(self, seconds=share * max(self.seconds - (perf_counter() - began), 0.0))

    def over(self, began: float) -> bool:
        """True where all seconds have passed since the time `began`."""
        return perf_counter() - began >= self.seconds


@dataclass(frozen=True)
class Estimate:
    """Total loss of all rounds as `count` of them suggest, which lie evenly over the run: within `within` of `total` in 95% of cases where
    such rounds are as good as drawn, which they are not where losses repeat with a period.
    """

    count: int
    total: float
    within: float

    @property
    def words(self) -> str:
        """Part of a sentence for a report."""
        return f"{self.count:,} rounds at equal distances suggest {number(self.total)}, within {number(self.within, 2)} (95%)"


@dataclass(frozen=True, eq=False)
class Comparator:
    """Best fixed decision, or best decision of each round, with a certificate.

    decision    by name: (*shape) for the static one, (T, *shape) for the dynamic one
    losses      loss of each round (T,); None where it was not computed
    value       sum of the losses
    bound       lower bound on the total loss of every decision that satisfies the constraints
    violation   largest violation of each constraint that binds the comparator (N,), in the constraint's own units
    impossible  rounds (from 1) whose constraints no decision satisfies
    estimate    of the total loss, where no decision was computed
    needed      seconds that it would take, where that was seen to be far more than its budget; else 0
    """

    kind: str
    status: ComparatorStatus
    decision: Mapping[str, Array] = field(default_factory=dict)
    losses: Array | None = None
    value: float = np.nan
    bound: float = -np.inf
    violation: Array = field(default_factory=lambda: np.zeros(0))
    impossible: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    method: str = ""
    seconds: float = 0.0
    why: str = ""
    estimate: Estimate | None = None
    needed: float = 0.0

    @property
    def gap(self) -> float:
        """Largest possible gain of a better comparator: value less lower bound."""
        return self.value - self.bound

    @property
    def words(self) -> str:
        """Sentence for a report."""
        name = "best fixed decision" if self.kind == "static" else "best decision of each round"
        if self.status is ComparatorStatus.NOT_COMPUTED:
            return f"the {name} was not computed: {self.why}{f'; {self.estimate.words}' if self.estimate else ''}"
        if self.status is ComparatorStatus.LEAST_VIOLATING:
            return (
                f"no {name} satisfies the constraints ({self.why}); the least violating one costs {number(self.value)}"
            )
        if self.status is ComparatorStatus.INTERVAL:
            return f"{name}: between {number(self.bound)} and {number(self.value)}"
        return f"{name}: {number(self.value)}, certified to within {number(abs(self.gap), 2)}"


def unsolved(kind: str, why: str, bound: float = -np.inf, began: float | None = None) -> Comparator:
    """Comparator without a decision, with a proved lower bound. `began` is the time at the start, None where nothing was tried."""
    message = f"{why}; it costs at least {number(bound)}" if np.isfinite(bound) else why
    seconds = 0.0 if began is None else perf_counter() - began
    return Comparator(kind, ComparatorStatus.NOT_COMPUTED, bound=bound, why=message, seconds=seconds)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Best fixed decisions for the first t rounds, for several t.

    rounds      the values of t, rising (B,)
    value       loss of the decision in rounds 1..t, nan where it was not computed (B,); `bound` is a lower bound for
                all decisions (B,)
    status      strength of the claim, for each t
    decision    by name: (B, *shape)
    """

    rounds: Array
    value: Array
    bound: Array
    status: tuple[ComparatorStatus, ...]
    decision: Mapping[str, Array] = field(default_factory=dict)
    method: str = ""
    seconds: float = 0.0
    why: str = ""

    def with_members(self, members: Array, others: Prefixes) -> Prefixes:
        """Prefixes with `others` in place of some members; missing decisions are nan."""
        status, theirs = list(self.status), iter(others.status)
        for member in np.flatnonzero(members):
            status[member] = next(theirs)

        def both(mine: Array, new: Array) -> Array:
            whole = np.array(mine, dtype=np.float64)
            whole[members] = new
            return whole

        decision = {n: both(mine, others.decision.get(n, np.asarray(np.nan))) for n, mine in self.decision.items()}
        bound = np.maximum(self.bound, both(self.bound, others.bound))
        method = "; ".join(dict.fromkeys(m for m in (self.method, others.method) if m))
        seconds, why = self.seconds + others.seconds, self.why or others.why
        return replace(
            self,
            value=both(self.value, others.value),
            bound=bound,
            status=tuple(status),
            decision=decision,
            method=method,
            seconds=seconds,
            why=why,
        )


def unknown(ends: Array, why: str) -> Prefixes:
    """Prefixes of which nothing is known."""
    none = np.full(len(ends), np.nan)
    return Prefixes(ends, none, np.full(len(ends), -np.inf), (ComparatorStatus.NOT_COMPUTED,) * len(ends), why=why)
