"""Calls from a learner to the program around it, after each round and with each warning."""

from __future__ import annotations

from collections.abc import Callable

from oco.backends.feedback import Feedback

OnRound = Callable[[Feedback], None]
OnWarning = Callable[[str], None]


class Notifying:
    """Part of a learner that calls functions of the program around it; they are no part of its state."""

    _on_round: OnRound | None = None
    _on_warning: OnWarning | None = None

    def notify(self, on_round: OnRound | None = None, on_warning: OnWarning | None = None) -> None:
        """Call `on_round` with the feedback of each round once the learner has gone on from it, and `on_warning` with the text of each
        warning when it is added; None: nothing any more. What they raise comes out of the call that the learner was in, and the round stays
        observed.
        """
        self._on_round, self._on_warning = on_round, on_warning

    def _observed(self, feedback: Feedback) -> Feedback:
        """Feedback of a round that is over, of which `on_round` was told."""
        if self._on_round is not None:
            self._on_round(feedback)
        return feedback


def each_once(call: OnWarning) -> OnWarning:
    """Call without texts that it had before."""
    before = set[str]()

    def once(text: str) -> None:
        if text not in before:
            before.add(text)
            call(text)

    return once
