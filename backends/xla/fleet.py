"""Fleet in JAX: the round of one learner under `jax.vmap` in blocks of learners, states in the memory of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from oco.backends.base import Compiled
from oco.backends.contract import Contract, Range
from oco.backends.fleet import Array, Fleet
from oco.backends.stacked_fleet import StackedFleet
from oco.backends.xla.rounds import all_finite
from oco.compiler.ir.program import NUMBER
from oco.compiler.ir.verifier import KINDS

FINITE = np.finfo(np.float64).max
LANES = 256
"""Learners of a block on a processor: its arrays stay in the cache, and loops end with the last of them. Accelerators take all."""


class MappedFleet(StackedFleet):
    """Fleet whose rounds are one call for all learners; it compiles for their number on the first.

    Fields of the states are arrays (blocks, lanes, *shape), the last block padded with the last learner's.
    """

    def _lay_out(self, compiled: Compiled, contract: Contract, size: int) -> None:
        made, fields = compiled.native, compiled.program.state
        self._places = {f.name: k for k, f in enumerate(fields)}
        ranges = [contract.ranges.get(f.name, Range()) for f in compiled.program.revealed]
        self._bounds = [(np.maximum(r.lower, -FINITE), np.minimum(r.upper, FINITE)) for r in ranges]
        self._blocks = -(-size // LANES) if jax.default_backend() == "cpu" else 1
        self._lanes = -(-size // self._blocks)
        self._decide = _by_blocks(_checked_decision(made["decide"]))
        self._step = _by_blocks(_checked_round(made["play_round"]))
        self._state: tuple[Any, ...] = ()

    def _fill(self, values: Mapping[str, Array]) -> None:
        with jax.enable_x64(True):
            self._state = tuple(
                jnp.asarray(
                    self._in_blocks(np.broadcast_to(values[f.name], (self.size, *f.type.shape))), KINDS[f.type.dtype]
                )
                for f in self.compiled.program.state
            )

    def _in_blocks(self, rows: Array) -> Array:
        """Values with the learner first, (n, *shape), as those of the blocks, (blocks, lanes, *shape)."""
        missing = self._blocks * self._lanes - self.size
        whole = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]) if missing else rows
        return whole.reshape(self._blocks, self._lanes, *rows.shape[1:])

    def _by_learner(self, values: Any) -> Array:
        """Values of the blocks with the learner first."""
        blocks = np.asarray(values)
        return np.array(blocks.reshape(self._blocks * self._lanes, *blocks.shape[2:])[: self.size])

    def _kept(self) -> dict[str, Array]:
        return {name: self.value(name) for name in self._places}

    def value(self, name: str) -> Array:
        """Field of the states of all learners, the learner first."""
        return self._by_learner(self._state[self._places[name]])

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._state[0][0, 0])

    def _set(self, name: str, values: Any) -> None:
        """Set a field of the states."""
        place = self._places[name]
        self._state = (*self._state[:place], values, *self._state[place + 1 :])

    def _take_place(self, place: int, count: int) -> None:
        """Number this round as that of the fleet at a place among those in turn."""
        if self.compiled.program.numbers:
            own = place + 1 + count * (self.round - 1 + self._left_out)
            with jax.enable_x64(True):
                self._set(NUMBER, jnp.full((self._blocks, self._lanes), own))

    def _learn_from(self, other: Fleet) -> None:
        """Take what fleets in turn have in common."""
        assert isinstance(other, MappedFleet)
        for name in self.compiled.program.shared:
            self._set(name, other._state[other._places[name]])

    def _decided_with(self, draws: Sequence[Array]) -> list[Array]:
        with jax.enable_x64(True):
            good, decided = self._decide(self._state, tuple(map(self._in_blocks, draws)))
        self._check_finite(good)
        return [self._by_learner(d) for d in decided]

    def _played(self, arrays: Sequence[Array], given: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Play a round: states take the place of those before once all are finite."""
        if not all(((low <= a) & (a <= high)).all() for a, (low, high) in zip(arrays, self._bounds)):
            self._explain(given)
        with jax.enable_x64(True):
            good, after, measured = self._step(
                self._state, *(tuple(map(self._in_blocks, each)) for each in (arrays, self._draws()))
            )
        self._check_finite(good, arrays)
        self._state = after
        loss, g, h = map(self._by_learner, measured)
        return loss, g, h

    def _check_finite(self, good: Any, arrays: Sequence[Array] | None = None) -> None:
        """Check that the numbers of all learners are finite. Raises OCO859 that names the first whose are not."""
        if not (finite := self._by_learner(good)).all():
            first = int(np.argmin(finite))
            raise self._not_finite(range(first, first + 1), arrays)


def _by_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function of one learner, for blocks of learners one after the other."""
    together = jax.vmap(function)
    made: Callable[..., Any] = jax.jit(lambda *values: lax.map(lambda block: together(*block), values))
    return made


def _checked_decision(decide: Callable[..., Any]) -> Callable[..., Any]:
    """Decision of a learner, with whether it is finite before it."""

    def run(state: Any, draws: Any) -> Any:
        decided = decide(*state, *draws)
        return all_finite(decided), decided

    return run


def _checked_round(play_round: Callable[..., Any]) -> Callable[..., Any]:
    """Round of a learner: whether its numbers are finite, its state after it, and what was measured."""

    def run(state: Any, inputs: Any, draws: Any) -> Any:
        after, (decided, *measured) = play_round(state, inputs, draws)
        return all_finite([*after, *decided]), after, tuple(measured)

    return run
