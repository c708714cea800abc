"""Margin of the next round of a constraint in a share of the rounds, from what its constraint was in the rounds before.

With e_t = g(x_t; s_t) - g(x_t; s^), what the streams of round t add to the constraint, predictors p_k(t) of e_t are

    base_k(t) + phi_k (e_{t-1} - base_k(t-1)),    base_k: average of e at rounds t - k, t - 2 k, ..., which forgets,

one for each season k (1: all rounds), and one with the model's own predictions of the streams as base; phi_k is the regression
coefficient of a residual on the one before. The predictor with the least average squared error is taken; its errors over the last rounds,
each over the usual size of errors at its phase of the season, have a quantile Q at level 1 - a, and the margin is p + Q times that size.
All of it is arithmetic of expressions over values that rounds leave to the next, so that every backend and every report knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.dsl import algebra
from oco.dsl.build import applied, call
from oco.dsl.expressions import Array, Expr, Kind, Name, constant
from oco.dsl.statements import Stream

SEASONS = (1, 7, 24, 96, 168)
"""Seasons that are tried, in rounds: none, and those of weeks of days, of days of hours and of quarters, and of weeks of hours."""
LEAST_SEASONS = 3
"""Times that a season must fit into the horizon to be tried."""
MOST_NUMBERS = 300_000
"""Numbers that the seasons of a constraint may keep, beyond which the longest are left out."""
WINDOWS = (100, 400)
"""Least and greatest number of errors that are kept; between them four for each round in which the constraint may be broken."""
LEAST_ERRORS = 3.0  # that are seen before a quantile of them stands for a margin
FORGETTING, FORGETTING_SIZES, MOMENTS = 0.05, 0.05, 0.005
"""Rates at which averages of a phase, usual sizes of errors, and moments of residuals forget."""
BEYOND = 0.5
"""Part of the largest error by which the margin exceeds it as the level 1 - a goes to 1."""
TINY, NEVER = 1e-9, 1e100
_NOW = Name("t", Kind.ROUND, integer=True)


@dataclass(frozen=True, eq=False)
class Margins:
    """Values that rounds leave to the next for the margin of one constraint.

    label   of the constraint, with which their names end; none of `taken` is one
    now     e_t, over the decision and the streams of the round
    least, most   ends of the margin, entry by entry
    stated  prediction of e_t by those of the streams; None where the model states none
    """

    label: str
    shape: tuple[int, ...]
    now: Expr
    least: Floats
    most: Floats
    share: float
    horizon: int | None
    stated: Expr | None = None
    taken: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def window(self) -> int:
        """Number of errors that are kept."""
        return int(np.clip(np.ceil(4 / self.share), *WINDOWS))

    @cached_property
    def predictors(self) -> tuple[_Predictor, ...]:
        """Predictors: the one by the model's own predictions, and one for each season."""
        stated = () if self.stated is None else (_Predictor(self, 0, 1),)
        most = np.inf if self.horizon is None else self.horizon / LEAST_SEASONS
        size, kept, left = int(np.prod(self.shape, dtype=np.int64)), list[int](), MOST_NUMBERS
        for k in SEASONS:
            left -= (2 * k + self.window) * size
            if k == 1 or (k <= most and left > 0):
                kept.append(k)
        return (*stated, *(_Predictor(self, i + len(stated), k) for i, k in enumerate(kept)))

    @cached_property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that are kept beside margin and credit."""
        return tuple(r for p in self.predictors for r in p.ranges)

    def value(self, name: str, shape: tuple[int, ...] | None = None) -> Name:
        """Value kept under a name, which is none of the model's."""
        name = f"{name}_{self.label}"
        while name in self.taken:
            name += "_"
        return Name(name, Kind.STREAM, shape=self.shape if shape is None else shape)

    def of_round(self, margin: Name, by_prediction: Name) -> Expr:
        """Margin of the round, from the value that the round before left, and with the model's own prediction where that is the best."""
        if self.stated is None:
            return margin
        moved = call("add", margin, call("mul", by_prediction, self.prediction))
        return call("maximum", call("minimum", moved, constant(self.most)), constant(self.least))

    @cached_property
    def prediction(self) -> Expr:
        """Prediction of e_t by the model's own ones of the streams, within the ends of the margin."""
        assert self.stated is not None
        least = np.minimum(self.least, 0.0)
        return call("maximum", call("minimum", self.stated, constant(self.most)), constant(least))

    def following(self, credit: Expr) -> tuple[Expr, Expr]:
        """Margin of the next round where the credit is above 0, and 1 where the stated prediction is to be added to it, else 0.

        credit  rounds that may still be broken, after this one
        """
        costs = [p.cost for p in self.predictors]
        best = costs[0]
        for c in costs[1:]:
            best = call("minimum", best, c)
        ties = [_one_minus(call("_positive", call("sub", c, best))) for c in costs]
        total = _sum(ties)
        weights = [call("div", w, total) for w in ties]
        made, size, count = (
            _sum([call("mul", w, getattr(p, part)) for w, p in zip(weights, self.predictors)])
            for part in ("made", "size", "count")
        )
        errors = _sum([call("mul", w, p.errors_after) for w, p in zip(weights, self.predictors)])
        level = self._level(credit)
        amount = call("mul", _one_minus(level), call("add", count, 1.0))
        some = call("maximum", count, 1.0)
        quantile = call("_quantile", errors, some, call("minimum", amount, some))
        short = call("maximum", _one_minus(call("mul", level, call("add", count, 1.0))), 0.0)
        factor = call("add", quantile, call("mul", call("mul", BEYOND, short), call("maximum", quantile, 1.0)))
        stated = weights[0] if self.stated is not None else constant(np.zeros(self.shape))
        return call("add", made, call("mul", factor, size)), call("mul", stated, self._ready)

    @property
    def ready(self) -> Expr:
        """1 where some predictor has errors enough, else 0."""
        return self._ready

    @cached_property
    def _ready(self) -> Expr:
        return call("_positive", call("sub", _NOW, 2 + LEAST_ERRORS - 0.5))

    def _level(self, credit: Expr) -> Expr:
        """Level a: the share where the credit is a standard deviation of the rounds to come that are broken, and in proportion."""
        rest = 1000.0 if self.horizon is None else call("maximum", call("sub", float(self.horizon), _NOW), 0.0)
        buffer = call("maximum", call("sqrt", call("mul", 0.5 * self.share, rest)), 1.0)
        spare = call("maximum", call("sub", credit, 1 - self.share), 0.0)
        return call("minimum", call("mul", self.share, call("div", spare, buffer)), 2 * self.share)


@dataclass(frozen=True, eq=False)
class _Predictor:
    """Predictor number `place` of a margin, of a season of k rounds."""

    of: Margins
    place: int
    k: int

    @property
    def is_stated(self) -> bool:
        """True for the one whose base is made of the model's own predictions."""
        return self.of.stated is not None and self.place == 0

    @property
    def begins(self) -> int:
        """Round after which it has a base."""
        return 0 if self.is_stated else self.k

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that it keeps, with what follows them."""
        kept = [(self.sizes, self.sizes_after), (self.errors, self.errors_after), (self.moments, self.moments_after)]
        kept += [] if self.is_stated else [(self.profile, self.profile_after)]
        return tuple(kept_range(name, following) for name, following in kept)

    def _value(self, what: str, *shape: int) -> Name:
        own = "stated" if self.is_stated else str(self.k)
        return self.of.value(f"{what}_{own}", (*shape, *self.of.shape))

    @cached_property
    def profile(self) -> Name:
        """Averages of the phases of the season."""
        return self._value("profile", self.k)

    @cached_property
    def sizes(self) -> Name:
        """Usual sizes of errors at each phase."""
        return self._value("size", self.k)

    @cached_property
    def errors(self) -> Name:
        """Last errors over their usual sizes."""
        return self._value("error", self.of.window)

    @cached_property
    def moments(self) -> Name:
        """Last residual, the moments of residuals with those before and of these, and the average squared error."""
        return self._value("moments", 4)

    # In this round.

    @cached_property
    def _row(self) -> Expr:
        return call("mod", call("sub", _NOW, 1), self.k)

    @cached_property
    def _has_base(self) -> Expr:
        """1 once there is a base."""
        return call("_positive", call("sub", _NOW, self.begins + 0.5))

    @cached_property
    def _base(self) -> Expr:
        if self.is_stated:
            return self.of.prediction
        return algebra.index(self.profile, (self._row,))

    @cached_property
    def _last(self) -> tuple[Expr, Expr, Expr, Expr]:
        a, b, c, d = (algebra.index(self.moments, (constant(i),)) for i in range(4))
        return a, b, c, d

    @cached_property
    def _residual(self) -> Expr:
        return call("sub", self.of.now, self._base)

    @cached_property
    def _error(self) -> Expr:
        last, cross, square, _ = self._last
        return call("sub", self._residual, call("mul", _coefficient(cross, square), last))

    # After it.

    @cached_property
    def profile_after(self) -> Expr:
        """Averages with this round in its phase."""
        visits = call("div", call("sub", call("sub", _NOW, 1), self._row), float(self.k))
        rate = call("maximum", FORGETTING, call("div", 1.0, call("add", visits, 1.0)))
        return _put(self.profile, self._row, call("add", self._base, call("mul", rate, self._residual)))

    @cached_property
    def sizes_after(self) -> Expr:
        """Sizes with the error of this round in its phase."""
        own = algebra.index(self.sizes, (self._row,))
        visits = call("div", call("sub", call("sub", _NOW, 1), self._row), float(self.k))
        visits = call("add", visits, 1.0) if self.is_stated else call("maximum", visits, 1.0)
        rate = call("mul", self._has_base, call("maximum", FORGETTING_SIZES, call("div", 1.0, visits)))
        moved = call("add", own, call("mul", rate, call("sub", call("abs", self._error), own)))
        return _put(self.sizes, self._row, moved)

    @cached_property
    def errors_after(self) -> Expr:
        """Errors with that of this round, once there is a usual size of them."""
        size = self._usual(self.sizes, self._row, call("sub", _NOW, 1))
        scaled = call("div", self._error, call("maximum", size, TINY))
        before = call("sub", _NOW, self.begins + 2)
        row = call("mod", call("maximum", before, 0), self.of.window)
        counts = call("_positive", call("add", before, 0.5))
        own = algebra.index(self.errors, (row,))
        return _put(self.errors, row, call("add", own, call("mul", counts, call("sub", scaled, own))))

    @cached_property
    def moments_after(self) -> Expr:
        """Moments with the residual of this round."""
        last, cross, square, cost = self._last
        own = call("mul", self._has_base, self._residual)
        error = call("square", self._error)
        count = call("maximum", call("sub", _NOW, self.begins), 1.0)
        rate = call("mul", self._has_base, call("maximum", MOMENTS, call("div", 1.0, count)))
        parts = (
            own,
            call("add", call("mul", 1 - MOMENTS, cross), call("mul", own, last)),
            call("add", call("mul", 1 - MOMENTS, square), call("square", last)),
            call("add", cost, call("mul", rate, call("sub", error, cost))),
        )
        stretched = tuple(algebra.broadcast(p, self.of.shape) for p in parts)
        return Array(stretched, shape=(4, *self.of.shape))

    # Of the next round.

    @cached_property
    def count(self) -> Expr:
        """Number of errors that are kept."""
        whole = call("sub", _NOW, self.begins + 1)
        return algebra.broadcast(call("minimum", call("maximum", whole, 0.0), float(self.of.window)), self.of.shape)

    @cached_property
    def made(self) -> Expr:
        """Prediction; without its base where that is the model's own, which waits for what is known before the round."""
        last, cross, square, _ = self._after
        moved = call("mul", _coefficient(cross, square), last)
        return moved if self.is_stated else call("add", algebra.index(self.profile_after, (self._next_row,)), moved)

    @cached_property
    def size(self) -> Expr:
        """Usual size of its error at the phase of the next round."""
        return self._usual(self.sizes_after, self._next_row, _NOW)

    @cached_property
    def cost(self) -> Expr:
        """Average squared error; never the least before there are errors enough."""
        few = _one_minus(call("_positive", call("sub", _NOW, self.begins + 1 + LEAST_ERRORS - 0.5)))
        return call("add", self._after[3], call("mul", NEVER, few))

    @cached_property
    def _next_row(self) -> Expr:
        return call("mod", _NOW, self.k)

    @cached_property
    def _after(self) -> tuple[Expr, Expr, Expr, Expr]:
        assert isinstance(self.moments_after, Array)
        a, b, c, d = self.moments_after.items
        return a, b, c, d

    def _usual(self, sizes: Expr, row: Expr, rounds: Expr) -> Expr:
        """Usual size at a phase: half its own, once it has one, and half the mean of all, after so many rounds."""
        filled = call("sub", rounds, self.begins)
        count = call("minimum", call("maximum", filled, 1.0), float(self.k))
        mean = call("div", applied("sum", (sizes,), (("axis", 0),)), count)
        own = call("mul", 0.5, call("_positive", call("sub", filled, self.k - 0.5)))
        return call("add", mean, call("mul", own, call("sub", algebra.index(sizes, (row,)), mean)))


def kept_range(
    name: Name, following: Expr, first: Floats | float = 0.0, ends: tuple[Floats, Floats] | None = None
) -> StreamRange:
    """Value that a round leaves to the next, with what it is in round 1 and the ends of its range."""
    shape = tuple(n for n in name.shape if isinstance(n, int))
    low, high = (np.asarray(-np.inf), np.asarray(np.inf)) if ends is None else ends
    stream = Stream(name.name, (), shape, None)
    start = np.broadcast_to(np.asarray(first, dtype=np.float64), shape)
    return StreamRange(name.name, shape, low, high, False, stream, first=start, following=following)


def _coefficient(cross: Expr, square: Expr) -> Expr:
    return call("maximum", call("minimum", call("div", cross, call("maximum", square, 1e-290)), 1.0), -1.0)


def _put(rows: Expr, row: Expr, value: Expr) -> Expr:
    """Rows with another value in one of them."""
    shape = tuple(n for n in rows.shape if isinstance(n, int))
    mask = call("_scatter", np.ones(shape[1:]), row, shape=shape)
    return call("add", rows, call("mul", mask, call("sub", value, rows)))


def _one_minus(x: Expr) -> Expr:
    return call("sub", 1.0, x)


def _sum(parts: Sequence[Expr]) -> Expr:
    total = parts[0]
    for p in parts[1:]:
        total = call("add", total, p)
    return total
