"""Look of plots: colours, legends, axes and notes; figures for print, and SVG in the colours of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.extras import require_package

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, Any]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#7F7F7F", "#B0A010", "#56B4E9")
"""Okabe & Ito's palette, distinguishable with any kind of colour vision. The light blue is last: on a dark page it resembles the first."""

PAPER: Mapping[str, Any] = {"grid.color": "#e8e8e8", "axes.spines.top": False, "axes.spines.right": False}
INK, GRID = "#1a2b3c", "#d4e5f6"  # stand for the colours of a page that an SVG will stand in
MARKED: Mapping[str, Any] = {
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
    **{f"axes.{part}": INK for part in ("labelcolor", "edgecolor", "titlecolor")},
    **{f"{part}.facecolor": "none" for part in ("figure", "axes", "savefig")},
    "grid.color": GRID,
    "svg.hashsalt": "oco",
}

NARROW = 1e-2  # an axis that spans less of its large numbers has them in full: in thousands they would look the same
LETTER, HANDLE, NOTE_LETTER = 0.062, 0.42, 0.068  # inches: a letter of a legend, its line, a letter of a note


def vector(draw: Callable[[Axes], None]) -> str:
    """SVG text of a figure that takes the colours of the page around it: `currentColor`, `var(--grid)`, `var(--blue)`."""
    require_package("matplotlib", "a plot")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_style(PAPER, MARKED)):
        page, text = Figure(figsize=(5.6, 3.9), layout="constrained"), StringIO()
        draw(page.subplots())
        page.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    svg = svg.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    return svg.replace(COLOURS[0].lower(), "var(--blue)")


def in_style() -> AbstractContextManager[None]:
    """Context with the style of printed plots."""
    require_package("matplotlib", "a plot")
    from matplotlib import rc_context

    return rc_context(_style(PAPER))


def _style(*parts: Mapping[str, Any]) -> Any:
    return {name: value for part in parts for name, value in part.items()}


def _date(ax: Axes, times: Array) -> None:
    """Mark the rounds on the axis by their times (T,)."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit = "D" if times[-1] - times[0] > np.timedelta64(3, "D") else "m"

    def mark(place: float, _: int | None = None) -> str:
        known = place == int(place) and 1 <= place <= len(times)
        return str(times[int(place) - 1].astype(f"datetime64[{unit}]")).replace("T", "\n") if known else ""

    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(mark))


def finish(ax: Axes, title: str, what: str, note: str = "", across: str = "round", times: Array | None = None) -> None:
    """Add title, axes, a legend above the plot so that it covers nothing, and a note under the axis, whose rounds have times perhaps."""
    from matplotlib.ticker import EngFormatter, ScalarFormatter

    handles, labels = ax.get_legend_handles_labels()
    labels = [_shortened(label, int((_width(ax) - HANDLE) / LETTER)) for label in labels]
    columns = _columns(labels, _width(ax))
    rows = -(-len(labels) // columns)
    if labels:
        spacing = {"columnspacing": 1.2, "handlelength": 1.6, "borderaxespad": 0.2}
        shown = {"fontsize": 8, "frameon": False, "ncols": columns}
        legend = ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(-0.02, 1.0), **shown, **spacing)
        legend.set_in_layout(False)  # the title leaves room for it: a wide legend must not make the picture narrow
    ax.set_title(title, fontsize=10, loc="left", pad=6 + 14 * rows)
    note = fill(note, int(_width(ax) / NOTE_LETTER))
    below = across if times is None else "time"
    ax.set_xlabel(f"{below}\n{note}" if note else below, fontsize=9)
    ax.set_ylabel(what, fontsize=9)
    for axis, scale, (low, high) in (
        (ax.xaxis, ax.get_xscale(), ax.get_xlim()),
        (ax.yaxis, ax.get_yscale(), ax.get_ylim()),
    ):
        if scale == "linear":
            largest = max(abs(low), abs(high))
            short = largest >= 1e4 and abs(high - low) > NARROW * largest
            axis.set_major_formatter(EngFormatter(sep=" ") if short else ScalarFormatter(useOffset=False))
    if across == "round" and ax.get_xscale() == "linear":
        ax.locator_params(axis="x", integer=True)
        if max(ax.get_xlim()) < 2:  # a single round
            ax.set_xlim(0, 2)
    if times is not None and len(times):
        _date(ax, times)
    ax.tick_params(which="both", labelsize=8)
    ax.grid(True, lw=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _shortened(label: str, most: int) -> str:
    """Label cut to a number of letters: its beginning and its end, which have indices and remarks."""
    return label if len(label) <= most else f"{label[: most // 3]}…{label[len(label) - (most - most // 3 - 1) :]}"


def _width(ax: Axes) -> float:
    """Approximate width of the axes in inches."""
    place, page = ax.get_subplotspec(), ax.get_figure(root=True)
    columns = 1 if place is None else place.get_gridspec().ncols
    return (5.6 if page is None else float(page.get_figwidth())) / columns - 0.8


def _columns(labels: Sequence[str], width: float) -> int:
    """The most columns in which a legend is no wider than the picture; entries are laid out column by column."""
    for columns in (3, 2):
        rows = -(-len(labels) // columns)
        parts = [labels[k : k + rows] for k in range(0, len(labels), rows)] if labels else []
        if (
            sum(LETTER * max(map(len, part)) + HANDLE for part in parts) <= width
            and rows * columns - len(labels) < rows
        ):
            return columns
    return 1
