"""Equalities: those on average that can have multipliers of their own, and the inequalities that stand for others."""

from __future__ import annotations

from collections.abc import Collection

from oco.compiler.problem.parts import Inequality
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.model import Model
from oco.dsl.source import Span
from oco.dsl.statements import Measure, Timing


def has_multipliers(model: Model, expr: Expr, drawn: Collection[str]) -> bool:
    """True where an equality on average can have multipliers of its own (Wei, Yu & Neely 2020); others are two inequalities.

    It has one mean in every round, as its streams are `drawn`; no constraint beside it binds each round; gradients are seen; the regret is
    static.
    """
    has_mean = not names(expr, Kind.ROUND) and set(names(expr, Kind.STREAM)) <= set(drawn)
    soft = all(c.timing is Timing.ON_AVERAGE for c in model.constraints)
    return has_mean and soft and not model.feedback.gives_values_alone and model.measure is Measure.STATIC


def both_sides(
    label: str,
    shape: tuple[int, ...],
    sides: tuple[Expr, Expr],
    timing: Timing,
    span: Span | None,
    penalties: tuple[float, ...],
) -> list[Inequality]:
    """Two inequalities in the place of an equality."""
    return [
        Inequality(f"{label}.{side}", shape, expr, timing, label, span, penalties)
        for side, expr in zip(("above", "below"), sides)
    ]
