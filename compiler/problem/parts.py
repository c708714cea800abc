"""Parts of the canonical problem: decisions with their sets, inequalities, equalities, assumptions, and the labels of entries."""

from __future__ import annotations

from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.problem.margins import ShareMargin
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, constant
from oco.dsl.labels import Axes, entry_name
from oco.dsl.records import dataclass
from oco.dsl.source import Span
from oco.dsl.statements import Relation, Stream, Timing


@dataclass(frozen=True)
class DecisionBlock:
    """One decision and the set it lies in; `rounded`: what is played is drawn among the extreme points of that set."""

    name: str
    shape: tuple[int, ...]
    domain: Domain
    span: Span | None = field(default=None, compare=False, repr=False)
    rounded: bool = False


@dataclass(frozen=True)
class TotalBudget:
    """Budget for all rounds in total, an entry each for the entries of the constraint (see `totals`).

    cost    what a round costs; worst  the most that it can, of what is known before the decision alone
    name    of what was spent before the round, among the streams
    total   B; kept  b, what is left of it for rounding; most  the largest cost of a round
    free    decision that costs nothing in any round, the entries of each block
    """

    cost: Expr
    worst: Expr
    name: str
    total: tuple[float, ...]
    kept: tuple[float, ...]
    most: tuple[float, ...]
    rounds: int
    shape: tuple[int, ...] = ()
    free: tuple[tuple[float, ...], ...] = ()

    @property
    def robust(self) -> Expr:
        """Constraint of a round on a decision that never costs more than an even part."""
        return call("sub", self.worst, constant(self._array(self.kept) / self.rounds))

    @property
    def moving(self) -> Expr:
        """Constraint of the round, after what was spent: never ahead of an even plan."""
        played = call("minimum", Name("t", Kind.ROUND, integer=True), constant(float(self.rounds)))
        plan = call("mul", played, constant(self._array(self.kept) / self.rounds))
        return call("sub", call("add", self._spent, self.worst), plan)

    @property
    def measured(self) -> Expr:
        """Cost of a round beyond an even part, whose mean over the rounds is at most 0 exactly where the total is kept."""
        return call("sub", self.cost, constant(self._array(self.total) / self.rounds))

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Range of what was spent, a value that is known before the decision; it begins at 0."""
        stream = Stream(self.name, (), self.shape, None)
        zero, most = np.zeros(self.shape), self._array(self.total)
        following, at_once = (call("add", self._spent, paid) for paid in (self.cost, self.worst))
        own = StreamRange(self.name, self.shape, zero, most, False, stream, first=zero, following=following)
        return (replace(own, at_once=at_once),)

    @property
    def words(self) -> str:
        """Guarantee, and with what decisions the learner is compared."""
        ends = sorted({f"{b:.6g}" for b in self.total}, key=float)
        size = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
        return (
            f"at most {size} is spent, on every sequence; regret is bounded against decisions that never spend more of it in a round than "
            f"its {self.rounds:,}th part"
        )

    @property
    def _spent(self) -> Expr:
        return Name(self.name, Kind.STREAM, shape=self.shape)

    def _array(self, values: tuple[float, ...]) -> np.ndarray[Any, Any]:
        return np.reshape(np.array(values), self.shape)


@dataclass(frozen=True)
class Inequality:
    """`expr <= 0` entry by entry, for the entries of `shape`. `origin` is the label in the text.

    `penalties` holds the loss that a unit of violation of each entry is worth, in the units of the problem; empty where none is stated.
    `known`: each round, and made of contexts, previous decisions, the round and fixed data beside, so that the decision can satisfy it
    exactly. `moving` is its expression over previous decisions where there are some; in `expr` they are the decision itself.
    `margin` is that of a constraint in a share of the rounds: `expr` then has the greatest margin, `moving` that of the round.
    `budget` is that of a constraint in total: `expr` then has an even part of it, `moving` what is left by the plan.
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
    budget: TotalBudget | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def half(self) -> str:
        """Side of the equality that it is half of: `above` or `below`; "" where the text has it as an inequality."""
        return self.label.removeprefix(f"{self.origin}.") if self.label.startswith(f"{self.origin}.") else ""

    @property
    def proviso(self) -> str:
        """Words after its name where more is asked than it says."""
        return "" if self.margin is None else " with the greatest margin that it may learn"

    @property
    def when(self) -> str:
        """Words of the model for the time at which it has to hold."""
        if self.budget is not None:
            return str(Timing.IN_TOTAL)
        return str(self.timing) if self.margin is None else f"in {100 * (1 - self.margin.share):.10g}% of rounds"

    @property
    def learned(self) -> ShareMargin | TotalBudget | None:
        """Margin or budget that a learner keeps for it from round to round."""
        return self.margin if self.budget is None else self.budget

    @property
    def before_round(self) -> Inequality:
        """Known constraint as a learner meets it in a round."""
        if self.budget is not None:
            return replace(self, expr=self.budget.moving, moving=self.budget.robust, timing=Timing.EACH_ROUND)
        return self if self.moving is None else replace(self, expr=self.moving, moving=self.expr)

    @property
    def in_hindsight(self) -> Inequality:
        """Known constraint, as `before_round` gives it, on decisions that stand still: those in hindsight keep a total over all rounds."""
        if self.budget is not None:
            return replace(self, expr=self.budget.measured, timing=Timing.ON_AVERAGE)
        return self if self.moving is None else replace(self, expr=self.moving, moving=self.expr)

    @property
    def as_measured(self) -> Inequality:
        """Known constraint on what was played: margins left out, a total over all rounds."""
        if self.budget is not None:
            return self.in_hindsight
        return self if self.margin is None else replace(self, expr=self.margin.measured)


@dataclass(frozen=True)
class Equality:
    """`expr == 0` entry by entry, on average over the rounds; affine in the decisions. `penalties` as those of an inequality."""

    label: str
    shape: tuple[int, ...]
    expr: Expr
    span: Span | None = field(default=None, compare=False, repr=False)
    penalties: tuple[float, ...] = ()

    proviso = ""

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
