"""Programs as callable functions, made by every backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oco.compiler.ir.program import Program
from oco.dsl.records import dataclass

Arrays = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Recorded:
    """Record of a run of many rounds: rounds played, the state after them, and the requested arrays, with the round
    first.
    """

    rounds: int
    state: Arrays
    kept: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Compiled:
    """Program as functions over arrays, positional in the order of the program's fields. `source` is the text that
    runs.

    run(state, inputs, draws, rounds, keep) plays many rounds at once, where the backend can; inputs are those of `Program.revealed`, and
    have the round first. It stops before a round whose input is not finite or out of bounds. `keep` names the arrays to record:
    "decisions" (of all decisions, side by side), "loss", "constraints", "equalities", and "after_FIELD" for fields of
    the state. `native` is the backend's own handle. `slopes` runs in NumPy on every backend: learners evaluate it in
    few rounds; so does `certificate`, when it is asked for. `backend` is the name of the backend that made it. `prepare` is there where
    the decision hangs on contexts.
    """

    backend: str
    program: Program
    source: str
    init: Callable[..., Arrays]
    decide: Callable[..., Arrays]
    update: Callable[..., Arrays]
    measure: Callable[..., Arrays] | None
    slopes: Callable[..., Arrays] | None = None
    run: Callable[..., Recorded] | None = None
    native: Any = None
    prepare: Callable[..., Arrays] | None = None
    certificate: Callable[..., Arrays] | None = None
