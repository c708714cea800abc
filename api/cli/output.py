"""Output on the terminal: coloured there, plain text where it is piped."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from oco.dsl.diagnostics import Diagnostic, OcoError, Severity

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH, WIDE = 80, 118  # columns of texts, and of tables of runs, where the stream is no terminal
COLOUR_ANYWAY = ("FORCE_COLOR", "TTY_COMPATIBLE")  # variables that Rich heeds where the stream is no terminal
NOT_PRINTED = dict.fromkeys(map(ord, "\a\b\v\f\r"))


def console(stderr: bool = False, plain: int = PLAIN_WIDTH) -> Console:
    """Rich console of stdout or stderr, `plain` columns wide when it is not a terminal."""
    from rich.console import Console

    stream: IO[str] = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else plain
    return Console(file=stream, stderr=stderr, width=width, highlight=False, soft_wrap=False)


def is_terminal(stderr: bool = False) -> bool:
    """True where stdout or stderr is a terminal in the sense of Rich, which is loaded only where colour is forced."""
    stream = sys.stderr if stderr else sys.stdout
    return stream.isatty() or (any(name in os.environ for name in COLOUR_ANYWAY) and console(stderr).is_terminal)


def _written_plain(text: str, stream: IO[str]) -> bool:
    """Write text without Rich where it cannot have colour; False where it can."""
    if stream.isatty() or any(name in os.environ for name in COLOUR_ANYWAY):
        return False
    stream.write(text.translate(NOT_PRINTED).expandtabs() + "\n")
    return True


def say(text: str = "", style: str | None = None) -> None:
    """Print one paragraph on stdout verbatim (markup is not interpreted)."""
    if not _written_plain(text, sys.stdout):
        console().print(text, style=style, markup=False, soft_wrap=True, emoji=False)


STYLES = {
    r"(?m)^(chosen|proved)\b|\bproved\b": "green",
    r"(?m)^applicable\b|\bdeclared\b|\bmeasured\b": "cyan",
    r"(?m)^refused\b|\brefuted\b": "red",
    r"\bunknown\b|\bloose\b|\bvacuous\b": "yellow",
}
"""Words of the ledger and of explanations, with their colours."""


def paint(text: str) -> None:
    """Print text that is already laid out, with the words of `STYLES` in colour."""
    if _written_plain(text.rstrip("\n"), sys.stdout):
        return
    from rich.text import Text

    painted = Text(text.rstrip("\n"))
    for pattern, style in STYLES.items():
        painted.highlight_regex(pattern, style)
    console().print(painted, soft_wrap=True)


def note(text: str) -> None:
    """Print a remark on stderr, so that it does not mix with piped output."""
    console(stderr=True).print(text, style="dim", markup=False)


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics on stdout as a versioned JSON document."""
    show_json({"version": 1, "diagnostics": [d.as_data() for d in diagnostics]})


def show_json(value: Any) -> None:
    """Print a versioned JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def show_error(error: OcoError) -> None:
    """Print the diagnostics of an error on stderr, with their number and the command that explains the code."""
    for diagnostic in error.diagnostics:
        show_diagnostic(diagnostic)
    errors = len(error.diagnostics)
    count = "1 error" if errors == 1 else f"{errors} errors"
    note(f"{count}. `oco help {error.code}` explains {'it' if errors == 1 else 'the first'}.")


def show_diagnostic(diagnostic: Diagnostic) -> None:
    """Print one diagnostic on stderr, in colour on a terminal."""
    if _written_plain(diagnostic.render() + "\n", sys.stderr):
        return
    from rich.text import Text

    colour = "red" if diagnostic.severity is Severity.ERROR else "yellow"
    text = Text(diagnostic.render() + "\n")
    text.highlight_regex(r"\b(error|warning) OCO\d+", f"bold {colour}")
    text.highlight_regex(r"(?m)^ +\| +\^+$", colour)
    text.highlight_regex(r"(?m)^  (hint|note):", "bold green")
    console(stderr=True).print(text, soft_wrap=True)
