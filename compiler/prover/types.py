"""Grounds of facts: status, steps of derivations, and witnesses against claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from oco.dsl.source import Span


class Status(StrEnum):
    """Grounds of a fact. `condition`: the values that the streams take decide it, and neither answer holds for all of them."""

    PROVED = "proved"
    MEASURED = "measured"
    DECLARED = "declared"
    CONDITION = "condition"
    UNKNOWN = "unknown"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Step:
    """One line of a derivation: by `rule`, from `premises`, it follows that `claim` (words), with `value` where it is a number.

    `words` are the claim, or a function that puts it into words when somebody reads it. `span` is the part of the model that the
    step is about, `subject` the expression (or what else the rule needs to be replayed). Steps form a DAG; a premise may be shared.
    """

    rule: str
    words: str | Callable[[], str] = field(compare=False)
    value: Any = None
    premises: tuple[Step, ...] = ()
    span: Span | None = field(default=None, compare=False)
    subject: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def claim(self) -> str:
        return self.words if isinstance(self.words, str) else self.words()

    def __repr__(self) -> str:
        return f"Step({self.rule!r}, {self.claim!r})"


@dataclass(frozen=True)
class Witness:
    """Place where a claim fails: decisions and stream values by name,
    and the excess there (its units are those of the claim)."""

    values: Mapping[str, Any]
    violation: float
    words: str
