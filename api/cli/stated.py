"""Options of `oco run` that a model file states: `# run: --data prices.csv --map price=zone.*`."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import field
from pathlib import Path
from typing import NoReturn

from oco.cli.options import DRAWN, STDIN
from oco.dsl.diagnostics import fail
from oco.dsl.files import locate
from oco.dsl.records import dataclass
from oco.dsl.source import Source, Span
from oco.dsl.writing import read_text

LINE = re.compile(r"(?m)^#[ \t]*run:[ \t]*(.*?)[ \t]*$")


@dataclass(frozen=True)
class StatedOptions:
    """Rounds that a model file names for its runs: a file of data or `drawn`, how its columns map, how many rounds, and what is done
    where a value is missing; None for what it does not say.
    """

    data: Path | None = None
    mapping: list[str] = field(default_factory=list)
    rounds: int | None = None
    on_missing: str | None = None


class _OptionReader(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _reader() -> _OptionReader:
    """Parser of the options that a file may state: none of them writes anything."""
    reader = _OptionReader(add_help=False, allow_abbrev=False)
    reader.add_argument("--data")
    reader.add_argument("--map", action="append", default=[])
    reader.add_argument("--rounds", type=int)
    reader.add_argument("--on-missing")
    return reader


def stated_options(path: Path) -> StatedOptions:
    """Options on the `# run:` line of a model file; the file of data is beside it. Raises OCO912, OCO801, OCO802."""
    if str(path) == STDIN:
        return StatedOptions()
    text = read_text(path)
    line = LINE.search(text)
    if line is None:
        return StatedOptions()
    span = Span(Source(str(path), text), line.start(), line.end())
    try:
        given = _reader().parse_args(shlex.split(line.group(1)))
    except ValueError as error:
        hint = "it may have --data FILE (or drawn), --map STREAM=COLUMNS, --rounds N and --on-missing WHAT"
        raise fail("OCO912", f"the `run:` line cannot be read: {error}", span, hint) from None
    if given.rounds is not None and given.rounds < 1:
        raise fail("OCO912", f"the `run:` line asks for {given.rounds} rounds", span, "ask for 1 or more")
    data = given.data
    if data is not None and data != DRAWN:
        locate(data, path.parent, span)
        data = str(path.parent / data)
    return StatedOptions(None if data is None else Path(data), given.map, given.rounds, given.on_missing)
