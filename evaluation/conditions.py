"""Conditions of a guarantee against the data of a run: held, failed from some round, or undecided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from oco.compiler.theory.guarantees import Condition
from oco.evaluation.comparators import Comparator
from oco.evaluation.comparators.base import ComparatorStatus
from oco.evaluation.measured_run import MeasuredRun, RegretKind

COMPARATORS: Mapping[str, RegretKind] = {"feasible.common": "static", "feasible.each_round": "dynamic"}
"""Comparators that exist exactly where a condition holds, by the condition's fact."""
MOST_LISTED = 3


class ConditionAnswer(StrEnum):
    """Answer that the data of a run give to a condition."""

    HELD = "held"
    FAILED = "failed"
    UNDECIDED = "cannot be told"


@dataclass(frozen=True)
class ConditionLine:
    """Condition of the guarantee and its outcome. `since` is a round (from 1) from which on it surely fails, or None."""

    words: str
    outcome: str
    since: int | None
    why: str

    @property
    def text(self) -> str:
        """Outcome in words: "held", "failed from round 31: ...", "cannot be told: ..."."""
        after = "" if self.since is None else f" from round {self.since}"
        return f"{self.outcome}{after}{f': {self.why}' if self.why else ''}"


def condition_lines(trace: MeasuredRun, kinds: tuple[RegretKind, ...]) -> tuple[ConditionLine, ...]:
    """Outcomes of all conditions, by the comparators of `kinds`, which are computed where they are not yet."""
    return tuple(_line(trace, c, kinds) for c in trace.promise.conditions)


def _line(trace: MeasuredRun, condition: Condition, kinds: tuple[RegretKind, ...]) -> ConditionLine:
    def undecided(why: str) -> ConditionLine:
        return ConditionLine(condition.words, ConditionAnswer.UNDECIDED, None, why)

    kind = COMPARATORS.get(condition.key)
    if kind is None:
        return undecided("it is about means that the data do not state")
    if kind not in kinds:
        return undecided(f"the {kind} comparator was not asked for")
    comparator = trace.strict_comparator() if kind == "static" else trace.comparator(kind)
    if comparator.status is ComparatorStatus.LEAST_VIOLATING:
        others = [trace.comparator("dynamic")] if kind == "static" and "dynamic" in kinds else []
        return _failed(condition, comparator, *others)
    if comparator.status is ComparatorStatus.NOT_COMPUTED:
        return undecided(comparator.why)
    return ConditionLine(condition.words, ConditionAnswer.HELD, None, "")


def _failed(condition: Condition, *refuting: Comparator) -> ConditionLine:
    """Line of a refuted condition, by the comparator that refutes it from the earliest round.

    A static one is refuted by rounds that conflict with each other, both kinds by rounds that no decision satisfies.
    """
    ends = {
        int(c.impossible.max() if c.kind == "static" else c.impossible.min()): c for c in refuting if len(c.impossible)
    }
    if not ends:
        return ConditionLine(condition.words, ConditionAnswer.FAILED, None, refuting[0].why)
    since = min(ends)
    rounds = np.sort(ends[since].impossible)
    if ends[since].kind == "static":
        return ConditionLine(condition.words, ConditionAnswer.FAILED, since, ends[since].why)
    listed = ", ".join(str(k) for k in rounds[:MOST_LISTED]) + (", ..." if len(rounds) > MOST_LISTED else "")
    why = f"no decision satisfies round{'s' if len(rounds) > 1 else ''} {listed}"
    return ConditionLine(condition.words, ConditionAnswer.FAILED, since, why)
