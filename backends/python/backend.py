"""The NumPy backend: it executes the very text that it emits, so a learner here and the written module give the same bits."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

from oco.backends.base import Arrays, Compiled
from oco.backends.contract import Contract
from oco.backends.python.module import emit, emit_rule
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Function, Program


class NumpyBackend:
    """Functions over NumPy arrays."""

    name = "numpy"

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        return {f"{identifier(program.name)}_learner.py": emit(program, contract)}

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        source = emit_rule(program)
        namespace: dict[str, Any] = {}
        exec(_code(source, f"<oco: {program.name}>"), namespace)

        def entry(function: Function) -> Callable[..., Arrays]:
            found: Callable[..., Any] = namespace[function.name]
            if len(function.body.results) != 1:
                return found
            return lambda *args: (found(*args),)

        measure = None if program.measure is None else entry(program.measure)
        return Compiled(program, source, entry(program.init), entry(program.decide), entry(program.update), measure)


def _code(source: str, name: str) -> CodeType:
    """Compiled text whose lines a traceback can show."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec")
