"""A fleet in C: the structs of all learners side by side, stepped by one call a thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.c99.learner import NativeLearner
from oco.backends.contract import Contract
from oco.backends.fleet import Array, Fleet, FleetFeedback
from oco.compiler.ir.check import KINDS
from oco.compiler.ir.program import Field


class NativeFleet(Fleet):
    """Learners that share nothing, so that threads need not wait for each other."""

    def __init__(
        self,
        compiled: Compiled,
        contract: Contract,
        size: int,
        *,
        start: Any = None,
        seeds: Sequence[int] | None = None,
        workers: int = 1,
    ) -> None:
        self._native = compiled.native
        self._memory = np.zeros((size, -(-ctypes.sizeof(self._native.layout) // 8)))
        parts = min(max(workers, 1), max(size, 1))
        self._ranges = [(k * size // parts, (k + 1) * size // parts) for k in range(parts)]
        self._pool = ThreadPoolExecutor(parts) if parts > 1 else None
        super().__init__(compiled, contract, size, start=start, seeds=seeds)

    def _make(self, starts: list[dict[str, Array]], seeds: list[int]) -> None:
        """One learner checks the starts; its struct is copied."""
        program = self.compiled.program
        first: bytes | None = None
        for k, start in enumerate(starts):
            if first is None or start:
                first = NativeLearner(self.compiled, self.contract, start=start or None).memory()
            self._memory[k] = np.frombuffer(first)
        self._views = [self._view(m, f) for m, f in zip(self._native.members, program.state)]
        assert program.measure is not None
        self._counts = [int(np.prod(r.type.shape)) for r in program.measure.body.results[1:]]

    def _view(self, member: str, field: Field) -> Array:
        """A field of all structs as one array, with the learner first."""
        offset = getattr(self._native.layout, member).offset
        size = int(np.prod(field.type.shape, dtype=np.int64)) * np.dtype(KINDS[field.type.dtype]).itemsize
        part = self._memory.view(np.uint8)[:, offset : offset + size]
        if size == 0:
            return np.zeros((self.size, *field.type.shape))
        strides = (self._memory.strides[0], *np.empty(field.type.shape, KINDS[field.type.dtype]).strides)
        shape = (self.size, *field.type.shape)
        return np.lib.stride_tricks.as_strided(part[:, :8].view(KINDS[field.type.dtype])[:, 0], shape, strides)

    @property
    def round(self) -> int:
        """The round that `decide` answers now, from 1."""
        return int(self._views[0][0])

    @property
    def values(self) -> dict[str, Array]:
        """What all learners keep, by the paper's symbols."""
        return {f.name: np.array(v) for f, v in zip(self.compiled.program.state, self._views)}

    def decide(self) -> Any:
        """The decisions of this round, (n, *shape); a dict of them if the model has several."""
        outs = self._empty_decisions()
        self._each("fleet_decide", [_pointers(outs)])
        if len(self._names) == 1:
            return outs[0]
        return dict(zip(self._names, outs))

    def _empty_decisions(self) -> list[Array]:
        return [np.empty((self.size, *f.type.shape)) for f in self.compiled.program.decision]

    def _stepped(self, values: list[Array]) -> FleetFeedback:
        kinds = [KINDS[f.type.dtype] for f in self.compiled.program.feedback]
        arrays = [
            np.ascontiguousarray(v, dtype=kind) if v.dtype != kind else np.ascontiguousarray(v)
            for v, kind in zip(values, kinds)
        ]
        if any(a.dtype.kind == "i" and v.dtype.kind == "f" and (a != v).any() for a, v in zip(arrays, values)) or any(
            self._each("fleet_check", [_pointers(arrays)])
        ):
            self._explain(values)
        loss = np.empty(self.size)
        g, h = (np.empty((self.size, count)) for count in self._counts)
        now = self.round
        decisions = self._empty_decisions()
        self._each("fleet_step", [_pointers(arrays), _pointers(decisions), *map(_address, (loss, g, h))])
        return FleetFeedback(now, loss, g, h)

    def _explain(self, values: list[Array]) -> None:
        """Raise what a single learner says of the first wrong row."""
        probe = NativeLearner(self.compiled, self.contract)
        for k in range(self.size):
            self._checked(k, probe, {name: v[k] for name, v in zip(self._inputs, values)})

    def _each(self, name: str, args: list[Any]) -> list[int]:
        """A glue function over all learners, a part a thread; what each part returns."""
        function: Callable[..., int] = self._native.glue(name)
        function.restype = ctypes.c_int64  # type: ignore[attr-defined]
        memory = _address(self._memory)

        def part(bounds: tuple[int, int]) -> int:
            return function(memory, ctypes.c_int64(bounds[0]), ctypes.c_int64(bounds[1]), *args)

        return [part(b) for b in self._ranges] if self._pool is None else list(self._pool.map(part, self._ranges))


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _pointers(arrays: list[Array]) -> Any:
    """The addresses of several arrays, as one array for C."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
