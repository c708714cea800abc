"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from oco.dsl.diagnostics import fail

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL.oco", help="The model file.", show_default=False)]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Value of a param: a number or a JSON array. May be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print a stable, versioned JSON document instead.")]
DataPath = Annotated[
    Path | None,
    typer.Option("--data", metavar="FILE", help="CSV, Parquet, NPY or NPZ; the round comes first.", show_default=False),
]
Mapping = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="STREAM=COLUMNS", help="Which columns fill a stream: price=a,b,c or price=zone.*"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a dict; the part before `=` is a name."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def param_values(texts: list[str] | None) -> dict[str, Any]:
    """Values of params from `--param`: JSON numbers and arrays."""
    values: dict[str, Any] = {}
    for name, text in pairs(texts, "--param").items():
        try:
            values[name] = json.loads(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number nor a JSON array", param_hint="--param") from None
    return values


def refuse_overwrite(path: Path, force: bool) -> None:
    """An existing file is overwritten only when the user says so."""
    if path.exists() and not force:
        raise fail("OCO905", f"{path} is there already", hint="give another name with -o, or --force to overwrite it")
