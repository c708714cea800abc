"""Panels like those of the papers: means over seeds with a band of one standard deviation, and the guarantee where it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]
POINTS = 400  # of a curve that are drawn


def panels(count: int) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * count, 4.2), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, count)).tolist()


def draw(
    axes: Axes,
    title: str,
    curves: Mapping[str, Array],
    guarantee: tuple[str, Array | None] | None = None,
    x: Array | None = None,
    xlabel: str = "round",
) -> None:
    """Curves (seeds, T) by label; a guarantee (T,) far above them is named in the legend with its last value instead."""
    rounds = next(iter(curves.values())).shape[1]
    picked = np.unique(np.linspace(0, rounds - 1, POINTS).astype(np.int64))
    at = (np.arange(1, rounds + 1) if x is None else x)[picked]
    for k, (label, values) in enumerate(curves.items()):
        width = 1.2 + 0.9 * (len(curves) - 1 - k)  # so that a curve shows under those drawn over it
        style = "--" if label in ("stay at x_1", "best fixed decision") else "-"
        (line,) = axes.plot(at, values.mean(axis=0)[picked], style, label=label, linewidth=width)
        if len(values) > 1:
            mean, deviation = values.mean(axis=0)[picked], values.std(axis=0, ddof=1)[picked]
            axes.fill_between(at, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15, linewidth=0)
    if guarantee is not None and guarantee[1] is not None:
        label, bound = guarantee
        low, high = axes.get_ylim()
        if float(bound[-1]) <= low + 4 * (high - low):
            axes.plot(at, bound[picked], ":", color="black", label=label)
        else:
            axes.plot([], [], ":", color="black", label=f"{label}: {float(bound[-1]):.3g}, above the axis")
            axes.set_ylim(low, high)
    axes.set(title=title, xlabel=xlabel)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
