"""NumPy backend: it executes the very text that it emits, so a learner here and the written module give the same bits."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from oco.backends.base import Arrays, Compiled
from oco.backends.contract import Contract
from oco.backends.fleet import Fleet
from oco.backends.learner import Learner
from oco.backends.python.intake import NotFinite, finite
from oco.backends.python.module import emit, emit_parts, rule_text
from oco.compiler.ir.names import identifier
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import Function, Program


@dataclass(frozen=True)
class NumpyBackend:
    """Functions over NumPy arrays. `skip` names passes of `CALLS` to leave out."""

    name: str = "numpy"
    skip: tuple[str, ...] = ()

    @property
    def learner(self) -> type[Learner]:
        """Class of learners: `Learner`."""
        return Learner

    def fleet(self, program: Program) -> type[Fleet]:
        """Class of fleets: `Fleet`."""
        return Fleet

    def unavailable_reason(self) -> str | None:
        """None: NumPy is always available."""
        return None

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """Standalone module by file name."""
        return {f"{identifier(program.name)}_learner.py": emit(program, contract)}

    def parts(self, program: Program, contract: Contract) -> dict[str, str]:
        """Rule and learner as modules of their own, the rule first."""
        return emit_parts(program, contract)

    def usage(self, path: str, names: Sequence[str], data: str | None) -> str:
        """Command that runs the module; the call that gives it values, where no file can hold them."""
        path = path if len(names) == 1 else f"{path}/{names[-1]}"
        if data is None:
            return (
                f"NumPy alone. Use it: `Learner` of {path} decides, and `observe(loss=..., ...)` takes what that cost"
            )
        return f"NumPy alone. Run it: python {path} {data}"

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """Program as functions of the emitted text."""
        entries = [f for f in program.entries if f not in (program.slopes, program.certificate)]
        short = shorten(program, self.skip)
        source = rule_text(short, entries)
        result = _executed(program, source, entries)
        decide = _watched(result["decide"], [f.name for f in program.decision])
        state = [f.name for f in program.state]
        update = _watched(result["update"], state, of_state=True)
        prepare = _watched(result["prepare"], state, of_state=True) if program.prepare is not None else None
        entry = result["init"], decide, update, result.get("measure"), on_demand(program, program.slopes, short)
        certificate = on_demand(program, program.certificate, short)
        return Compiled(self.name, program, source, *entry, prepare=prepare, certificate=certificate)


def _watched(function: Callable[..., Arrays], names: Sequence[str], of_state: bool = False) -> Callable[..., Arrays]:
    """Function whose results are checked: it raises NotFinite where they are not finite, or no eigenvalues come of what is not.

    of_state  True where it takes the state first and gives the next one: what did not change was checked before
    """
    taken = len(names) if of_state else 0

    def watched(*values: Any) -> Arrays:
        with np.errstate(all="ignore"):
            try:
                results: Arrays = finite(names, function(*values), values[:taken])
            except np.linalg.LinAlgError:
                raise NotFinite("a matrix whose eigenvalues are taken") from None
        return results

    return watched


def on_demand(
    program: Program, function: Function | None, short: Program | None = None
) -> Callable[..., Arrays] | None:
    """Entry of a program that is needed now and then, for a learner on any backend: made on first use.

    short  the program after the passes for NumPy, where it is known
    """
    if function is None:
        return None
    entries = [function]
    made = cache(lambda: _executed(program, rule_text(short or shorten(program), entries), entries)[function.name])
    return lambda *values: made()(*values)


def _executed(program: Program, source: str, entries: Sequence[Function]) -> dict[str, Callable[..., Arrays]]:
    """Functions of a rule's text, by name."""
    namespace: dict[str, Any] = {}
    exec(_code(source, f"<oco: {program.name}, {entries[0].name}>"), namespace)

    def entry(function: Function) -> Callable[..., Arrays]:
        result: Callable[..., Any] = namespace[function.name]
        return result if len(function.body.results) != 1 else lambda *args: (result(*args),)

    return {f.name: entry(f) for f in entries}


def _code(source: str, name: str) -> CodeType:
    """Compiled text whose lines a traceback can show."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec")
