"""Rules of `kl_div` and `rel_entr`: jointly convex in (x, y) for x >= 0, y > 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms.base import Monotone
from oco.dsl.atoms.rules import DOWN, NEITHER, UP
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval, point

Ends = np.ndarray[Any, Any]


def relative_entropy(o: Any, x: Any, y: Any) -> Any:
    """Relative entropy x log(x / y), with 0 at x = 0."""
    return x * o.log(o.where(o.eq(x, 0.0), 1.0, x / y))


def _relative_at(x: Ends, y: Ends) -> Interval:
    return point(x) * (point(x) / point(y)).log()


def _kl_at(x: Ends, y: Ends) -> Interval:
    raised = _relative_at(x, y) - point(x) + point(y)
    return Interval(np.maximum(raised.lo, 0.0), np.maximum(raised.hi, 0.0), raised.shape)


def _clipped(x: Interval) -> tuple[Ends, Ends]:
    return np.maximum(x.lo, 0.0), np.maximum(x.hi, 0.0)


def _corners(at: Any, x: Interval, y: Interval) -> Ends:
    """Largest value of a convex function, at a corner."""
    results = [at(a, b).hi for a in _clipped(x) for b in _clipped(y)]
    return np.asarray(np.maximum.reduce(np.broadcast_arrays(*results)))


def kl_bounds(call: Call, x: Interval, y: Interval) -> Interval:
    """Range of kl_div. Least (0) where x = y, so at the nearest pair of ends when the ranges are apart."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    (x_lo, x_hi), (y_lo, y_hi) = _clipped(x), _clipped(y)
    below, above = _kl_at(x_hi, y_lo).lo, _kl_at(x_lo, y_hi).lo
    lo = np.where(x_hi < y_lo, below, np.where(x_lo > y_hi, above, 0.0))
    return Interval(lo, _corners(_kl_at, x, y), shape)


def relative_bounds(call: Call, x: Interval, y: Interval) -> Interval:
    """Range of rel_entr. Nonincreasing in y; in x least at y / e, where it is -y / e."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    (x_lo, x_hi), (_, y_hi) = _clipped(x), _clipped(y)
    bottom = point(y_hi) * point(-1.0).exp()
    least = np.where(
        x_hi <= bottom.lo,
        _relative_at(x_hi, y_hi).lo,
        np.where(x_lo >= bottom.hi, _relative_at(x_lo, y_hi).lo, -bottom.hi),
    )
    return Interval(least, _corners(_relative_at, x, y), shape)


def kl_monotone(call: Call, x: Interval, y: Interval) -> tuple[Monotone, Monotone]:
    """Monotonicity of kl_div: d/dx = log(x / y), d/dy = 1 - x / y."""
    if bool(np.all(x.lo >= y.hi)):
        return UP, DOWN
    if bool(np.all(x.hi <= y.lo)):
        return DOWN, UP
    return NEITHER, NEITHER


def relative_monotone(call: Call, x: Interval, y: Interval) -> tuple[Monotone, Monotone]:
    """Monotonicity of rel_entr: d/dx = log(x / y) + 1, d/dy = -x / y."""
    e = point(1.0).exp()
    turning = y / e
    in_x = UP if bool(np.all(x.lo >= turning.hi)) else DOWN if bool(np.all(x.hi <= turning.lo)) else NEITHER
    return in_x, DOWN


def kl_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    """Cotangents of kl_div: log(x / y) towards x, 1 - x / y towards y."""
    x, y = c.args
    ratio = e.div(x, y)
    towards_x, towards_y = e.mul(g, e.call("log", ratio)), e.mul(g, e.sub(e.number(1), ratio))
    return e.collapse(towards_x, c.shape, x.shape), e.collapse(towards_y, c.shape, y.shape)


def relative_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    """Cotangents of rel_entr: log(x / y) + 1 towards x, -x / y towards y."""
    x, y = c.args
    ratio = e.div(x, y)
    towards_x = e.mul(g, e.add(e.call("log", ratio), e.number(1)))
    return e.collapse(towards_x, c.shape, x.shape), e.collapse(e.minus(e.mul(g, ratio)), c.shape, y.shape)


def allowed(call: Call, x: Interval, y: Interval) -> str:
    """Reason why a range is not allowed: x must be nonnegative and y positive."""
    if not x.nonnegative:
        return f"{call.atom} needs a nonnegative first argument, and its range is {x}"
    return "" if y.positive else f"{call.atom} needs a positive second argument, and its range is {y}"
