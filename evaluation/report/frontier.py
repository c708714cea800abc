"""Plot of the frontier of guarantees: regret against violation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oco.compiler.selection.frontier import FrontierPoint
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package


def plot_frontier(points: Sequence[FrontierPoint], ax: Any = None) -> Any:
    """Plot regret against violation, both as shares of the trivial bounds on logarithmic axes, with the weights beside
    the points.
    """
    if not points:
        raise fail("OCO713", "there is no frontier: the bounds have no numbers, or the theorem leaves nothing free")
    require_package("matplotlib", "a plot")
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1] if ax is None else ax
    regrets, violations = [p.regret_share for p in points], [p.violation_share for p in points]
    ax.loglog(regrets, violations, marker="o", lw=1.1)
    for p, x, y in zip(points, regrets, violations):
        ax.annotate(f"w = {p.weight:g}", (x, y), textcoords="offset points", xytext=(5, 4), fontsize=8)
    ax.axhline(1.0, lw=0.6, color="0.6")
    ax.axvline(1.0, lw=0.6, color="0.6")
    ax.set_xlabel("bound of the regret / trivial bound")
    ax.set_ylabel("bound of the violation / trivial bound")
    return ax
