"""Margins of constraints as predicted, which follow a quantile q of the errors e = g_t(x) - g(x; s) of what was predicted.

    m <- m + max(rate, 1 / sqrt(t)) max|e| (1[e > m] - (1 - q))        (Gibbs & Candes 2021)

Above q = 1 the margin stays 0.
"""

from __future__ import annotations

from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem

NO_MARGIN = 2.0
"""Mark, in the place of a quantile, of experts that learn no margin."""
MARGIN_RATE = 0.05


def followed(
    p: Problem, e: Value, margin: Value, error: Value, quantile: Value, rehearsed_rounds: int
) -> tuple[Value, Value]:
    """Margin and largest error after the error e of each constraint, (N,); rehearsed rounds count among those that were played."""
    t = p.tracer
    error = t.name("error", t.maximum(error, abs(e)))
    rises = t.to_float(e > margin) - (1.0 - quantile)
    quick = t.maximum(MARGIN_RATE, 1.0 / t.sqrt(p.played + float(rehearsed_rounds)))
    moved = margin + quick * error * rises
    return t.name("margin", t.where(quantile > 1.5, margin, moved)), error
