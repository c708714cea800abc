"""Commands about model files and words: fmt, new, help, algorithms."""

from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from oco.cli.options import STDIN, Force, Json, check_outputs
from oco.cli.output import console, note, say, show_json
from oco.dsl.diagnostics import fail
from oco.dsl.suggest import nearest
from oco.dsl.writing import read_text, write_text

TEMPLATES = resources.files("oco") / "templates"
"""Folder of models to start from, with `{name}` in the place of the model's name."""


def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL.oco", help="Files to format in place; - formats standard input to standard output."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Change nothing; exit with 1 if a file would change.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", metavar="", help="Print what would change, and change nothing; exit as --check.")
    ] = False,
) -> None:
    """Format model files: spaces, indentation, blank lines. Comments and aligned columns stay."""
    from oco.dsl.text.formatter import format_text

    changed = []
    for path in files:
        piped = str(path) == STDIN
        text = sys.stdin.read() if piped else read_text(path)
        formatted = format_text(text, name="<stdin>" if piped else str(path))
        if piped and not (check or diff):
            sys.stdout.write(formatted)
        elif formatted != text:
            changed.append(path)
            if diff:
                say(_difference(path, text, formatted))
            if not (check or diff):
                write_text(path, formatted)
    for path in changed:
        note(f"{path} {'would change' if check or diff else 'formatted'}")
    if (check or diff) and changed:
        raise typer.Exit(1)


def _difference(path: Path, text: str, formatted: str) -> str:
    """Unified difference of a file and its formatted text."""
    import difflib

    before, after = (t.splitlines() for t in (text, formatted))
    return "\n".join(difflib.unified_diff(before, after, str(path), f"{path} (formatted)", lineterm=""))


def new(
    name: Annotated[
        str | None, typer.Argument(help="Name of the model; NAME.oco is written here.", show_default=False)
    ] = None,
    template: Annotated[
        str, typer.Option("--template", metavar="PROBLEM", help="Problem to start from: see --list.")
    ] = "order",
    listing: Annotated[bool, typer.Option("--list", metavar="", help="List the problems, and write nothing.")] = False,
    force: Force = False,
) -> None:
    """Write a small model to start from: it checks, compiles and runs as it is."""
    known = templates()
    if listing:
        for key, text in known.items():
            say(
                fill(
                    text.split("\n")[0].removeprefix("# ").replace(": {name}", ""),
                    80,
                    initial_indent=f"{key:<11}",
                    subsequent_indent=" " * 11,
                )
            )
        return
    if name is None:
        raise typer.BadParameter("give the model a name, or --list", param_hint="NAME")
    if template not in known:
        raise typer.BadParameter(f"{template!r} is none of {', '.join(known)}", param_hint="--template")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise fail(
            "OCO906", f"`{name}` cannot be the name of a model", hint="use letters, digits and _, a letter first"
        )
    path = Path(f"{name}.oco")
    check_outputs([path], force)
    write_text(path, known[template].replace("{name}", name))
    say(f"{path} written. Next: oco check {path}, oco explain {path}, oco run {path}")


def templates() -> dict[str, str]:
    """Texts of the models to start from, by problem."""
    files = sorted((f for f in TEMPLATES.iterdir() if f.name.endswith(".oco")), key=lambda f: f.name)
    return {f.name.removesuffix(".oco"): f.read_text(encoding="utf-8") for f in files}


def explain_code(
    context: typer.Context,
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A code, for example OCO203, or the name of a command.")
    ] = None,
) -> None:
    """Explain the code of an error or a warning, with an example; or a command."""
    from rich.table import Table

    from oco.dsl.codes import CODES
    from oco.dsl.explanations import explanation

    if code is None:
        table = Table("code", "what it means", box=None, pad_edge=False)
        for key in sorted(CODES):
            table.add_row(key, CODES[key].title)
        console().print(table)
        return
    row = CODES.get(code.upper())
    if row is None:
        context.obj.show_help(code)
        near = nearest(code.upper(), CODES)
        raise fail(
            "OCO907", f"there is no code {code}", hint=f"did you mean {near}?" if near else "`oco help` lists them"
        )
    say(f"{code.upper()}: {row.title}", "bold")
    say()
    say(explanation(row))
    if row.example:
        say("\nExample:\n")
        say("\n".join("    " + line for line in row.example.strip("\n").splitlines()), "cyan")
    say(f"\nWhat to do: {row.remedy}")


def algorithms(as_json: Json = False) -> None:
    """List the algorithms with what they need, what they promise and where they come from."""
    from oco.compiler.algorithms import ALGORITHMS, LEFT_OUT
    from oco.compiler.selection.explain import algorithm_data

    rows = [algorithm_data(a) for a in ALGORITHMS]
    if as_json:
        show_json({"version": 1, "algorithms": rows, "left_out": LEFT_OUT})
        return
    for row in rows:
        say(f"{row['name']:<17} {row['cost']} a round")
    say()
    for row in rows:
        say(f"{row['name']}: {row['title']} ({row['cite']}); {row['cost']} a round", "bold")
        for words in row["requirements"]:
            say(f"    needs: {words}")
        for words in row["departures"]:
            say(f"    not as in the paper: {words}")
        for theorem in row["theorems"]:
            mean = ", in expectation" if theorem["expected"] else ""
            say(f"    {theorem['name']}: " + ", ".join(f"{m} O({r})" for m, r in theorem["rates"].items()) + mean)
            for words in theorem["hypotheses"]:
                say(f"      - {words}")
        say()
    say("left out", "bold")
    for name, reason in LEFT_OUT.items():
        say(f"    {name}: {reason}")
