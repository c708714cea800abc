"""Predictors of margins with usual sizes of errors that follow a regression on the prediction: the model's own, or the average of the last
rounds (see `margin_predictors`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from oco.compiler.problem.kept_values import coefficient, kept_range, one_minus
from oco.compiler.problem.margin_predictors import MOMENTS, MarginPredictor
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.build import call
from oco.dsl.expressions import Array, Expr, Name, constant
from oco.dsl.records import dataclass

CALIBRATED, STEEPEST = 0.02, 2.0
"""Least rate at which regressions on the model's own predictions forget, and their largest slope; no slope is below 0."""
SMOOTHING = 0.25
"""Rate at which the average of the last rounds forgets."""
LEAST_SIZE = 0.25  # of the mean size, which the size of an error is at least where small predictions have small errors


@dataclass(frozen=True, eq=False)
class _Regressed(MarginPredictor):
    """Predictor with a prediction of each round, and sizes of its errors that follow their regression on this prediction."""

    forgetting: ClassVar[float] = CALIBRATED
    """Least rate at which the regression forgets."""

    @property
    @abstractmethod
    def prediction(self) -> Expr:
        """Prediction of e_t."""

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that it keeps, with what follows them."""
        return (*super().ranges, kept_range(self.regression, self._after_regression))

    @cached_property
    def regression(self) -> Name:
        """Means of the prediction, of e and of the size of its errors, and covariances of each with the prediction."""
        return self._value("regression", 6)

    @property
    def base(self) -> Expr:
        """Prediction."""
        return self.prediction

    @cached_property
    def size_now(self) -> Expr:
        """Usual size of its error in this round."""
        return self._size_at(self.regression, self.prediction)

    @cached_property
    def _after_regression(self) -> Expr:
        rate = call("maximum", self.forgetting, call("div", 1.0, self.of.round))
        now = (self.prediction, self.of.now, call("abs", self._error))
        away = [call("sub", n, self._row_of(self.regression, i)) for i, n in enumerate(now)]
        means = [call("add", self._row_of(self.regression, i), call("mul", rate, a)) for i, a in enumerate(away)]
        both = [
            call(
                "mul",
                one_minus(rate),
                call("add", self._row_of(self.regression, 3 + i), call("mul", rate, call("mul", a, away[0]))),
            )
            for i, a in enumerate(away)
        ]
        rows = tuple(algebra.broadcast(p, self.of.shape) for p in (*means, *both))
        return Array(rows, shape=(6, *self.of.shape))

    def _size_at(self, rows: Expr, prediction: Expr) -> Expr:
        """Usual size of the error of a prediction."""
        mean, usual = self._row_of(rows, 0), self._row_of(rows, 2)
        moved = call("mul", self._size_slope(rows), call("sub", prediction, mean))
        return call("maximum", call("add", usual, moved), call("mul", LEAST_SIZE, usual))

    def _size_slope(self, rows: Expr) -> Expr:
        return coefficient(self._row_of(rows, 5), self._row_of(rows, 3), 0.0, STEEPEST)

    def _row_of(self, rows: Expr, place: int) -> Expr:
        return rows.items[place] if isinstance(rows, Array) else algebra.index(rows, (constant(place),))


@dataclass(frozen=True, eq=False)
class ByLevel(_Regressed):
    """Predictor with the average of the last few rounds as base (exponential smoothing): for sums that rise and fall slowly beside their
    noise, whose size often grows with them.
    """

    label = "level"
    begins = 1
    forgetting = MOMENTS

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Values that it keeps, with what follows them."""
        return (*super().ranges, kept_range(self.prediction, self._after_round))

    @cached_property
    def prediction(self) -> Name:
        """Average of the last rounds."""
        return self._value("average")

    @cached_property
    def _after_round(self) -> Expr:
        rate = call("maximum", SMOOTHING, call("div", 1.0, self.of.round))
        moved = call("add", self.prediction, call("mul", rate, self._residual))
        return algebra.broadcast(moved, self.of.shape)

    @cached_property
    def made(self) -> Expr:
        """Prediction of the next round."""
        return call("add", self._after_round, self.moved)

    @cached_property
    def size(self) -> Expr:
        """Usual size of its error."""
        return self._size_at(self._after_regression, self._after_round)


@dataclass(frozen=True, eq=False)
class ByForecast(_Regressed):
    """Predictor with the model's own prediction as base, or where it is `calibrated` the regression of e_t on it, for a forecast that is
    off by a factor.
    """

    calibrated: bool

    @property
    def label(self) -> str:
        """Word in the names of what it keeps."""
        return "calibrated" if self.calibrated else "stated"

    @property
    def prediction(self) -> Expr:
        """Prediction of e_t by the model's own ones of the streams."""
        return self.of.prediction

    @property
    def times(self) -> Expr:
        """Slope of the base in the prediction."""
        return self._slope(self._after_regression)

    @property
    def size_times(self) -> Expr:
        """Slope of the regression of the sizes."""
        return self._size_slope(self._after_regression)

    @cached_property
    def made(self) -> Expr:
        """Prediction where the model's own is 0."""
        return call("add", self.moved, self._at_zero(self._after_regression))

    @cached_property
    def size(self) -> Expr:
        """Usual size of its error where the model's own prediction is 0."""
        mean, usual = self._row_of(self._after_regression, 0), self._row_of(self._after_regression, 2)
        return call("sub", usual, call("mul", self.size_times, mean))

    @cached_property
    def base(self) -> Expr:
        """Prediction, or the regression of e_t on it."""
        return call(
            "add", self._at_zero(self.regression), call("mul", self._slope(self.regression), self.of.prediction)
        )

    def _at_zero(self, rows: Expr) -> Expr:
        """Base where the prediction is 0."""
        if not self.calibrated:
            return constant(np.zeros(self.of.shape))
        return call("sub", self._row_of(rows, 1), call("mul", self._slope(rows), self._row_of(rows, 0)))

    def _slope(self, rows: Expr) -> Expr:
        if not self.calibrated:
            return constant(np.ones(self.of.shape))
        return coefficient(self._row_of(rows, 4), self._row_of(rows, 3), 0.0, STEEPEST)
