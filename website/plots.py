"""Plots of runs in the colours of the page around them, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from oco.evaluation.report.plots import PANELS
from oco.evaluation.report.style import vector


def inline(trace: Any, panels: Sequence[str]) -> str:
    """Panels of a trace as SVG within the page."""
    drawn = ("".join(vector(partial(PANELS[name], trace)).splitlines()) for name in panels)
    return '<div class="plots">' + "".join(f'<div class="plot">{svg}</div>' for svg in drawn) + "</div>"
