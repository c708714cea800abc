"""Numbers in text: plain decimal ones in ASCII, and nothing else that Python takes for a number (`1_0`, digits of other scripts)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from oco.dsl.readers.quota import TooMuch

PLAIN = frozenset("0123456789+-.eE \t")
NOT_FINITE = frozenset({"nan", "inf", "infinity"})
LONGEST_NUMBER, LONGEST_LINE = 512, 2**24
"""Characters of a number, and of a line: a file that `gzip` unpacks may be one line."""


def decimal(text: str) -> float | None:
    """The number that a text stands for, with spaces around it; NaN and infinities by their names. None where it is no number."""
    if len(text) > LONGEST_NUMBER:
        return None
    if not PLAIN.issuperset(text) and text.strip().lstrip("+-").lower() not in NOT_FINITE:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def decimals(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """The numbers of texts that are all plain decimal ones; None where one is not."""
    cells = list(texts)
    if max(map(len, cells), default=0) > LONGEST_NUMBER or not PLAIN.issuperset("".join(cells)):
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def lines_of(file: IO[str]) -> Iterator[str]:
    """The lines of a text, with their ends. Raises TooMuch for one that is longer than any line of numbers."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise TooMuch(f"a line has more than {LONGEST_LINE:,} characters", "put a line break after every row")
        yield line
