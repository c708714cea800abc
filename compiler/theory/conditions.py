"""Conditions of guarantees: hypotheses that the sequence of rounds decides, and what rounds say of them."""

from __future__ import annotations

from enum import StrEnum

from oco.dsl.records import dataclass


@dataclass(frozen=True)
class Condition:
    """Hypothesis that the sequence of rounds decides. `key` is the fact that would prove it for every sequence, `words` a clause.

    `measured` is a clause on data that meet it; "" where there are none or they do not tell.
    """

    key: str
    words: str
    measured: str = ""

    def __str__(self) -> str:
        note = f"; {self.measured}" if self.measured else ""
        return f"the guarantee is for sequences for which {self.words}{note}"

    def held(self) -> ConditionLine:
        """Line of a condition that held in all rounds."""
        return ConditionLine(self.words, ConditionAnswer.HELD, None, "")

    def failed(self, since: int | None, why: str) -> ConditionLine:
        """Line of a condition that surely failed, from a round (from 1) on where that is known."""
        return ConditionLine(self.words, ConditionAnswer.FAILED, since, why)

    def undecided(self, why: str) -> ConditionLine:
        """Line of a condition of which the rounds do not tell."""
        return ConditionLine(self.words, ConditionAnswer.UNDECIDED, None, why)


class ConditionAnswer(StrEnum):
    """Answer that rounds give to a condition."""

    HELD = "held"
    FAILED = "failed"
    UNDECIDED = "cannot be told"


@dataclass(frozen=True)
class ConditionLine:
    """Condition of the guarantee and its outcome. `since` is a round (from 1) from which on it surely fails, or None."""

    words: str
    outcome: ConditionAnswer
    since: int | None
    why: str

    @property
    def text(self) -> str:
        """Outcome in words: "held", "failed from round 31: ...", "cannot be told: ..."."""
        after = "" if self.since is None else f" from round {self.since}"
        return f"{self.outcome}{after}{f': {self.why}' if self.why else ''}"
