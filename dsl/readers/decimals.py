"""Numbers in text: plain decimal ones in ASCII."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from oco.dsl.limits import LONGEST_LINE, LONGEST_NUMBER
from oco.dsl.readers.quota import QuotaExceeded


def decimal(text: str) -> float | None:
    """Number that a text represents, with spaces around it; NaN and infinities by their names. None where it is not a
    number.
    """
    if not _plain(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def decimals(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Numbers of texts, as `decimal` reads them; None where one is not a number."""
    cells = list(texts)
    if not all(map(_plain, cells)):
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def _plain(text: str) -> bool:
    """True for a plain decimal number: Python also accepts `1_0` and digits of other scripts."""
    return len(text) <= LONGEST_NUMBER and text.isascii() and "_" not in text


def lines_of(file: IO[str]) -> Iterator[str]:
    """Lines of a text, with their ends. Raises TooMuch for one that is longer than any line of numbers."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise QuotaExceeded(f"a line has more than {LONGEST_LINE:,} characters", "put a line break after every row")
        yield line
