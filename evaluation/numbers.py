"""Numbers as text, in one format for tables, pages and sentences."""

from __future__ import annotations

import math


def number(value: float | None, digits: int = 6, unknown: str = "not known") -> str:
    """Number with a few significant figures and separated thousands, 25,221,735; with an exponent where it is very
    large or very small.
    """
    if value is None:
        return unknown
    if (value != 0 and not 1e-4 <= abs(value) < 1e12) or not math.isfinite(value):
        return f"{value:.{max(1, digits - 1)}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(places, 2 * digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(count: int, what: str) -> str:
    """Number with its noun: `1 round`, `2,880 rounds`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def gibibytes(count: float) -> str:
    """Size in bytes for a sentence: `1.25 GiB`."""
    return f"{count / 2**30:.3g} GiB"
