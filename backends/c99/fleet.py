"""Fleet in C: learners in blocks that are stepped together, the blocks in one call a thread."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.c99.build import fleet_library
from oco.backends.c99.fleet_source import emit_fleet
from oco.backends.c99.learner import NativeLearner
from oco.backends.c99.vectors import is_vector, without_lanes
from oco.backends.contract import Contract
from oco.backends.fleet import Array, Fleet
from oco.backends.round_work import work_of
from oco.backends.stacked_fleet import StackedFleet
from oco.compiler.ir.program import NUMBER, DType, Type
from oco.compiler.ir.verifier import KINDS

LEAST_WORK = 1 << 21
"""Additions in a round of the learners that a thread takes at a time, a tenth of a millisecond: asking for them takes less."""
TURNS = 8
"""Times that a thread takes learners in a round, so that one that begins late, or shares its core, leaves more of them to others."""


class NativeFleet(StackedFleet):
    """Fleet in the memory of C. Up to `workers` threads share the blocks, as many as have enough to do, each taking some as it comes to
    them; `skip` names passes of `PASSES` to leave out."""

    alone = NativeLearner

    def __init__(
        self,
        compiled: Compiled,
        contract: Contract,
        size: int,
        *,
        workers: int = 1,
        skip: Collection[str] = (),
        **options: Any,
    ) -> None:
        self._skip = skip
        self._workers = max(workers, 1)
        super().__init__(compiled, contract, size, **options)

    def _lay_out(self, compiled: Compiled, contract: Contract, size: int) -> None:
        """Library of a program for blocks of learners, and memory for the blocks."""
        source = emit_fleet(replace(compiled.program, certificate=None), contract, self._skip)
        self._lanes, self._name = source.lanes, source.name
        self._library = fleet_library(source)
        self._members = source.block.members()
        self._block = np.dtype(
            [(name, self._kind(made.dtype), self._shape(made)) for name, made in self._members]
            + ([("work", np.float64, (source.block.rule_work,))] if source.block.rule_work else []),
            align=True,
        )
        blocks = -(-max(size, 1) // self._lanes)
        self._blocks = np.zeros(blocks, self._block)
        most = int(size * work_of(compiled.program).additions) // LEAST_WORK
        parts = min(TURNS * self._workers, blocks, max(1, most)) if self._workers > 1 else 1
        self._ranges = [(k * blocks // parts, (k + 1) * blocks // parts) for k in range(parts)]
        self._helping = min(self._workers, parts) - 1
        self._pool = ThreadPoolExecutor(self._helping) if self._helping else None

    def _fill(self, values: Mapping[str, Array]) -> None:
        """Set the states: values by field with the learner first, one for all or one for each."""
        for (member, made), field in zip(self._members, self.compiled.program.state):
            rows = values[field.name]
            if self._lanes > 1:
                self._blocks[member] = self._in_blocks(rows) if self._has_lanes(made, field.type) else rows[0]
            else:
                self._blocks[member] = rows

    def _kind(self, dtype: DType) -> type[np.generic]:
        """Element type of a field; truth values of a block are as wide as numbers."""
        return np.int64 if dtype is DType.BOOL and self._lanes > 1 else KINDS[dtype]

    def _shape(self, made: Type) -> tuple[int, ...]:
        return (*without_lanes(made.shape), self._lanes) if is_vector(made) else made.shape

    def _has_lanes(self, made: Type, of_one: Type) -> bool:
        """True where a field has a value for each learner of a block; the round is shared."""
        return made.shape != of_one.shape

    def _in_blocks(self, rows: Array) -> Array:
        """Values with the learner first, (1 or n, *shape), as (blocks, *shape, lanes); the last block is padded with
        the last learner's.
        """
        if len(rows) == 1:
            shared: Array = rows[0][..., None]
            return shared
        wanted = np.minimum(np.arange(len(self._blocks) * self._lanes), len(rows) - 1)
        return np.moveaxis(rows[wanted].reshape(-1, self._lanes, *rows.shape[1:]), 1, -1)

    def _by_learner(self, name: str, of_one: Type, made: Type) -> Array:
        """Field of all learners, the learner first."""
        result: Array = self._blocks[name]
        if not self._has_lanes(made, of_one):
            return np.repeat(result, self._lanes, axis=0)[: self.size]
        return np.moveaxis(result, -1, 1).reshape(-1, *of_one.shape)[: self.size].copy()

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._blocks[self._members[0][0]][0])

    def _kept(self) -> dict[str, Array]:
        fields = self.compiled.program.state
        return {f.name: self._by_learner(name, f.type, made) for f, (name, made) in zip(fields, self._members)}

    def _decided_with(self, draws: Sequence[Array]) -> list[Array]:
        """Decisions of all learners with these random arrays."""
        outs = self._empty_decisions()
        unread = [np.empty(0) for _ in self.compiled.program.revealed]
        if wrong := self._each("fleet_decide", [_pointers([*unread, *draws]), _pointers(outs)]):
            raise self._not_finite(self._learners_of(wrong))
        return outs

    def value(self, name: str) -> Array:
        """Field of the states of all learners, the learner first."""
        of_one = next(f.type for f in self.compiled.program.state if f.name == name)
        member = self._member(name)
        return self._by_learner(member, of_one, dict(self._members)[member])

    def _take_place(self, place: int, count: int) -> None:
        """Number this round as that of the fleet at a place among those in turn."""
        if self.compiled.program.numbers:
            self._blocks[self._member(NUMBER)] = place + 1 + count * (self.round - 1 + self._left_out)

    def _learn_from(self, other: Fleet) -> None:
        """Take what fleets in turn have in common."""
        assert isinstance(other, NativeFleet)
        for name in self.compiled.program.shared:
            member = self._member(name)
            self._blocks[member] = other._blocks[member]

    def _member(self, name: str) -> str:
        """Member of a block with a field of the state."""
        pairs = zip(self.compiled.program.state, self._members)
        return next(member for f, (member, _) in pairs if f.name == name)

    def _empty_decisions(self) -> list[Array]:
        return [np.empty((self.size, *f.type.shape)) for f in self.compiled.program.decision]

    def _played(self, arrays: Sequence[Array], given: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Play a round on a copy of the blocks, which takes their place once it is whole."""
        loss = np.empty(self.size)
        g, h = (np.empty((self.size, count)) for count in self._counts)
        following = np.empty_like(self._blocks)
        decisions = self._empty_decisions() if self._lanes == 1 else []
        pointers = [_pointers([*arrays, *self._draws()]), _pointers(decisions)]
        if wrong := self._each("fleet_step", [*pointers, *map(_address, (loss, g, h, following))]):
            self._explain(given)
            raise self._not_finite(self._learners_of(wrong), arrays)
        self._blocks = following
        return loss, g, h

    def _learners_of(self, wrong: int) -> range:
        """Learners of a block that C names: 1 + its number."""
        first = (wrong - 1) * self._lanes
        return range(first, min(first + self._lanes, self.size))

    def _each(self, name: str, args: list[Any]) -> int:
        """Call a function over all blocks, a part a thread: 0, or 1 + the first block in which it meets numbers that it
        refuses.
        """
        function = getattr(self._library, f"{self._name}_{name}")
        function.restype = ctypes.c_int64
        memory, size = _address(self._blocks), ctypes.c_int64(self.size)
        result = self._map(
            lambda a, b: function(memory, ctypes.c_int64(a), ctypes.c_int64(b), size, *args), self._ranges
        )
        return next((int(k) for k in result if k), 0)

    def _map(self, part: Callable[[int, int], Any], ranges: list[tuple[int, int]]) -> list[Any]:
        """Results of all parts, which this thread and those of the pool take in turn."""
        if self._pool is None:
            return [part(*r) for r in ranges]
        results: list[Any] = [None] * len(ranges)
        open_parts = deque(enumerate(ranges))

        def take() -> None:
            while True:
                try:
                    k, own = open_parts.popleft()
                except IndexError:
                    return
                results[k] = part(*own)

        given: list[Future[None]] = []
        try:
            given.extend(self._pool.submit(take) for _ in range(self._helping))
            take()
        finally:
            open_parts.clear()
            begun = [one for one in given if not one.cancel()]
            wait(begun)  # after an interruption too: what still runs writes into the memory of the next call
        for one in begun:
            one.result()
        return results


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _pointers(arrays: list[Array]) -> Any:
    """Addresses of several arrays, as one array for C; the arrays must outlive it."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
