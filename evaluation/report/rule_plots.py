"""Plot of a learner and rules: loss against violation, a point for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oco.evaluation.baselines.rule_table import RuleTable
from oco.evaluation.report.style import COLOURS, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 100.0  # ratio of violations beyond which their axis is logarithmic above the least one that is not zero


def loss_against_violation(rules: RuleTable, ax: Axes) -> None:
    """Draw the loss of the learner and of each rule against its violation; numbers are those of the table."""
    positive = [line.violation for _, line in rules.marked if line.violation > 0]
    for mark, line in rules.marked:
        own = line is rules.learner
        label = "the learner" if own else "rules, by their cost" if mark == "1" else None
        style: dict[str, Any] = {"marker": "*", "ms": 11, "zorder": 3} if own else {"marker": "o", "ms": 5}
        ax.plot(line.violation, line.loss, ls="", color=COLOURS[1 if own else 0], label=label, **style)
        if not own:
            ax.annotate(mark, (line.violation, line.loss), textcoords="offset points", xytext=(4, 3), fontsize=7)
    if positive and max(positive) > SPREAD * min(positive):
        ax.set_xscale("symlog", linthresh=min(positive))
    finish(ax, "loss against violation", "loss", across="violation, summed")
