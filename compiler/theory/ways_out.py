"""Ways to bound what nothing bounds: lines to write in the model."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.ranges.enclosure import Enclosure, entries
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.intervals import Interval, interval

MARGIN = 0.01
"""Share of the way from an end of an entry's range to the centre of the set, which is left out where the gradient is infinite."""


def way_to_bound(canonical: Canonical, expr: Expr, key: str) -> str:
    """Advice for a fact of an expression that nothing bounds: bounds of a stream, a set that keeps away from where the gradient is
    infinite, or else an assumption.
    """
    for s in canonical.streams:
        if s.name in names(expr, Kind.STREAM) and not (np.isfinite(s.lower).all() and np.isfinite(s.upper).all()):
            return f"state bounds of `{s.name}`: `in [lo, hi]` behind its declaration"
    cut = _cut(canonical, expr)
    return cut or f"`assume {key} <= ...`"


def _cut(canonical: Canonical, expr: Expr) -> str:
    """Cut of a decision's set over which the gradient is bounded; "" where there is none of one number for all entries."""
    used = [b for b in canonical.blocks if b.name in names(expr, Kind.DECISION)]
    ranges = {b.name: entries(b.domain.lower, b.domain.upper, b.shape) for b in canonical.blocks}
    ranges |= {s.name: entries(s.lower, s.upper, s.shape) for s in canonical.streams}
    ranges["t"] = interval(1.0, float(canonical.horizon or np.inf), ())
    if _bounded(expr, used, ranges):
        return ""
    for b in used:
        centre = b.domain.centre()
        low = _inside(float(np.max(b.domain.lower)), float(np.min(centre)))
        high = _inside(float(np.min(b.domain.upper)), float(np.max(centre)))
        for relation, end, lower, upper in ((">=", low, low, b.domain.upper), ("<=", high, b.domain.lower, high)):
            if end is not None and _bounded(expr, used, ranges | {b.name: entries(lower, upper, b.shape)}):
                cut = f"`with {b.name} {relation} {number(end)}`"
                return f"keep `{b.name}` from where the gradient is infinite: write {cut} behind its domain"
    return ""


def _bounded(expr: Expr, blocks: list[DecisionBlock], ranges: Mapping[str, Interval]) -> bool:
    """True where the gradient has a finite range."""
    try:
        slopes = gradient(call("sum", expr) if expr.shape else expr, [b.name for b in blocks])
        return all(Enclosure(ranges)(g).bounded for g in slopes.values())
    except OcoError:
        return False


def _inside(end: float, centre: float) -> float | None:
    """Number with few digits a little on the way from an end to the centre; None where there is no way."""
    margin = MARGIN * (centre - end)
    if not math.isfinite(margin) or margin == 0:
        return None
    return round(end + margin, -math.floor(math.log10(abs(margin))))
