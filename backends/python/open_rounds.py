"""Rounds of learners in turn that are decided and not over. This text is also part of emitted modules whose feedback comes later.

Round t is that of turn (t - 1) mod (d + 1), so that each turn has one open round at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class RoundError(ValueError):
    """Error for a round that is not open, or that cannot begin. `way_out` is a call that can be made."""

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(f"{message}; {way_out}")
        self.message = message
        self.way_out = way_out


class OpenRounds:
    """Rounds by turn: `decided` counts those that were begun, `pending` lists those whose feedback is still to come, the oldest first.

    in_order  whether what is known of a round hangs on the feedback of all rounds before it, which then comes in their order
    """

    def __init__(self, turns: int, decided: int = 0, pending: Iterable[int] = (), in_order: bool = False) -> None:
        self.turns = turns
        self.in_order = in_order
        self.decided = decided
        self._open = set(pending)
        within = all(max(1, decided - turns + 1) <= t <= decided for t in self._open)
        if decided < 0 or not within:
            raise ValueError(f"rounds {sorted(self._open)} cannot be open after {decided}")

    @property
    def pending(self) -> tuple[int, ...]:
        """Open rounds, the oldest first."""
        return tuple(sorted(self._open))

    def turn(self, round: int) -> int:
        """Turn of a round, from 0."""
        return (round - 1) % self.turns

    def next(self) -> int:
        """Number of the round that may begin now. Raises RoundError where the feedback of the round that it rests on is missing."""
        now = self.decided + 1
        due = now - self.turns
        if due in self._open:
            message = f"round {now} needs the feedback of round {due}, which is {self.turns - 1} rounds late at most"
            raise RoundError(message, f"observe(..., round={due}), or skip(round={due}) where it never comes")
        return now

    def begin(self) -> None:
        """Count the next round as decided."""
        self.decided += 1
        self._open.add(self.decided)

    def observed(self, round: Any = None) -> int:
        """Open round whose feedback comes now, by default the oldest. Raises RoundError as `given`, and where an older one has to come
        before it.
        """
        now, oldest = self.given(round), min(self._open)
        if self.in_order and now != oldest:
            message = f"the states of round {now} hang on the feedback of round {oldest}, which is still to come"
            raise RoundError(message, f"observe(..., round={oldest}) before it")
        return now

    def left_out(self, round: Any = None) -> int:
        """Open round that is skipped, by default the oldest. Raises RoundError as `given`, and where states hang on its feedback."""
        now = self.given(round)
        if self.in_order:
            message = f"the states of later rounds hang on the feedback of round {now}"
            raise RoundError(message, f"observe(..., round={now}) with what you expect that it was")
        return now

    def end(self, round: int) -> None:
        """Count a round as over."""
        self._open.discard(round)

    def given(self, round: Any = None) -> int:
        """Round that is open, by default the oldest. Raises RoundError where it is not, or none is."""
        if round is None:
            if not self._open:
                raise RoundError("no round is open", "decide() begins one")
            return min(self._open)
        whole = isinstance(round, (int, np.integer)) and not isinstance(round, bool)
        if not whole or round not in self._open:
            over = whole and 1 <= round <= self.decided
            wrong = (
                f"round {round} is over"
                if over
                else f"round {round} is not decided yet"
                if whole
                else f"a round is an integer from 1, not {round!r}"
            )
            there = ", ".join(map(str, self.pending)) or "none"
            raise RoundError(f"{wrong}; open rounds: {there}", "`learner.pending` lists the open rounds")
        return int(round)
