"""`oco tune`: settings from pilot data, judged on data held out."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

import oco
from oco.cli.options import (
    DataPath,
    Json,
    ModelPath,
    OnMissing,
    Params,
    Tradeoff,
    effort_of,
    model_at,
    param_values,
    rounds_of,
)
from oco.cli.output import note, say, show_json
from oco.cli.progress import working
from oco.dsl.writing import read_text, write_text


def tune(
    context: typer.Context,
    model: ModelPath,
    data: DataPath = None,
    algorithm: Annotated[str | None, typer.Option("--algorithm", metavar="NAME", help="Tune this one.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="SEED", help="Of the constants that are tried.")] = 0,
    tradeoff: Tradeoff = 1.0,
    on_missing: OnMissing = "error",
    budget: Annotated[
        float, typer.Option("--budget", min=0.0, metavar="SECONDS", help="Time that the search may take.")
    ] = 600.0,
    gradient: Annotated[
        bool,
        typer.Option("--gradient", metavar="", help="Follow the slopes of the cost from the default (needs JAX)."),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", metavar="", help="Put the `using` line into the model file; the rest stays.")
    ] = False,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Choose the constants that the theorem leaves free on the first part of the data, and judge them on the rest.

    Without data, rounds are drawn from the model. The guarantee is worked out again for what was chosen.
    """
    from oco.tuning import tuning_text

    loaded = model_at(model, param_values(param))
    source = rounds_of(loaded, data, on_missing, seed=seed)
    with working(f"tuning {model}", silent=as_json):
        options: dict[str, Any] = {"tradeoff": tradeoff, "seed": seed, "effort": effort_of(context), "seconds": budget}
        options["gradient"] = gradient
        result = oco.tune(loaded, source, algorithm, **options)
    writes = write and bool(result.line)
    if writes:
        write_text(model, with_using(read_text(model), result.line))
    if not as_json:
        for text in () if source is None else source.notes:
            note(text)
        say(tuning_text(result).rstrip())
        if write:
            note(f"{model} has the line now" if writes else f"{model} is not changed")
        return
    tried = [
        {
            "name": t.name,
            "constants": dict(t.numbers),
            "rounds": t.rounds,
            "searched": t.searched,
            "held_out": t.held_out,
        }
        for t in result.search.tried
    ]
    show_json(
        {"version": 1, "model": loaded.name, "algorithm": result.plan.algorithm, "using": result.line, "tried": tried}
    )


def with_using(text: str, line: str) -> str:
    """Text of the model with this `using` line in place of its own, or at the end; comments stay."""
    lines = text.splitlines()
    for k, old in enumerate(lines):
        if re.match(r"\s*using\b", old):
            comment = re.search(r"\s+#.*$", old)
            lines[k] = line + (comment.group(0) if comment else "")
            return "\n".join(lines) + "\n"
    return "\n".join([*lines, "", line]) + "\n"
