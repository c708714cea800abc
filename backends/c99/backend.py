"""The C backend: the emitted source, compiled on the spot, behind the functions that a learner calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.base import Arrays, Compiled
from oco.backends.c99.build import library
from oco.backends.c99.module import Source, emit
from oco.backends.contract import Contract
from oco.compiler.ir.check import KINDS
from oco.compiler.ir.program import DType, Field, Program, Type

_NUMBERS = {DType.FLOAT: ctypes.c_double, DType.INT: ctypes.c_int64, DType.BOOL: ctypes.c_bool}


class CBackend:
    """Functions over NumPy arrays that call the compiled program."""

    name = "c"
    suffix = ".c"

    def compile(self, program: Program) -> Compiled:
        contract = Contract("", "", None, {f.name: np.zeros(f.type.shape) for f in program.decision})
        source = emit(program, contract)
        native = Native(program, source, library(source))
        measure = None if program.measure is None else native.measure
        return Compiled(program, source.code, native.init, native.decide, native.update, measure)


class Native:
    """The library of a program. State goes through a struct of its own for each call."""

    def __init__(self, program: Program, source: Source, path: Path) -> None:
        self.program = program
        self.library = ctypes.CDLL(str(path))
        self.layout = struct_layout(program, source)
        self.prefix = source.name
        self.sizes = [] if program.measure is None else [r.type.shape for r in program.measure.body.results]

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self.library, f"{self.prefix}_{name}")
        return found

    def init(self, *start: Any) -> Arrays:
        struct = self.layout()
        pointers = [_array(v, Type(DType.FLOAT, f.type.shape)) for v, f in zip(start, self.program.decision)]
        self._function("init")(ctypes.byref(struct), *(p.ctypes.data_as(ctypes.c_void_p) for p in pointers))
        return self._state(struct)

    def decide(self, *values: Any) -> Arrays:
        count = len(self.program.state)
        struct = self._struct(values[:count])
        given, _kept = self._inputs(values[count:], self.program.draws)
        return self._results("decide", [ctypes.byref(struct), *given], [f.type.shape for f in self.program.decision])

    def update(self, *values: Any) -> Arrays:
        count = len(self.program.state)
        struct = self._struct(values[:count])
        given, _kept = self._inputs(values[count:], [*self.program.feedback, *self.program.draws])
        self._function("step")(ctypes.byref(struct), *given)
        return self._state(struct)

    def measure(self, *values: Any) -> Arrays:
        struct = self.layout()
        setattr(struct, self.layout._fields_[0][0], int(values[0]))
        given, _kept = self._inputs(values[1:], [*self.program.decision, *self.program.feedback])
        return self._results("measure", [ctypes.byref(struct), *given], self.sizes)

    def _results(self, function: str, args: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Arrays:
        """Call a function that writes its results through pointers."""
        outs = [np.empty(shape) for shape in shapes]
        self._function(function)(*args, *(o.ctypes.data_as(ctypes.c_void_p) for o in outs))
        return tuple(o[()] for o in outs)

    def _inputs(self, values: Sequence[Any], fields: Sequence[Field]) -> tuple[list[Any], list[Any]]:
        given, kept = [], []
        for value, f in zip(values, fields, strict=True):
            if not f.type.shape:
                given.append(_NUMBERS[f.type.dtype](value.item() if hasattr(value, "item") else value))
                continue
            array = _array(value, f.type)
            kept.append(array)
            given.append(array.ctypes.data_as(ctypes.c_void_p))
        return given, kept

    def _struct(self, state: Sequence[Any]) -> ctypes.Structure:
        struct = self.layout()
        for (name, _), value, f in zip(struct._fields_, state, self.program.state):  # type: ignore[misc]
            if f.type.shape:
                ctypes.memmove(
                    ctypes.addressof(getattr(struct, name)), _array(value, f.type).ctypes.data, _bytes(f.type)
                )
            else:
                setattr(struct, name, value.item() if hasattr(value, "item") else value)
        return struct

    def _state(self, struct: ctypes.Structure) -> Arrays:
        values: list[Any] = []
        for (name, _), f in zip(struct._fields_, self.program.state):  # type: ignore[misc]
            found = getattr(struct, name)
            if f.type.shape:
                values.append(np.array(np.frombuffer(found, KINDS[f.type.dtype], _size(f.type))).reshape(f.type.shape))
            else:
                values.append(KINDS[f.type.dtype](found))
        return tuple(values)


def _size(made: Type) -> int:
    return int(np.prod(made.shape, dtype=np.int64))


def _bytes(made: Type) -> int:
    return _size(made) * np.dtype(KINDS[made.dtype]).itemsize


def _array(value: Any, made: Type) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(value, dtype=KINDS[made.dtype]).reshape(made.shape)


def struct_layout(program: Program, source: Source) -> type[ctypes.Structure]:
    """The struct of the header as ctypes sees it."""
    fields: list[tuple[str, Any]] = []
    for p, f in zip(program.update.body.params, program.state):
        kind: Any = _NUMBERS[f.type.dtype]
        fields.append((p.name, kind * max(_size(f.type), 1) if f.type.shape else kind))
    if source.work:
        fields.append(("work", ctypes.c_double * source.work))
    return type("Struct", (ctypes.Structure,), {"_fields_": fields})
