"""Statements of a model as written, checked for names and shapes, immutable."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.dims import Shape
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass
from oco.dsl.source import Span


class Measure(StrEnum):
    """Kind of regret that the model asks for."""

    STATIC = "static"
    DYNAMIC = "dynamic"


class Feedback(StrEnum):
    """Information that a round reveals."""

    FULL = "full"
    GRADIENT = "gradient"
    TWO_POINT = "two_point"
    BANDIT = "bandit"

    @property
    def gives_values_alone(self) -> bool:
        """True where no gradients are revealed: values at one point or two."""
        return self in (Feedback.TWO_POINT, Feedback.BANDIT)


class Relation(StrEnum):
    """Comparison of a constraint, a cut or an assumption."""

    LE = "<="
    GE = ">="
    EQ = "=="


class Timing(StrEnum):
    """Time at which a constraint has to hold: in each round (hard violation), on average over the rounds (soft), in a stated
    percentage of the rounds, or in total: at the end as in every round before it, summed.
    """

    EACH_ROUND = "each round"
    ON_AVERAGE = "on average"
    IN_SHARE = "in % of rounds"
    IN_TOTAL = "in total"


@dataclass(frozen=True)
class Horizon:
    """Number of rounds; `rounds` is None for `horizon T unknown`."""

    rounds: Expr | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Param:
    """Fixed data. `value` is the value in the text (None: to be given at compile time); `data` is the array once it is
    known. An `index` is the number of its `labels`, the names along the axes whose length it is; a file gives them as `value`.
    """

    name: str
    dims: tuple[Expr, ...]
    shape: Shape
    bounds: tuple[Expr, Expr] | None
    value: Expr | None
    integer: bool = False
    data: np.ndarray[Any, Any] | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    labels: tuple[str, ...] = ()
    is_index: bool = False


@dataclass(frozen=True)
class Cut:
    """Comparison `left relation right`, affine in one decision and of fixed data, that narrows its domain. It holds
    entry by entry.
    """

    left: Expr
    relation: Relation
    right: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DomainSpec:
    """Named set with its arguments, as written: `box(0, 1)` is `DomainSpec("box", (0, 1))`; `cuts` narrow it.

    rounded  decisions are drawn among its extreme points
    """

    kind: str
    args: tuple[Expr, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    cuts: tuple[Cut, ...] = ()
    rounded: bool = False


@dataclass(frozen=True)
class Decision:
    """Decision variable with its domain."""

    name: str
    dims: tuple[Expr, ...]
    shape: Shape
    domain: DomainSpec
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Distribution:
    """Known distribution, as `poisson(2500)`, `pareto(3, mean = 8)`: independent across rounds, entries and names."""

    kind: str
    args: tuple[Expr, ...] = ()
    options: tuple[tuple[str, Expr], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Stream:
    """Data revealed each round. Adversarial unless `iid` (unknown distribution, perhaps a known `mean`) or
    `distribution` is set. `values` lists all that an entry may be, ascending; empty: whatever lies in the bounds.
    `known`: a context, whose value of a round is known before the decision; `previous` names the decision whose last value it is.
    A state is known too: `first` is its value in round 1, and `following` what a round leaves to the next.
    """

    name: str
    dims: tuple[Expr, ...]
    shape: Shape
    bounds: tuple[Expr, Expr] | None
    integer: bool = False
    iid: bool = False
    mean: Expr | None = None
    distribution: Distribution | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    values: tuple[float, ...] = ()
    known: bool = False
    previous: str = ""
    first: Expr | None = None
    following: Expr | None = None


@dataclass(frozen=True)
class Let:
    """Abbreviation of an expression."""

    name: str
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Constraint:
    """Constraint `label: left relation right timing, penalty p`, one for each entry of the broadcast shape.

    `penalty` is the loss that a unit of violation is worth to the user: a number, or one for each entry. `percent` is that of
    `in 99% of rounds`.
    """

    label: str
    left: Expr
    relation: Relation
    right: Expr
    timing: Timing
    shape: Shape = ()
    penalty: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    percent: float | None = None

    @property
    def when(self) -> str:
        """Words of the model for the time at which it has to hold."""
        return str(self.timing) if self.percent is None else f"in {self.percent:.10g}% of rounds"


@dataclass(frozen=True)
class Prediction:
    """Prediction `predict stream = value` of a round, from what is known before it."""

    stream: str
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Assumption:
    """Assumption `assume key <= value` (or `>=`), known to the user and not provable by the compiler."""

    key: str
    relation: Relation
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Using:
    """Choice `using coldq with alpha = sqrt(t)`: formulas may use t, T, m and the keys of facts, so they are kept as
    text.
    """

    algorithm: str | None
    settings: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Statements:
    """All statements of a model. Equality compares content, not where it was written. `delay`: rounds by which feedback comes later."""

    name: str
    horizon: Horizon
    params: tuple[Param, ...] = ()
    decisions: tuple[Decision, ...] = ()
    streams: tuple[Stream, ...] = ()
    lets: tuple[Let, ...] = ()
    objective: Expr | None = None
    constraints: tuple[Constraint, ...] = ()
    measure: Measure = Measure.STATIC
    feedback: Feedback = Feedback.FULL
    assumptions: tuple[Assumption, ...] = ()
    using: Using | None = None
    delay: Expr | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    maximized: bool = False
    predictions: tuple[Prediction, ...] = ()

    @property
    def gain(self) -> Expr | None:
        """Gain of a round, which is maximized: the objective is its negative. None where a loss is minimized."""
        return self.objective.children[0] if self.maximized and self.objective is not None else None
