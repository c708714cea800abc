"""Commands that meet data: run, data."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import oco
from oco.cli import options as o
from oco.cli.models import Backend, Settings
from oco.cli.options import Json, Mapping, ModelPath, Params, effort_of, model_at, pairs, param_values
from oco.cli.output import note, say, show_json
from oco.cli.progress import working
from oco.cli.replaying import replay_trace
from oco.cli.stated import StatedOptions, stated_options
from oco.cli.sweeping import RunTable, check_table_outputs, run_sweep, values_of
from oco.dsl.diagnostics import OcoError
from oco.dsl.extras import require_package
from oco.pipeline import instrumented, planned

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.evaluation.data import Data
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
    on_missing: o.StatedOnMissing = None,
    setting: Settings = None,
    kind: o.Kind = None,
    tradeoff: o.Tradeoff = 1.0,
    grid: o.Grid = None,
    engine: o.EngineName = "auto",
    journal: o.Journal = None,
    replay: o.Replay = None,
    budget: o.Cost = None,
    comparators: o.Comparators = "fast",
    baselines: o.Baselines = "some",
    certify: o.Certify = None,
    alert: o.Alert = None,
    backend: Backend = None,
    param: Params = None,
    force: o.Force = False,
    details: o.Details = False,
    as_json: Json = False,
) -> None:
    """Run the learner over data, or over draws from the model, and measure regret and violation.

    With several algorithms, seeds or values of settings all combinations are run, on all cores, and compared pair by pair; one that
    fails stops no other, and with --out an interrupted table goes on where it stopped.
    """
    model = _named(model, replay, as_json)
    stated = stated_options(model) if data is None else StatedOptions()
    data, mapping, rounds = data or stated.data, mapping or stated.mapping, rounds or stated.rounds
    on_missing = on_missing or stated.on_missing or "error"
    which, loaded = o.baselines_of(baselines), model_at(model, param_values(param))
    names = [a.strip() for a in algorithms.split(",") if a.strip()] if algorithms else [None]
    (cost, following), settings = o.comparators_of(comparators, budget), pairs(setting, "--set")
    options: dict[str, Any] = {"tradeoff": tradeoff, "effort": effort_of(context)}
    read: dict[str, Any] = {"mapping": mapping, "seed": seed, "rounds": rounds, "on_missing": on_missing}
    one_run, source = _loaded_with(loaded, data, **read)
    if len(names) * seeds > 1 or grid:
        values = _grid_values(grid, {**o.units_of(kind), **settings}, journal)
        shared = options | {"backend": backend, "budget": cost}
        table = RunTable(loaded, source, tuple(names), range(seed, seed + seeds), values, shared)
        raise _run_table(table, engine, out, force, o.files_read(model, loaded, data), as_json)
    _check_outputs(out, force, o.files_read(model, loaded, data))
    timed = options | {"budget": o.pilot_seconds(budget), "pilots": source if data is not None else None}
    with working(f"compiling {model}", silent=as_json):
        if kind == "tuned" and data is not None and not settings:
            plan, source = _tuned(loaded, source, names[0], backend, **options)
        else:
            plan = _planned(loaded, source, names[0], o.given(settings, kind).get("settings"), backend, **timed)
    plan = instrumented(plan, certify, alert)
    files = one_run.Files(model, data, stated.data is not None, mapping or (), journal, out)
    request = one_run.Request(files, cost, following, which, details, as_json)
    one_run.run_one(plan.for_rounds(source.rounds), source, request)


def _loaded_with(model: Model, path: Path | None, **options: Any) -> tuple[Any, Data]:
    """Module of a single run with all that it loads, and the data, at the same time: readers leave the interpreter to others."""

    def one_run() -> Any:
        from oco.cli import one_run

        return one_run

    with ThreadPoolExecutor(1, "oco-import") as other:
        module = other.submit(one_run)
        data = o.data_of(model, path, **options)
    return module.result(), data


def _planned(loaded: Model, source: Data, *words: Any, pilots: Data | None, **options: Any) -> Plan:
    """Plan for the rounds of the data, chosen by pilot runs on `pilots` where there are some."""
    from oco.evaluation.data import problem_for

    return planned(problem_for(loaded, source), *words, data=pilots, seed=source.seed, **options)


def _named(model: Path | None, replay: Path | None, as_json: bool) -> Path:
    """Model file of a run; a trace to repeat is repeated instead, and ends the command. Raises BadParameter where none is named."""
    if replay is not None:
        replay_trace(replay, as_json)
    if model is None:
        raise typer.BadParameter("name a model file, or a trace with --replay", param_hint="MODEL.oco")
    return model


def _grid_values(grid: list[str] | None, fixed: dict[str, str], journal: Path | None) -> dict[str, list[str]]:
    """Values of a table of runs by setting. Raises BadParameter where it is given a journal."""
    if journal is not None:
        raise typer.BadParameter("a journal is of one run: one algorithm, one seed, no --grid", param_hint="--journal")
    return values_of(grid) | {name: [value] for name, value in fixed.items()}


def _run_table(
    table: RunTable, engine: str, out: Path | None, force: bool, inputs: Sequence[Path], as_json: bool
) -> typer.Exit:
    """Run the whole table, once no existing file conflicts with its results; returns the exit of the command."""
    require_package("xarray", "a table of runs")
    check_table_outputs(table, out, force, inputs)
    return typer.Exit(0 if run_sweep(table, engine, out, as_json) else 1)


def _check_outputs(out: Path | None, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse to replace files in the folder of the results, before the first round."""
    if out is not None:
        from oco.cli.results import result_files

        require_package("matplotlib", "--out, which draws plots,")
        require_package("h5netcdf", "--out, which writes the trace,")
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


def data(
    model: ModelPath,
    source: o.DataPath = None,
    mapping: Mapping = None,
    on_missing: o.StatedOnMissing = None,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Say which columns fill which streams, and what is wrong with the data, without running anything."""
    from oco.evaluation.data import describe
    from oco.evaluation.mapping import parse_map

    stated = stated_options(model)
    if source is None:
        source, mapping = stated.data, mapping or stated.mapping
        on_missing = on_missing or stated.on_missing
    if source is None or str(source) == o.DRAWN:
        raise typer.BadParameter("name the file of data to look at", param_hint="--data")
    result = describe(model_at(model, param_values(param)), source, parse_map(mapping or []), on_missing or "error")
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
