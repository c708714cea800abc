"""Tables of a sweep as text: an algorithm a row, a measure a column."""

from __future__ import annotations

from collections.abc import Sequence

from oco.dsl.records import dataclass
from oco.evaluation.numbers import number
from oco.evaluation.sweep import Row


@dataclass(frozen=True)
class Grid:
    """Table for display: an algorithm a row, a measure a column, in each cell a mean and below it the deviation."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(rows: Sequence[Row]) -> list[Grid]:
    """Tables of the measures, then of the differences from the first algorithm where there is a second one."""
    labels, measures = list(dict.fromkeys(r.label for r in rows)), list(dict.fromkeys(r.measure for r in rows))
    at = {(r.label, r.measure): r for r in rows}
    units = [m.replace("_", " ") + (", in scales" if m.endswith("violation") else "") for m in measures]
    runs = {label: max(r.runs for r in rows if r.label == label) for label in labels}
    own = [(label, *(_cell(at[label, m].mean, at[label, m].deviation) for m in measures)) for label in labels]
    gaps = [
        (label, *(_cell(at[label, m].difference, at[label, m].difference_deviation) for m in measures))
        for label in labels[1:]
    ]
    spread = " ± deviation" if any(r.deviation is not None for r in rows) else ""
    results = [Grid(f"mean{spread}", ("", *units, "runs"), tuple((*r, str(runs[r[0]])) for r in own))]
    if gaps:
        results.append(Grid(f"difference to {labels[0]}{spread}, paired by seed", ("", *units), tuple(gaps)))
    return results


def _cell(mean: float | None, deviation: float | None) -> str:
    """Text of a cell; empty where no run has the measure. One run has no deviation."""
    if mean is None:
        return ""
    return number(mean) if deviation is None else f"{number(mean)}\n± {number(deviation, 3)}"
