"""A learner whose state lies in the struct of its compiled program; plain rounds never leave C."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from oco.backends.base import Compiled, Recorded
from oco.backends.c99.build import stepper
from oco.backends.contract import Contract
from oco.backends.learner import Learner
from oco.compiler.ir.check import KINDS
from oco.compiler.ir.program import DType, Field

_CODES = {DType.FLOAT: "d", DType.INT: "q", DType.BOOL: "b"}


class NativeLearner(Learner):
    """Like any learner. Rounds that need words (wrong data, the end of the horizon, a journal) take the way through Python."""

    def __init__(self, compiled: Compiled, contract: Contract, **options: Any) -> None:
        native = compiled.native
        self._quick: Any = None
        self._memory = np.zeros(-(-ctypes.sizeof(native.layout) // 8))
        self._views = [self._view(getattr(native.layout, m), f) for m, f in zip(native.members, compiled.program.state)]
        super().__init__(compiled, contract, **options)
        self._quicken()

    def _view(self, member: Any, field: Field) -> np.ndarray[Any, Any]:
        """A field of the struct as an array over its memory."""
        size = int(np.prod(field.type.shape, dtype=np.int64))
        part = self._memory.view(np.uint8)[
            member.offset : member.offset + size * np.dtype(KINDS[field.type.dtype]).itemsize
        ]
        return part.view(KINDS[field.type.dtype]).reshape(field.type.shape)

    def _quicken(self) -> None:
        """Put C in the place of `decide` and `observe`, where that is possible."""
        program, native = self.compiled.program, self.compiled.native
        quick = stepper()
        if quick is None or program.measure is None or program.draws or program.factored:
            return
        addresses = [ctypes.cast(native.glue(name), ctypes.c_void_p).value for name in ("decide", "observe", "measure")]
        horizon = -1 if self.contract.horizon is None else self.contract.horizon
        inputs = tuple((f.name, _CODES[f.type.dtype], f.type.shape) for f in program.feedback)
        decisions = tuple((f.name, "d", f.type.shape) for f in program.decision)
        counts = [int(np.prod(r.type.shape)) for r in program.measure.body.results[1:]]
        words = partial(Learner.decide, self), partial(Learner.observe, self), partial(Learner.look, self)
        self._quick = quick(self._memory, *words, *addresses, inputs, decisions, horizon, *counts)
        self.__dict__.update(decide=self._quick.decide, observe=self._quick.observe)

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """While Python is at work, calls of the quick way go through Python as well."""
        with super()._owned():
            if self._quick is None or self._quick.busy:
                yield
                return
            self._quick.busy = True
            try:
                yield
            finally:
                self._quick.busy = self.journal is not None

    def memory(self) -> bytes:
        """The struct as bytes."""
        return self._memory.tobytes()

    # The state, in the struct.

    @property
    def _state(self) -> tuple[Any, ...]:
        return tuple(v.copy()[()] for v in self._views)

    @_state.setter
    def _state(self, values: tuple[Any, ...]) -> None:
        for view, value in zip(self._views, values, strict=True):
            view[...] = value

    def advance(self, inputs: Sequence[Any], rounds: int, keep: Collection[str]) -> Recorded:
        """As of any learner, on the struct where it lies."""
        if self.compiled.program.draws or self.journal is not None:
            return super().advance(inputs, rounds, keep)
        with self._owned():
            first, native = self.round, self.compiled.native
            recorded: Recorded = native.run_at(native.layout.from_buffer(self._memory), inputs, (), rounds, keep)
            self._decided = None
            self._see_horizon(first, first + recorded.rounds - 1)
            return recorded

    def decisions(self) -> tuple[Any, ...]:
        with self._said("the decision"):
            return self.compiled.decide(*self._state, *self._random_arrays())

    @property
    def round(self) -> int:
        """The round that `decide` answers now, from 1."""
        return int(self._views[0])

    def value(self, name: str) -> Any:
        """One field of the state."""
        return self._views[self._places[name]].copy()[()]
