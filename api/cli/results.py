"""What `oco run` prints and writes: the plan, the measures of each run, the trace and its pictures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Column

from oco.cli.output import console, paint, say
from oco.dsl.diagnostics import fail
from oco.dsl.writing import write_text

if TYPE_CHECKING:
    from oco.evaluation.summary import RunSummary
    from oco.evaluation.trace import Trace
    from oco.plan import Plan


def report(plan: Plan) -> None:
    """What was proved, what was chosen and why, settings, and the guarantee in numbers."""
    from oco.compiler.explain import setting_text
    from oco.compiler.facts.ledger import summary_text
    from oco.contract import promises

    paint(summary_text(plan.facts))
    winner = plan.choice.winner
    assert winner is not None
    say()
    say(f"algorithm  {plan.algorithm}: {winner.algorithm.title} ({winner.algorithm.cite})", "bold")
    for reason in winner.reasons:
        say(f"           {reason}")
    for setting in plan.settings.values():
        say(f"setting    {setting_text(setting)}")
    for index, line in enumerate(promises(plan.guarantee)):
        paint(f"{'guarantee' if index == 0 else '':<11}{line}")
    say()


def measured(run: RunSummary) -> None:
    """The measures of one run, each beside its guarantee."""
    from rich.table import Table

    table = Table(
        "", Column("measured", justify="right"), Column("guaranteed", justify="right"), "", box=None, pad_edge=False
    )
    table.add_row("loss", number(run.loss), "", f"{number(run.mean_loss)} a round")
    for line in run.regret:
        table.add_row(f"{line.kind} regret", number(line.value), promised(line.guarantee, line.vacuous), line.words)
    for row in run.violation:
        rounds = f"{row.timing}; broken in {row.rounds} of {run.rounds} rounds"
        worst = f", by {number(row.worst)} at most" if row.rounds else ""
        table.add_row(f"hard violation of {row.label}", number(row.hard), "", rounds + worst)
        table.add_row(f"soft violation of {row.label}", number(row.soft))
    for total in run.totals if len(run.violation) > 1 or any(t.guarantee for t in run.totals) else ():
        bound = promised(total.guarantee, total.vacuous)
        table.add_row(
            f"{total.kind} violation, summed", number(total.papers), bound, f"{number(total.scaled)} in scales"
        )
    for equal in run.equality:
        table.add_row(f"violation of {equal.label}", number(equal.violation), "", f"mean {number(equal.mean)} a round")
    table.add_row("rounds a second", f"{run.rounds_per_second:,.0f}", "", f"{run.rounds} rounds in {run.seconds:.2f} s")
    console().print(table)
    for warning in run.warnings:
        say(f"warning: {warning}", "yellow")


def compared(runs: Sequence[RunSummary]) -> None:
    """A column an algorithm: the measures of its run, or their mean and deviation over seeds."""
    from rich.table import Table

    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(run.algorithm, []).append(run)
    table = Table("", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name, same in groups.items():
        table.add_column(name + (f" ({len(same)} seeds)" if len(same) > 1 else ""), justify="right")
    for label, read in _MEASURES:
        table.add_row(label, *(_cell([read(run) for run in same]) for same in groups.values()))
    console().print(table)
    for said in dict.fromkeys(f"warning: {w}" for run in runs for w in run.warnings):
        say(said, "yellow")


_MEASURES: tuple[tuple[str, Callable[[RunSummary], float | None]], ...] = (
    ("rounds", lambda r: float(r.rounds)),
    ("loss", lambda r: r.loss),
    ("static regret", lambda r: next(x.value for x in r.regret if x.kind == "static")),
    ("dynamic regret", lambda r: next(x.value for x in r.regret if x.kind == "dynamic")),
    ("hard violation, summed", lambda r: sum(v.hard for v in r.violation)),
    ("soft violation, summed", lambda r: sum(v.soft for v in r.violation)),
    ("equality violation, summed", lambda r: sum(e.violation for e in r.equality)),
    ("rounds a second", lambda r: round(r.rounds_per_second)),
)


def number(value: float | None) -> str:
    """Six figures, thousands apart; "not known" for None."""
    if value is None:
        return "not known"
    if value != 0 and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.5g}"
    places = max(0, 5 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(places, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def promised(bound: float | None, vacuous: bool) -> str:
    return "" if bound is None else f"{number(bound)}{' (vacuous)' if vacuous else ''}"


def _cell(values: list[float | None]) -> str:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return "not known"
    mean = float(np.mean(known))
    spread = float(np.std(known, ddof=1)) if len(known) > 1 else 0.0
    return number(mean) + (f" +- {spread:.3g}" if spread else "")


def make_folder(folder: Path) -> None:
    """Before a run, so that one that cannot be written ends at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail("OCO903", f"{folder} cannot be made: {(error.strerror or 'unknown reason').lower()}") from None
    if not os.access(folder, os.W_OK):
        raise fail("OCO903", f"{folder} cannot be written: permission denied")


def write_results(
    traces: Sequence[Trace], summaries: Sequence[RunSummary], plans: Sequence[Plan], folder: Path
) -> None:
    """A trace file, a report and pictures for each run, and `summary.json` for all."""
    from oco.evaluation.plots import figures
    from oco.evaluation.report import write_report

    by_algorithm = {plan.algorithm: plan for plan in plans}
    for trace in traces:
        stem = "" if len(traces) == 1 else f"{trace.promise.algorithm}_{trace.seed}_"
        trace.save(folder / f"{stem}trace.nc")
        plan = by_algorithm[trace.promise.algorithm]
        write_report(trace, folder / f"{stem}report.html", plan.facts, plan.explain())
        for name, figure in figures(trace).items():
            figure.savefig(folder / f"{stem}{name}.png", dpi=150)
    runs = {"version": 1, "runs": [s.to_json() for s in summaries]}
    write_text(folder / "summary.json", json.dumps(runs, indent=2) + "\n")
