"""`oco migrate`: carry a saved state, a journal or a store to a plan whose horizon, settings or bounds changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import oco
from oco.cli.models import Algorithm, Settings
from oco.cli.options import Force, Json, Kind, Params, check_outputs, effort_of, files_read, given, pairs, param_values
from oco.cli.output import say, show_json
from oco.cli.progress import working


def migrate(
    context: typer.Context,
    state: Annotated[
        Path, typer.Argument(metavar="STATE", help="A saved state, the folder of a journal, or a store of learners.")
    ],
    model: Annotated[Path, typer.Argument(metavar="MODEL.oco", help="The model as it is now.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="The new state or store. Default: migrated.state, migrated.db.",
            show_default=False,
        ),
    ] = None,
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    param: Params = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Carry a saved state, a journal or a store to the plan of a model whose horizon, settings or bounds changed.

    Prints what is kept of the guarantee, and writes the new state for `oco.restore`, or a store for `oco serve` with all learners.
    """
    from oco.serving.carrying import carry_store
    from oco.serving.sources import is_store

    of_store = is_store(state)
    output = output or Path("migrated.db" if of_store else "migrated.state")
    loaded = oco.load(model, param_values(param))
    options: dict[str, Any] = {"effort": effort_of(context), **given(pairs(setting, "--set"), settings)}
    check_outputs([output], force, [*files_read(model, loaded), state])
    with working(f"compiling {model}", silent=as_json):
        plan = oco.compile(loaded, algorithm, **options)
    if of_store:
        with working(f"carrying {state}", silent=as_json):
            stored = carry_store(state, output, plan)
        about, kept = {"whole": stored.whole, "begun": stored.begun}, stored.kept
    else:
        result = oco.migrate(state, plan)
        result.learner.save(output)
        about, kept = {"whole": result.whole, "played": result.played}, result.kept
    if as_json:
        show_json({"version": 1, "state": str(state), "file": str(output), **about, "kept": kept})
        return
    say(f"{output}: {kept}")
