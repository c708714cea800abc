"""Looks of a learner at its own rounds: for the monitor, and for the alarm of one that watches its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.backends.factors import points_of
from oco.backends.feedback import Feedback
from oco.backends.monitor import DUALS, watched_rounds
from oco.compiler.evidence.watched_streams import ALARM, REFUTED
from oco.compiler.evidence.wealth import Alarm

Array = np.ndarray[Any, Any]

if TYPE_CHECKING:
    from oco.backends.learner import Learner


class Watching:
    """Part of a learner that gives its rounds to the monitor, and says when its streams are not as the model states."""

    @property
    def alarm(self: Learner) -> Alarm | None:  # type: ignore[misc]  # the learner is the one class that has this part
        """Round in which what the model states of its streams was refuted, with the statement; None before, and where nobody watches."""
        terms = self.contract.alert
        if terms is None:
            return None
        with self._owned():
            return terms.alarm({name: self.value(name) for name in (ALARM, REFUTED)})

    @property
    def guarantee(self: Learner) -> tuple[str, ...]:  # type: ignore[misc]
        """Lines that state the guarantee: after an alarm that of the rule which decides then."""
        terms = self.contract.alert
        later = None if terms is None or self.alarm is None else terms.guarantee
        return self.contract.guarantee if later is None else later

    def say_alarm(self: Learner) -> None:  # type: ignore[misc]
        """Warn of an alarm, once."""
        terms = self.contract.alert
        if terms is not None and (alarm := self.alarm) is not None:
            self.warn(f"{alarm}; {terms.result}")

    def watch_round(  # type: ignore[misc]  # the learner is the one class that has this part
        self: Learner, feedback: Feedback, decisions: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Run the monitor after a round of these decisions and inputs: see `monitor`."""
        with self._owned(taken=True):
            self.monitor.record_values(feedback.loss, feedback.constraints)
            self.record_slopes(feedback.number, decisions, values)
            own = () if self.alarm is not None else (name for name in self._places if name in DUALS)
            duals = {name: np.asarray(self.value(name)) for name in own}
            self.monitor.check_round(feedback.round, points_of(self.compiled.program, decisions), duals)

    def record_slopes(  # type: ignore[misc]
        self: Learner, round: int, decisions: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Record the size of the gradients of a round at its decisions, where bounds of them are known."""
        if self.compiled.slopes is not None and self.contract.constants.slopes:
            with np.errstate(all="ignore"):
                self.monitor.record_slopes(*self.compiled.slopes(round, *decisions, *values))

    def look_back(  # type: ignore[misc]
        self: Learner, first: int, decisions: Sequence[Array], data: Mapping[str, Array]
    ) -> None:
        """Record the gradients of those of the rounds from `first` on that are watched; decisions and data have the round first."""
        values = [data[f.name] for f in self.compiled.program.feedback]
        for t in watched_rounds(first, first + len(decisions[0])):
            self.record_slopes(t, [d[t - first] for d in decisions], [v[t - first] for v in values])
