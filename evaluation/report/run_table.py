"""Tables of one run and of two, as objects: text, HTML in a notebook, data frames, JSON values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.records import dataclass
from oco.dsl.shown import shown_as_text
from oco.dsl.statements import Timing
from oco.dsl.text.printer import print_model
from oco.evaluation.baselines.held import HELD, NOTHING
from oco.evaluation.baselines.rule_table import RuleLine
from oco.evaluation.comparators import ComparatorStatus
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.numbers import counted, number
from oco.evaluation.report import html
from oco.evaluation.summary import RegretLine, RunSummary, TotalViolation, ViolationLine, summarize

if TYPE_CHECKING:
    from pandas import DataFrame

GUARANTEED, BROKEN = "guaranteed", "rounds broken"
FOUR = ("measured", "certified", GUARANTEED, "best rule")
"""Columns that stand wherever a guarantee is shown."""
COLUMNS = (*FOUR, HELD, NOTHING)
UNASKED = ("certified", "best rule")
"""Columns that are empty where neither a certificate nor rules were asked for."""
FEW_DIGITS = 4  # of numbers in a table that is too wide


@dataclass(frozen=True)
class MeasureTable:
    """Table of measures, a row each; `columns` are the names of their numbers, None where one is not known; `words` are shown instead of
    the number of a row and column.
    """

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    words: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> tuple[float | None, ...]:
        """Numbers of a measure."""
        return self.rows[measure]

    def __str__(self) -> str:
        return "\n".join([self.title, *self.lines()])

    def cells(self, digits: int = 6) -> list[tuple[str, ...]]:
        """Name and texts of each row, numbers to so many digits."""
        return [
            (
                name,
                *(self.words.get((name, column), _cell(value, digits)) for column, value in zip(self.columns, values)),
            )
            for name, values in self.rows.items()
        ]

    def lines(self, width: int | None = None) -> list[str]:
        """Lines of the table below its title; numbers have few digits where it would be wider than `width`."""
        for digits in (6, FEW_DIGITS):
            cells = [("", *self.columns), *self.cells(digits)]
            widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
            if width is None or sum(widths) + 2 * len(self.columns) <= width:
                break
        return [
            "  ".join(f"{c:<{w}}" if k == 0 else f"{c:>{w}}" for k, (c, w) in enumerate(zip(row, widths))).rstrip()
            for row in cells
        ]

    def only(self, columns: Sequence[str]) -> MeasureTable:
        """Table of some of the columns."""
        places = [self.columns.index(name) for name in columns]
        rows = {name: tuple(values[k] for k in places) for name, values in self.rows.items()}
        return MeasureTable(self.title, tuple(columns), rows, self.words)

    def __repr__(self) -> str:
        return str(self)

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        table = html.table(("", *self.columns), self.cells(), numbers=range(1, len(self.columns) + 1))
        return f'<div class="oco">{html.IN_NOTEBOOK}{html.paragraph(self.title)}{table}</div>'

    def to_dataframe(self) -> DataFrame:
        """Table of pandas, a row a measure."""
        require_package("pandas", "a table as a data frame")
        import pandas

        return pandas.DataFrame.from_dict(dict(self.rows), orient="index", columns=list(self.columns))

    def to_json(self) -> dict[str, Any]:
        """Numbers by measure and column."""
        return {name: dict(zip(self.columns, values)) for name, values in self.rows.items()}


def _cell(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    return number(value) if digits > FEW_DIGITS else f"{value:.{digits}g}"


def measure_table(run: RunSummary) -> MeasureTable:
    """Loss, regret, violation and rounds broken of a run: measured, certified from the rounds that came, guaranteed before them, and
    those of the best rule, of the first decision held and of doing nothing.

    A guarantee that says nothing is a word. The screen, the page and notebooks show these rows.
    """
    lines = (None if run.rules is None else run.rules.best, run.held, run.idle)

    def others(number_of: Callable[[RuleLine], float | None]) -> list[float | None]:
        """Number of the best rule, of the first decision held and of doing nothing."""
        return [None if line is None else number_of(line) for line in lines]

    rows: dict[str, tuple[float | None, ...]] = {"loss": (run.loss, None, None, *others(lambda o: o.loss))}
    words = dict[tuple[str, str], str]()

    def guaranteed(name: str, line: RegretLine | TotalViolation | None) -> float | None:
        """Guarantee of the row `name`; a word stands for one that is vacuous."""
        if line is None or not line.vacuous:
            return None if line is None else line.guarantee
        words[name, GUARANTEED] = "vacuous"
        return None

    if run.own is not None and run.own.priced is not None:
        rows["loss + penalties"] = (run.own.priced, None, None, *others(lambda o: o.priced))
    for line in run.regret:
        name, least = f"{line.kind} regret", line.comparator
        beside = [None if loss is None or least is None else loss - least for loss in others(lambda o: o.loss)]
        rows[name] = (line.value, line.certified, guaranteed(name, line), *beside)
    if run.own is None or not (run.violation or run.equality):
        return MeasureTable(_title(run), COLUMNS, rows, words)
    total = next((t for t in run.totals if t.guarantee is not None), None)
    summed = "violation, summed"
    own = total if total is not None and _is_own(run, total) else None
    rows[summed] = (run.own.shown_violation, None, guaranteed(summed, own), *others(lambda o: o.shown_violation))
    if total is not own and total is not None:
        name = f"{total.kind} violation, summed"
        rows[name] = (total.papers, None, guaranteed(name, total), None, None, None)
    if any(_hard(v) for v in run.violation):
        allowed = run.violation[0].allowed if len(run.violation) == 1 else None
        most = None if allowed is None else float(int(allowed))
        counts = (float(run.own.broken), None, most, *others(lambda o: float(o.broken)))
        rows[BROKEN] = counts
        words |= {(BROKEN, c): share_of(int(n), run.rounds) for c, n in zip(COLUMNS, counts) if n is not None}
    return MeasureTable(_title(run), COLUMNS, rows, words)


def _title(run: RunSummary) -> str:
    return f"{run.model} with {run.algorithm}, {counted(run.rounds, 'round')}"


def _hard(line: ViolationLine) -> bool:
    return line.timing != Timing.ON_AVERAGE and line.total is None


def _is_own(run: RunSummary, total: TotalViolation) -> bool:
    """True where a total bounds the violation of the run: hard where a constraint binds each round, and of all constraints."""
    covers = not run.equality and all(v.allowed is None for v in run.violation)
    return covers and (total.kind == "hard" or not any(_hard(v) for v in run.violation))


def share_of(count: int, rounds: int) -> str:
    """Rounds with their share, `4 (0.5%)`; all and none are the only 100% and 0%."""
    percent = 100 * count / rounds
    text = f"{percent:.0f}%" if count in (0, rounds) else f"{min(max(percent, 0.1), 99.9):.1f}%"
    return f"{count:,} ({text})"


def summary_table(run: MeasuredRun) -> MeasureTable:
    """Measures of a run (`measure_table`) and the violation of each of several constraints; columns that say nothing are left out."""
    summary = summarize(run)
    table = measure_table(summary)
    rows = dict(table.rows)

    def add(label: str, value: float) -> None:
        rows[f"violation of {label}"] = (value, *(None for _ in COLUMNS[1:]))

    for v in summary.violation if len(summary.violation) > 1 else ():
        add(v.label, v.hard if v.timing == "each round" else max(v.soft, 0.0))
    for e in summary.equality:
        add(e.label, e.violation)
    shown = [c for k, c in enumerate(COLUMNS) if c not in UNASKED or any(row[k] is not None for row in rows.values())]
    return replace(table, rows=rows).only(shown)


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
