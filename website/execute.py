"""Execution of the blocks of a page, in one folder and one namespace, with what they print and draw set below them."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from website.blocks import Block, blocks

ROOT = Path(__file__).parent.parent
LONGEST = 120.0
"""Seconds that one command of another program may take; a page that needs more is not a page."""
MOST_LINES = 60
"""Lines of output that a page shows: a screen and a half. The rest is counted."""


@dataclass
class Executed:
    """Page after its blocks were executed: its text with their output, files it drew, and what was executed or left out."""

    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def executed(text: str, name: str, standalone: bool) -> Executed:
    """Execute the blocks of a page called `name`. A page that does not stand alone shows commands about files of its reader: its command
    lines are left to `tests/test_documented_commands.py`.
    """
    result, namespace, parts, end = Executed(), {"__name__": "page"}, [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.symlink(ROOT / "examples", "examples")
        for match, block in blocks(text):
            run = block.executed and (standalone or block.language != "console")
            parts += [text[end : match.start()], "" if block.mark == "hidden" else _fence(block)]
            end = match.end()
            if not run:
                result.left_out.append(block.reason or "command line: tests/test_documented_commands.py runs it")
                continue
            result.counts[f"{block.language} {'files' if block.file and block.language != 'oco' else 'blocks'}"] += 1
            try:
                parts.append(_output(block, namespace, result, name, standalone))
            except Exception:  # an error of any kind is the author's to see, with the block
                result.errors.append(f"{name}: {block.language} block\n{block.code}\n{traceback.format_exc(limit=-3)}")
    result.text = "".join([*parts, text[end:]])
    return result


def _fence(block: Block) -> str:
    """Block as MkDocs sets it, the file's name above it."""
    shown = f' title="{block.file}"' if block.file else ""
    language = {"": "text", "ipython": "python"}.get(block.language, block.language)
    return f"```{language}{shown}\n{block.code}```"


def _output(block: Block, namespace: dict[str, Any], result: Executed, name: str, standalone: bool) -> str:
    """Output of a block as Markdown, to stand below it."""
    if block.file:
        Path(block.file).parent.mkdir(parents=True, exist_ok=True)
        Path(block.file).write_text(block.code, encoding="utf-8")
    if block.language == "oco":
        return _checked(block)
    if block.language == "console":
        return _commands(block)
    if block.file:
        return ""
    printed, value = (_cell if block.language == "ipython" else _python)(block, namespace)
    if block.mark == "hidden" or not standalone:
        return ""
    shown = _set(printed)
    if _is_figure(value):
        result.files[f"{name}-{len(result.files)}.svg"] = _svg(value)
        drawn = f"{Path(name).name}-{len(result.files) - 1}.svg"
        return shown + f"\n\n![Plot made by the code above]({drawn}){{ .plot }}"
    return shown if value is None else shown + _set(repr(value))


def _is_figure(value: Any) -> bool:
    return hasattr(value, "savefig")


def _svg(figure: Any) -> bytes:
    """Figure as SVG."""
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _checked(block: Block) -> str:
    """Check a model, or read statements of one; what a model that is wrong says."""
    import oco
    from oco.dsl.source import Source
    from oco.dsl.text.parser import parse_file

    whole = bool(re.search(r"^(minimize|maximize) ", block.code, re.MULTILINE)) and "decision" in block.code
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if whole and block.code.lstrip().startswith(("model", "#")):
                oco.check(oco.parse(block.code, name=block.file or "model.oco", folder="."))
            elif errors := parse_file(Source("page", block.code))[1]:
                raise errors[0]
    except oco.OcoError as error:
        if block.mark != "fails":
            raise
        return _set(str(error))
    if block.mark == "fails":
        raise AssertionError("this model was to be refused")
    return ""


def _python(block: Block, namespace: dict[str, Any]) -> tuple[str, Any]:
    """Run Python; what it prints, and the value of its last line where that is an expression."""
    tree, printed, value = ast.parse(block.code), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, "page", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "page", "eval"), namespace)
    except Exception as error:
        if block.mark != "fails":
            raise
        return f"{printed.getvalue()}{error}", None
    if block.mark == "fails":
        raise AssertionError("this code was to end with an error")
    return printed.getvalue(), value


def _cell(block: Block, namespace: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell of a notebook, magics included; as `_python`."""
    from IPython.core.interactiveshell import InteractiveShell

    main = sys.modules["__main__"]  # which a shell replaces
    try:
        shell = namespace.get("shell") or namespace.setdefault("shell", InteractiveShell())
        with contextlib.redirect_stdout(io.StringIO()):
            done = shell.run_cell(block.code)
    finally:
        sys.modules["__main__"] = main
    done.raise_error()
    return "", done.result


def _commands(block: Block) -> str:
    """Run the command lines of a block, those after `$ `; what they print, unless the block shows it itself."""
    lines = block.code.replace("\\\n", " ").splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    printed = []
    for command in commands:
        status, output = command_output(command)
        if (status != 0) is not (block.mark == "fails"):
            raise AssertionError(f"{command}: exit status {status}\n{output}")
        printed.append(output)
    if block.mark == "hidden" or any(line and not line.startswith("$ ") for line in lines):
        return ""
    return _set("\n".join(printed))


def command_output(command: str) -> tuple[int, str]:
    """Exit status of a command line and what it prints, its remarks on standard error where it fails; `oco` runs in this process, which has
    loaded it already.
    """
    words = shlex.split(command.split("  #")[0])
    if words[0] == "oco" and not {"|", ">", "&&"} & set(words):
        return _oco(words[1:])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command.replace("make -C", "make --no-print-directory -C"),
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LONGEST,
        env={**os.environ, "PATH": path, "PYTHONWARNINGS": "ignore"},
    )
    return done.returncode, done.stdout


def _oco(words: list[str]) -> tuple[int, str]:
    from oco.cli import main

    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        with _redirected(out, err):
            status = main(words)
        out.seek(0)
        err.seek(0)
        return status, out.read() + (err.read() if status else "")


@contextlib.contextmanager
def _redirected(out: IO[str], err: IO[str]) -> Iterator[None]:
    """Standard output and error of this process in files, those of its children and of C too."""
    with contextlib.ExitStack() as undone:
        streams = ((1, sys.stdout, out, contextlib.redirect_stdout), (2, sys.stderr, err, contextlib.redirect_stderr))
        for number, stream, file, redirect in streams:
            stream.flush()
            copy = os.dup(number)
            undone.callback(os.close, copy)
            undone.callback(os.dup2, copy, number)
            os.dup2(file.fileno(), number)
            written = undone.enter_context(open(number, "w", encoding="utf-8", closefd=False))
            undone.enter_context(redirect(written))
        yield


def _set(printed: str) -> str:
    """Output as a block of Markdown, "" where there is none."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed).rstrip().lstrip("\n").splitlines()
    if not lines:
        return ""
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... {len(lines) - MOST_LINES} lines more"]
    ticks = "````" if any("```" in line for line in lines) else "```"
    return "\n\n" + "\n".join([f"{ticks}text {{ .output }}", *(line.rstrip() for line in lines), ticks])
