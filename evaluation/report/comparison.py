"""Plots and a page for a sweep: every algorithm's mean over the seeds with its deviation, and loss against violation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.writing import replacing, write_text
from oco.evaluation.report import html
from oco.evaluation.report.grids import Grid, grids
from oco.evaluation.report.style import COLOURS, finish, in_style, vector
from oco.evaluation.sweep import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

Array = np.ndarray[Any, Any]

FILES = ("sweep.nc", "comparison.png", "report.html")
"""Files that `write_comparison` writes."""
CURVES = ("static_regret", "dynamic_regret", "hard_violation", "soft_violation", "equality_violation")
MARKERS = "os^DvP*X<>"


def curve(dataset: Dataset, measure: str, ax: Axes) -> None:
    """Plot the mean over the seeds after every round, in a band of one deviation to either side."""
    t = dataset["round"].to_numpy()
    for (label, values), (colour, marker) in zip(_runs(dataset, f"curve.{measure}"), _looks()):
        mean, spread = values.mean(axis=0), _deviation(values)
        ax.plot(t, mean, color=colour, lw=1.4, marker=marker, markevery=max(1, len(t) // 6), ms=4, label=label)
        if len(values) > 1:
            ax.fill_between(t, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
    finish(ax, measure.replace("_", " "), measure.replace("_", " "))


def tradeoff(dataset: Dataset, ax: Axes) -> None:
    """Plot total loss against violation: the best is at the lower left. Bars are one deviation over the seeds."""
    violation = next((m for m in ("hard_violation", "equality_violation") if m in dataset), None)
    for (label, loss), (colour, marker) in zip(_runs(dataset, "loss"), _looks()):
        broken = dict(_runs(dataset, violation))[label] if violation else np.zeros_like(loss)
        x, y = float(broken.mean()), float(loss.mean())
        bars: dict[str, Any] = {"xerr": _deviation(broken), "yerr": _deviation(loss), "fmt": "none", "capsize": 3}
        ax.errorbar(x, y, color=colour, **bars)
        ax.plot(x, y, marker, color=colour, ms=7, label=label)  # not by errorbar, whose legend has bars over the mark
    across = f"{violation.replace('_', ' ')}, in scales of the constraints" if violation else "there are no constraints"
    finish(ax, "total loss against violation", "total loss", across=across)


def _deviation(values: Array) -> Array:
    """Standard deviation over the runs; 0 for a single one."""
    return np.asarray(values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:]))


def _runs(dataset: Dataset, name: str) -> list[tuple[str, Array]]:
    """Values of the seeds that succeeded, for each algorithm: (seeds, ...)."""
    values = dataset[name].to_numpy()
    known = [v[np.isfinite(v.reshape(len(v), -1)).all(axis=1)] for v in values]
    return [(str(label), v) for label, v in zip(dataset["algorithm"].to_numpy(), known) if len(v)]


def _looks() -> list[tuple[str, str]]:
    """Colour and marker of each algorithm; their combinations outnumber either alone."""
    return [(COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]) for k in range(len(COLOURS) * len(MARKERS))]


def panels(dataset: Dataset) -> list[str]:
    """Measures that have curves."""
    return [m for m in CURVES if f"curve.{m}" in dataset and len(_runs(dataset, f"curve.{m}"))]


def comparison(dataset: Dataset) -> Figure:
    """Draw all panels on one figure."""
    from oco.evaluation.report.figure import OffscreenFigure

    measures = panels(dataset)
    rows = (len(measures) + 2) // 2
    with in_style():
        page = OffscreenFigure(figsize=(11.0, 3.9 * rows), layout="constrained")
        axes = page.subplots(rows, 2, squeeze=False).ravel()
        tradeoff(dataset, axes[0])
        for measure, ax in zip(measures, axes[1:]):
            curve(dataset, measure, ax)
        for ax in axes[1 + len(measures) :]:
            ax.set_visible(False)
    return page


def write_comparison(
    dataset: Dataset, rows: Sequence[Row], failed: Mapping[str, str], model: str, folder: Path
) -> None:
    """Write the table, a plot and a page, each completely or not at all."""
    table, plot, page = (folder / name for name in FILES)
    with replacing(table) as neighbour:
        dataset.to_netcdf(neighbour, engine="h5netcdf")
    with replacing(plot) as neighbour:
        comparison(dataset).savefig(neighbour, dpi=150)
    write_text(page, comparison_page(dataset, rows, failed, model))


def comparison_page(dataset: Dataset, rows: Sequence[Row], failed: Mapping[str, str], model: str) -> str:
    """Self-contained page of HTML with the table and the plots."""
    runs, seeds = len(dataset["algorithm"]), len(dataset["seed"])
    title = f"{model}: {runs} ways, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    drawings = [
        html.drawing(vector(partial(tradeoff, dataset)), "The best is at the lower left; bars are one deviation.")
    ]
    for measure in panels(dataset):
        plot = vector(partial(curve, dataset, measure))
        drawings.append(
            html.drawing(plot, f"{measure.replace('_', ' ').capitalize()}: mean over the seeds, and one deviation.")
        )
    message = "Runs with the same seed see the same data. Violations are sums over the constraints, each in units of its scale."
    parts = [
        f"<header><h1>{escape(title)}</h1>{html.paragraph(message, 'soft')}</header>",
        *(html.paragraph(f"failed: {label}: {why}", "warn") for label, why in failed.items()),
        *(html.section(grid.title.capitalize(), _table(grid)) for grid in grids(rows)),
        html.section("Pictures", html.gallery(drawings)),
    ]
    return html.page(title, parts)


def _table(grid: Grid) -> str:
    return html.table(grid.headings, grid.rows, numbers=range(1, len(grid.headings)))
