"""Straight-line computations over real numbers, with an interval for each step in exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from oco.compiler.certificates.rational import Exact, NotRational
from oco.dsl.records import dataclass

Bounds = tuple[Fraction, Fraction]
"""Ends of an interval, the lower one first."""


class ArithmeticRule(StrEnum):
    """ArithmeticRule by which a step follows from the decision, the data or earlier steps."""

    DECISION = "decision"
    STREAM = "stream"
    NUMBER = "number"
    ADD = "add"
    SUB = "sub"
    NEG = "neg"
    MUL = "mul"
    INV = "inv"


@dataclass(frozen=True)
class ProgramStep:
    """Step of a computation.

    args   positions: of an entry of the decision or the data for the first two rules, of earlier steps for the others
    value  of the rule "number"
    """

    rule: ArithmeticRule
    args: tuple[int, ...] = ()
    value: Fraction = Fraction(0)


def step_bounds(step: ProgramStep, decision: Sequence[Bounds], data: Sequence[Bounds], of: Sequence[Bounds]) -> Bounds:
    """Least interval that the rule gives from those of its arguments. Raises NotRational where a divisor may not be positive."""
    ends = (
        [of[k] for k in step.args]
        if step.rule not in (ArithmeticRule.DECISION, ArithmeticRule.STREAM, ArithmeticRule.NUMBER)
        else []
    )
    match step.rule:
        case ArithmeticRule.DECISION:
            return decision[step.args[0]]
        case ArithmeticRule.STREAM:
            return data[step.args[0]]
        case ArithmeticRule.NUMBER:
            return step.value, step.value
        case ArithmeticRule.ADD:
            return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
        case ArithmeticRule.SUB:
            return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
        case ArithmeticRule.NEG:
            return -ends[0][1], -ends[0][0]
        case ArithmeticRule.MUL:
            corners = [a * b for a in ends[0] for b in ends[1]]
            return min(corners), max(corners)
        case ArithmeticRule.INV:
            if ends[0][0] <= 0:
                raise NotRational("a division by what may be zero")
            return 1 / ends[0][1], 1 / ends[0][0]


@dataclass(eq=False)
class Recording:
    """Steps of a computation, in their order, each once; their intervals over all decisions and data."""

    decision: Sequence[Bounds]
    data: Sequence[Bounds]
    steps: list[ProgramStep] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)
    places: dict[ProgramStep, int] = field(default_factory=dict)

    def place(self, step: ProgramStep) -> int:
        """Position of a step, which joins the others where it is new."""
        if step not in self.places:
            self.bounds.append(step_bounds(step, self.decision, self.data, self.bounds))
            self.places[step] = len(self.steps)
            self.steps.append(step)
        return self.places[step]

    def position(self, value: Any) -> int:
        """Position of a recorded number or of a fraction."""
        return (
            value.at
            if isinstance(value, RecordedNumber)
            else self.place(ProgramStep(ArithmeticRule.NUMBER, (), Fraction(value)))
        )


Operation = Callable[[Any, Any], Any]


def scalar(operation: Operation) -> Operation:
    """Operation of one number with another, which leaves arrays to NumPy."""

    def applied(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else operation(self, other)

    return applied


@dataclass(frozen=True, eq=False)
class RecordedNumber(Exact):
    """Number whose arithmetic is recorded; `at` is the position of its step."""

    recording: Recording
    at: int

    def _made(self, rule: ArithmeticRule, *args: Any) -> RecordedNumber:
        places = tuple(self.recording.position(a) for a in args)
        return RecordedNumber(self.recording, self.recording.place(ProgramStep(rule, places)))

    @scalar
    def __add__(self, other: Any) -> Any:
        return self if other == 0 else self._made(ArithmeticRule.ADD, self, other)

    @scalar
    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else self._made(ArithmeticRule.ADD, other, self)

    @scalar
    def __sub__(self, other: Any) -> Any:
        return self if other == 0 else self._made(ArithmeticRule.SUB, self, other)

    @scalar
    def __rsub__(self, other: Any) -> Any:
        return -self if other == 0 else self._made(ArithmeticRule.SUB, other, self)

    def __neg__(self) -> Any:
        return self._made(ArithmeticRule.NEG, self)

    @scalar
    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, RecordedNumber) and other in (0, 1):
            return self if other == 1 else Fraction(0)
        return self._made(ArithmeticRule.MUL, self, other)

    @scalar
    def __rmul__(self, other: Any) -> Any:
        return self * other if other in (0, 1) else self._made(ArithmeticRule.MUL, other, self)

    @scalar
    def __truediv__(self, other: Any) -> Any:
        return self * other._inverse() if isinstance(other, RecordedNumber) else self * (1 / Fraction(other))

    @scalar
    def __rtruediv__(self, other: Any) -> Any:
        return self._inverse() * other

    def __pow__(self, exponent: int) -> Any:
        result: Any = Fraction(1)
        for _ in range(exponent):
            result = self * result
        return result

    def _inverse(self) -> Any:
        low, high = self.recording.bounds[self.at]
        return (
            -(-self)._made(ArithmeticRule.INV, -self) if low < 0 and high < 0 else self._made(ArithmeticRule.INV, self)
        )

    def __abs__(self) -> Any:
        raise NotRational("abs")

    def _compare(self, other: object) -> bool:
        raise NotRational("a comparison")

    __lt__ = __le__ = __gt__ = __ge__ = _compare


def needed_steps(steps: Sequence[ProgramStep], last: Sequence[int]) -> tuple[int, ...]:
    """Positions of the steps that these positions rest on, with them, in order."""
    results, waiting = set[int](), list(last)
    while waiting:
        k = waiting.pop()
        if k not in results:
            results.add(k)
            if steps[k].rule not in (ArithmeticRule.DECISION, ArithmeticRule.STREAM):
                waiting.extend(steps[k].args)
    return tuple(sorted(results))
