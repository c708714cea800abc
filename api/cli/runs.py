"""Commands that meet data: run, data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oco.cli.models import Backend, Settings
from oco.cli.options import DataPath, Json, Mapping, ModelPath, Params, pairs, param_values
from oco.cli.output import note, say, show_diagnostic, show_json
from oco.cli.progress import watched

if TYPE_CHECKING:
    from oco.evaluation.data import Data
    from oco.evaluation.trace import Trace
    from oco.plan import Plan

Algorithms = Annotated[
    str | None, typer.Option("--algorithms", metavar="A,B,C", help="Run these instead of the chosen one, side by side.")
]
Journal = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Record every round here first; go on from there after a crash."),
]


def run(
    model: ModelPath,
    data: DataPath = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="How many rounds; by default all.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeat with seeds SEED, SEED+1, ...")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything that is drawn.")] = 0,
    algorithms: Algorithms = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the trace and plots here.", show_default=False)
    ] = None,
    mapping: Mapping = None,
    on_missing: Annotated[str, typer.Option("--on-missing", help="Missing values: error, hold or skip.")] = "error",
    setting: Settings = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", metavar="SETTING=A,B", help="Run with each of these values. May be repeated."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Spread the runs: here, processes, ray or ray://ADDRESS.", show_default=False),
    ] = None,
    journal: Journal = None,
    backend: Backend = None,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Run the learner over data, or over draws from the model, and measure regret and violation.

    With --grid or --engine all combinations of algorithms, values and seeds are run, on all cores, and compared pair by pair; with
    --out an interrupted table goes on where it stopped.
    """
    import oco
    from oco.cli.results import make_folder
    from oco.compiler.canonical import canonical
    from oco.evaluation.data import load_data
    from oco.evaluation.mapping import parse_map

    loaded = oco.load(model, param_values(param))
    names = [a.strip() for a in algorithms.split(",") if a.strip()] if algorithms else [None]
    told = parse_map(mapping or [])
    source = load_data(canonical(loaded), data, mapping=told, seed=seed, rounds=rounds, on_missing=on_missing)
    seeds_used = range(seed, seed + seeds)
    if journal is not None and (len(names) * seeds > 1 or grid or engine):
        raise typer.BadParameter("a journal is of one run: one algorithm, one seed, no --grid", param_hint="--journal")
    settings = pairs(setting, "--set")
    if grid or engine:
        from oco.cli.sweeping import run_sweep, values_of

        values = values_of(grid) | {name: [value] for name, value in settings.items()}
        done = run_sweep(loaded, source, names, seeds_used, values, engine or "processes", out, as_json)
        raise typer.Exit(0 if done else 1)
    plans = [_for_rounds(oco.compile(loaded, name, settings or "paper", backend), source.rounds) for name in names]
    if out is not None:
        make_folder(out)
    if not as_json:
        _announce(plans, (*source.notes, *_replanned(loaded, source)))
    traces = [_run(plan, replace(source, seed=k), k, journal) for plan in plans for k in seeds_used]
    _conclude(traces, plans, out, as_json)


def _announce(plans: list[Plan], notes: tuple[str, ...]) -> None:
    """What is known before the first round: warnings, what was done with the data, the plan."""
    from oco.cli.results import report

    for diagnostic in dict.fromkeys(d for plan in plans for d in plan.warnings):
        show_diagnostic(diagnostic)
    for text in notes:
        note(text)
    if len(plans) == 1:
        report(plans[0])


def _conclude(traces: list[Trace], plans: list[Plan], out: Path | None, as_json: bool) -> None:
    """The measures, on the terminal and in files."""
    from oco.cli.results import compared, measured, write_results
    from oco.evaluation.summary import summarize

    summaries = [summarize(t) for t in traces]
    if as_json:
        show_json({"version": 1, "model": traces[0].problem.name, "runs": [s.to_json() for s in summaries]})
    elif len(summaries) == 1:
        measured(summaries[0])
    else:
        compared(summaries)
    if out is not None:
        write_results(traces, summaries, plans, out)
        note(f"written to {out}/")


def _for_rounds(plan: Plan, rounds: int) -> Plan:
    return plan if plan.horizon in (None, rounds) else plan.with_horizon(rounds)


def _replanned(model: Any, source: Data) -> tuple[str, ...]:
    horizon = model.horizon.rounds
    if horizon is None or source.problem.horizon == source.rounds:
        return ()
    return (
        f"{source.rounds} rounds, and the model's horizon is {source.problem.horizon}: planned for {source.rounds}",
    )


def _run(plan: Plan, source: Data, seed: int, journal: Path | None) -> Trace:
    with watched(f"{plan.algorithm}, seed {seed}", source.rounds) as progress:
        return plan.run(source, seed=seed, progress=progress, journal=journal)


def data(
    model: ModelPath,
    source: Annotated[Path, typer.Option("--data", metavar="FILE", help="CSV, Parquet, NPY or NPZ.")],
    mapping: Mapping = None,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Say which columns fill which streams, and what is wrong with the data, without running anything."""
    import oco
    from oco.dsl.diagnostics import OcoError
    from oco.evaluation.data import describe
    from oco.evaluation.mapping import parse_map

    found = describe(oco.load(model, param_values(param)), source, parse_map(mapping or []))
    if as_json:
        show_json({"version": 1} | found.to_json())
        raise typer.Exit(1 if found.problems else 0)
    say(f"{found.source}: {found.rounds} rounds")
    for assignment in found.assignments:
        say(f"  {assignment}")
    for text in found.notes:
        note(text)
    if found.problems:
        raise OcoError(*found.problems)
    say("Nothing is wrong with it.")
