"""Plot of a learner and rules: loss against violation, a point for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oco.evaluation.baselines.rule_table import RuleLine, RuleTable
from oco.evaluation.report.style import COLOURS, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 100.0  # ratio of violations beyond which their axis is logarithmic above the least one that is not zero
LOSS_SPREAD = (
    3.0  # ratio of losses beyond which their axis is logarithmic: robust rules would press the others together
)
LABEL = (0.03, 0.04)  # of the axes' width and height: nearer points share a label
BESIDE = (0.15, 0.08)  # of the axes' width and height: the label of a nearer point is below, not above


def loss_against_violation(rules: RuleTable, ax: Axes) -> None:
    """Draw the loss of the learner and of each rule against its violation; numbers are those of the table."""
    own, lines = rules.learner, rules.lines
    ax.plot(
        [p.shown_violation for p in lines],
        [p.loss for p in lines],
        "o",
        ms=5,
        color=COLOURS[0],
        label="rules, by their cost",
    )
    ax.plot(own.shown_violation, own.loss, ls="", marker="*", ms=12, zorder=3, color=COLOURS[1], label="the learner")
    positive = [line.shown_violation for line in (own, *lines) if line.shown_violation > 0]
    losses = [line.loss for line in (own, *lines)]
    if positive and max(positive) > SPREAD * min(positive):
        ax.set_xscale("symlog", linthresh=min(positive))
    if min(losses) > 0 and max(losses) > LOSS_SPREAD * min(losses):
        _logarithmic(ax)
    finish(ax, "loss against violation", "loss", across="violation, summed")
    for text, line, below in _labels(rules, ax):
        offset = (4, -9 if below else 4)
        ax.annotate(text, (line.shown_violation, line.loss), textcoords="offset points", xytext=offset, fontsize=7)


def _logarithmic(ax: Axes) -> None:
    """Make the axis of losses logarithmic, with marks at 1, 2, 3 and 5 times powers of ten."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.yaxis.set_minor_locator(NullLocator())


def _labels(rules: RuleTable, ax: Axes) -> list[tuple[str, RuleLine, bool]]:
    """Numbers of rules beside the first of those that lie close together (`1-4, 7`), from left to right, and whether they stand below."""
    groups: list[tuple[Any, RuleLine, list[int]]] = []
    for number, line in enumerate(rules.lines, start=1):
        place = ax.transAxes.inverted().transform(ax.transData.transform((line.shown_violation, line.loss)))
        near = (numbers for other, _, numbers in groups if (abs(place - other) < LABEL).all())
        numbers = next(near, None)
        if numbers is None:
            groups.append((place, line, [number]))
        else:
            numbers.append(number)
    labels: list[tuple[str, RuleLine, bool]] = []
    left, below = None, True
    for place, line, numbers in sorted(groups, key=lambda group: float(group[0][0])):
        near_left = left is not None and bool((abs(place - left) < BESIDE).all() and place[1] < left[1])
        below = near_left and not below
        labels.append((_ranges(numbers), line, below))
        left = place
    return labels


def _ranges(numbers: list[int]) -> str:
    """Increasing numbers with runs of three and more written as ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
