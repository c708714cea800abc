"""Parts of the canonical problem: decisions with their sets, inequalities, equalities, assumptions, and the labels of entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.problem.margins import ShareMargin
from oco.dsl.expressions import Expr
from oco.dsl.labels import Axes, entry_name
from oco.dsl.source import Span
from oco.dsl.statements import Relation, Timing


@dataclass(frozen=True)
class DecisionBlock:
    """One decision and the set it lies in; `rounded`: what is played is drawn among the extreme points of that set."""

    name: str
    shape: tuple[int, ...]
    domain: Domain
    span: Span | None = field(default=None, compare=False, repr=False)
    rounded: bool = False


@dataclass(frozen=True)
class Inequality:
    """`expr <= 0` entry by entry, for the entries of `shape`. `origin` is the label in the text.

    `penalties` holds the loss that a unit of violation of each entry is worth, in the units of the problem; empty where none is stated.
    `known`: each round, and made of contexts, previous decisions, the round and fixed data beside, so that the decision can satisfy it
    exactly. `moving` is its expression over previous decisions where there are some; in `expr` they are the decision itself.
    `margin` is that of a constraint in a share of the rounds: `expr` then has the greatest margin, `moving` that of the round.
    """

    label: str
    shape: tuple[int, ...]
    expr: Expr
    timing: Timing
    origin: str
    span: Span | None = field(default=None, compare=False, repr=False)
    penalties: tuple[float, ...] = ()
    known: bool = False
    moving: Expr | None = field(default=None, repr=False)
    margin: ShareMargin | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def when(self) -> str:
        """Words of the model for the time at which it has to hold."""
        return str(self.timing) if self.margin is None else f"in {100 * (1 - self.margin.share):.10g}% of rounds"


@dataclass(frozen=True)
class Equality:
    """`expr == 0` entry by entry, on average over the rounds; affine in the decisions. `penalties` as those of an inequality."""

    label: str
    shape: tuple[int, ...]
    expr: Expr
    span: Span | None = field(default=None, compare=False, repr=False)
    penalties: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Assumed:
    """`assume key relation value`, the value worked out."""

    key: str
    relation: Relation
    value: float
    span: Span | None = field(default=None, compare=False, repr=False)


@lru_cache(maxsize=64)
def entry_labels(label: str, shape: tuple[int, ...], axes: Axes = ()) -> tuple[str, ...]:
    """`limits[0]`, `limits[1]`, or by the names of the axes `limits[NYC]`, `limits[WEST]`; for a scalar the label itself."""
    if not shape:
        return (label,)
    return tuple(f"{label}[{entry_name(axes, i)}]" for i in np.ndindex(*shape))
