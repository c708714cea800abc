"""Learner that watches what its model states of the streams, and goes over to a rule that rests on none of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oco.backends.delayed import DelayedLearner
from oco.backends.feedback import Feedback
from oco.backends.learner import Learner
from oco.compiler.evidence.wealth import Alarm, Evidence
from oco.compiler.problem.canonical import StreamRange, canonical
from oco.compiler.selection.plan import LEAST, compile_plan
from oco.compiler.theory.theorems import Guarantee
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import constant
from oco.dsl.model import Model
from oco.dsl.statements import Feedback as FeedbackKind
from oco.dsl.statements import Stream
from oco.migrating import migrated
from oco.plan import Plan


@dataclass(frozen=True, eq=False)
class Fallback:
    """Plan for the rounds after an alarm; None where there is none, with the reason in words."""

    plan: Plan | None
    why: str = ""


def without_statements(model: Model) -> Model:
    """Model whose streams have ranges alone: any sequence within them may come. `using` is left out: what it names may rest on more.

    A distribution's support is the range where no other is written. Raises OCO872 where a stream is unbounded then.
    """
    ranges = {s.name: s for s in canonical(model).streams}
    streams = tuple(_bare(s, ranges[s.name]) if s.iid or s.distribution is not None else s for s in model.streams)
    return replace(model, streams=streams, using=None)


def _bare(stream: Stream, own: StreamRange) -> Stream:
    low, high = float(np.min(own.lower)), float(np.max(own.upper))
    if not (np.isfinite(low) and np.isfinite(high)):
        message = f"the stream `{stream.name}` has no range, so that no rule is known for any sequence of it"
        raise fail("OCO872", message, stream.span, f"write `{stream.name} ~ ... in [lo, hi]`")
    bounds = stream.bounds or (constant(low), constant(high))
    return replace(stream, bounds=bounds, iid=False, mean=None, distribution=None)


def fallback_of(plan: Plan) -> Fallback:
    """Plan of the model without its statements, of the algorithm with the best guarantee there."""
    try:
        made = compile_plan(without_statements(plan.model), None, LEAST, tradeoff=plan.tradeoff)
        return Fallback(Plan.of(made, plan.target))
    except OcoError as error:
        return Fallback(None, error.message)


class AlertLearner:
    """Learner with bets against the distributions, means and independence that its model states.

    After each round they are paid. Where they have won 1/alpha times their stake, which has the probability alpha at most while the
    statements hold, the learner says so (`alarm`, `warnings`) and goes over to `fallback`, from the decision reached. Distributions and
    independence are not watched after that.

    learner   the one that decides now, of `plan`
    evidence  the bets' wealth, an immutable value
    """

    def __init__(self, plan: Plan, alpha: float, options: Mapping[str, Any]) -> None:
        if not 0 < alpha < 1:
            raise fail("OCO872", f"alpha is a probability between 0 and 1, not {alpha!r}")
        self.evidence = Evidence.of(plan.canonical, alpha)
        if plan.canonical.feedback is not FeedbackKind.FULL or plan.canonical.delay:
            raise fail("OCO872", "streams are watched under full feedback that comes in each round")
        if not self.evidence.entries:
            message = "the model states no distribution, and no mean of an `iid` stream: there is nothing to watch"
            raise fail("OCO872", message, hint="write `stream s in [lo, hi] iid mean = m`, or `stream s ~ poisson(8)`")
        self.fallback, self.plan = fallback_of(plan), plan
        self.learner: Learner | DelayedLearner = plan.learner(**options)
        self._before = 0
        self._kept: list[str] = []

    @property
    def alarm(self) -> Alarm | None:
        """First alarm; None before."""
        return self.evidence.alarm

    @property
    def guarantee(self) -> Guarantee | None:
        """Guarantee of the plan that decides now: after an alarm that of the fallback, None where there is no other rule."""
        return None if self.alarm is not None and self.fallback.plan is None else self.plan.guarantee

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return self._before + self.learner.round

    @property
    def warnings(self) -> list[str]:
        """Messages for the user, the alarm among them."""
        return [*self._kept, *(w for w in self.learner.warnings if w not in self._kept)]

    def decide(self, /, **context: Any) -> Any:
        """Decision of this round, as `Learner.decide` gives it."""
        return self.learner.decide(**context)

    def observe(self, row: Any = None, /, **streams: Any) -> Feedback:
        """Take the data that the round revealed, pay the bets, and go on to the next round. Wrong data raises an error, and nothing
        is changed.
        """
        feedback = self.learner.observe(row, **streams)
        watching = self.evidence.alarm is None
        self.evidence = self.evidence.after(feedback.values)
        if watching and self.evidence.alarm is not None:
            self._go_over(self.evidence.alarm)
        return feedback

    def _go_over(self, alarm: Alarm) -> None:
        """Go over to the fallback, where there is one, and say what holds from here."""
        self._kept = list(self.learner.warnings)
        if self.fallback.plan is None:
            self._kept.append(f"{alarm}; the rule stays, since there is no other: {self.fallback.why}")
            return
        change = migrated(self.learner, self.fallback.plan)
        if not change.whole:
            self._before = alarm.round
        self.learner, self.plan = change.learner, self.fallback.plan
        named = self.fallback.plan.algorithm
        what = (
            "the rule rests on none of it and goes on"
            if change.whole
            else f"`{named}` takes over, which rests on none of it"
        )
        self._kept.append(f"{alarm}; {what}")
