"""`oco run --replay TRACE`: repeat the run of a trace and compare the two bit for bit."""

from __future__ import annotations

from pathlib import Path

import typer

from oco.cli.output import note, say, show_json
from oco.cli.progress import watched


def replay_trace(path: Path, as_json: bool) -> None:
    """Repeat the run and compare; status 1 where something differs."""
    from oco.evaluation.load import load_trace
    from oco.evaluation.replay import difference, elsewhere
    from oco.plan import Plan

    first = load_trace(path)
    with watched(f"{first.promise.algorithm}, seed {first.seed}", first.rounds, silent=as_json) as progress:
        again = Plan.from_recipe(first.origin.recipe).replay(first, progress)
    differs, versions = difference(first, again), elsewhere(first)
    if as_json:
        show_json({"version": 1, "trace": str(path), "same": not differs, "difference": differs, "versions": versions})
    elif differs:
        say(f"{path}: not the same: {differs}", "red")
    else:
        say(
            f"{path}: {first.problem.name} with {first.promise.algorithm}, {first.rounds:,} rounds, the same bit for bit"
        )
    if versions and not as_json:
        note(versions)
    raise typer.Exit(1 if differs else 0)
