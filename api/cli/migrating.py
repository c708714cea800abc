"""`oco migrate`: carry a saved state or a journal to a plan whose horizon, settings or bounds changed."""

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
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A saved state, or the folder of a journal.")],
    model: Annotated[Path, typer.Argument(metavar="MODEL.oco", help="The model as it is now.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="The new state.")] = Path(
        "migrated.state"
    ),
    algorithm: Algorithm = None,
    setting: Settings = None,
    settings: Kind = None,
    param: Params = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Carry a saved state or a journal to the plan of a model whose horizon, settings or bounds changed.

    Prints what is kept of the guarantee, and writes the new state for `oco.restore`.
    """
    loaded = oco.load(model, param_values(param))
    options: dict[str, Any] = {"effort": effort_of(context), **given(pairs(setting, "--set"), settings)}
    check_outputs([output], force, [*files_read(model, loaded), state])
    with working(f"compiling {model}", silent=as_json):
        result = oco.migrate(state, oco.compile(loaded, algorithm, **options))
    result.learner.save(output)
    if as_json:
        whole = {"whole": result.whole, "played": result.played, "kept": result.kept}
        show_json({"version": 1, "state": str(state), "file": str(output), **whole})
        return
    say(f"{output}: {result.kept}")
