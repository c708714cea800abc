"""Pieces of functions that the ranges of the arguments select: `abs(x)` is `x` where x is positive.

A piece replaces the whole only where the derivative of the whole is that of the piece at every point, its kinks
included. Every rule has the columns (e, call, *intervals) of `Atom.decided`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, uniform
from oco.dsl.intervals import Interval, point

Rule = Callable[..., Expr | None]


def _all(call: Call, value: float) -> Expr:
    return uniform(value, known(call.shape), call.span)


def size(e: Any, call: Call, x: Interval) -> Expr | None:
    """Piece of |x|, whose derivative is 0 at 0."""
    (arg,) = call.args
    return arg if x.positive else e.call("minus", arg) if x.greatest < 0 else None


def positive_part(e: Any, call: Call, x: Interval) -> Expr | None:
    """Piece of max(x, 0), whose derivative is 0 at 0."""
    return call.args[0] if x.positive else _all(call, 0.0) if x.nonpositive else None


def sign(e: Any, call: Call, x: Interval) -> Expr | None:
    """Piece of sign(x), where x keeps away from 0."""
    return _all(call, 1.0) if x.positive else _all(call, -1.0) if x.greatest < 0 else None


def positive(e: Any, call: Call, x: Interval) -> Expr | None:
    """Piece of the mask that is 1 where x > 0, else 0."""
    return _all(call, 1.0) if x.positive else _all(call, 0.0) if x.nonpositive else None


def nonnegative(e: Any, call: Call, x: Interval) -> Expr | None:
    """Piece of the mask that is 1 where x >= 0, else 0."""
    return _all(call, 1.0) if x.nonnegative else _all(call, 0.0) if x.greatest < 0 else None


def masked(e: Any, call: Call, mask: Interval, y: Interval) -> Expr | None:
    """Piece of a masked expression: itself where the mask is 1 everywhere, 0 where it is 0 everywhere."""
    if mask.positive and call.args[1].shape == call.shape:
        return call.args[1]
    return _all(call, 0.0) if mask.nonpositive else None


def extreme(largest: bool) -> Rule:
    """Piece of a maximum or minimum. The derivative is that of the first extreme argument: those after it may equal it,
    not those before.
    """

    def rule(e: Any, call: Call, *ranges: Interval) -> Expr | None:
        signed = ranges if largest else [-r for r in ranges]
        for i, (arg, x) in enumerate(zip(call.args, signed)):
            before = all(np.all(x.lo > other.hi) for other in signed[:i])
            if arg.shape == call.shape and before and all(np.all(x.lo >= other.hi) for other in signed[i + 1 :]):
                return arg
        return None

    return rule


def _sides(x: Interval, limit: Interval) -> tuple[bool, bool]:
    """Two flags: |x| is at most M everywhere; |x| is above M everywhere."""
    size = x.abs()
    return bool(np.all(size.hi <= limit.lo)), bool(np.all(size.lo > limit.hi))


def huber(e: Any, call: Call, x: Interval, *rest: Interval) -> Expr | None:
    """Square, where |x| is at most M everywhere."""
    inside, _ = _sides(x, rest[0] if rest else point(1.0))
    return e.call("square", call.args[0]) if inside and call.args[0].shape == call.shape else None


def clip(e: Any, call: Call, x: Interval, limit: Interval) -> Expr | None:
    """Argument itself, where |x| is at most M everywhere."""
    inside, _ = _sides(x, limit)
    return call.args[0] if inside and call.args[0].shape == call.shape else None


def within(e: Any, call: Call, x: Interval, limit: Interval) -> Expr | None:
    """Piece of the mask that is 1 where |x| <= M, else 0."""
    inside, outside = _sides(x, limit)
    return _all(call, 1.0) if inside else _all(call, 0.0) if outside else None
