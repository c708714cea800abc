"""Output of `oco run`: the plan, the measures of each run, the trace and its plots."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.table import Column

from oco.cli.output import PLAIN_WIDTH, console, paint, say
from oco.dsl.writing import replacing, write_text
from oco.evaluation.certificate_file import write_certificate
from oco.evaluation.report.run_rows import rule_rows, run_rows

if TYPE_CHECKING:
    from oco.evaluation.baselines.rule_table import Beside, RuleTable
    from oco.evaluation.report.trace import Trace
    from oco.evaluation.summary import RunSummary
    from oco.plan import Plan

LEARNER = "learner.py"
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
    say(_wrapped("algorithm", f"{plan.algorithm}: {winner.algorithm.title} ({winner.algorithm.cite})"), "bold")
    for reason in winner.reasons:
        say(_wrapped("", reason))
    for setting in plan.settings.values():
        say(_wrapped("setting", setting_text(setting)))
    for index, line in enumerate((*promises(plan.guarantee), *plan.canonical.remarks)):
        paint(_wrapped("guarantee" if index == 0 else "", line))
    say()


def _wrapped(heading: str, text: str) -> str:
    """Text beside a heading, in lines of `PLAIN_WIDTH`."""
    return fill(text, PLAIN_WIDTH, initial_indent=f"{heading:<11}", subsequent_indent=" " * 11)


def measured(run: RunSummary) -> None:
    """Table of what the verdict's table of one run sums up."""
    from rich.table import Table

    table = Table(Column("", overflow="fold"), Column("measured", justify="right"), "", box=None, pad_edge=False)
    for row in run_rows(run):
        table.add_row(*row)
    console().print(table)
    if run.rules is not None:
        _rules(run.rules)
    for condition in run.conditions:
        say(
            fill(
                f"The guarantee is for sequences for which {condition.words}; on these data: {condition.text}.",
                PLAIN_WIDTH,
            )
        )
    for warning in run.warnings:
        say(fill(f"warning: {warning}", PLAIN_WIDTH), "yellow")


def _rules(rules: RuleTable) -> None:
    """Table of the learner and all rules, where these are more than a line can say; and those that were left out."""
    from rich.table import Table

    if len(rules.lines) > FEW:
        names = ("", "rule", "loss", "violation", "rounds broken", "cost a round")
        numbers = [Column(n, justify="right") for n in names[2:]]
        table = Table(*names[:1], Column(names[1], overflow="fold"), *numbers, box=None, pad_edge=False)
        for row in rule_rows(rules, 4):
            table.add_row(*row)
        console().print(table)
    for name, why in rules.left_out:
        say(fill(f"rule left out: {name}: {why}", PLAIN_WIDTH))


def result_files() -> list[str]:
    """Files that a run may write with --out."""
    from oco.evaluation.report.plots import FILES

    return ["trace.nc", "report.html", "summary.json", "certificate.json", LEARNER, *(f"{name}.png" for name in FILES)]


def write_results(trace: Trace, summary: RunSummary, plan: Plan, folder: Path, beside: Beside | None) -> None:
    """Write the trace, the learner as a module, a report, plots, and `summary.json`, each completely or not at all."""
    from oco.evaluation.report.plots import figures
    from oco.evaluation.report.run_page import write_report

    trace.save(folder / "trace.nc")
    plan.write(folder / LEARNER, "numpy")
    write_report(trace, folder / "report.html", plan.facts, plan.explain(), beside)
    for name, figure in figures(trace).items():
        with replacing(folder / f"{name}.png") as neighbour:
            figure.savefig(neighbour, dpi=150)
    if any(line.certified is not None for line in summary.regret):
        write_certificate(trace, folder / "certificate.json")
    runs = {"version": 1, "runs": [summary.to_json()]}
    write_text(folder / "summary.json", json.dumps(runs, indent=2) + "\n")
