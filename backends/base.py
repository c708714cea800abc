"""Backends: what turns a program into functions that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from oco.compiler.ir.program import Program
from oco.dsl.diagnostics import fail

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Compiled:
    """A program as functions over arrays, positional in the order of the program's fields. `source` is the text that runs."""

    program: Program
    source: str
    init: Callable[..., Arrays]
    decide: Callable[..., Arrays]
    update: Callable[..., Arrays]
    measure: Callable[..., Arrays] | None


class Backend(Protocol):
    """One target. `suffix` is that of the file it writes."""

    name: str
    suffix: str

    def compile(self, program: Program) -> Compiled: ...


_LATER = {"c": "C99", "jax": "JAX"}


def backend(name: str | None = None) -> Backend:
    """The backend of that name; without one, NumPy."""
    from oco.backends.python.backend import NumpyBackend

    if name in (None, "numpy"):
        return NumpyBackend()
    if name in _LATER:
        raise fail("OCO731", f"there is no {_LATER[name]} backend yet", hint='the backend "numpy" runs everything')
    raise fail("OCO732", f"there is no backend called {name!r}", hint='backends: "numpy"')
