"""Update rules and their states, which hold points and arrays by the paper's symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.lowering.round_problem import Problem
from oco.dsl.diagnostics import InternalError

State = Mapping[str, Structured]
V = TypeVar("V")


class Rule(Protocol):
    """The update in the paper's symbols. State holds points and arrays by those symbols."""

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round, with the first decision at `start`."""

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round, from the state alone."""

    def update(self, p: Problem, state: State) -> State:
        """State after the round, from what `p` has seen of it."""


class Informed(Rule, Protocol):
    """Rule whose decision of a round waits for what is known before it."""

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its contexts are known."""


def joined(*parts: Mapping[str, V]) -> dict[str, V]:
    """Values by name of all parts, whose names are all different: states of the parts of an algorithm, or words on their symbols.

    Raises InternalError where two parts have a name: one of them would take the other's value.
    """
    counts = Counter(name for part in parts for name in part)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InternalError(f"two parts of an algorithm have a state variable `{twice[0]}` each: give one another name")
    return {name: value for part in parts for name, value in part.items()}


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


def flattened(state: State) -> list[Value]:
    """Arrays of a state, block by block."""
    return [b for v in state.values() for b in ((v,) if isinstance(v, Value) else v.blocks)]


def of_form(state: State, values: Sequence[Value]) -> State:
    """State of the same form from these arrays."""
    left = iter(values)
    return {
        n: next(left) if isinstance(v, Value) else type(v)(tuple(next(left) for _ in v.blocks))
        for n, v in state.items()
    }
