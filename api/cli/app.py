"""The table of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from oco.cli import files, models, runs, tuning

app = typer.Typer(
    help="Model online decisions under constraints; compile them to learners with a guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(models.check)
app.command()(models.explain)
app.command()(models.compile)
app.command()(runs.run)
app.command()(runs.data)
app.command()(tuning.tune)
app.command()(files.fmt)
app.command()(files.new)
app.command(name="help")(files.explain_code)
app.command()(files.algorithms)


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version and stop.", is_eager=True)
    ] = False,
) -> None:
    """Model online decisions under constraints; compile them to learners with a guarantee."""
    if version:
        import oco

        typer.echo(f"oco {oco.__version__}")
        raise typer.Exit
