"""Random arrays of a learner's own: those of each round once, or of many rounds ahead, always the same numbers of the generator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.backends.arguments import generator, given_draw, is_integer
from oco.backends.base import Recorded
from oco.backends.turns import OfRound

if TYPE_CHECKING:
    from oco.backends.learner import Learner

Array = np.ndarray[Any, Any]

WORD = 1 << 64
"""Number of values of a word of 64 bits."""


class Generators:
    """Random generators of the learners of a fleet, made of their seeds once the first of them draws: most algorithms draw nothing.

    Raises OCO849 where a seed is not valid.
    """

    def __init__(self, seeds: Sequence[Any]) -> None:
        self._seeds = seeds
        for seed in () if isinstance(seeds, range) else seeds:
            if not (is_integer(seed) and seed >= 0):
                generator(seed)

    @cached_property
    def each(self) -> list[np.random.Generator]:
        """Generator of each learner."""
        return [generator(seed) for seed in self._seeds]

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """Context after whose failure the generators are as before."""
        before = [one.bit_generator.state for one in self.each]
        try:
            yield
        except BaseException:
            for one, state in zip(self.each, before):
                one.bit_generator.state = state
            raise


def states_of(generators: Sequence[np.random.Generator]) -> Array:
    """States of generators, a row each, shape (n, 6): the state and the increment of PCG64 as two words, what is left of a word."""
    rows = []
    for one in generators:
        state: Any = one.bit_generator.state
        own, rest = state["state"], (state["has_uint32"], state["uinteger"])
        rows.append((*divmod(own["state"], WORD), *divmod(own["inc"], WORD), *rest))
    return np.array(rows, dtype=np.uint64).reshape(len(rows), 6)


def set_states(generators: Sequence[np.random.Generator], rows: Array) -> None:
    """Set generators to states that `states_of` gave."""
    for one, row in zip(generators, rows.tolist(), strict=True):
        own = {"state": row[0] * WORD + row[1], "inc": row[2] * WORD + row[3]}
        rest = {"has_uint32": row[4], "uinteger": row[5]}
        one.bit_generator.state = {"bit_generator": "PCG64", "state": own, **rest}


class Drawing:
    """Part of a learner that draws its random arrays. An interruption takes nothing from the generator."""

    _random: np.random.Generator
    _draws: Mapping[str, Array] | None
    _drawn: OfRound | None

    @property
    def drawn(self: Learner) -> tuple[Any, ...] | None:  # type: ignore[misc]  # the learner is the one class that has this part
        """Random arrays of the algorithm in this round, in the order of the program's fields; None where they are still to be drawn."""
        if not self.compiled.program.draws:
            return ()
        of_round = self._drawn
        return of_round[1] if of_round is not None and of_round[0] == self.round else None

    def _random_arrays(self: Learner) -> tuple[Any, ...]:  # type: ignore[misc]
        """Algorithm's own random arrays of this round, drawn once."""
        results = self.drawn
        if results is None:
            with self._undone_on_failure():
                results = self._of_round(self.round)
                self._drawn = self.round, results
        return results

    def _with_random_arrays(self: Learner, rounds: int, run: Callable[[Sequence[Array]], Recorded]) -> Recorded:  # type: ignore[misc]
        """Result of `run` on the random arrays of so many rounds, rounds first. The generator goes on by as many as it played."""
        if not self.compiled.program.draws:
            return run(())
        first, before, of_now = self.round, self._random.bit_generator.state, self.drawn
        known = [] if of_now is None else [of_now]
        with self._undone_on_failure():
            recorded = run(self._of_rounds(known, first, rounds))
            if recorded.rounds < rounds:
                self._random.bit_generator.state = before
                self._of_rounds(known, first, recorded.rounds)
        return recorded

    def random_arrays(self: Learner, rounds: int) -> list[Array]:  # type: ignore[misc]
        """Random arrays of the next rounds by field, the round first, taken from the generator; none where the algorithm draws none."""
        return self._of_rounds([], self.round, rounds) if self.compiled.program.draws else []

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """Context after whose failure the generator, and what is drawn of this round, are as before."""
        before, drawn = self._random.bit_generator.state, self._drawn
        try:
            yield
        except BaseException:
            self._drawn, self._random.bit_generator.state = drawn, before
            raise

    def _of_rounds(self: Learner, known: Sequence[tuple[Any, ...]], first: int, rounds: int) -> list[Array]:  # type: ignore[misc]
        """Arrays of rounds from `first` on, those of the first ones `known`; arrays of one distribution in one call of the generator."""
        fields = self.compiled.program.draws
        begin, count = first + len(known), max(rounds - len(known), 0)
        if self._draws is None and len({self._is_normal(f.name) for f in fields}) == 1:
            sizes = [math.prod(f.type.shape) for f in fields]
            block = self._sample(fields[0].name, (count, sum(sizes)))
            parts = np.split(block, np.cumsum(sizes)[:-1], axis=1)
            drawn = [part.reshape(count, *f.type.shape) for part, f in zip(parts, fields)]
        else:
            each = [self._of_round(begin + k) for k in range(count)]
            drawn = [np.array([row[k] for row in each]).reshape(count, *f.type.shape) for k, f in enumerate(fields)]
        if not known:
            return drawn
        return [np.concatenate([[row[k] for row in known], part]) for k, part in enumerate(drawn)]

    def _of_round(self: Learner, round: int) -> tuple[Any, ...]:  # type: ignore[misc]
        """Arrays of a round, drawn or among those that the caller gave."""
        fields = self.compiled.program.draws
        if self._draws is not None:
            return tuple(given_draw(self._draws, f.name, f.type.shape, round) for f in fields)
        return tuple(self._sample(f.name, f.type.shape) for f in fields)

    def _is_normal(self: Learner, name: str) -> bool:  # type: ignore[misc]
        return self.contract.distributions.get(name, "uniform") == "normal"

    def _sample(self: Learner, name: str, shape: tuple[int, ...]) -> Any:  # type: ignore[misc]
        return self._random.normal(size=shape) if self._is_normal(name) else self._random.random(shape)
