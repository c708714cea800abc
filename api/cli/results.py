"""Output of `oco run`: the plan, the measures of each run, the trace and its plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Column

from oco.cli.output import console, paint, say
from oco.dsl.writing import replacing, write_text
from oco.evaluation.numbers import counted, number

if TYPE_CHECKING:
    from oco.evaluation.baselines.table import Beside, RuleTable
    from oco.evaluation.report.trace import Trace
    from oco.evaluation.summary import RunSummary
    from oco.plan import Plan

FEW = 2
"""Number of rules up to which the best alone is printed."""


def report(plan: Plan) -> None:
    """Print a summary of the facts, the chosen algorithm with its reasons, the settings, and the guarantee in numbers."""
    from oco.compiler.prover.ledger import summary_text
    from oco.compiler.selection.explain import setting_text
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
    """Table of the measures of one run, each beside its guarantee."""
    from rich.table import Table

    table = Table(
        Column("", overflow="fold"),
        Column("measured", justify="right"),
        Column("guaranteed", justify="right"),
        "",
        box=None,
        pad_edge=False,
    )
    table.add_row("loss", number(run.loss), "", f"{number(run.mean_loss)} a round")
    for line in run.regret:
        table.add_row(f"{line.kind} regret", number(line.value), promised(line.guarantee, line.vacuous), line.words)
    shown, others = run.foremost()
    for row in shown:
        rounds = f"{row.timing}; broken in {row.rounds} of {counted(run.rounds, 'round')}"
        worst = f", by {number(row.worst)} at most" if row.rounds else ""
        table.add_row(f"hard violation of {row.label}", number(row.hard), "", rounds + worst)
        table.add_row(f"soft violation of {row.label}", number(row.soft))
    if others:
        rest = f"{len(others)} others" if shown else f"all {len(others)} constraints"
        broken = sum(v.rounds > 0 for v in others)
        table.add_row(
            f"hard violation of {rest}", number(sum(v.hard for v in others)), "", f"{broken or 'none'} of them broken"
        )
        table.add_row(f"soft violation of {rest}", number(sum(v.soft for v in others)))
    for total in run.totals if len(run.violation) > 1 or any(t.guarantee for t in run.totals) else ():
        bound = promised(total.guarantee, total.vacuous)
        table.add_row(
            f"{total.kind} violation, summed", number(total.papers), bound, f"{number(total.scaled)} in scales"
        )
    for equal in run.equality:
        table.add_row(f"violation of {equal.label}", number(equal.violation), "", f"mean {number(equal.mean)} a round")
    if run.total_cost is not None:
        table.add_row("loss + penalties", number(run.total_cost), "", "violations at the penalties of the model")
    if run.rules is not None and run.rules.best is not None:
        best, less = run.rules.best, run.rules.better
        said = f"{best.name}; violation {number(best.violation)}, broken in {counted(best.broken, 'round')}"
        verdict = f"{run.rules.weighing} is {'less' if less else 'no less'} than the learner's"
        table.add_row("best rule", number(best.loss), "", f"{said}; {verdict}")
    table.add_row(
        "rounds a second",
        f"{run.rounds_per_second:,.0f}",
        "",
        f"{counted(run.rounds, 'round')} in {run.seconds:.2g} s",
    )
    console().print(table)
    if run.rules is not None:
        _rules(run.rules)
    for condition in run.conditions:
        say(f"The guarantee is for sequences for which {condition.words}; on these data: {condition.text}.")
    for warning in run.warnings:
        say(f"warning: {warning}", "yellow")


def _rules(rules: RuleTable) -> None:
    """Table of the learner and all rules, where these are more than a line can say; and those that were left out."""
    from rich.table import Table

    if len(rules.lines) > FEW:
        names = ("", "rule", "loss", "violation", "rounds broken", "cost a round")
        numbers = [Column(n, justify="right") for n in names[2:]]
        table = Table(*names[:1], Column(names[1], overflow="fold"), *numbers, box=None, pad_edge=False)
        for mark, line in rules.marked:
            cells = (number(line.loss), number(line.violation), f"{line.broken:,}", number(line.cost, 4))
            table.add_row(mark, line.name, *cells)
        console().print(table)
    for name, why in rules.left_out:
        say(f"rule left out: {name}: {why}")


def promised(bound: float | None, vacuous: bool) -> str:
    """Text of a guaranteed bound, marked where it is vacuous; empty where there is none."""
    return "" if bound is None else f"{number(bound)}{' (vacuous)' if vacuous else ''}"


def result_files() -> list[str]:
    """Files that a run may write with --out."""
    from oco.evaluation.report.plots import FILES

    return ["trace.nc", "report.html", "summary.json", *(f"{name}.png" for name in FILES)]


def write_results(trace: Trace, summary: RunSummary, plan: Plan, folder: Path, beside: Beside | None) -> None:
    """Write the trace, a report, plots, and `summary.json`, each completely or not at all."""
    from oco.evaluation.report.plots import figures
    from oco.evaluation.report.run_page import write_report

    trace.save(folder / "trace.nc")
    write_report(trace, folder / "report.html", plan.facts, plan.explain(), beside)
    for name, figure in figures(trace).items():
        with replacing(folder / f"{name}.png") as neighbour:
            figure.savefig(neighbour, dpi=150)
    runs = {"version": 1, "runs": [summary.to_json()]}
    write_text(folder / "summary.json", json.dumps(runs, indent=2) + "\n")
