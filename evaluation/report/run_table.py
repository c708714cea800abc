"""Tables of one run and of two, as objects: text, HTML in a notebook, data frames, JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.shown import shown_as_text
from oco.dsl.text.printer import print_model
from oco.evaluation.baselines.held import HELD, NOTHING
from oco.evaluation.comparators import ComparatorStatus
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.numbers import number
from oco.evaluation.report import html
from oco.evaluation.summary import summarize

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class MeasureTable:
    """Table of measures, a row each; `columns` are the names of their numbers, None where one is not known."""

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]

    def __getitem__(self, measure: str) -> tuple[float | None, ...]:
        """Numbers of a measure."""
        return self.rows[measure]

    def __str__(self) -> str:
        cells = [("", *self.columns), *((name, *map(_cell, values)) for name, values in self.rows.items())]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        lines = [
            "  ".join(f"{c:<{w}}" if k == 0 else f"{c:>{w}}" for k, (c, w) in enumerate(zip(row, widths)))
            for row in cells
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def __repr__(self) -> str:
        return str(self)

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        rows = [(name, *map(_cell, values)) for name, values in self.rows.items()]
        table = html.table(("", *self.columns), rows, numbers=range(1, len(self.columns) + 1))
        return f'<div class="oco">{html.IN_NOTEBOOK}{html.paragraph(self.title)}{table}</div>'

    def to_dataframe(self) -> DataFrame:
        """Table of pandas, a row a measure."""
        require_package("pandas", "a table as a data frame")
        import pandas

        return pandas.DataFrame.from_dict(dict(self.rows), orient="index", columns=list(self.columns))

    def to_json(self) -> dict[str, Any]:
        """Numbers by measure and column."""
        return {name: dict(zip(self.columns, values)) for name, values in self.rows.items()}


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)


def summary_table(run: MeasuredRun) -> MeasureTable:
    """Measures of a run beside what is guaranteed where that is not vacuous, and what the first decision held and doing nothing give."""
    summary = summarize(run)
    trivial = (summary.held, summary.idle)

    def beside(best: float | None) -> tuple[float | None, ...]:
        return tuple(None if line is None or best is None else line.loss - best for line in trivial)

    rows: dict[str, tuple[float | None, ...]] = {"loss": (summary.loss, None, *beside(0.0))}
    for line in summary.regret:
        bound = None if line.vacuous else line.guarantee
        rows[f"{line.kind} regret"] = (line.value, bound, *beside(line.comparator))
    if summary.own is not None and (summary.violation or summary.equality):
        bound = next((t.guarantee for t in summary.totals if t.guarantee is not None and not t.vacuous), None)
        held = (None if line is None else line.violation for line in trivial)
        rows["violation, summed"] = (summary.own.violation, bound, *held)
    for v in summary.violation if len(summary.violation) > 1 else ():
        rows[f"violation of {v.label}"] = (v.hard if v.timing == "each round" else max(v.soft, 0.0), None, None, None)
    for e in summary.equality:
        rows[f"violation of {e.label}"] = (e.violation, None, None, None)
    title = f"{summary.model} with {summary.algorithm}, {summary.rounds:,} rounds"
    return MeasureTable(title, ("measured", "guaranteed", HELD, NOTHING), rows)


def comparison(first: MeasuredRun, second: MeasuredRun) -> MeasureTable:
    """Measures of two runs of one model over as many rounds, and their differences. Raises OCO831 for other runs."""
    texts = [print_model(run.problem.model.with_horizon(None)) for run in (first, second)]
    if texts[0] != texts[1] or first.rounds != second.rounds:
        message = f"{second!r} is of another model than {first!r}, or of another number of rounds"
        raise fail("OCO831", message, hint="compare runs of one model over the same rounds")
    rows = {}
    for name, own, other in zip(_measures(first), _measures(first).values(), _measures(second).values()):
        rows[name] = (own, other, None if own is None or other is None else other - own)
    same = _same_data(first, second)
    title = f"{first.problem.name}, {first.rounds:,} rounds{'' if same else ' of other data'}"
    names = [run.promise.algorithm for run in (first, second)]
    names = names if names[0] != names[1] else ["this", "other"]
    return MeasureTable(title, (*names, "difference"), rows)


def _measures(run: MeasuredRun) -> dict[str, float | None]:
    values: dict[str, float | None] = {"loss": float(run.loss.sum())}
    static = run.comparator("static")
    known = static.losses is not None and static.status is not ComparatorStatus.NOT_COMPUTED
    values["static regret"] = float(run.regret("static")[-1]) if known else None
    values |= {f"hard violation of {n}": float(v) for n, v in zip(run.labels, run.last_violation("hard"))}
    values |= {f"violation of {n}": float(v) for n, v in zip(run.equality_labels, run.equality_violation()[-1])}
    return values | {"seconds": run.seconds}


def _same_data(first: MeasuredRun, second: MeasuredRun) -> bool:
    """True where both runs had the same values of all streams."""
    a, b = first.data, second.data
    drawn = [s.name for s in a.drawn] == [s.name for s in b.drawn] and (not a.drawn or a.seed == b.seed)
    return drawn and a.given.keys() == b.given.keys() and all(np.array_equal(a.given[n], b.given[n]) for n in a.given)
