"""Monitor: observations that a learner makes about itself, in few rounds, and reports once.

In rounds 64, 128, 256, ... and every 8192nd, and never within generated code, it checks that declared or proved bounds
hold and are of the right size, that the decisions have left the start, and that multipliers move while constraints are
broken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from oco.backends.factors import distance
from oco.dsl.records import dataclass
from oco.dsl.spill import release

Array = np.ndarray[Any, Any]

FIRST = 64
"""First round in which the monitor runs."""
OFTEN = 8192
EVENLY = 32
"""Rounds at even distances in which gradients are evaluated."""
MOST_DATA = 1 << 18
"""Entries of a stream that are searched for the largest: of longer ones, rounds at even distances."""
TOGETHER = 1 << 15
"""Number of entries searched at once, which stay in the cache."""
WIDE = 100.0
"""Ratio of a bound to the largest value seen above which it is too wide."""
STILL = 1e-3
"""Distance, in diameters, below which a decision has not left the start."""
SLACK = 1e-9
DUALS = ("Q", "H", "lam", "lambda_", "q")
"""The letters of queues and multipliers in the papers."""
OF_EQUALITIES = "H"


@dataclass(frozen=True)
class Limit:
    """Bound in the model's units on |the loss| or a constraint, or on its gradient, with the fact behind it and its
    consequences.

    name   "the loss", or the label of a constraint
    fact   the key to correct or assume; `norm` of a gradient, "" for a value
    rests  True where a hypothesis of the theorem needs it; the guarantee's numbers may use it all the same
    sets   True where settings depend on it
    smoothness  largest difference of a gradient between two decisions, with the same data; infinite where that is not known
    """

    name: str
    bound: float
    fact: str
    norm: str = ""
    rests: bool = True
    sets: bool = True
    smoothness: float = 0.0

    @property
    def subject(self) -> str:
        """Phrase for the bounded quantity."""
        return f"the gradient of {self.name}" if self.norm else f"|{self.name}|"

    @property
    def measured(self) -> str:
        """Phrase for the norm of a gradient."""
        return {"": "", "l2": " in the l2 norm", "l1": " in its largest entry"}[self.norm]

    def broken(self, seen: float) -> str:
        """Warning that the bound was exceeded by `seen`."""
        ends = f"the guarantee {'does' if self.rests else 'may'} not hold"
        fix = f"correct what the model states, or `assume {self.fact} <= ...` with a larger number"
        return f"{self.subject} reached {seen:.6g}{self.measured}, and its bound is {self.bound:.6g}: {ends}; {fix}"

    def wide(self, round: int, seen: float, fact: str, others: int = 0) -> str:
        """Warning that a bound is too wide: settings depend on `fact`; `others` is the number of similar constraints."""
        more = f" (and so with {others} other constraint{'s' if others > 1 else ''})" if others else ""
        where = self.measured or " at the decisions that were made"
        where += f", from which it differs by at most {self.smoothness:.4g} at others" if self.smoothness else ""
        size = (
            f"was at most {seen:.4g}{where}, and its bound is {self.bound:.4g}, more than {WIDE:g} times as much{more}"
        )
        return (
            f"after {round} rounds {self.subject} {size}: if no decision and no round can give a larger one, settings made for it are "
            f"too careful; narrow the bounds of the streams in the model, or `assume {fact} <= ...`; `oco tune` finds others"
        )


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants that a plan rests on: bounds of loss and constraints, in that order, then of their gradients (none: not
    watched), and the diameter of the domain.
    """

    values: tuple[Limit, ...] = ()
    slopes: tuple[Limit, ...] = ()
    diameter: float = np.inf


def is_watched(round: int) -> bool:
    """True for a round in which a learner runs the monitor (the rule of `stepper.c`)."""
    return round >= FIRST and (round & (round - 1) == 0 or round % OFTEN == 0)


def watched_rounds(first: int, stop: int) -> list[int]:
    """Rounds from `first` up to, not including, `stop` for which `is_watched` is true."""
    doubled = (1 << k for k in range(FIRST.bit_length() - 1, stop.bit_length()))
    often = range(-(-first // OFTEN) * OFTEN, stop, OFTEN)
    return sorted({t for t in (*doubled, *often) if max(first, FIRST) <= t < stop})


def slope_rounds(streams: Mapping[str, Array], rounds: int, kept: Array) -> list[int]:
    """Rounds of a run, from 0, in which gradients are evaluated: those `kept` (rising) where they are few, else some at even distances and
    those with the largest data.
    """
    if len(kept) <= EVENLY:
        return [int(t) for t in kept]
    results = {*np.linspace(0, rounds - 1, min(rounds, EVENLY)).astype(int).tolist()}
    for values in streams.values():
        if values.size:
            apart = -(-values[:rounds].size // MOST_DATA)
            results |= {apart * t for t in _largest_rounds(values[:rounds:apart])}
    return sorted(results)


def _largest_rounds(values: Array) -> set[int]:
    """Two rounds with the largest entries and two with the largest sums of squares, looked for part by part."""
    entries, squares, width = _Largest(), _Largest(), values[0].size
    step = max(1, TOGETHER // width)
    for start in range(0, len(values), step):
        part = np.ascontiguousarray(values[start : start + step], dtype=np.float64).reshape(-1, width)
        if not max(part.max(), -part.min()) <= entries.least:
            columns = np.abs(np.ascontiguousarray(part.T))  # rounds beside each other: vectors of them are reduced
            entries.add(columns.max(axis=0), start)
        squares.add(np.einsum("ti,ti->t", part, part), start)
        release(values[: start + step])
    return {t for largest in (entries, squares) for _, t in largest.rounds}


class _Largest:
    """The two largest of many numbers, with their places."""

    def __init__(self) -> None:
        self.rounds: list[tuple[float, int]] = []

    @property
    def least(self) -> float:
        """Number that the next has to exceed."""
        return self.rounds[-1][0] if len(self.rounds) > 1 else -np.inf

    def add(self, sizes: Array, start: int) -> None:
        """Take in numbers of the places from `start` on, which are overwritten."""
        for _ in range(2):
            place = int(sizes.argmax())
            if not sizes[place] > self.least:
                return
            self.rounds = heapq.nlargest(2, [*self.rounds, (float(sizes[place]), start + place)])
            sizes[place] = -np.inf


@dataclass
class Monitor:
    """Largest values seen so far. `tell` receives each sentence once."""

    constants: Constants
    tell: Callable[[str], None]
    start: tuple[Any, ...] | None = None
    values: Array = field(default_factory=lambda: np.zeros(0))
    slopes: Array = field(default_factory=lambda: np.zeros(0))
    broken: bool = False
    duals: Mapping[str, Array] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def record_values(self, loss: float, constraints: Array) -> None:
        """Take in values of a round, or the largest sizes of several."""
        self.values = _largest(self.values, np.abs([loss, *constraints]))
        self.broken = self.broken or bool((constraints > 0).any())

    def record_slopes(self, loss: float, constraints: Array) -> None:
        """Take in norms of the gradients of a round."""
        self.slopes = _largest(self.slopes, np.array([loss, *constraints]))

    def check_round(self, round: int, decision: tuple[Any, ...], duals: Mapping[str, Array]) -> None:
        """Report problems after `round` rounds, at this decision and with these multipliers."""
        self.start = decision if self.start is None else self.start
        for kind, sentence in self._wrong(round, decision, duals):
            if kind not in self.reported:
                self.reported.add(kind)
                self.tell(sentence)
        self.duals, self.broken = {n: np.array(v) for n, v in duals.items()}, False

    def _wrong(self, round: int, decision: tuple[Any, ...], duals: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
        yield from self._bounds(round)
        assert self.start is not None
        moved = distance(decision, self.start) / self.constants.diameter
        if round >= 4 * FIRST and moved < STILL:
            yield (
                "still",
                f"after {round} rounds the decision has not left the start (it moved {moved:.1g} of the domain's diameter): "
                'its steps are too small; try `oco tune`, or settings="optimal" where others are in use',
            )
        for name, value in duals.items():
            before = self.duals.get(name)
            stuck = before is not None and np.any(value) and np.array_equal(before, value)
            if round >= 2 * FIRST and self.broken and stuck:
                yield (
                    "saturated",
                    f"from round {round // 2} to {round} {name} did not change although constraints were broken: at a bound of "
                    "its own a multiplier acts as a fixed penalty; try another `--tradeoff`, or `oco tune`",
                )

    def _bounds(self, round: int) -> Iterator[tuple[str, str]]:
        seen = (*zip(self.constants.values, self.values), *zip(self.constants.slopes, self.slopes))
        for limit, size in seen:
            if size > limit.bound * (1 + SLACK):
                yield f"broken {limit.subject}", limit.broken(size)
        wide = list(self._wide()) if round >= 4 * FIRST else []
        for kind, result in (("the loss", wide[:1]), ("constraints", wide[1:])):
            # One sentence for all constraints, about the widest.
            limits = [w for w in result if w is not None]
            if limits:
                limit, size, fact = max(limits, key=lambda w: w[0].bound / w[1])
                yield f"wide {kind}", limit.wide(round, size, fact, len(limits) - 1)

    def _wide(self) -> Iterator[tuple[Limit, float, str] | None]:
        """Too wide bound, largest value seen and fact to narrow, for the loss and for each constraint; None where none
        is too wide.

        Values and gradients of curved functions are small where decisions are good. So where gradients are evaluated
        both must be small, and the gradients together with their possible difference at other decisions.
        """
        for k, value in enumerate(self.constants.values):
            both = [(value, float(self.values[k]))]
            if k < min(len(self.constants.slopes), self.slopes.size):
                both.insert(0, (self.constants.slopes[k], float(self.slopes[k])))
            facts = [limit.fact for limit, _ in both if limit.sets]
            wide = bool(facts) and all(
                size > 0 and WIDE * (size + limit.smoothness) < limit.bound < np.inf for limit, size in both
            )
            yield (*both[0], facts[0]) if wide else None


def _largest(before: Array, now: Array) -> Array:
    """Larger of each pair that is a number."""
    return np.fmax(before, now) if before.size else np.nan_to_num(now, nan=0.0, posinf=np.inf)
