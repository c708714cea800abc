"""Claims attacked: decisions and stream values that try to break a range or a supremum.

Part of the replay (`verify.py`), and like it without the prover's code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, DecisionBlock, entry_labels
from oco.compiler.prover.types import Step
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, names

Array = np.ndarray[Any, Any]
Place = dict[str, Array]
TOLERANCE = 1e-9
PLACES, FEWEST, MOST_NUMBERS = 120, 6, 2_000_000  # places, at most and at least, and the numbers in all of them
ANY_ROUND = 1000  # the last that is tried where the horizon is unknown
CLIMB = 80  # exchanges that are tried to climb from the best place
LARGEST_BY_DIFFERENCES = 200  # entries of all decisions up to which slopes are found by differences


class AuditOutcome(StrEnum):
    """Worked out again, attacked without success, taken as stated, or found wrong."""

    REPLAYED = "replayed"
    TESTED = "tested"
    STATED = "stated"
    FAILED = "failed"


Verdict = tuple[AuditOutcome, str]


class Attack:
    """Places where claims are tried, and the claims that can only be tried."""

    def __init__(self, problem: Canonical, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.decisions = [b.name for b in problem.blocks]
        self.last = float(problem.horizon or ANY_ROUND)
        numbers = sum(b.domain.size for b in problem.blocks) + sum(math.prod(s.shape) for s in problem.streams)
        self.count = int(min(PLACES, max(FEWEST, MOST_NUMBERS / max(1, numbers))))
        self.effort = self.count / PLACES  # the share of the usual number of trials that large places leave time for
        self.inside = {b.name: self._inside(b, max(2, self.count // 2)) for b in problem.blocks}
        self.places = [*self._ends_of_all(), *(self._place() for _ in range(self.count - 4))]
        self.boxes = {b.name for b in problem.blocks if b.domain.is_box}
        self._drawn: dict[str, Array] = {}
        self._known_inside: dict[int, tuple[Place, bool]] = {}
        self.functions = dict(self._functions())

    # ---- places

    def _ends_of_all(self) -> Iterator[Place]:
        """All streams at one end, and the decisions as far as they go the one way or the other."""
        for sign in (1.0, -1.0):
            x = {b.name: self._farthest(b, np.full(b.shape, sign)) for b in self.problem.blocks}
            for upper, t in ((True, 1.0), (False, self.last)):
                ends = {s.name: np.full(s.shape, s.upper if upper else s.lower) for s in self.problem.streams}
                yield {"t": np.asarray(t), **x, **{n: np.clip(v, -1e9, 1e9) for n, v in ends.items()}}

    def _farthest(self, b: DecisionBlock, direction: Array) -> Array:
        """A point of the set that is extreme in a direction, where the set tells."""
        if b.domain.is_box:
            return np.asarray(np.where(direction > 0, b.domain.upper, b.domain.lower))
        if not b.domain.is_cheap("lmo") or b.domain.decomposes:
            return np.asarray(self.rng.choice(self.inside[b.name]))
        return np.asarray(b.domain.lmo_array(-direction))

    def _points(self, b: DecisionBlock) -> Array:
        """Points of the set, drawn once: of its inside, and extreme in random directions and along coordinates, both ways."""
        if b.name not in self._drawn:
            self._drawn[b.name] = np.concatenate([self._extremes(b, max(2, self.count // 2)), self.inside[b.name]])
        return self._drawn[b.name]

    def _inside(self, b: DecisionBlock, count: int) -> Array:
        """Points of the set; where drawing them is expensive, of the ball within it."""
        if not b.domain.decomposes:
            return b.domain.sample(self.rng, count)
        moves = (b.domain.tangent(self.rng.normal(size=b.shape)) for _ in range(count))
        return np.stack([b.domain.inner_centre + b.domain.inner_radius * d / np.linalg.norm(d) for d in moves])

    def _extremes(self, b: DecisionBlock, count: int) -> Array:
        few = min(b.domain.size, count // 4)
        along = [np.eye(1, b.domain.size, k).reshape(b.shape) for k in range(few)]
        along += [self.rng.normal(size=b.shape) for _ in range(count // 2 - few)]
        return np.stack([self._farthest(b, sign * d) for d in along for sign in (1.0, -1.0)])

    def _place(self) -> Place:
        """A decision and stream values, corners more often than not, and the first, the last or any round."""
        place: Place = {
            "t": np.asarray(self.rng.choice([1.0, self.last, float(self.rng.integers(1, int(self.last) + 1))]))
        }
        for b in self.problem.blocks:
            out = self.rng.random() < 0.6
            drawn = self._farthest(b, self.rng.normal(size=b.shape)) if out else self.rng.choice(self.inside[b.name])
            place[b.name] = np.asarray(drawn)
        for s in self.problem.streams:
            lo, hi = np.maximum(s.lower, -1e9), np.minimum(s.upper, 1e9)
            share = self.rng.random(s.shape)
            share = np.round(share) if self.rng.random() < 0.6 else share
            value = lo + share * (hi - lo)
            place[s.name] = np.round(value) if s.integer else value
        return place

    def _value(self, expr: Expr, place: Place) -> Array:
        return evaluate(expr, place, float(place["t"]))

    def _functions(self) -> Iterator[tuple[str, Callable[[Place], float]]]:
        yield "loss", self._entry(self.problem.objective, ())
        for c in self.problem.constraints:
            for at, label in zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)):
                yield f"constraints.{label}", self._entry(c.expr, at)

    def _entry(self, expr: Expr, at: tuple[int, ...]) -> Callable[[Place], float]:
        return lambda p: float(self._value(expr, p)[at])

    # ---- ranges and suprema

    def _within_samples(self, step: Step) -> Verdict:
        """Values at the places lie in the range."""
        node, ends = step.subject, step.value
        if not isinstance(node, Expr) or not hasattr(ends, "lo"):
            return AuditOutcome.FAILED, "it is no range of an expression"
        for p in self.places:
            value = self._value(node, p)
            slack = TOLERANCE * np.maximum(1.0, np.abs(value))
            if not (np.all(value >= ends.lo - slack) and np.all(value <= ends.hi + slack)):
                return AuditOutcome.FAILED, "a value outside the range was found"
        return AuditOutcome.TESTED, ""

    def _supremum(self, step: Step) -> Verdict:
        """Places, and climbs from the best of them, stay below the bound."""
        if not isinstance(step.subject, Expr) or step.subject.shape != () or not isinstance(step.value, float):
            return AuditOutcome.FAILED, "it is no bound of a number"
        values = [float(self._value(step.subject, p)) for p in self.places]
        best = self.places[int(np.nanargmax(values))]
        top = self._coordinate_search(step.subject, best, float(np.nanmax(values)))
        slack = TOLERANCE * max(1.0, abs(top))
        return (
            (AuditOutcome.TESTED, "")
            if top <= step.value + slack
            else (AuditOutcome.FAILED, f"the value {top:g} was found")
        )

    def _coordinate_search(self, expr: Expr, start: Place, value: float) -> float:
        """Exchange one name at a time, wholly or in some entries, with that of another place."""
        place = start
        used = [n for n in names(expr) if n != "t"]
        for _ in range(CLIMB if used else 0):
            name = str(self.rng.choice(used))
            other = self.places[int(self.rng.integers(self.count))][name]
            if np.ndim(other) and (name not in self.decisions or name in self.boxes):
                other = np.where(self.rng.random(np.shape(other)) < 0.3, other, place[name])
            elif name in self.decisions and self.rng.random() < 0.3:
                other = place[name] + self.rng.random() * (other - place[name])
            trial = {**place, name: other}
            reached = float(self._value(expr, trial))
            if reached > value:
                place, value = trial, reached
        return value

    # ---- affine functions

    def _support(self, step: Step) -> Verdict:
        """The extremes of an affine expression over the sets, by their support functions at coefficients found by differences."""
        result = self._within_samples(step)
        node, blocks = step.subject, self.problem.blocks
        if result[0] is AuditOutcome.FAILED or sum(b.domain.size for b in blocks) > LARGEST_BY_DIFFERENCES:
            return result
        for p in self.places[:12]:
            level, columns = self._affine_at(node, p)
            high = np.array(level)
            for b in blocks:
                rows = columns[b.name].reshape(-1, b.domain.size)
                high += np.reshape([b.domain.support(row.reshape(b.shape)) for row in rows], np.shape(level))
            if np.any(high > step.value.hi + 1e-8 * np.maximum(1.0, np.abs(high))):
                return AuditOutcome.FAILED, f"the value {float(np.max(high)):g} is reached"
        return result

    def _affine_at(self, node: Expr, p: Place) -> tuple[Array, dict[str, Array]]:
        """The value with all decisions at 0, and the slope towards each entry: shape (entries of the node, entries of the decision)."""
        zero = {n: np.zeros(np.shape(p[n])) for n in self.decisions}
        level = np.asarray(self._value(node, {**p, **zero}), dtype=np.float64)
        columns = {}
        for b in self.problem.blocks:
            units = np.eye(b.domain.size).reshape(-1, *b.shape)
            moved = [np.ravel(self._value(node, {**p, **zero, b.name: u}) - level) for u in units]
            columns[b.name] = np.stack(moved, axis=1)
        return level, columns
