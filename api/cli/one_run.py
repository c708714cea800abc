"""One run of the command line: progress, the verdict at its end, its files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from oco.backends.registry import backend as find_backend
from oco.cli import options as o
from oco.cli.output import note, say, show_diagnostic, show_json
from oco.cli.progress import watched, working
from oco.cli.results import measured, report, write_results
from oco.compiler.problem.canonical import Canonical
from oco.dsl.records import dataclass
from oco.dsl.writing import make_folder
from oco.evaluation.baselines.base import SECONDS
from oco.evaluation.baselines.rule_table import Beside
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.certificate_file import write_certificate
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.comparators.base import EXACT, ComparatorStatus
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data
from oco.evaluation.hindsight import Hindsight
from oco.evaluation.numbers import counted
from oco.evaluation.report.trace import Trace
from oco.evaluation.report.verdict import verdict
from oco.evaluation.run import run as play
from oco.evaluation.summary import RunSummary, summarize
from oco.plan import Plan

IN_VERDICT = ("OCO608", "OCO609", "OCO704")
"""Warnings about guarantees that say nothing: the verdict says so."""


@dataclass(frozen=True)
class Files:
    """Files of a run: those that it reads, and the folders that it writes. `stated`: the model file names the data."""

    model: Path
    data: Path | None
    stated: bool
    mapping: Sequence[str]
    journal: Path | None
    out: Path | None


@dataclass(frozen=True)
class Request:
    """Run as it was asked for: its files, limits of comparators, rules to compare with, and what to show.

    following  comparators may take as long as the run
    """

    files: Files
    cost: ComparatorBudget
    following: bool
    baselines: RuleChoice
    details: bool
    as_json: bool


def run_one(plan: Plan, source: Data, request: Request) -> None:
    """One run: its trace, its comparators, the rules beside it, its verdict and its files."""
    as_json, files = request.as_json, request.files
    source = source.storing(request.cost.memory)
    if files.out is not None:
        make_folder(files.out)
    if not as_json:
        changed = o.planned_for(source.rounds, source.problem.horizon)
        _announce(plan, (*source.notes, *changed, *plan.backend_for(source.rounds).notes), request.details)
    trade = Trade.of(plan.choice.played, plan.tradeoff)
    hindsight = Hindsight(plan.canonical, source, request.cost, partial(_rules, request.baselines, trade))
    options: dict[str, Any] = {"journal": files.journal, "budget": request.cost, "meanwhile": hindsight.steps}
    with watched(f"{plan.algorithm}, seed {source.seed}", source.rounds, silent=as_json) as progress:
        trace = Trace.of(play(plan, source, seed=source.seed, progress=progress, **options))
    if request.following:
        trace.budget = trace.budget.like(trace.seconds)
    hindsight.tell(trace)
    with working("playing rules to compare with", silent=as_json or request.baselines == "none"):
        rules = hindsight.rules
    with working("comparing with the best in hindsight", silent=as_json) as solved:
        usual, trace.budget = trace.budget, replace(trace.budget, progress=solved)
        summary = summarize(trace, beside=rules, certify=True, known=hindsight.held)
        trace.budget = usual
    if files.out is not None:
        with working("drawing the report", silent=as_json):
            write_results(trace, summary, plan, files.out, rules)
    if files.journal is not None and trace.own_certificate is not None:
        write_certificate(trace, files.journal / "certificate.json")
    if as_json:
        show_json({"version": 1, "model": trace.problem.name, "runs": [summary.to_json()]})
        return
    if request.details:
        measured(summary)
    _left_out(trace, summary)
    say(verdict(trace, summary, _data_words(source, files), _sentence(plan), following_commands(files, trace.backend)))


def _rules(which: RuleChoice, trade: Trade, problem: Canonical, data: Data) -> Beside | None:
    """Rules played over the rounds of the data, ordered by a trade; None where none are asked for."""
    return None if which is RuleChoice.NONE else beside(which, problem, data, trade)


def _announce(plan: Plan, notes: tuple[str, ...], details: bool) -> None:
    """Print the warnings and the notes on the data, before the first round; the plan with `details`.

    What a guarantee does not say stands in the verdict.
    """
    for diagnostic in dict.fromkeys(plan.warnings):
        if details or diagnostic.code not in IN_VERDICT:
            show_diagnostic(diagnostic)
    for text in notes:
        note(text)
    if details:
        report(plan)


def _data_words(source: Data, files: Files) -> str:
    """Origin of the rounds in a few words."""
    rounds = counted(source.rounds, "round")
    drawn = ", ".join(f"`{s.name}`" for s in source.drawn)
    given = ", ".join(f"`{name}`" for name in source.given)
    if str(files.data) == o.DRAWN and given:
        return f"{rounds}; {given} drawn uniformly, for a trial{f', {drawn} from the model' if drawn else ''} (seed {source.seed})"
    if files.data is None:
        return f"{rounds} drawn from the model (seed {source.seed})"
    return f"{rounds} of {files.data.name}{f'; {drawn} drawn, seed {source.seed}' if drawn else ''}"


def _left_out(trace: Trace, summary: RunSummary) -> None:
    """Say that no rule was played, and which comparators ended without a certificate; and what goes on."""
    if summary.rules is not None and summary.rules.best is None and summary.rules.left_out:
        note(f"no rule to compare with: {summary.rules.left_out[0][1]}; --baselines all gives {SECONDS:g} s to each")
    if not trace.budget.wanted:
        return
    cut = [
        line.kind
        for line in summary.regret
        if line.status in (ComparatorStatus.INTERVAL.value, ComparatorStatus.NOT_COMPUTED.value)
    ]
    if cut:
        words = " and ".join(cut)
        note(f"the {words} comparator had {trace.budget.seconds:.3g} s: --comparators exact gives it {EXACT:g} s")


def _sentence(plan: Plan) -> str:
    """Algorithm with its source, and the way that it was chosen."""
    winner = plan.choice.winner
    assert winner is not None
    pilots = plan.choice.pilots
    if plan.choice.forced:
        how = "as asked for"
    elif pilots is not None and pilots.results:
        how = "chosen by pilot runs"
    else:
        by = "chosen by its guarantee" if winner.guarantee is not None else "the quickest of those that can run here"
        how = "the default" if winner.algorithm.mixes else by
    return f"{plan.algorithm} ({how}): {winner.algorithm.title}, {winner.algorithm.cite}"


def following_commands(files: Files, backend: str) -> list[str]:
    """Commands that lead on from a run: to its report, and to a module that decides as it did, on the backend that ran it."""
    model = str(files.model)
    words = [*([] if files.data is None else ["--data", str(files.data)])]
    words += [part for text in files.mapping for part in ("--map", text)]
    report = ["oco", "run", model, *([] if files.stated else words), "--out", f"{files.model.stem}_results"]
    look = f"open {shlex.quote(str(files.out / 'report.html'))}" if files.out else shlex.join(report)
    own = [] if backend in ("", find_backend(None).name) else ["--backend", backend]
    mapped = [] if files.mapping else [shlex.join(["oco", "compile", model, *words, *own])]
    return [look, *mapped]
