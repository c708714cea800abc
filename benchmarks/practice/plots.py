"""Picture of docs/practice.md: loss against violation, a panel a problem, with every rule as a point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.practice.problems import ROOT
from benchmarks.practice.results import Results
from oco.dsl.writing import write_text
from oco.evaluation.baselines.rule_table import RuleLine
from oco.evaluation.report.style import COLOURS, in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = ROOT / "docs" / "practice.svg"
ACROSS = 3


def draw(results: Sequence[Results], path: Path = PICTURE) -> None:
    """Write the picture. Where no rule breaks anything there is no violation to show, and no panel."""
    from io import StringIO

    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shown = [r for r in results if any(x.violation > 0 for p in r.priced for x in p.rules)]
    rows = -(-len(shown) // ACROSS)
    with in_style(), rc_context({"svg.hashsalt": "oco"}):
        page = Figure(figsize=(4.0 * ACROSS, 3.0 * rows), layout="constrained")
        panels = np.ravel(page.subplots(rows, ACROSS, squeeze=False))
        for ax, r in zip(panels, shown):
            _panel(ax, r)
        for ax in panels[len(shown) :]:
            ax.set_axis_off()
        panels[0].legend(fontsize=7, frameon=False)
        text = StringIO()
        page.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    write_text(path, text.getvalue())


def _panel(ax: Axes, r: Results) -> None:
    rules = {(x.violation, x.loss) for p in r.priced for x in p.rules}
    algorithms = {(x.violation, x.loss) for p in r.priced for x in p.algorithms}
    for points, colour, label in ((rules, COLOURS[5], "rules"), (algorithms, COLOURS[2], "algorithms")):
        if points:
            ax.plot(*zip(*sorted(points)), ls="", marker="o", ms=3.5, alpha=0.7, color=colour, label=label)
    own = [(p.default.violation, p.default.loss) for p in r.priced]
    ax.plot(*zip(*own), marker="*", ms=9, lw=1, color=COLOURS[1], label="default at three prices")
    tuned = [(p.tuned.violation, p.tuned.loss) for p in r.priced if p.tuned is not None]
    if tuned:
        ax.plot(*zip(*tuned), ls="", marker="D", ms=5, color=COLOURS[0], label="tuned on the first fifth")
    _limits(ax, [x for p in r.priced for x in (p.default, *p.rules)])
    ax.set_title(r.name, fontsize=10, loc="left")
    ax.set_xlabel("violation", fontsize=8)
    ax.set_ylabel("loss", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(True, lw=0.5)


def _limits(ax: Axes, lines: Sequence[RuleLine]) -> None:
    """Logarithmic axis of violations above the least, and losses up to where few rules are."""
    positive = sorted(x.violation for x in lines if x.violation > 0)
    if positive and positive[-1] > 100 * positive[0]:
        ax.set_xscale("symlog", linthresh=max(positive[0], 1e-4 * positive[-1]))
    low, high = np.quantile([x.loss for x in lines], [0.0, 0.9])
    if high > low:
        ax.set_ylim(low - 0.08 * (high - low), high + 0.3 * (high - low))
