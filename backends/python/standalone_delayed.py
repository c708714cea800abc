"""Learner of an emitted module whose feedback comes later, in turns. There it has the name `Learner`, and each of those that take turns is
a `LearnerInTurn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oco.backends.python.interface import (
    CORRECTED,
    DELAY,
    HANDED,
    IN_ORDER,
    MODEL,
    MODEL_HASH,
    NUMBERS,
    SHARED,
    STATE,
    STREAMS,
)
from oco.backends.python.open_rounds import OpenRounds
from oco.backends.python.standalone import Feedback, Learner
from oco.backends.python.state_file import StateError, read_state, write_state


class LateFeedbackLearner:
    """Learner that decides round by round: each call of `decide()` begins a round, `observe(..., round=t)` gives the data of an open one.

    Round t is that of learner (t - 1) mod (d + 1), where feedback comes d rounds later at most.
    """

    def __init__(self, start: Any = None, seed: int = 0) -> None:
        """Begin at the model's start, or at a first decision; `seed` is for random draws, and each learner has one of its own."""
        self.learners = [Learner(start, seed if not i else [seed, i]) for i in range(DELAY + 1)]
        self.rounds = OpenRounds(DELAY + 1, in_order=IN_ORDER)
        if NUMBERS:
            for i, one in enumerate(self.learners):
                self._replace(one, {"number": i + 1})

    if NUMBERS or HANDED or CORRECTED:

        def _replace(self, one: Learner, values: Mapping[str, Any]) -> None:
            """Give state of one of the learners other values."""
            one._values = tuple(values.get(name, own) for name, own in zip(STATE, one._values))

    if SHARED:

        def _learn(self, one: Learner, names: tuple[str, ...] = SHARED) -> None:
            """Give one of the learners what all have in common, from the one that observed last."""
            newest = max(self.learners, key=lambda other: other._values[STATE.index("observed")])
            self._replace(one, {name: newest._values[STATE.index(name)] for name in names})

    if HANDED or CORRECTED:

        def _follow(self, one: Learner, other: Learner) -> None:
            """Give one of the learners what the round before left, from the one that decided it."""
            one._begin(one._before)
            self._replace(one, {name: other._values[STATE.index(left)] for name, left in HANDED.items()})
            if CORRECTED:
                self._learn(one, CORRECTED)

    @property
    def round(self) -> int:
        """Number of the round that the next `decide` begins, from 1."""
        return self.rounds.decided + 1

    @property
    def pending(self) -> tuple[int, ...]:
        """Rounds that were decided and whose feedback is still to come, the oldest first."""
        return self.rounds.pending

    def _of(self, round: int) -> Learner:
        return self.learners[self.rounds.turn(round)]

    def decide(self, /, *, round: int | None = None, **context: Any) -> Any:
        """Decision of the next round from its contexts; with `round` that of an open one again. RoundError where feedback is missing."""
        if round is not None and round != self.round:
            return self._of(self.rounds.given(round)).decide(**context)
        one = self._of(self.rounds.next())
        if (HANDED or CORRECTED) and self.rounds.decided:
            self._follow(one, self._of(self.rounds.decided))
        decision = one.decide(**context)
        self.rounds.begin()
        return decision

    def observe(self, /, *, round: int | None = None, **streams: Any) -> Feedback:
        """Take the data of an open round, by default of the oldest. Wrong data raises an error and changes nothing."""
        now = self.rounds.observed(round)
        if SHARED:
            self._learn(self._of(now))
        feedback = self._of(now).observe(**streams)
        self.rounds.end(now)
        return feedback._replace(round=now)

    if "second_loss" in STREAMS:

        def second_point(self, *, round: int | None = None) -> Any:
            """Second point of an open round, by default of the newest."""
            newest = self.pending[-1] if self.pending else None
            return self._of(self.rounds.given(newest if round is None else round)).second_point()

    def skip(self, *, round: int | None = None) -> None:
        """Go on without the data of an open round, by default of the oldest."""
        now = self.rounds.left_out(round)
        one = self._of(now)
        one.skip()
        if NUMBERS:
            self._replace(one, {"number": one._values[STATE.index("number")] + DELAY + 1})
        self.rounds.end(now)

    def state(self) -> dict[str, Any]:
        """JSON values from which a learner continues bit for bit."""
        about = {
            "model": MODEL,
            "model_hash": MODEL_HASH,
            "decided": self.rounds.decided,
            "pending": list(self.pending),
        }
        return {**about, "learners": [one.state() for one in self.learners]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LateFeedbackLearner:
        """Learner from its `state`. Raises StateError where that is damaged or of another learner."""
        if state.get("model_hash") != MODEL_HASH:
            raise StateError(f"this state is of another learner: of the model {state.get('model')!r}")
        learner = cls()
        try:
            if len(state["learners"]) != DELAY + 1:
                raise StateError(f"it has {len(state['learners'])} learners in turn")
            open_rounds = [int(t) for t in state["pending"]]
            learner.rounds = OpenRounds(DELAY + 1, int(state["decided"]), open_rounds, IN_ORDER)
            learner.learners = [Learner.from_state(one) for one in state["learners"]]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise StateError(f"this state is not whole: {type(error).__name__}: {error}") from None
        return learner

    def save(self, path: str) -> None:
        """Write the state to a file, completely or not at all."""
        write_state(path, self.state())

    @classmethod
    def load(cls, path: str) -> LateFeedbackLearner:
        """Learner that continues where the saved one stopped, bit for bit."""
        return cls.from_state(read_state(path))
