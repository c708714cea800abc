"""The table of commands. A command's module is imported when the command is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated

import typer
from typer import completion as shells

import oco
from oco.cli.command import Command, CommandGroup, Invocation
from oco.guarded import Untrusted

COMMANDS = {
    "check": ("models", "check"),
    "explain": ("models", "explain"),
    "compile": ("models", "compile"),
    "run": ("runs", "run"),
    "data": ("runs", "data"),
    "verify-certificate": ("certificates", "verify_certificate"),
    "prove": ("proving", "prove"),
    "verify-promise": ("proving", "verify_promise"),
    "watch": ("watching", "watch"),
    "tune": ("tuning", "tune"),
    "migrate": ("migrating", "migrate"),
    "fmt": ("files", "fmt"),
    "new": ("files", "new"),
    "help": ("files", "explain_code"),
    "algorithms": ("files", "algorithms"),
}
"""Place of each command: its module in this folder, and the function."""


SHELLS = ("bash", "zsh", "fish")
COMPLETING = "_OCO_COMPLETE"
"""Variable by which a shell asks for completions."""


def app_for(words: Sequence[str]) -> typer.Typer:
    """Typer application with the command that the words begin with; with all commands where they begin with none."""
    if COMPLETING in os.environ:
        shells.completion_init()  # type: ignore[attr-defined]  # Typer imports it there for its own options
    app = typer.Typer(
        cls=CommandGroup,
        help="Model online decisions under constraints; compile them to learners with a guarantee.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(top)
    for name in [words[0]] if words and words[0] in COMMANDS else COMMANDS:
        module, function = COMMANDS[name]
        made = getattr(import_module(f"oco.cli.{module}"), function)
        app.command(name=name, cls=Command, help=_paragraphs(made.__doc__ or ""))(made)
    return app


def _paragraphs(text: str) -> str:
    """Docstring with each paragraph on one line, to be wrapped at the width of the terminal."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def show_help(name: str) -> None:
    """Print the help of a command and exit; nothing where there is none of that name."""
    if name in COMMANDS:
        app_for([name])(args=[name, "--help"], prog_name="oco")


def _show_version(wanted: bool) -> None:
    """Print the version and exit, before a command is looked up."""
    if wanted:
        typer.echo(f"oco {oco.__version__}")
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    """Print the script that makes a shell complete the command's words, and exit."""
    if shell is None:
        return
    if shell not in SHELLS:
        raise typer.BadParameter(f"{shell!r} is none of {', '.join(SHELLS)}", param_hint="--completion")
    script = shells.get_completion_script  # type: ignore[attr-defined]  # as `completion_init`
    typer.echo(script(prog_name="oco", complete_var=COMPLETING, shell=shell))
    raise typer.Exit


def top(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version and stop.", is_eager=True, callback=_show_version
        ),
    ] = False,
    completion: Annotated[
        str | None,
        typer.Option(
            "--completion",
            metavar="SHELL",
            help='Print the completion for bash, zsh or fish: eval "$(oco --completion bash)".',
            is_eager=True,
            callback=_show_completion,
        ),
    ] = None,
    effort: Annotated[
        float, typer.Option("--effort", metavar="TIMES", help="How many times the usual steps proofs may search.")
    ] = 1.0,
    untrusted: Annotated[
        bool,
        typer.Option(
            "--untrusted", metavar="", help="Run the command on files of strangers: in a child process with limits."
        ),
    ] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="Time that an untrusted command may take.")
    ] = 30.0,
    memory: Annotated[
        float, typer.Option("--memory", metavar="MB", help="Memory that an untrusted command may take.")
    ] = 2048.0,
) -> None:
    """Model online decisions under constraints; compile them to learners with a guarantee."""
    if effort != 1.0:  # a wrong one is refused before any file is read; the usual one loads nothing
        from oco.compiler.prover.budget import SearchBudget

        SearchBudget(effort)
    context.obj = replace(context.ensure_object(Invocation), effort=effort, show_help=show_help)
    if untrusted and context.invoked_subcommand is not None:
        words = context.obj.words[context.obj.words.index(context.invoked_subcommand) :]
        limits = Untrusted(seconds, int(memory * 2**20))
        raise typer.Exit(limits.run(words, capture=False, effort=effort).status)
