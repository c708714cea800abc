"""Location in the user's own Python code of a call into this package, for the builder's errors."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

from oco.dsl.source import Source, Span

PACKAGES = ("oco", "numpy", "cvxpy", "pandas", "polars", "scipy", "xarray")
"""Packages whose frames are skipped: `np.sum(x)` and `table * x` call the builder from within them."""


def caller_span() -> Span | None:
    """Span of the expression being evaluated in the nearest frame outside of these packages; None where its source is
    unavailable.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return None if frame is None else _span(frame)


def is_ours(frame: FrameType) -> bool:
    """True for a frame of these packages."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in PACKAGES


def _span(frame: FrameType) -> Span | None:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    first, last, column, end_column = _place(code, frame.f_lasti)
    if first is None or not 0 < first <= len(lines):
        return None
    if last is None or end_column is None or last > len(lines):
        last, end_column = first, len(lines[first - 1].rstrip().encode())
    source = Source(_shown(code.co_filename), "".join(lines))
    return Span(source, _offset(lines, first, column or 0), _offset(lines, last, end_column))


@lru_cache(maxsize=1024)
def _place(code: CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    """First and last line and the columns of an instruction: finding them takes time, and a loop asks for the same again."""
    places = next(islice(code.co_positions(), instruction // 2, None), None)
    return places or (None, None, None, None)


def _offset(lines: list[str], line: int, column: int) -> int:
    """Character offset of a byte column, as Python counts columns."""
    before = sum(len(text) for text in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode(errors="ignore"))


def _shown(filename: str) -> str:
    """Name of a file for messages; a notebook's cells have internal file names."""
    return "<notebook cell>" if "ipykernel" in filename or filename.startswith("<ipython-input") else filename
