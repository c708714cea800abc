"""Reports of bugs: what a command was, where it ran, and the traceback, in a file of their own."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from traceback import format_exception

import oco
from oco.dsl.diagnostics import BUG, OcoError


def with_report(error: OcoError, words: Sequence[str]) -> OcoError:
    """Error whose hint names a file to send with the model, if it is a bug; any other error as it is.

    words  of the command
    """
    if error.code != BUG or error.__cause__ is None:
        return error
    text = report_text(error, words)
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="oco_bug_", suffix=".txt", encoding="utf-8", errors="replace", delete=False
        ) as file:
            file.write(text)
        place = file.name
    except (OSError, ValueError):
        sys.stderr.write(text)
        place = "the traceback above"
    hint = f"this is a bug in oco: please report it with the model and {place}, which says what happened where"
    return OcoError(replace(error.diagnostics[0], hint=hint), *error.diagnostics[1:])


def report_text(error: OcoError, words: Sequence[str]) -> str:
    """Command, versions and traceback of a bug, as lines of text."""
    versions = f"oco {oco.__version__}, Python {platform.python_version()}, {platform.platform()}"
    trace = "" if error.__cause__ is None else "".join(format_exception(error.__cause__))
    return f"{shlex.join(['oco', *words])}\n{versions}\n\n{trace}"
