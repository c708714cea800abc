"""Functions with pieces of which the ranges of the arguments leave one: `abs(x)` is `x` where x is positive.

A piece takes the place of the whole only where the derivative of the whole is that of the piece at every point, its kinks included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, uniform
from oco.dsl.intervals import Interval, point

Ranges = Callable[[Expr], Interval | None]
BY_SIGN = frozenset({"abs", "pos", "_sign", "_positive", "_nonneg"})
EXTREMES = frozenset({"maximum", "minimum"})
BOUNDED = frozenset({"huber", "_clip", "_within"})


def decided(node: Call, ranges: Ranges) -> Expr | None:
    """The piece that `node` is, on these ranges of its arguments; None where there are several."""
    if node.atom not in BY_SIGN | EXTREMES | BOUNDED:
        return None
    found = [r for r in map(ranges, node.args) if r is not None]
    if len(found) < len(node.args):
        return None
    if node.atom in EXTREMES:
        return _extreme(node, found)
    return _by_sign(node, found[0]) if node.atom in BY_SIGN else _bounded(node, found)


def _by_sign(node: Call, x: Interval) -> Expr | None:
    """At 0 itself the derivatives of abs and pos, and `_sign` and `_positive`, are 0; `_nonneg` is 1."""
    (arg,) = node.args
    match node.atom:
        case "abs":
            return arg if x.positive else call("minus", arg) if x.greatest < 0 else None
        case "pos":
            return arg if x.positive else _all(node, 0.0) if x.nonpositive else None
        case "_sign":
            return _all(node, 1.0) if x.positive else _all(node, -1.0) if x.greatest < 0 else None
        case "_positive":
            return _all(node, 1.0) if x.positive else _all(node, 0.0) if x.nonpositive else None
    return _all(node, 1.0) if x.nonnegative else _all(node, 0.0) if x.greatest < 0 else None


def _extreme(node: Call, found: list[Interval]) -> Expr | None:
    """The derivative is that of the first argument that is extreme: it may be met by those after it, and not by those before."""
    signed = found if node.atom == "maximum" else [-r for r in found]
    for i, (arg, x) in enumerate(zip(node.args, signed)):
        before = all(np.all(x.lo > other.hi) for other in signed[:i])
        if arg.shape == node.shape and before and all(np.all(x.lo >= other.hi) for other in signed[i + 1 :]):
            return arg
    return None


def _bounded(node: Call, found: list[Interval]) -> Expr | None:
    """Functions of x that change at |x| = M: quadratic, linear or constant inside, and another outside."""
    arg, size = node.args[0], found[0].abs()
    limit = found[1] if len(found) > 1 else point(1.0)
    inside, outside = bool(np.all(size.hi <= limit.lo)), bool(np.all(size.lo > limit.hi))
    if node.atom == "_within":
        return _all(node, 1.0) if inside else _all(node, 0.0) if outside else None
    if inside and arg.shape == node.shape:
        return call("square", arg) if node.atom == "huber" else arg
    return None


def _all(node: Call, value: float) -> Constant:
    return uniform(value, known(node.shape), node.span)
