"""How expressions and numbers are called in claims and messages."""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.norms import distinct
from oco.dsl.expressions import Constant, Expr, Kind, Name, rewrite
from oco.dsl.intervals import Interval
from oco.dsl.text.printer import print_expr

LONGEST = 72


def say(expr: Expr) -> str:
    """The expression in backticks: as the user wrote it where that is short, else printed, cut where it is long."""
    text = " ".join(expr.span.text.split()) if expr.span is not None else ""
    return f"`{printed(expr) if not text or len(text) > LONGEST else text}`"


def printed(expr: Expr) -> str:
    """The expression in the language, cut where it is long."""
    text = " ".join(print_expr(rewrite(expr, _named), 4 * LONGEST).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 2].rstrip() + " …"


def _named(node: Expr) -> Expr:
    """Large constants stand as the text they came from, so that no array is spelled out."""
    if isinstance(node, Constant) and not np.isfinite(node.value.array).all():
        return Name("infinity", Kind.PARAM, shape=node.shape)
    if isinstance(node, Constant) and node.value.array.size > 4:
        text = " ".join(node.span.text.split()) if node.span is not None else "constant"
        return Name(text if len(text) <= 24 else "constant", Kind.PARAM, shape=node.shape)
    return node


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
    several, flat = point.size > 1, distinct(np.asarray(point, dtype=np.float64)).ravel()
    if several and np.all(flat == flat[0]):
        return f"{number(float(flat[0]))} in every entry"
    shown = ", ".join(number(float(v)) for v in flat[:6])
    return f"[{shown}{', ...' if flat.size > 6 else ''}]" if flat.size > 1 else number(float(flat[0]))
