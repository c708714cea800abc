"""Fleet in NumPy: learners in batches, each operation on all learners of a batch, which come last in its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.contract import Contract, Range
from oco.backends.fleet import Array, Fleet
from oco.backends.python.executed import executed, watched
from oco.backends.python.intake import NotFinite
from oco.backends.python.module import rule_text
from oco.backends.stacked_fleet import StackedFleet
from oco.compiler.ir.batching import batch
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.mapping import learners_go_together
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import NUMBER, ROUND, Program

FEWEST = 32
"""Learners from which batches take less time than one learner after the other."""
MOST = 1 << 14
"""Learners of a batch, beyond which calls cost next to nothing: the last turns of a loop, for few of them, are paid once a batch."""
ENTRIES = 1 << 20
"""Entries of the largest input or field of a batch: its arrays take some megabytes."""
FINITE = np.finfo(np.float64).max
State = tuple[Any, ...]


def goes_in_batches(program: Program, size: int) -> bool:
    """True where a fleet of so many learners takes less time in batches."""
    alone = program.measure is not None and not program.context and program.prepare is None
    alone &= program.numbered_by == ROUND
    return size >= FEWEST and alone and not program.factored and learners_go_together(program)


class BatchedFleet(StackedFleet):
    """Fleet whose rule is that of `batch(program, lanes)`, called for one batch after the other in one thread."""

    def _lay_out(self, compiled: Compiled, contract: Contract, size: int) -> None:
        program = replace(compiled.program, certificate=None, slopes=None)
        largest = max((prod(f.type.shape) for f in (*program.feedback, *program.state)), default=1)
        most = max(FEWEST, min(MOST, ENTRIES // max(largest, 1)))
        self._lanes = -(-size // -(-size // most))
        together = batch(program, LANE, leaving=True)
        assert together.measure is not None
        entries = (together.decide, together.measure, together.update)
        made = executed(together, rule_text(shorten(together), entries), entries)
        state, decision = ([f.name for f in fields] for fields in (program.state, program.decision))
        self._decide, self._measure = watched(made["decide"], decision), made["measure"]
        self._update = watched(made["update"], state, of_state=True)
        self._each = [f.type.shape != one.type.shape for f, one in zip(together.state, program.state)]
        ranges = [contract.ranges.get(f.name, Range()) for f in program.revealed]
        self._bounds = [(np.maximum(r.lower, -FINITE), np.minimum(r.upper, FINITE)) for r in ranges]
        self._batches: list[State] = []

    def _fill(self, values: Mapping[str, Array]) -> None:
        fields = list(zip(self.compiled.program.state, self._each))
        self._batches = [
            tuple(self._batch(values[f.name], k) if each else values[f.name][0] for f, each in fields)
            for k in range(-(-self.size // self._lanes))
        ]

    def _batch(self, rows: Array, k: int) -> Array:
        """Values with the learner first, (1 or n, *shape), as those of batch k, (*shape, lanes), padded with the last learner's."""
        if len(rows) == 1:
            return np.repeat(np.moveaxis(rows, 0, -1), self._lanes, axis=-1)
        own = rows[k * self._lanes : (k + 1) * self._lanes]
        if len(own) < self._lanes:
            own = np.concatenate([own, np.repeat(own[-1:], self._lanes - len(own), axis=0)])
        return np.ascontiguousarray(np.moveaxis(own, 0, -1))

    def _kept(self) -> dict[str, Array]:
        return {f.name: self.value(f.name) for f in self.compiled.program.state}

    def value(self, name: str) -> Array:
        """Field of the states of all learners, the learner first."""
        place = self._place(name)
        if self._each[place]:
            return self._joined([state[place] for state in self._batches])
        return np.full(self.size, self._batches[0][place])

    def _place(self, name: str) -> int:
        return next(k for k, f in enumerate(self.compiled.program.state) if f.name == name)

    def _joined(self, parts: Sequence[Array]) -> Array:
        """Values of all learners, the learner first, from those of batches."""
        joined: Array = np.concatenate([np.moveaxis(part, -1, 0) for part in parts])
        return joined[: self.size]

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._batches[0][0])

    def _set(self, place: int, values: Sequence[Any]) -> None:
        """Set a field of the state, by its place, to values by batch."""
        self._batches = [(*s[:place], v, *s[place + 1 :]) for s, v in zip(self._batches, values, strict=True)]

    def _take_place(self, place: int, count: int) -> None:
        """Number this round as that of the fleet at a place among those in turn."""
        if self.compiled.program.numbers:
            own = np.full(self._lanes, place + 1 + count * (self.round - 1 + self._left_out))
            self._set(self._place(NUMBER), [own] * len(self._batches))

    def _learn_from(self, other: Fleet) -> None:
        """Take what fleets in turn have in common."""
        assert isinstance(other, BatchedFleet)
        for place in map(self._place, self.compiled.program.shared):
            self._set(place, [state[place] for state in other._batches])

    def _in_turn(self, *arrays: Sequence[Array]) -> Iterator[tuple[int, State, list[list[Array]]]]:
        """Iterate over the batches: the number, the state, and lists of arrays of its learners from those of all."""
        for k, state in enumerate(self._batches):
            yield k, state, [[self._batch(rows, k) for rows in each] for each in arrays]

    def _decided_with(self, draws: Sequence[Array]) -> list[Array]:
        parts = []
        for k, state, (drawn,) in self._in_turn(draws):
            try:
                parts.append(self._decide(*state, *drawn))
            except NotFinite:
                raise self._not_finite(self._learners_of(k)) from None
        return [self._joined(same) for same in zip(*parts)]

    def _played(self, arrays: Sequence[Array], given: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Play a round: states take the place of those before once all batches have theirs."""
        if not all(((low <= a) & (a <= high)).all() for a, (low, high) in zip(arrays, self._bounds)):
            self._explain(given)
        measured, after, program = [], [], self.compiled.program
        names = [f.name for f in program.state]
        for k, state, (inputs, drawn) in self._in_turn(arrays, self._draws()):
            try:
                decided = self._decide(*state, *drawn)
                data = program.data(dict(zip(names, state)), inputs)
                after.append(self._update(*state, *data, *drawn))
            except NotFinite:
                raise self._not_finite(self._learners_of(k), arrays) from None
            with np.errstate(all="ignore"):
                measured.append(self._measure(state[0], *decided, *data))
        self._batches = after
        loss, g, h = (self._joined(same) for same in zip(*measured))
        return loss, g, h

    def _learners_of(self, k: int) -> range:
        """Learners of batch k."""
        return range(k * self._lanes, min((k + 1) * self._lanes, self.size))
