"""Compiled library of a program in C, behind the functions that a learner calls."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.backends.base import Arrays, Recorded
from oco.backends.c99.module import CSource
from oco.backends.python.intake import NotFinite, finite
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.verifier import KINDS

Array = np.ndarray[Any, Any]
_NUMBERS = {DType.FLOAT: ctypes.c_double, DType.INT: ctypes.c_int64, DType.BOOL: ctypes.c_bool}


class Native:
    """Compiled library of a program. Each call has a struct of its own for the state."""

    def __init__(self, program: Program, source: CSource, library: ctypes.CDLL) -> None:
        self.program = program
        self.source = source
        self.library = library
        self.layout = _layout(program, source)
        self.members = [name for name, _ in source.interface.members()]
        self.number = self.members[program.number_place]
        self.state_words = (self.layout.work.offset if source.interface.work else ctypes.sizeof(self.layout) + 7) // 8
        """Number of words of eight bytes at the beginning of the struct; work space follows."""
        self.record_layout = _record_layout(source)
        self.measured = [] if program.measure is None else [r.type.shape for r in program.measure.body.results]

    def _function(self, name: str) -> Callable[..., Any]:
        result = getattr(self.library, f"{self.source.name}_{name}")
        result.restype = {"load": ctypes.c_int}.get(
            name, ctypes.c_int64 if name in ("run", "step", "prepare") else None
        )
        call: Callable[..., Any] = result
        return call

    def glue(self, name: str) -> Callable[..., Any]:
        """Function of `glue.py`."""
        result: Callable[..., Any] = getattr(self.library, f"{self.source.name}_glue_{name}")
        return result

    def init(self, *start: Any) -> Arrays:
        """First state from the first decisions."""
        struct = self._space()
        first = [_array(v, Type(DType.FLOAT, f.type.shape)) for v, f in zip(start, self.program.decision)]
        self._function("init")(ctypes.byref(struct), *map(_pointer, first))
        return self._state(struct)

    def prepare(self, *values: Any) -> Arrays:
        """State that knows the context of its round, from the state and the context. Raises NotFinite."""
        struct, context = self._struct(values)
        self.prepare_at(struct, context)
        return self._state(struct)

    def prepare_at(self, struct: ctypes.Structure, context: Sequence[Any]) -> None:
        """Give the state in a struct the context of its round. Raises NotFinite, and the struct is then unchanged."""
        given, _kept = _given(context, self.program.known)
        if wrong := self._function("prepare")(ctypes.byref(struct), *given):
            raise NotFinite(self.program.state[-wrong - 1].name)

    def decide(self, *values: Any) -> Arrays:
        """Decisions from the state and the random draws."""
        return self.decide_at(*self._struct(values))

    def decide_at(self, struct: ctypes.Structure, draws: Sequence[Any]) -> Arrays:
        """Decisions of the state in a struct."""
        given, _kept = _given(draws, self.program.draws)
        fields = self.program.decision
        results = self._results("decide", [ctypes.byref(struct), *given], [f.type.shape for f in fields])
        with np.errstate(all="ignore"):
            items: Arrays = finite([f.name for f in fields], results)
        return items

    def update(self, *values: Any) -> Arrays:
        """State after the round, from the state, the inputs and the random draws. Raises NotFinite."""
        struct, rest = self._struct(values)
        count = len(self.program.feedback)
        self.step_at(struct, rest[:count], rest[count:])
        return self._state(struct)

    def step_at(self, struct: ctypes.Structure, data: Iterable[Any], draws: Sequence[Any] = ()) -> None:
        """Advance the state in a struct by a round; of its data, what rounds leave to the next is that in the struct. Raises NotFinite, and
        the struct is then unchanged.
        """
        given, _kept = _given([*self._revealed(data), *draws], [*self.program.revealed, *self.program.draws])
        if wrong := self._function("step")(ctypes.byref(struct), *given):
            raise NotFinite(self.program.state[-wrong - 1].name)

    def save_at(self, struct: ctypes.Structure) -> bytes:
        """Bytes of a saved learner (`state.py`), which emitted C of this plan reads too."""
        room = (ctypes.c_ubyte * self.source.state_size)()
        self._function("save")(ctypes.byref(struct), room)
        return bytes(room)

    def load_at(self, struct: ctypes.Structure, saved: bytes) -> bool:
        """Set a struct to what `save_at` gave; False where that is damaged or another learner's, and nothing is changed then."""
        return not self._function("load")(ctypes.byref(struct), saved, ctypes.c_int64(len(saved)))

    def measure(self, *values: Any) -> Arrays:
        """Loss, g and h, from the round, the decisions and the data."""
        struct, program, count = self._space(), self.program, 1 + len(self.program.decision)
        decisions, data = values[1:count], values[count:]
        named = dict(zip((f.name for f in program.feedback), data, strict=True))
        self._put(struct, {own: named[name] for name, own in program.previous})
        setattr(struct, self.number, int(values[0]))
        given, _kept = _given([*decisions, *self._revealed(data)], [*program.decision, *program.revealed])
        return self._results("measure", [ctypes.byref(struct), *given], self.measured)

    def _revealed(self, data: Iterable[Any]) -> list[Any]:
        """Values of a round's data that functions take: all but those in the struct."""
        own = dict(self.program.previous)
        return [value for f, value in zip(self.program.feedback, data, strict=True) if f.name not in own]

    def run(
        self, state: Sequence[Any], inputs: Sequence[Any], draws: Sequence[Any], rounds: int, keep: Collection[str]
    ) -> Recorded:
        """Play many rounds in one call; inputs are those of `Program.revealed`, and arrays of float64 in row order are not copied."""
        struct, _ = self._struct(state)
        recorded = self.run_at(struct, inputs, draws, rounds, keep)
        return replace(recorded, state=self._state(struct))

    def run_at(
        self,
        struct: ctypes.Structure,
        inputs: Sequence[Any],
        draws: Sequence[Any],
        rounds: int,
        keep: Collection[str],
    ) -> Recorded:
        """Play many rounds on the state in a struct; the result does not contain the state."""
        fields = [*self.program.revealed, *self.program.draws]
        arrays: list[Array] = [
            np.ascontiguousarray(a, dtype=KINDS[f.type.dtype]).reshape(rounds, *f.type.shape)
            for a, f in zip([*inputs, *draws], fields, strict=True)
        ]
        wanted, fields_of = (
            self._wanted(keep),
            {f"after_{m}": f"after_{f.name}" for m, f in zip(self.members, self.program.state)},
        )
        kept: dict[str, Array] = {
            name: np.empty((rounds, *shape), dtype=KINDS[kind]) for name, (kind, shape) in wanted.items()
        }
        record = self.record_layout(**{name: _pointer(array).value for name, array in kept.items()})
        played = self._function("run")(
            ctypes.byref(struct), ctypes.c_int64(rounds), *map(_pointer, arrays), ctypes.byref(record)
        )
        return Recorded(played, (), {fields_of.get(n, n): a[:played] for n, a in kept.items()})

    def _wanted(self, keep: Collection[str]) -> Mapping[str, tuple[DType, tuple[int, ...]]]:
        """Requested arrays of the record: "decisions", "loss", ..., "after_FIELD"; kinds and shapes of a round's part."""
        total = sum(_size(f.type) for f in self.program.decision)
        results: dict[str, tuple[DType, tuple[int, ...]]] = {"decisions": (DType.FLOAT, (total,))}
        results |= {n: (DType.FLOAT, shape) for n, shape in zip(("loss", "constraints", "equalities"), self.measured)}
        for member, f in zip(self.members[1:], self.program.state[1:]):
            if f"after_{f.name}" in keep:
                results[f"after_{member}"] = (f.type.dtype, f.type.shape)
        return {n: v for n, v in results.items() if n in keep or n.startswith("after_")}

    def _results(self, function: str, args: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Arrays:
        """Call a function that writes its results through pointers."""
        outs = [np.empty(shape) for shape in shapes]
        self._function(function)(*args, *map(_pointer, outs))
        return tuple(o[()] for o in outs)

    def _space(self) -> ctypes.Structure:
        """Empty struct. Pages that are not written take no memory."""
        return self.layout.from_buffer(np.empty(-(-ctypes.sizeof(self.layout) // 8)).data)

    def _struct(self, values: Sequence[Any]) -> tuple[ctypes.Structure, Sequence[Any]]:
        """Struct with the state among the values, and the remaining values."""
        struct, fields = self._space(), self.program.state
        self._put(struct, dict(zip((f.name for f in fields), values)))
        return struct, values[len(fields) :]

    def _put(self, struct: ctypes.Structure, values: Mapping[str, Any]) -> None:
        """Set fields of the state in a struct."""
        for member, f in zip(self.members, self.program.state):
            if f.name not in values:
                continue
            value = values[f.name]
            if f.type.shape:
                array = _array(value, f.type)
                ctypes.memmove(ctypes.addressof(getattr(struct, member)), array.ctypes.data, array.nbytes)
            else:
                setattr(struct, member, value.item() if hasattr(value, "item") else value)

    def _state(self, struct: ctypes.Structure) -> Arrays:
        values: list[Any] = []
        for name, f in zip(self.members, self.program.state):
            result = getattr(struct, name)
            if f.type.shape:
                entries: Array = np.frombuffer(result, KINDS[f.type.dtype], _size(f.type))
                values.append(np.array(entries).reshape(f.type.shape))
            else:
                values.append(KINDS[f.type.dtype](result))
        return tuple(values)


def _size(made: Type) -> int:
    return math.prod(made.shape)


def _array(value: Any, made: Type) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(value, dtype=KINDS[made.dtype]).reshape(made.shape)


def _pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _given(values: Sequence[Any], fields: Sequence[Field]) -> tuple[list[Any], list[Any]]:
    """Arguments for C: numbers, and pointers to arrays; and the arrays, which must live as long as the pointers."""
    given, kept = list[Any](), list[Any]()
    for value, f in zip(values, fields, strict=True):
        if not f.type.shape:
            given.append(_NUMBERS[f.type.dtype](value.item() if hasattr(value, "item") else value))
            continue
        kept.append(_array(value, f.type))
        given.append(_pointer(kept[-1]))
    return given, kept


def _layout(program: Program, source: CSource) -> type[ctypes.Structure]:
    """Struct of the header for ctypes."""
    fields: list[tuple[str, Any]] = []
    for (name, made), _ in zip(source.interface.members(), program.state):
        kind: Any = _NUMBERS[made.dtype]
        fields.append((name, kind * max(_size(made), 1) if made.shape else kind))
    fields.append((source.interface.decided, ctypes.c_int64))
    if source.interface.work:
        fields.append(("work", ctypes.c_double * source.interface.work))
    return type("Struct", (ctypes.Structure,), {"_fields_": fields})


def _record_layout(source: CSource) -> type[ctypes.Structure]:
    fields = [(name, ctypes.c_void_p) for name, _, _ in source.interface.record()]
    return type("Record", (ctypes.Structure,), {"_fields_": fields})
