"""Rounds of a learner that are decided and not over, and those that are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oco.backends.learner import Learner

OfRound = tuple[int, tuple[Any, ...]]
"""Round with its arrays, tagged so that nothing has to be discarded when a round is over."""


class Turns:
    """Part of a learner that takes its rounds: `skipped` counts those that were left out."""

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

    @property
    def unprepared(self: Learner) -> tuple[Any, ...]:  # type: ignore[misc]
        """State as it was before the decision of this round was prepared."""
        return self.contexts.unprepared(self.round, self._state)
