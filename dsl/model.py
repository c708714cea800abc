"""Model as written, checked for names and shapes, immutable. It is the interface between the language and the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.dims import Shape
from oco.dsl.expressions import Expr, constant
from oco.dsl.shown import shown_as_text
from oco.dsl.source import Span


class Measure(StrEnum):
    """Kind of regret that the model asks for."""

    STATIC = "static"
    DYNAMIC = "dynamic"


class Feedback(StrEnum):
    """Information that a round reveals."""

    FULL = "full"
    GRADIENT = "gradient"
    BANDIT = "bandit"


class Relation(StrEnum):
    """Comparison of a constraint, a cut or an assumption."""

    LE = "<="
    GE = ">="
    EQ = "=="


class Timing(StrEnum):
    """Time at which a constraint has to hold: in each round (hard violation) or on average over the rounds (soft)."""

    EACH_ROUND = "each round"
    ON_AVERAGE = "on average"


@dataclass(frozen=True)
class Horizon:
    """Number of rounds; `rounds` is None for `horizon T unknown`."""

    rounds: Expr | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Param:
    """Fixed data. `value` is the value in the text (None: to be given at compile time); `data` is the array once it is
    known.
    """

    name: str
    dims: tuple[Expr, ...]
    shape: Shape
    bounds: tuple[Expr, Expr] | None
    value: Expr | None
    integer: bool = False
    data: np.ndarray[Any, Any] | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


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
    """Named set with its arguments, as written: `box(0, 1)` is `DomainSpec("box", (0, 1))`; `cuts` narrow it."""

    kind: str
    args: tuple[Expr, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    cuts: tuple[Cut, ...] = ()


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
    `distribution` is set.
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


@dataclass(frozen=True)
class Let:
    """Abbreviation of an expression."""

    name: str
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Constraint:
    """Constraint `label: left relation right timing`, one for each entry of the broadcast shape."""

    label: str
    left: Expr
    relation: Relation
    right: Expr
    timing: Timing
    shape: Shape = ()
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
class Model:
    """Complete model. Equality compares content, not where it was written."""

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
    folder: Path | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def table(self) -> Mapping[str, Param | Decision | Stream | Let]:
        """Declarations by name."""
        declared: list[Param | Decision | Stream | Let] = [*self.params, *self.decisions, *self.streams, *self.lets]
        return {d.name: d for d in declared}

    def with_horizon(self, rounds: int | None) -> Model:
        """Model for so many rounds; None for an unknown number."""
        return replace(self, horizon=Horizon(None if rounds is None else constant(rounds), self.horizon.span))

    def to_oco(self) -> str:
        """Text of the model as a file of the language; `oco.parse` of it gives an equal model."""
        from oco.dsl.text.printer import print_model

        return print_model(self)

    def __str__(self) -> str:
        return self.to_oco()

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        from oco.dsl.text.notebook import model_html

        return model_html(self)

    def _repr_latex_(self) -> str:
        from oco.dsl.text.latex import model_latex

        return model_latex(self)
