"""Words of the command line that are taken as they are mean what Typer makes of them with its own reading."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest
import typer
from thorough import thorough

from oco.cli import main
from oco.cli.app import COMMANDS, app_for
from oco.cli.command import AsGiven
from oco.cli.output import COLOUR_ANYWAY

WORDS = ("a.oco", "", " x ", "1", "1.5", "true", "none/there.csv", "ü")


def parameters() -> list[Any]:
    results = []
    for name in COMMANDS:
        group: Any = typer.main.get_command(app_for([name]))
        assert set(group.commands) == set(COMMANDS)
        command = group.commands[name]
        results += command.get_params(typer.Context(command))
    return results


def test_the_list_of_commands_has_the_first_paragraphs_of_their_docstrings() -> None:
    for module, function, summary in COMMANDS.values():
        text = inspect.getdoc(getattr(import_module(f"oco.cli.{module}"), function)) or ""
        assert " ".join(text.split("\n\n")[0].split()) == summary


def test_options_may_stand_before_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--effort", "2", "help", "check"]) == 0 and "--why" in capfd.readouterr().out
    assert main(["nonsense"]) == 2 and "nonsense" in capfd.readouterr().err


def outcome(read: Any, value: Any, param: Any) -> Any:
    try:
        return read.coerce(value, param=param, ctx=None)
    except typer.BadParameter as error:
        return error.message


def test_every_parameter_reads_words_as_typer_does() -> None:
    quick = [p for p in parameters() if isinstance(getattr(p, "_runtime_param", None), AsGiven)]
    if not quick:
        pytest.skip("this Typer reads words without Pydantic")
    for param in quick:
        several = param._runtime_param.several
        given = [None, param.default, *([[w, "b"] for w in WORDS] if several else WORDS)]
        found = [outcome(AsGiven(param.type_descriptor.annotation), value, param) for value in given]
        param._runtime_param = None
        own = [outcome(param.get_runtime_param(), value, param) for value in given]
        assert [(type(x), x) for x in found] == [(type(x), x) for x in own], param.name


def test_checking_a_model_loads_neither_lark_nor_pydantic_nor_rich(tmp_path: Any) -> None:
    model = tmp_path / "m.oco"
    model.write_text("model m\nhorizon T = 9\ndecision x in box(0, 1)\nminimize x\n")
    code = (
        "import sys; from oco.cli import main; main(sys.argv[1:]); print({'lark', 'pydantic', 'rich'} & {*sys.modules})"
    )
    words = [sys.executable, "-c", code, "check", str(model)]
    colourless = {name: value for name, value in os.environ.items() if name not in COLOUR_ANYWAY}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=colourless)
    assert "loss.convex" in done.stdout and done.stdout.endswith("set()\n")


ASKED = (("oco ru", "run"), ("oco run --deta", "--details"), ("oco com", "compile"))
"""What is typed, and a word that the shell then offers."""


@pytest.mark.parametrize(
    ("shell", "asked", "cases"),
    [
        ("bash", "complete_bash", ASKED[:2]),
        ("zsh", "complete_zsh", ASKED[1:2]),
        ("fish", "complete_fish", ASKED[2:]),
        *(thorough(shell, f"complete_{shell}", ASKED) for shell in ("bash", "zsh", "fish")),
    ],
)
def test_shells_complete_commands_and_options(shell: str, asked: str, cases: Sequence[tuple[str, str]]) -> None:
    script = subprocess.run([sys.executable, "-m", "oco", "--completion", shell], capture_output=True, text=True)
    assert script.returncode == 0 and "_OCO_COMPLETE" in script.stdout and asked in script.stdout
    for words, wanted in cases:
        env = {**os.environ, "_OCO_COMPLETE": asked, "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        env |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        done = subprocess.run([sys.executable, "-m", "oco"], capture_output=True, text=True, env=env)
        assert wanted in done.stdout, done.stderr


def test_other_shells_are_refused() -> None:
    done = subprocess.run([sys.executable, "-m", "oco", "--completion", "csh"], capture_output=True, text=True)
    assert done.returncode == 2 and "bash, zsh, fish" in done.stderr
