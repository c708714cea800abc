"""Rounds of a learner that are decided and not over, and those that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.ir.program import NUMBER

if TYPE_CHECKING:
    from oco.backends.learner import Learner

OfRound = tuple[int, tuple[Any, ...]]
"""Round with its arrays, tagged so that nothing has to be discarded when a round is over."""


class Turns:
    """Part of a learner that takes its rounds, alone or in turn with others: `skipped` counts those that were left out."""

    skipped: int
    _decided: OfRound | None
    _drawn: OfRound | None

    def skip(self: Learner) -> None:  # type: ignore[misc]  # the learner is the one class that has this part
        """Leave this round out, as its data never come: the next decision is made from the same state, and counts as this round's."""
        with self._owned():
            if self.journal is not None:
                self.journal.forget(self.round)
            self._state, self._decided, self._drawn = self.unprepared, None, None
            self._answered = 0
            self.contexts.drop()
            self.skipped += 1

    def _take_place(self: Learner, place: int, count: int) -> None:  # type: ignore[misc]
        """Number this round as that of the learner at a place, from 0, among `count` in turn."""
        program, number = self.compiled.program, np.int64(place + 1 + count * (self.round - 1 + self.skipped))
        changes = program.numbers and number != self.value(NUMBER)
        if changes:
            self._replace({NUMBER: number})
        if self.journal is not None and (changes or program.handed or program.corrected):
            self.journal.snapshot(self)  # rounds that were left out are in no other record

    def _follow(self: Learner, other: Learner, newest: Learner) -> None:  # type: ignore[misc]
        """Take what a round leaves to the next from the learner that decided the round before, and what is corrected from that which
        observed last.
        """
        program = self.compiled.program
        if program.handed or program.corrected:
            self._state, self._decided = self.unprepared, None
            self.contexts.drop()
            corrected = {name: newest.value(name) for name in program.corrected}
            self._replace({name: other.value(left) for name, left in program.handed} | corrected)
            if self.journal is not None:
                self.journal.snapshot(self)  # what other learners left is in no other record

    def _learn_from(self: Learner, other: Learner) -> None:  # type: ignore[misc]
        """Take what learners in turn have in common from the one that observed last."""
        self._replace({name: other.value(name) for name in self.compiled.program.shared})

    def _replace(self: Learner, values: Mapping[str, Any]) -> None:  # type: ignore[misc]
        if values:
            self._state = tuple(values.get(f.name, v) for f, v in zip(self.compiled.program.state, self._state))

    @property
    def unprepared(self: Learner) -> tuple[Any, ...]:  # type: ignore[misc]
        """State as it was before the decision of this round was prepared, with what the round leaves to the next."""
        fields, left = self.compiled.program.state, {own for _, own in self.compiled.program.handed}
        before = self.contexts.unprepared(self.round, self._state)
        return tuple(now if f.name in left else v for f, v, now in zip(fields, before, self._state)) if left else before
