"""Plots of runs in the colours of the page around them, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oco.evaluation.report.plots import PANELS
from oco.evaluation.report.style import vector

ROUNDING = 1e-6
"""Sum of violations below which a constraint counts as kept: what rounding makes of decisions that satisfy it."""


def is_broken(trace: Any) -> bool:
    """True where a constraint of a run was broken by more than rounding."""
    sums = [trace.violation("hard")] if trace.labels else []
    sums += [trace.equality_violation()] if trace.equality_labels else []
    return any(float(np.max(np.abs(values))) > ROUNDING for values in sums)


def inline(trace: Any, panels: Sequence[str]) -> str:
    """Panels of a trace as SVG within the page."""
    drawn = ("".join(vector(partial(PANELS[name], trace)).splitlines()) for name in panels)
    return '<div class="plots">' + "".join(f'<div class="plot">{svg}</div>' for svg in drawn) + "</div>"
