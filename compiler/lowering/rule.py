"""Update rules and their states, which hold points and arrays by the paper's symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.lowering.round_problem import Problem

State = Mapping[str, Structured]


class Rule(Protocol):
    """The update in the paper's symbols. State holds points and arrays by those symbols."""

    def init(self, p: Problem, start: Point) -> State: ...

    def decide(self, p: Problem, state: State) -> Point: ...

    def update(self, p: Problem, state: State) -> State: ...


def point(state: State, name: str) -> Point:
    """The point that a state variable holds."""
    value = state[name]
    assert isinstance(value, Point)
    return value


def rows(state: State, name: str) -> Rows:
    """The points, one a row, that a state variable holds."""
    value = state[name]
    assert isinstance(value, Rows)
    return value


def array(state: State, name: str) -> Value:
    """The array that a state variable holds."""
    value = state[name]
    assert isinstance(value, Value)
    return value
