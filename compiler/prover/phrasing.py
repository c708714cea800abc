"""Names of expressions and numbers in claims and messages."""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.norms import distinct
from oco.dsl.expressions import Constant, Expr
from oco.dsl.intervals import Interval
from oco.dsl.text.printer import Excerpts

LONGEST = 72  # characters of an expression that a sentence writes out


class Phrases:
    """Names of the parts of an expression. Claims about many parts share one, which prints each node once."""

    def __init__(self) -> None:
        self._excerpt = Excerpts(4 * LONGEST, _named)

    def say(self, expr: Expr) -> str:
        """The expression in backticks: as the user wrote it where that is short, else printed, cut where it is long."""
        length = 0 if expr.span is None else expr.span.end - expr.span.start
        text = " ".join(expr.span.text.split()) if expr.span is not None and length <= 4 * LONGEST else ""
        return f"`{self.printed(expr) if not text or len(text) > LONGEST else text}`"

    def printed(self, expr: Expr) -> str:
        """The expression in the language, cut where it is long."""
        text = " ".join(self._excerpt(expr).split())
        return text if len(text) <= LONGEST else text[: LONGEST - 2].rstrip() + " …"


def say(expr: Expr) -> str:
    """Expression in words."""
    return Phrases().say(expr)


def printed(expr: Expr) -> str:
    """Expression as text of the language, shortened where it is long."""
    return Phrases().printed(expr)


def _named(node: Expr) -> str | None:
    """Large constants stand as the text they came from, so that no array is spelled out."""
    if isinstance(node, Constant) and not np.isfinite(node.value.array).all():
        return "infinity"
    if isinstance(node, Constant) and node.value.array.size > 4:
        text = " ".join(node.span.text.split()) if node.span is not None else "constant"
        return text if len(text) <= 24 else "constant"
    return None


def number(value: float) -> str:
    """At most six significant digits; rounding for the eye alone."""
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value + 0.0:.6g}"


def span_of_values(interval: Interval) -> str:
    """`[0, 3000]`: the hull of all entries."""
    return f"[{number(interval.least)}, {number(interval.greatest)}]"


def plural(count: int, noun: str) -> str:
    """`1 entry`, `3 entries`."""
    many = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else noun + "s"
    return f"{count} {noun if count == 1 else many}"


def coordinates(point: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """A point for the eye: all entries where they are few or equal, else the first ones."""
    if point.size == 0:
        return "[]"
    several, entries = point.size > 1, distinct(np.asarray(point, dtype=np.float64))
    first = entries.flat[:6]
    if several and np.all(first == first[0]) and np.all(entries == first[0]):
        return f"{number(float(first[0]))} in every entry"
    shown = ", ".join(number(float(v)) for v in first)
    return f"[{shown}{', ...' if entries.size > 6 else ''}]" if entries.size > 1 else number(float(first[0]))
