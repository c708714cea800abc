"""Functions of the emitted text, executed in this process."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from oco.backends.base import Arrays
from oco.backends.python.intake import NotFinite, finite
from oco.backends.python.module import rule_text
from oco.compiler.ir.passes import shorten_entry
from oco.compiler.ir.program import Function, Program


def watched(function: Callable[..., Arrays], names: Sequence[str], of_state: bool = False) -> Callable[..., Arrays]:
    """Function whose results are checked: it raises NotFinite where they are not finite, or no eigenvalues come of what is not.

    of_state  True where it takes the state first and gives the next one: what did not change was checked before
    """
    taken = len(names) if of_state else 0

    def looked_at(*values: Any) -> Arrays:
        with np.errstate(all="ignore"):
            try:
                results: Arrays = finite(names, function(*values), values[:taken])
            except np.linalg.LinAlgError:
                raise NotFinite("a matrix whose eigenvalues are taken") from None
        return results

    return looked_at


def on_demand(
    program: Program, function: Function | None, short: Program | None = None
) -> Callable[..., Arrays] | None:
    """Entry of a program that is needed now and then, for a learner on any backend: made on first use.

    short  the program after the passes for NumPy, where it is known
    """
    if function is None:
        return None
    entries = [function]

    def text() -> str:
        return rule_text(short or shorten_entry(program, function), entries)

    made = cache(lambda: executed(program, text(), entries)[function.name])
    return lambda *values: made()(*values)


def executed(program: Program, source: str, entries: Sequence[Function]) -> dict[str, Callable[..., Arrays]]:
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
