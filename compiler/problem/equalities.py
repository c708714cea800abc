"""Equalities on average: those that can have multipliers of their own."""

from __future__ import annotations

from collections.abc import Collection

from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.model import Model
from oco.dsl.statements import Measure, Timing


def has_multipliers(model: Model, expr: Expr, drawn: Collection[str]) -> bool:
    """True where an equality on average can have multipliers of its own (Wei, Yu & Neely 2020); others are two inequalities.

    It has one mean in every round, as its streams are `drawn`; no constraint beside it binds each round; gradients are seen; the regret is
    static.
    """
    has_mean = not names(expr, Kind.ROUND) and set(names(expr, Kind.STREAM)) <= set(drawn)
    soft = all(c.timing is Timing.ON_AVERAGE for c in model.constraints)
    return has_mean and soft and not model.feedback.gives_values_alone and model.measure is Measure.STATIC
