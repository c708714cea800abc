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
    "check": (
        "models",
        "check",
        "Check a model and list what was proved of it: curvature, bounds, constants, feasibility.",
    ),
    "explain": (
        "models",
        "explain",
        "Say which algorithm is chosen, with which settings and guarantee, and why every other one is not.",
    ),
    "compile": (
        "models",
        "compile",
        "Write the learner to be run elsewhere: a Python module that needs NumPy alone, C99, or WebAssembly.",
    ),
    "run": (
        "runs",
        "run",
        "Run the learner over data, or over draws from the model, and measure regret and violation.",
    ),
    "data": (
        "runs",
        "data",
        "Say which columns fill which streams, and what is wrong with the data, without running anything.",
    ),
    "verify-certificate": (
        "certificates",
        "verify_certificate",
        "Verify the certificate of a run in exact rational arithmetic; status 1 where it is refused.",
    ),
    "prove": (
        "proving",
        "prove",
        "Write the guarantee of a model's learner as a theorem of Lean 4 with Mathlib, with all its constants as checked inequalities.",
    ),
    "verify-promise": (
        "proving",
        "verify_promise",
        "Verify the statements of a promise in exact rational arithmetic; status 1 where it is refused.",
    ),
    "lint": (
        "linting",
        "lint",
        "Warn of style and likely mistakes: unused names, mixed units, constraints that never bind, horizons that are too short.",
    ),
    "lsp": (
        "editing",
        "lsp",
        "Serve an editor over standard input and output, by the Language Server Protocol.",
    ),
    "watch": (
        "watching",
        "watch",
        "Watch a running learner: a page on this machine with its last rounds, losses, violations and certificate.",
    ),
    "serve": (
        "serving",
        "serve",
        "Serve learners by key over HTTP, each round on the disk before it is answered.",
    ),
    "pipe": (
        "serving",
        "pipe",
        "Read events as JSON lines, and write the decisions of learners by key, each on the disk before it is written.",
    ),
    "emit": (
        "serving",
        "emit",
        "Write a job of an engine of streams with learners by key, one file to edit and run: Flink or Quix Streams (Kafka).",
    ),
    "fleet": (
        "fleets",
        "fleet",
        "Play rounds of many keys, each with a learner of its own, in processes that share them; more than memory holds.",
    ),
    "tune": (
        "tuning",
        "tune",
        "Choose the constants that the theorem leaves free on the first part of the data, and judge them on the rest.",
    ),
    "migrate": (
        "migrating",
        "migrate",
        "Carry a saved state, a journal or a store to the plan of a model whose horizon, settings or bounds changed.",
    ),
    "fmt": ("files", "fmt", "Format model files: spaces, indentation, blank lines. Comments and aligned columns stay."),
    "new": ("files", "new", "Write a small model to start from: it checks, compiles and runs as it is."),
    "help": ("files", "explain_code", "Explain the code of an error or a warning, with an example; or a command."),
    "algorithms": (
        "files",
        "algorithms",
        "List the algorithms with what they need, what they promise and where they come from.",
    ),
}
"""Place of each command, its module in this folder and the function; and the first paragraph of its docstring, for the list of commands."""


SHELLS = ("bash", "zsh", "fish")
COMPLETING = "_OCO_COMPLETE"
"""Variable by which a shell asks for completions."""


def app_for(words: Sequence[str]) -> typer.Typer:
    """Typer application with the command that the words name; all others are there by name and summary alone. Where a shell asks
    for completions, every command is whole.
    """
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
    wanted = COMMANDS if COMPLETING in os.environ else [word for word in words if word in COMMANDS][:1]
    for name, (module, function, summary) in COMMANDS.items():
        made = getattr(import_module(f"oco.cli.{module}"), function) if name in wanted else _listed
        text = _paragraphs(made.__doc__ or "") if name in wanted else summary
        app.command(name=name, cls=Command, help=text)(made)
    return app


def _listed() -> None:
    """Stand for a command in the list of all commands: the words name none, or another one."""


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
        from oco.compiler.prover.search_budget import SearchBudget

        SearchBudget(effort)
    context.obj = replace(context.ensure_object(Invocation), effort=effort, show_help=show_help)
    if untrusted and context.invoked_subcommand is not None:
        words = context.obj.words[context.obj.words.index(context.invoked_subcommand) :]
        limits = Untrusted(seconds, int(memory * 2**20))
        raise typer.Exit(limits.run(words, capture=False, effort=effort).status)
