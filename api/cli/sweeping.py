"""`oco run` over a table of runs: algorithms, values of settings and seeds, in processes or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oco.cli.options import pairs
from oco.cli.output import console, note, say, show_json
from oco.cli.results import number

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.evaluation.sweep import Engine, Outcome, Row

MEASURES = ("loss", "static_regret", "dynamic_regret", "hard_violation", "soft_violation")


def values_of(grid: list[str] | None) -> dict[str, list[str]]:
    """`["epsilon=0.1,0.5"]` as values to try of each setting."""
    return {name: [v.strip() for v in text.split(",") if v.strip()] for name, text in pairs(grid, "--grid").items()}


def engine_of(name: str) -> Engine:
    """`here`, `processes`, `ray` or `ray://ADDRESS`."""
    from oco.evaluation.sweep import Processes, Ray, here

    if name == "here":
        return here
    if name == "processes":
        return Processes()
    if name == "ray" or name.startswith("ray://"):
        return Ray(None if name == "ray" else name)
    raise typer.BadParameter(f"{name!r} is not one of here, processes, ray, ray://ADDRESS", param_hint="--engine")


def run_sweep(
    model: Model,
    data: Any,
    algorithms: Sequence[str | None],
    seeds: Sequence[int],
    grid: Mapping[str, Sequence[str]],
    engine: str,
    out: Path | None,
    as_json: bool,
) -> bool:
    """Run the table, with a bar while it runs, and print it; whether every run went through."""
    from rich.progress import Progress

    from oco.evaluation.sweep import compared, to_dataset
    from oco.sweeps import sweep

    total = len(algorithms) * len(seeds)
    for tried in grid.values():
        total *= len(tried)
    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("runs", total=total)
        folder = None if out is None else out / "runs"
        found = sweep(
            model,
            data,
            algorithms,
            seeds,
            grid,
            folder=folder,
            engine=engine_of(engine),
            progress=lambda o: bar.advance(task),
        )
    dataset = to_dataset(found)
    rows = compared(dataset, MEASURES)
    if as_json:
        show_json({"version": 1, "model": model.name, "rows": [r.__dict__ for r in rows], "failed": _failed(found)})
    else:
        _table(rows)
    for label, why in _failed(found).items():
        say(f"failed: {label}: {why}", "red")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        dataset.to_netcdf(out / "sweep.nc", engine="h5netcdf")
        note(f"written to {out}/")
    return not _failed(found)


def _failed(found: Sequence[Outcome]) -> dict[str, str]:
    return {f"{o.job.label}, seed {o.job.seed}": o.error for o in found if o.error}


def _table(rows: Sequence[Row]) -> None:
    """Means and deviations, and the paired difference to the first row's algorithm."""
    from rich.table import Table

    table = Table("", "measure", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("mean", "deviation", "difference", "its deviation", "runs"):
        table.add_column(heading, justify="right")
    for row in rows:
        numbers = (row.mean, row.deviation, row.difference, row.difference_deviation)
        table.add_row(
            row.label, row.measure.replace("_", " "), *(number(n) if n == n else "" for n in numbers), str(row.runs)
        )
    console().print(table)
