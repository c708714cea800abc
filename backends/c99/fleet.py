"""Fleet in C: learners in blocks that are stepped together, the blocks in one call a thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from oco.backends.arguments import generator
from oco.backends.base import Compiled
from oco.backends.c99.build import fleet_library
from oco.backends.c99.fleet_source import FleetSource, emit_fleet
from oco.backends.c99.learner import NativeLearner
from oco.backends.c99.vectors import is_vector, without_lanes
from oco.backends.contract import Contract
from oco.backends.fleet import Array, Fleet, FleetFeedback
from oco.backends.past_horizon import epochs_after
from oco.backends.python.intake import NotFinite
from oco.compiler.ir.program import PLACE, DType, Type
from oco.compiler.ir.verifier import KINDS
from oco.compiler.lowering.restarts import EPOCH
from oco.dsl.diagnostics import OcoError, fail


@lru_cache(maxsize=8)
def _source(compiled: Compiled, contract: Contract, skip: tuple[str, ...]) -> FleetSource:
    """Source of the fleets of a program, which all that take turns share."""
    return emit_fleet(replace(compiled.program, certificate=None), contract, skip)


class NativeFleet(Fleet):
    """Fleet of learners that share nothing, so that threads need not wait for each other. `skip` names passes of
    `PASSES` to leave out.
    """

    writes_all = True

    def __init__(
        self,
        compiled: Compiled,
        contract: Contract,
        size: int,
        *,
        start: Any = None,
        seeds: Sequence[int] | None = None,
        workers: int = 1,
        timeout: float | None = 0.0,
        skip: Collection[str] = (),
    ) -> None:
        self._skip = skip
        self._last: tuple[dict[str, Array], dict[str, Array]] | None = None
        self._lay_out(compiled, contract, size)
        blocks = len(self._blocks)
        parts = min(max(workers, 1), blocks)
        self._ranges = [(k * blocks // parts, (k + 1) * blocks // parts) for k in range(parts)]
        self._pool = ThreadPoolExecutor(parts) if parts > 1 else None
        self._drawn: tuple[int, list[Array]] | None = None
        self._skipped = 0
        super().__init__(compiled, contract, size, start=start, seeds=seeds, timeout=timeout)

    def _lay_out(self, compiled: Compiled, contract: Contract, size: int) -> None:
        """Library of a program for blocks of learners, and memory for the blocks."""
        source = _source(compiled, contract, tuple(self._skip))
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
        self._following = np.zeros(blocks, self._block)  # the states after this round, until all of them are there

    def _make(self, starts: list[dict[str, Array]], seeds: list[int]) -> None:
        """First states: a single one, if all learners start at the same decisions."""
        program, contract = self.compiled.program, self.contract
        firsts = starts if any(starts) else starts[:1]
        states = [NativeLearner(self.compiled, contract, start=start or None).values for start in firsts]
        self._fill({f.name: np.stack([s[f.name] for s in states]) for f in program.state})
        self._random = [generator(seed) for seed in seeds]
        assert program.measure is not None
        self._counts = [int(np.prod(r.type.shape)) for r in program.measure.body.results[1:]]

    def _fill(self, values: Mapping[str, Array]) -> None:
        """Set the states: values by field with the learner first, one for all or one for each."""
        for (member, made), field in zip(self._members, self.compiled.program.state):
            rows = values[field.name]
            if self._lanes > 1:
                self._blocks[member] = self._in_blocks(rows) if self._has_lanes(made, field.type) else rows[0]
            else:
                self._blocks[member] = rows

    def _pass_horizon(self) -> None:
        """Go over to the epochs after the horizon: the blocks of their program, and its last round played there."""
        if self._last is None:
            return
        (values, streams), self._last = self._last, None
        length = self.round - 1
        if (after := epochs_after(self.compiled, self.contract)) is not None:
            self.compiled, self.contract = after
            self._lay_out(*after, self.size)
            self._fill({**values, EPOCH: np.full(self.size, float(length))})
            self._stepped(streams)

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

    def _decisions(self) -> list[Array]:
        return self._decided_with(self._draws())

    def _second_points(self) -> list[Array]:
        return self._decided_with([-a for a in self._draws()])

    def _decided_with(self, draws: Sequence[Array]) -> list[Array]:
        """Decisions of all learners with these random arrays."""
        outs = self._empty_decisions()
        unread = [np.empty(0) for _ in self.compiled.program.feedback]
        if wrong := self._each("fleet_decide", [_pointers([*unread, *draws]), _pointers(outs)]):
            raise self._not_finite(wrong)
        return outs

    def _leave_out(self) -> None:
        self._drawn = None
        self._skipped += 1

    def value(self, name: str) -> Array:
        """Field of the states of all learners, the learner first."""
        of_one = next(f.type for f in self.compiled.program.state if f.name == name)
        member = self._member(name)
        return self._by_learner(member, of_one, dict(self._members)[member])

    def _take_place(self, place: int, count: int) -> None:
        """Take a place among fleets in turn."""
        if self.compiled.program.shared:
            self._blocks[self._member(PLACE)] = place + count * self._skipped

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

    def _draws(self) -> list[Array]:
        """Algorithm's own random arrays of this round, drawn once, by each learner from its own seed."""
        if self._drawn is None or self._drawn[0] != self.round:
            before = [random.bit_generator.state for random in self._random] if self.compiled.program.draws else []
            try:
                self._drawn = self.round, self._drawn_anew()
            except BaseException:  # an interruption takes nothing from the generators
                for random, state in zip(self._random, before):
                    random.bit_generator.state = state
                raise
        return self._drawn[1]

    def _drawn_anew(self) -> list[Array]:
        fields, distributions = self.compiled.program.draws, self.contract.distributions
        drawn = [np.empty((self.size, *f.type.shape)) for f in fields]
        for k, random in enumerate(self._random if fields else ()):
            for f, array in zip(fields, drawn):
                normal = distributions.get(f.name, "uniform") == "normal"
                array[k] = random.normal(size=f.type.shape) if normal else random.random(f.type.shape)
        return drawn

    def _stepped(self, streams: Mapping[str, Array]) -> FleetFeedback:
        values = [streams[name] for name in self._inputs]
        kinds = [KINDS[f.type.dtype] for f in self.compiled.program.feedback]
        arrays = [
            np.ascontiguousarray(v, dtype=kind) if v.dtype != kind else np.ascontiguousarray(v)
            for v, kind in zip(values, kinds)
        ]
        if any(a.dtype.kind == "i" and v.dtype.kind == "f" and (a != v).any() for a, v in zip(arrays, values)):
            self._explain(values)
        loss = np.empty(self.size)
        g, h = (np.empty((self.size, count)) for count in self._counts)
        now, decisions = self.round, self._empty_decisions() if self._lanes == 1 else []
        if now == self.contract.horizon and self.contract.continued is not None:
            self._last = self._kept(), {n: np.array(a) for n, a in zip(self._inputs, arrays)}
        given = [_pointers([*arrays, *self._draws()]), _pointers(decisions)]
        if wrong := self._each("fleet_step", [*given, *map(_address, (loss, g, h, self._following))]):
            self._explain(values)
            raise self._not_finite(wrong, arrays)
        self._blocks, self._following = self._following, self._blocks
        return FleetFeedback(now, loss, g, h)

    def _explain(self, values: list[Array]) -> None:
        """Raise the error of a single learner for the first wrong row."""
        probe = NativeLearner(self.compiled, self.contract)
        for k in range(self.size):
            self._checked(k, probe, {name: v[k] for name, v in zip(self._inputs, values)})

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

    def _not_finite(self, wrong: int, values: Sequence[Array] | None = None) -> OcoError:
        """Error that names the learner of a block whose decision, or state after the round of `values`, is not finite."""
        first = (wrong - 1) * self._lanes
        block = range(first, min(first + self._lanes, self.size))
        who = next((who for k in block if (who := self._overflows(k, values))), None)
        if who is None:  # alone its numbers are rounded otherwise, and just finite
            who = f"the numbers of learner {first}, or of one up to {block[-1]}, would not be finite"
        return fail(
            "OCO859",
            f"in round {self.round} {who}; all learners are as before",
            hint="give settings of another size where they are given by hand, or the streams in other units",
        )

    def _overflows(self, k: int, values: Sequence[Array] | None) -> str | None:
        """Description of the value of a learner that would not be finite if it played this round alone; None where all
        are.
        """
        state, draws = [v[k] for v in self.values.values()], [d[k] for d in self._draws()]
        what = "decision"
        try:
            self.compiled.decide(*state, *draws)
            what = "state after it"
            if values is not None:
                self.compiled.update(*state, *(v[k] for v in values), *draws)
        except NotFinite as error:
            return f"the {what} of learner {k} would not be finite: {error.name} overflows"
        return None

    def _map(self, part: Callable[[int, int], Any], ranges: list[tuple[int, int]]) -> list[Any]:
        if self._pool is None:
            return [part(*r) for r in ranges]
        given = [self._pool.submit(part, *r) for r in ranges]
        try:
            return [future.result() for future in given]
        finally:
            wait(given)  # after an interruption too: what still runs writes into the memory of the next call


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _pointers(arrays: list[Array]) -> Any:
    """Addresses of several arrays, as one array for C; the arrays must outlive it."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
