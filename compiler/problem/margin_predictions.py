"""Margin of the next round of a constraint in a share of the rounds, from what its constraint was in the rounds before.

With e_t = g(x_t; s_t) - g(x_t; s^), what the streams of round t add to the constraint, predictors p_k(t) of e_t are

    base_k(t) + phi_k (e_{t-1} - base_k(t-1)),    base_k: average of e at rounds t - k, t - 2 k, ..., which forgets,

one for each season k (1: all rounds; those measured on data with their weeks, else usual ones), one with the average of the last rounds
as base, one with the model's own predictions of the streams, and one with the regression of e_t on these, over rounds that it forgets;
phi_k is the regression coefficient of a residual on the one before. Each keeps a quantile of its own at the level of the share, or of a
tenth where that is more, by subgradient descent on the pinball loss, and the one whose average pinball loss is least is taken: that loss is
proper for quantiles, squared errors are not. Its errors over the last rounds, each over the usual size of errors at the phase of the season
or at the prediction, have a quantile Q at level 1 - a, and the margin is p + Q times that size.
All of it is arithmetic of expressions over values that rounds leave to the next, so that every backend and every report knows them.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from math import gcd

import numpy as np

from oco.compiler.problem.calendars import with_weeks
from oco.compiler.problem.kept_values import added, one_minus, round_of
from oco.compiler.problem.margin_predictors import LEAST_ERRORS, BySeason, MarginPredictor
from oco.compiler.problem.regressed_margins import ByForecast, ByLevel
from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, constant
from oco.dsl.records import dataclass

SEASONS = (7, 24, 96, 168)
"""Seasons that are tried where those of the data are unknown, in rounds: weeks of days, days of hours and of quarters, weeks of hours."""
LEAST_SEASONS = 3
"""Times that a season must fit into the horizon to be tried."""
MOST_NUMBERS = 300_000
"""Numbers that the seasons of a constraint may keep, beyond which the longest are left out."""
WINDOWS, BROKEN = (100, 400), 10.0
"""Least and greatest number of errors that are kept; between them so many that `BROKEN` rounds may be broken in as many: the number of
errors above their quantile is off by a third then, and fewer cost more in margins than they gain in following."""
BEYOND = 0.5
"""Part of the largest error by which the margin exceeds it as the level 1 - a goes to 1."""

SAFE = 0.5
"""Part of a standard deviation of the rounds to come that are broken; where credit and loan are less, the level falls."""
RECOVERING = 0.5
"""Part of the share that is the least level of fallbacks: rounds that were broken too often are made up for at half the share of each."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Values that rounds leave to the next for the margin of one constraint.

    label   of the constraint, with which their names end; none of `taken` is one
    now     e_t, over the decision and the streams of the round
    least, most   ends of the margin, entry by entry
    stated  prediction of e_t by those of the streams; None where the model states none
    seasons of the data, in rounds; none where they are unknown
    turns   learners that take turns, each with a margin of its own: rounds, seasons and the horizon are then those of one of them
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
    seasons: tuple[int, ...] = ()
    turns: int = 1

    @property
    def round(self) -> Name:
        """Number of the round among those of its learner."""
        return round_of(self.turns)

    @cached_property
    def window(self) -> int:
        """Number of errors that are kept."""
        return int(np.clip(np.ceil(BROKEN / self.share), *WINDOWS))

    @cached_property
    def predictors(self) -> tuple[MarginPredictor, ...]:
        """Predictors: two by the model's own predictions, as they are and calibrated, one by the last rounds, and one for each season."""
        stated = () if self.stated is None else (ByForecast(self, False), ByForecast(self, True))
        most = np.inf if self.own_horizon is None else self.own_horizon / LEAST_SEASONS
        size, kept, left = int(np.prod(self.shape, dtype=np.int64)), list[int](), MOST_NUMBERS
        known = {1, *(n for s in self.seasons for n in with_weeks(s)), *(() if self.seasons else SEASONS)}
        for k in sorted({k // gcd(k, self.turns) for k in known}):
            left -= (2 * k + self.window) * size
            if k == 1 or (k <= most and left > 0):
                kept.append(k)
        return (*stated, ByLevel(self), *(BySeason(self, k) for k in kept))

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

    @cached_property
    def loan(self) -> Expr:
        """Credit that is lent after the next round, b_{t+1}."""
        left = self._left(call("add", self.round, 1.0))
        return call("minimum", self._deviation(left), call("mul", self.share, left))

    @property
    def own_horizon(self) -> int | None:
        """Rounds that each learner plays at least; None where the horizon is unknown."""
        return None if self.horizon is None else self.horizon // self.turns

    def lent(self, rounds: int) -> float:
        """Credit that is lent after so many rounds, all learners together."""
        left = 0 if self.own_horizon is None else max(self.own_horizon - rounds // self.turns, 0)
        return self.turns * float(min(np.sqrt(0.5 * self.share * left), self.share * left))

    def _left(self, rounds: Expr) -> Expr:
        """Rounds of the horizon that are left after so many; none where it is unknown."""
        if self.own_horizon is None:
            return constant(0.0)
        return call("maximum", call("sub", float(self.own_horizon), rounds), 0.0)

    def _deviation(self, left: Expr) -> Expr:
        """Standard deviation of those of so many rounds that are broken."""
        return call("sqrt", call("mul", 0.5 * self.share, left))

    def following(self, credit: Expr) -> tuple[Expr, Expr]:
        """Margin of the next round where the credit is above 0, and how many times the stated prediction is added to it.

        credit  rounds that may still be broken, after this one
        """
        return self._at_level(self._level(credit))

    def fallback(self, credit: Expr) -> tuple[Expr, Expr]:
        """Margin, and these times, at a level that is at least a part of the share, whatever the credit."""
        return self._at_level(call("maximum", self._level(credit), RECOVERING * self.share))

    def _at_level(self, level: Expr) -> tuple[Expr, Expr]:
        """Margin of the next round that is exceeded in a share `level` of the rounds, and how many times the stated prediction is added."""
        weights = self._weights
        made, size, count = (
            added([call("mul", w, getattr(p, part)) for w, p in zip(weights, self.predictors)])
            for part in ("made", "size", "count")
        )
        errors = added([call("mul", w, p.errors_after) for w, p in zip(weights, self.predictors)])
        amount = call("mul", one_minus(level), call("add", count, 1.0))
        some = call("maximum", count, 1.0)
        quantile = call("_quantile", errors, some, call("minimum", amount, some))
        short = call("maximum", one_minus(call("mul", level, call("add", count, 1.0))), 0.0)
        factor = call("add", quantile, call("mul", call("mul", BEYOND, short), call("maximum", quantile, 1.0)))
        times = added(
            [
                call("mul", w, call("add", p.times, call("mul", factor, p.size_times)))
                for w, p in zip(weights, self.predictors)
            ]
        )
        times = call("maximum", times, 0.0)
        return call("add", made, call("mul", factor, size)), call("mul", times, self._ready)

    @cached_property
    def _weights(self) -> tuple[Expr, ...]:
        """Weights of the predictors: of those with the least average pinball loss, all alike."""
        costs = [p.cost for p in self.predictors]
        best = costs[0]
        for c in costs[1:]:
            best = call("minimum", best, c)
        ties = [one_minus(call("_positive", call("sub", c, best))) for c in costs]
        total = added(ties)
        return tuple(call("div", w, total) for w in ties)

    @property
    def ready(self) -> Expr:
        """1 where some predictor has errors enough, else 0."""
        return self._ready

    @cached_property
    def _ready(self) -> Expr:
        return call("_positive", call("sub", self.round, 2 + LEAST_ERRORS - 0.5))

    def _level(self, credit: Expr) -> Expr:
        """Level a: the share, and less in proportion where credit and loan are below a part of a standard deviation of the rounds to come
        that are broken. It never exceeds the share: margins grow faster below it than they fall above it.
        """
        rest = constant(1000.0) if self.horizon is None else self._left(self.round)
        least = call("maximum", call("mul", SAFE, self._deviation(rest)), 1.0)
        spare = call("maximum", call("sub", call("add", credit, self.loan), 1 - self.share), 0.0)
        return call("mul", self.share, call("minimum", call("div", spare, least), 1.0))
