"""`oco run` over a table of runs: algorithms, values of settings and seeds, in processes or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oco.cli.options import check_outputs, pairs
from oco.cli.output import WIDE, console, note, say, show_json
from oco.cli.progress import Pace, reporting
from oco.dsl.records import dataclass
from oco.dsl.writing import make_folder

if TYPE_CHECKING:
    from oco.dsl.model import Model
    from oco.evaluation.data import Data
    from oco.evaluation.sweep import Engine, Outcome, Row


RUNS = "runs"
"""The folder of the outcomes, in the one that --out names."""


@dataclass(frozen=True)
class RunTable:
    """Table of runs: every algorithm (None: the chosen one) with every value of the settings that it has, and every
    seed.

    `options` holds backend, budget, tradeoff and effort for all of them.
    """

    model: Model
    data: Data
    algorithms: tuple[str | None, ...]
    seeds: Sequence[int]
    grid: Mapping[str, Sequence[str]]
    options: Mapping[str, Any]


def values_of(grid: list[str] | None) -> dict[str, list[str]]:
    """Parse `["epsilon=0.1,0.5"]` into the values to try of each setting."""
    results = {name: [v.strip() for v in text.split(",") if v.strip()] for name, text in pairs(grid, "--grid").items()}
    if empty := [name for name, values in results.items() if not values]:
        raise typer.BadParameter(f"no values to try of {', '.join(empty)}", param_hint="--grid")
    return results


def engine_of(name: str) -> Engine:
    """Engine named `auto`, `here`, `processes`, `ray` or `ray://ADDRESS`."""
    from oco.evaluation.engines import Automatic, Processes, Ray, here

    if name == "auto":
        return Automatic()
    if name == "here":
        return here
    if name == "processes":
        return Processes()
    if name == "ray" or name.startswith("ray://"):
        return Ray(None if name == "ray" else name)
    raise typer.BadParameter(f"{name!r} is not one of auto, here, processes, ray, ray://ADDRESS", param_hint="--engine")


def check_table_outputs(table: RunTable, out: Path | None, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse to replace files in the folder, unless this table, or one that shares its outcomes, was begun there."""
    from oco.evaluation.report.comparison import FILES
    from oco.sweeps import outcomes_folder

    if out is None:
        return
    begun = outcomes_folder(out / RUNS, table.model, table.data, table.options).is_dir()
    check_outputs([out / name for name in FILES], force or begun, inputs, "--out")


def run_sweep(table: RunTable, engine: str, out: Path | None, as_json: bool) -> bool:
    """Run the table with a progress bar and print it; True where every run succeeded."""
    from oco.evaluation.sweep import compared, to_dataset

    where = engine_of(engine)
    if out is not None:
        make_folder(out)
    for text in () if as_json else table.data.notes:
        note(text)
    result = _run(table, where, out, as_json)
    dataset = to_dataset(result)
    rows, failed = compared(dataset), _failed(result)
    if as_json:
        show_json({"version": 1, "model": table.model.name, "rows": [asdict(r) for r in rows], "failed": failed})
    else:
        _show(rows)
    together = _together(result)
    for runs, why in () if as_json else together.items():
        say(f"failed: {runs}: {why}", "red")
    if out is not None:
        from oco.evaluation.report.comparison import write_comparison

        write_comparison(dataset, rows, together, table.model.name, out)
        note(f"written to {out}/")
    return not failed


def _run(table: RunTable, engine: Engine, out: Path | None, as_json: bool) -> list[Outcome]:
    from oco.sweeps import run_table, table_for

    model, data, folder = table.model, table.data, None if out is None else out / RUNS
    tradeoff, effort = table.options["tradeoff"], table.options["effort"]
    jobs = table_for(model, data, table.algorithms, table.seeds, table.grid, tradeoff, effort)
    done: list[Outcome] = []
    pace = Pace(getattr(engine, "width", 1))
    with reporting("table of runs", len(jobs), "runs", as_json, lambda done: pace.left(len(jobs) - done)) as show:

        def count(outcome: Outcome) -> None:
            done.append(outcome)
            if outcome.seconds:
                pace.took(outcome.seconds)
            show(len(done), f"{outcome.job.label}, seed {outcome.job.seed}")

        try:
            return run_table(model, data, jobs, folder, engine, count, **table.options)
        except KeyboardInterrupt:
            kept = (
                f"are kept in {out}/: the same command goes on" if out is not None else "are lost; --out DIR keeps them"
            )
            note(f"{len(done)} of {len(jobs)} runs {kept}")
            raise


def _failed(results: Sequence[Outcome]) -> dict[str, str]:
    return {f"{o.job.label}, seed {o.job.seed}": o.error for o in results if o.error}


def _together(results: Sequence[Outcome]) -> dict[str, str]:
    """Errors for display: runs that differ only in their seed and failed for the same reason share a line."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for o in results:
        if o.error:
            seeds.setdefault((o.job.label, o.error), []).append(o.job.seed)
    return {
        f"{label}, {'seed' if len(which) == 1 else 'seeds'} {', '.join(map(str, which))}": why
        for (label, why), which in seeds.items()
    }


def _show(rows: Sequence[Row]) -> None:
    """Print an algorithm a row and a measure a column: means and deviations, then the differences from the first
    algorithm.
    """
    from rich.table import Table as Lines

    from oco.evaluation.report.grids import grids

    screen = console(plain=WIDE)
    for place, grid in enumerate(grids(rows)):
        say(("\n" if place else "") + grid.title, "bold")
        lines = Lines(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column, heading in enumerate(grid.headings):
            width = max(10, screen.width // 8) if column else None
            lines.add_column(heading, justify="right" if column else "left", max_width=width)
        for cells in grid.rows:
            lines.add_row(*cells)
        screen.print(lines)
