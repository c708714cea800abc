"""Grounds of facts: status, steps of derivations, and witnesses against claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import Any

from oco.dsl.records import dataclass
from oco.dsl.source import Span


class Status(StrEnum):
    """Grounds of a fact. `condition`: the values that the streams take decide it, and neither answer holds for all of them."""

    PROVED = "proved"
    MEASURED = "measured"
    DECLARED = "declared"
    CONDITION = "condition"
    UNKNOWN = "unknown"
    REFUTED = "refuted"


class ProofRule(StrEnum):
    """Rule of a step. Each is audited by `audit/verify.py`, or named there with the reason why it is not."""

    # Ranges and suprema
    CONSTANT = "constant"
    DECLARED_RANGE = "declared range"
    INTERVAL = "interval"
    NORM = "norm"
    SUPPORT = "support"
    VERTICES = "vertices"
    ENTRY_BY_ENTRY = "entry by entry"
    BALL = "ball"
    TANGENT = "tangent"
    BRANCH_AND_BOUND = "branch and bound"
    NOT_SEARCHED = "not searched further"

    # Arithmetic between steps
    LARGEST = "largest"
    SQUARE_ROOT = "square root"
    NEGATIVE = "negative"
    EVERY_ENTRY = "every entry"

    # Functions
    REWRITE = "rewrite"
    GRADIENT = "gradient"
    PIECES = "pieces"
    STRUCTURE = "structure"

    # Curvature
    VARIABLE = "variable"
    COMPOSITION = "composition"
    SECOND_DERIVATIVE = "second derivative"
    SECOND_DERIVATIVE_OF_ENTRIES = "second derivative of entries"
    SECOND_DERIVATIVE_BY_TERMS = "second derivative by terms"
    SECOND_DERIVATIVE_WRITTEN_OUT = "second derivative written out"
    CHANGE_OF_GRADIENT = "change of gradient"
    SMOOTHNESS = "smoothness"
    STRONG_CONVEXITY = "strong convexity"
    EXP_CONCAVITY = "exp-concavity"

    # Sets
    DOMAIN = "domain"
    PRODUCT_DOMAIN = "product domain"
    ORACLE = "oracle"

    # Feasibility
    NO_CONSTRAINTS = "no constraints"
    AT_A_POINT = "at a point"
    SLATER_POINT = "slater point"
    INTERIOR_POINT = "interior point"
    DEPENDENT_ROW = "dependent row"
    COMMON_POINT = "common point"
    MIXTURE = "mixture"
    MIXTURE_OF_EACH_ROUND = "mixture of each round"
    CORNER_POLICY = "corner policy"
    TANGENT_BOUND = "tangent bound"

    # Facts that are refuted or unknown
    WITNESS = "witness"
    RANGE_ABOVE_ZERO = "range above zero"
    DEPENDENT_ROWS = "dependent rows"
    EQUALITY = "equality"
    NO_INTERIOR_POINT = "no interior point"
    NO_MARGIN = "no margin"
    NO_MEAN = "no mean"

    # Assumptions, data and changed units
    ASSUMPTION = "assumption"
    DATA = "data"
    MEASURED = "measured"
    RANGE_OF_THE_DATA = "range of the data"
    SAMPLE_MEAN = "sample mean"
    UNIT_FREE = "unit-free"


@dataclass(frozen=True)
class Step:
    """One line of a derivation: by `rule`, from `premises`, it follows that `claim` (words), with `value` where it is a number.

    `words` are the claim, or a function that puts it into words when somebody reads it. `span` is the part of the model that the
    step is about, `subject` the expression (or what else the rule needs to be replayed). Steps form a DAG; a premise may be shared.
    """

    rule: ProofRule
    words: str | Callable[[], str] = field(compare=False)
    value: Any = None
    premises: tuple[Step, ...] = ()
    span: Span | None = field(default=None, compare=False)
    subject: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def claim(self) -> str:
        """Claim in words."""
        return self.words if isinstance(self.words, str) else self.words()

    def __repr__(self) -> str:
        return f"Step({str(self.rule)!r}, {self.claim!r})"


@dataclass(frozen=True)
class Witness:
    """Place where a claim fails: decisions and stream values by name,
    and the excess there (its units are those of the claim)."""

    values: Mapping[str, Any]
    violation: float
    words: str
