"""Commands that meet data: run, data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oco
from oco.cli import options as o
from oco.cli.models import Backend, Settings
from oco.cli.options import Json, Mapping, ModelPath, Params, effort_of, model_at, pairs, param_values
from oco.cli.output import note, say, show_diagnostic, show_json
from oco.cli.progress import watched, working
from oco.cli.replaying import replay_trace
from oco.cli.sweeping import Table, check_table_outputs, run_sweep, values_of
from oco.dsl.diagnostics import OcoError
from oco.dsl.writing import make_folder
from oco.pipeline import planned

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.evaluation.baselines.rules import Which
    from oco.evaluation.baselines.table import Beside
    from oco.evaluation.comparators import Budget
    from oco.evaluation.data import Data
    from oco.evaluation.report.trace import Trace
    from oco.evaluation.summary import RunSummary
    from oco.plan import Plan


def run(
    context: typer.Context,
    model: o.MaybeModel = None,
    data: o.DataPath = None,
    rounds: o.Rounds = None,
    seeds: o.Seeds = 1,
    seed: o.Seed = 0,
    algorithms: o.Algorithms = None,
    out: o.Out = None,
    mapping: Mapping = None,
    on_missing: o.OnMissing = "error",
    setting: Settings = None,
    kind: o.Kind = None,
    tradeoff: o.Tradeoff = 1.0,
    grid: o.Grid = None,
    engine: o.EngineName = "processes",
    journal: o.Journal = None,
    replay: o.Replay = None,
    budget: o.Cost = None,
    comparators: o.Comparators = "fast",
    baselines: o.Baselines = "some",
    certify: o.Certify = None,
    backend: Backend = None,
    param: Params = None,
    force: o.Force = False,
    as_json: Json = False,
) -> None:
    """Run the learner over data, or over draws from the model, and measure regret and violation.

    With several algorithms, seeds or values of settings all combinations are run, on all cores, and compared pair by pair; one that
    fails stops no other, and with --out an interrupted table goes on where it stopped.
    """
    from oco.compiler.problem.canonical import canonical
    from oco.evaluation.data import load_data, problem_for
    from oco.evaluation.mapping import parse_map

    if replay is not None:
        replay_trace(replay, as_json)
    model = _named(model)
    which, loaded = o.baselines_of(baselines), model_at(model, param_values(param))
    names = [a.strip() for a in algorithms.split(",") if a.strip()] if algorithms else [None]
    (cost, following), settings = o.comparators_of(comparators, budget), pairs(setting, "--set")
    options: dict[str, Any] = {"tradeoff": tradeoff, "effort": effort_of(context)}
    source = load_data(
        canonical(loaded), data, mapping=parse_map(mapping or []), seed=seed, rounds=rounds, on_missing=on_missing
    )
    if len(names) * seeds > 1 or grid:
        _refuse_journal(journal)
        values = values_of(grid) | {name: [value] for name, value in {**o.units_of(kind), **settings}.items()}
        shared = options | {"backend": backend, "budget": cost}
        table = Table(loaded, source, tuple(names), range(seed, seed + seeds), values, shared)
        raise _run_table(table, engine, out, force, o.files_read(model, loaded, data), as_json)
    _check_outputs(out, force, o.files_read(model, loaded, data))
    given, pilots = o.given(settings, kind).get("settings"), None if data is None else source
    with working(f"compiling {model}", silent=as_json):
        if kind == "tuned" and data is not None and not settings:
            plan, source = _tuned(loaded, source, names[0], backend, **options)
        else:
            timed = options | {"seed": seed, "budget": o.pilot_seconds(budget)}
            plan = planned(problem_for(loaded, source), names[0], given, backend, data=pilots, **timed)
    plan = plan if certify is None else plan.certified(certify)
    _run_one(plan.for_rounds(source.rounds), source, journal, cost, following, out, as_json, which)


def _named(model: Path | None) -> Path:
    """Model file of a run. Raises BadParameter where none is named."""
    if model is None:
        raise typer.BadParameter("name a model file, or a trace with --replay", param_hint="MODEL.oco")
    return model


def _refuse_journal(journal: Path | None) -> None:
    """Raise BadParameter where a table of runs is given a journal."""
    if journal is not None:
        raise typer.BadParameter("a journal is of one run: one algorithm, one seed, no --grid", param_hint="--journal")


def _run_table(
    table: Table, engine: str, out: Path | None, force: bool, inputs: Sequence[Path], as_json: bool
) -> typer.Exit:
    """Run the whole table, once no existing file conflicts with its results; returns the exit of the command."""
    check_table_outputs(table, out, force, inputs)
    return typer.Exit(0 if run_sweep(table, engine, out, as_json) else 1)


def _check_outputs(out: Path | None, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse to replace files in the folder of the results, before the first round."""
    if out is not None:
        from oco.cli.results import result_files

        o.check_outputs([out / name for name in result_files()], force, inputs, "--out")


def _tuned(
    model: Model, source: Data, name: str | None, backend: str | None, tradeoff: float, effort: float
) -> tuple[Plan, Data]:
    """The plan tuned on the first part of the data, and the part that the search has not seen."""
    result = oco.tune(model, source, name, tradeoff=tradeoff, seed=source.seed, effort=effort)
    split, total = result.search.split, source.rounds
    message = f"settings tuned on rounds 1 to {split} of the data; the run is rounds {split + 1} to {total}, which the search did not see"
    later = source.after(split)
    return replace(result.plan, target=backend), replace(later, notes=(*later.notes, message))


def _run_one(
    plan: Plan,
    source: Data,
    journal: Path | None,
    cost: Budget,
    following: bool,
    out: Path | None,
    as_json: bool,
    baselines: Which,
) -> None:
    """One run, in full: what is known before it, its measures, its trace and report.

    following  comparators may take as long as the run
    """
    from oco.evaluation.certificate_file import write_certificate

    if out is not None:
        make_folder(out)
    if not as_json:
        changed = o.planned_for(source.rounds, source.problem.horizon)
        _announce(plan, (*source.notes, *changed, *plan.backend_for(source.rounds).notes))
    with watched(f"{plan.algorithm}, seed {source.seed}", source.rounds, silent=as_json) as progress:
        trace = plan.run(source, seed=source.seed, progress=progress, journal=journal, budget=cost)
    if following:
        trace.budget = trace.budget.like(trace.seconds)
    with working("playing rules to compare with", silent=as_json or baselines == "none"):
        rules = _beside(trace, plan, baselines)
    _conclude(trace, plan, out, as_json, rules)
    if journal is not None and trace.own_certificate is not None:
        write_certificate(trace, journal / "certificate.json")


def _beside(trace: Trace, plan: Plan, which: Which) -> Beside | None:
    """Rules played over the rounds of a trace, ordered by the plan's trade; None where none are asked for."""
    from oco.evaluation.baselines.rules import Which, beside
    from oco.evaluation.cost import Trade

    if which is Which.NONE:
        return None
    return beside(which, trace.problem, trace.data, Trade.of(plan.choice.situation, plan.tradeoff))


def _announce(plan: Plan, notes: tuple[str, ...]) -> None:
    """Print the warnings, the notes on the data and the plan, before the first round."""
    from oco.cli.results import report

    for diagnostic in dict.fromkeys(plan.warnings):
        show_diagnostic(diagnostic)
    for text in notes:
        note(text)
    report(plan)


def _conclude(trace: Trace, plan: Plan, out: Path | None, as_json: bool, rules: Beside | None) -> None:
    """Print the measures and write the files."""
    from oco.cli.results import measured, write_results
    from oco.evaluation.summary import summarize

    with working("comparing with the best in hindsight", silent=as_json):
        summary = summarize(trace, beside=rules, certify=True)
    if as_json:
        show_json({"version": 1, "model": trace.problem.name, "runs": [summary.to_json()]})
    else:
        measured(summary)
        _left_out(trace, summary)
    if out is not None:
        write_results(trace, summary, plan, out, rules)
        note(f"written to {out}/")


def _left_out(trace: Trace, summary: RunSummary) -> None:
    """Say which comparators ended without a certificate, and what goes on."""
    from oco.evaluation.comparators.base import EXACT, Status

    if not trace.budget.wanted:
        return
    cut = [line.kind for line in summary.regret if line.status in (Status.INTERVAL.value, Status.NOT_COMPUTED.value)]
    if cut:
        words = " and ".join(cut)
        note(f"the {words} comparator had {trace.budget.seconds:.3g} s: --comparators exact gives it {EXACT:g} s")


def data(
    model: ModelPath,
    source: Annotated[Path, typer.Option("--data", metavar="FILE", help="CSV, Parquet, Arrow, NPY or NPZ.")],
    mapping: Mapping = None,
    on_missing: o.OnMissing = "error",
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Say which columns fill which streams, and what is wrong with the data, without running anything."""
    from oco.evaluation.data import describe
    from oco.evaluation.mapping import parse_map

    result = describe(model_at(model, param_values(param)), source, parse_map(mapping or []), on_missing)
    if as_json:
        show_json({"version": 1} | result.to_json())
        raise typer.Exit(1 if result.problems else 0)
    say(f"{result.source}: {result.rounds:,} round{'' if result.rounds == 1 else 's'}")
    for assignment in result.assignments:
        say(f"  {assignment}")
    for text in result.beside:
        note(text)
    if result.problems:
        raise OcoError(*result.problems)
    say("Nothing is wrong with it.")
