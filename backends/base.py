"""Backends: what turns a program into functions that run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from oco.backends.contract import Contract
from oco.compiler.ir.program import Program
from oco.dsl.diagnostics import fail

Arrays = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Recorded:
    """What a run of many rounds leaves: rounds played, the state after them, and the arrays asked for, with the round first."""

    rounds: int
    state: Arrays
    kept: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program as functions over arrays, positional in the order of the program's fields. `source` is the text that runs.

    run(state, inputs, draws, rounds, keep) plays many rounds at once, where the backend can; inputs have the round first. It stops
    before a round whose input is not finite or out of bounds. `keep` names the arrays to record: "decisions" (of all decisions, side by
    side), "loss", "constraints", "equalities", and "after_FIELD" for fields of the state. `native` is the backend's own handle.
    `slopes` runs in NumPy on every backend: learners look at it in few rounds.
    """

    program: Program
    source: str
    init: Callable[..., Arrays]
    decide: Callable[..., Arrays]
    update: Callable[..., Arrays]
    measure: Callable[..., Arrays] | None
    slopes: Callable[..., Arrays] | None = None
    run: Callable[..., Recorded] | None = None
    native: Any = None

    @property
    def backend(self) -> str:
        """The name of the backend."""
        return "numpy" if self.native is None else "c"


class Backend(Protocol):
    """One target."""

    @property
    def name(self) -> str: ...

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """The program as functions. The contract's bounds are those that `run` checks."""
        ...

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """What the backend hands over to be run elsewhere: names of files, and their texts."""
        ...


_LATER = {"jax": "JAX"}


def backend(name: str | None = None) -> Backend:
    """The backend of that name; without one, NumPy."""
    from oco.backends.c99.backend import CBackend
    from oco.backends.python.backend import NumpyBackend

    if name in (None, "numpy"):
        return NumpyBackend()
    if name == "c":
        return CBackend()
    if name in _LATER:
        raise fail("OCO731", f"there is no {_LATER[name]} backend yet", hint='backends: "numpy", "c"')
    raise fail("OCO732", f"there is no backend called {name!r}", hint='backends: "numpy", "c"')
