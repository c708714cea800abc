"""Predictors of what the streams of a round add to a constraint in a share of the rounds (see `margin_predictions`), with the usual size of
their errors at the round, and the one by the phase of a season; `regressed_margins` has those whose sizes follow a regression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Protocol

import numpy as np

from oco.compiler.problem.kept_values import coefficient, kept_range, one_minus, put_row
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.build import applied, call
from oco.dsl.expressions import Array, Expr, Name, constant
from oco.dsl.records import dataclass

LEAST_ERRORS = 3.0  # that are seen before a quantile of them stands for a margin
FORGETTING, FORGETTING_SIZES, MOMENTS = 0.05, 0.05, 0.005
"""Rates at which averages of a phase, usual sizes of errors, and moments of residuals forget."""
COMPARED = 0.1
"""Least share whose quantiles are compared: those of rarer rounds are exceeded too seldom to tell predictors apart."""
FIRST_SIZES, OF_SIZES = 2.0, 0.05
"""Usual sizes that a predictor's own quantile begins above its prediction, and the step of its subgradient descent on the pinball loss."""
TINY, NEVER = 1e-9, 1e100


class Errors(Protocol):
    """Errors of which a margin is a quantile: see `Margins`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the constraint."""

    @property
    def now(self) -> Expr:
        """Sum e_t that the streams of the round add, over the decision and these streams."""

    @property
    def round(self) -> Name:
        """Number of the round among those of its learner."""

    @property
    def share(self) -> float:
        """Share of the rounds in which the constraint may be broken."""

    @property
    def window(self) -> int:
        """Number of errors that are kept."""

    @property
    def prediction(self) -> Expr:
        """Prediction of e_t by the model's own ones of the streams."""

    def value(self, name: str, shape: tuple[int, ...] | None = None) -> Name:
        """Value kept under a name."""


@dataclass(frozen=True, eq=False)
class MarginPredictor(ABC):
    """Predictor with a base, to which a share of the last residual is added, and errors over their usual sizes."""

    of: Errors

    @property
    @abstractmethod
    def label(self) -> str:
        """Word in the names of what it keeps."""

    @property
    @abstractmethod
    def base(self) -> Expr:
        """Prediction of this round without a share of the last residual."""

    @property
    @abstractmethod
    def size_now(self) -> Expr:
        """Usual size of its error in this round."""

    @property
    def begins(self) -> int:
        """Round after which it has a base."""
        return 0

    @property
    def times(self) -> Expr:
        """Factor of the model's own prediction of the next round, which is added to what is `made`."""
        return constant(np.zeros(self.of.shape))

    @property
    def size_times(self) -> Expr:
        """Factor of that prediction, which is added to the usual `size` of errors."""
        return constant(np.zeros(self.of.shape))

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that it keeps, with what follows them."""
        return kept_range(self.errors, self.errors_after), kept_range(self.moments, self.moments_after)

    def _value(self, what: str, *shape: int) -> Name:
        return self.of.value(f"{what}_{self.label}", (*shape, *self.of.shape))

    @cached_property
    def errors(self) -> Name:
        """Last errors over their usual sizes."""
        return self._value("error", self.of.window)

    @cached_property
    def moments(self) -> Name:
        """Last residual, the moments of residuals with those before and of these, the average cost of its quantile, and the usual sizes
        that this quantile is above the prediction, less `FIRST_SIZES`.
        """
        return self._value("moments", 5)

    @cached_property
    def _has_base(self) -> Expr:
        """1 once there is a base."""
        return call("_positive", call("sub", self.of.round, self.begins + 0.5))

    @cached_property
    def _last(self) -> tuple[Expr, ...]:
        return tuple(algebra.index(self.moments, (constant(i),)) for i in range(5))

    @cached_property
    def _residual(self) -> Expr:
        return call("sub", self.of.now, self.base)

    @cached_property
    def _error(self) -> Expr:
        last, cross, square, _, _ = self._last
        return call("sub", self._residual, call("mul", coefficient(cross, square, -1.0, 1.0), last))

    # After it.

    @cached_property
    def errors_after(self) -> Expr:
        """Errors with that of this round, once there is a usual size of them."""
        scaled = call("div", self._error, call("maximum", self.size_now, TINY))
        before = call("sub", self.of.round, self.begins + 2)
        row = call("mod", call("maximum", before, 0), self.of.window)
        counts = call("_positive", call("add", before, 0.5))
        own = algebra.index(self.errors, (row,))
        return put_row(self.errors, row, call("add", own, call("mul", counts, call("sub", scaled, own))))

    @cached_property
    def moments_after(self) -> Expr:
        """Moments with the residual of this round."""
        last, cross, square, cost, sizes = self._last
        own = call("mul", self._has_base, self._residual)
        share, quantile = max(self.of.share, COMPARED), call("add", sizes, FIRST_SIZES)
        above = call("sub", self._error, call("mul", quantile, self.size_now))
        pinball = call("maximum", call("mul", 1 - share, above), call("mul", -share, above))
        step = call("mul", self._has_base, call("sub", call("_positive", above), share))
        count = call("maximum", call("sub", self.of.round, self.begins), 1.0)
        rate = call("mul", self._has_base, call("maximum", MOMENTS, call("div", 1.0, count)))
        parts = (
            own,
            call("add", call("mul", 1 - MOMENTS, cross), call("mul", own, last)),
            call("add", call("mul", 1 - MOMENTS, square), call("square", last)),
            call("add", cost, call("mul", rate, call("sub", pinball, cost))),
            call("add", sizes, call("mul", OF_SIZES, step)),
        )
        stretched = tuple(algebra.broadcast(p, self.of.shape) for p in parts)
        return Array(stretched, shape=(5, *self.of.shape))

    # Of the next round.

    @cached_property
    def count(self) -> Expr:
        """Number of errors that are kept."""
        whole = call("sub", self.of.round, self.begins + 1)
        return algebra.broadcast(call("minimum", call("maximum", whole, 0.0), float(self.of.window)), self.of.shape)

    @cached_property
    def moved(self) -> Expr:
        """Share of the residual of this round that the prediction of the next one adds to its base."""
        last, cross, square, _, _ = self._after
        return call("mul", coefficient(cross, square, -1.0, 1.0), last)

    @cached_property
    def cost(self) -> Expr:
        """Average pinball loss of its quantile, which is proper for quantiles; never the least before there are errors enough."""
        few = one_minus(call("_positive", call("sub", self.of.round, self.begins + 1 + LEAST_ERRORS - 0.5)))
        return call("add", self._after[3], call("mul", NEVER, few))

    @cached_property
    def _after(self) -> tuple[Expr, ...]:
        assert isinstance(self.moments_after, Array)
        return self.moments_after.items


@dataclass(frozen=True, eq=False)
class BySeason(MarginPredictor):
    """Predictor with the average of rounds k apart as base; of all rounds for k = 1."""

    k: int

    @property
    def label(self) -> str:
        """Word in the names of what it keeps."""
        return str(self.k)

    @property
    def begins(self) -> int:
        """Round after which it has a base."""
        return self.k

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that it keeps, with what follows them."""
        own = ((self.sizes, self.sizes_after), (self.profile, self.profile_after))
        return (*super().ranges, *(kept_range(name, following) for name, following in own))

    @cached_property
    def profile(self) -> Name:
        """Averages of the phases of the season."""
        return self._value("profile", self.k)

    @cached_property
    def sizes(self) -> Name:
        """Usual sizes of errors at each phase."""
        return self._value("size", self.k)

    @cached_property
    def _row(self) -> Expr:
        return call("mod", call("sub", self.of.round, 1), self.k)

    @cached_property
    def base(self) -> Expr:
        """Average of its phase."""
        return algebra.index(self.profile, (self._row,))

    @cached_property
    def size_now(self) -> Expr:
        """Usual size of its error in this round."""
        return self._usual(self.sizes, self._row, call("sub", self.of.round, 1))

    @cached_property
    def profile_after(self) -> Expr:
        """Averages with this round in its phase."""
        visits = call("div", call("sub", call("sub", self.of.round, 1), self._row), float(self.k))
        rate = call("maximum", FORGETTING, call("div", 1.0, call("add", visits, 1.0)))
        return put_row(self.profile, self._row, call("add", self.base, call("mul", rate, self._residual)))

    @cached_property
    def sizes_after(self) -> Expr:
        """Sizes with the error of this round in its phase."""
        own = algebra.index(self.sizes, (self._row,))
        visits = call("div", call("sub", call("sub", self.of.round, 1), self._row), float(self.k))
        visits = call("maximum", visits, 1.0)
        rate = call("mul", self._has_base, call("maximum", FORGETTING_SIZES, call("div", 1.0, visits)))
        moved = call("add", own, call("mul", rate, call("sub", call("abs", self._error), own)))
        return put_row(self.sizes, self._row, moved)

    @cached_property
    def made(self) -> Expr:
        """Prediction."""
        return call("add", algebra.index(self.profile_after, (self._next_row,)), self.moved)

    @cached_property
    def size(self) -> Expr:
        """Usual size of its error at the phase of the next round."""
        return self._usual(self.sizes_after, self._next_row, self.of.round)

    @cached_property
    def _next_row(self) -> Expr:
        return call("mod", self.of.round, self.k)

    def _usual(self, sizes: Expr, row: Expr, rounds: Expr) -> Expr:
        """Usual size at a phase: half its own, once it has one, and half the mean of all, after so many rounds."""
        filled = call("sub", rounds, self.begins)
        count = call("minimum", call("maximum", filled, 1.0), float(self.k))
        mean = call("div", applied("sum", (sizes,), (("axis", 0),)), count)
        own = call("mul", 0.5, call("_positive", call("sub", filled, self.k - 0.5)))
        return call("add", mean, call("mul", own, call("sub", algebra.index(sizes, (row,)), mean)))
