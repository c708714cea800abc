"""Values that rounds leave to the next, and the arithmetic of expressions that predictions of margins share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Stream

NOW = Name("t", Kind.ROUND, integer=True)
"""Number of the round."""
OWN_ROUND = "_round_of_turn"
"""Name of the number of the round among those of its learner, where learners take turns."""


def round_of(turns: int) -> Name:
    """Number of the round among those of its learner, where so many take turns."""
    return NOW if turns == 1 else Name(OWN_ROUND, Kind.ROUND, integer=True)


def kept_range(
    name: Name, following: Expr, first: Floats | float = 0.0, ends: tuple[Floats, Floats] | None = None
) -> StreamRange:
    """Value that a round leaves to the next, with what it is in round 1 and the ends of its range."""
    shape = tuple(n for n in name.shape if isinstance(n, int))
    low, high = (np.asarray(-np.inf), np.asarray(np.inf)) if ends is None else ends
    stream = Stream(name.name, (), shape, None)
    start = np.broadcast_to(np.asarray(first, dtype=np.float64), shape)
    return StreamRange(name.name, shape, low, high, False, stream, first=start, following=following)


def coefficient(cross: Expr, square: Expr, least: float, most: float) -> Expr:
    """Regression coefficient from a covariance and a variance, cut to a range."""
    ratio = call("div", cross, call("maximum", square, TINY))
    return call("maximum", call("minimum", ratio, most), least)


def put_row(rows: Expr, row: Expr, value: Expr) -> Expr:
    """Rows with another value in one of them."""
    shape = tuple(n for n in rows.shape if isinstance(n, int))
    mask = call("_scatter", np.ones(shape[1:]), row, shape=shape)
    return call("add", rows, call("mul", mask, call("sub", value, rows)))


def one_minus(x: Expr) -> Expr:
    """1 - x."""
    return call("sub", 1.0, x)


def added(parts: Sequence[Expr]) -> Expr:
    """Sum of expressions."""
    total = parts[0]
    for p in parts[1:]:
        total = call("add", total, p)
    return total
