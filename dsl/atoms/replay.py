"""Ranges of single atoms, written a second time: by corners and turning points, in plain floating point.

Nothing here is shared with the column `bounds`, which proofs use. Results are exact up to rounding; comparisons need a
tolerance. Every rule has the columns (call, *ends) of `Atom.replay`, where the ends of an argument are its least and
greatest values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl.expressions import Call

Array = np.ndarray[Any, Any]
Ends = tuple[Array, Array]
Rule = Callable[..., Ends]


def corners(f: Callable[..., Array], *ranges: Ends) -> Ends:
    """Range of a function that is monotone in each argument alone."""
    with np.errstate(all="ignore"):
        values = [np.nan_to_num(f(*c), nan=0.0, posinf=np.inf, neginf=-np.inf) for c in itertools.product(*ranges)]
    return np.minimum.reduce(np.broadcast_arrays(*values)), np.maximum.reduce(np.broadcast_arrays(*values))


def turning(f: Callable[[Array], Array], x: Ends, at: float) -> Ends:
    """Range of a function that is monotone on either side of one point."""
    low, high = corners(f, x)
    inside = (x[0] <= at) & (at <= x[1])
    value = f(np.asarray(at))
    return np.where(inside, np.minimum(low, value), low), np.where(inside, np.maximum(high, value), high)


def above(x: Ends, least: float = 0.0) -> Ends:
    """Ends raised to at least `least`."""
    return np.maximum(x[0], least), np.maximum(x[1], least)


def monotone(f: Callable[..., Array], least: float = -math.inf) -> Rule:
    """Rule for a function that is monotone in each argument, for arguments of at least `least`."""
    return lambda call, *ranges: corners(f, *(r if least == -math.inf else above(r, least) for r in ranges))


def even(f: Callable[[Array], Array]) -> Rule:
    """Rule for a function that turns at 0."""
    return lambda call, x: turning(f, x, 0.0)


def rising(f: Callable[..., Array]) -> Rule:
    """Rule for a function that rises with each argument: its ends are at theirs."""
    return lambda call, *ranges: (f(*(r[0] for r in ranges)), f(*(r[1] for r in ranges)))


def extreme(pick: Any) -> Rule:
    """Rule for a maximum or minimum of several arguments."""
    return rising(lambda *values: np.asarray(pick.reduce(np.broadcast_arrays(*values))))


def difference(call: Call, a: Ends, b: Ends) -> Ends:
    """Range of a - b."""
    return a[0] - b[1], a[1] - b[0]


def negative(call: Call, x: Ends) -> Ends:
    """Range of -x."""
    return -x[1], -x[0]


def negative_part(call: Call, x: Ends) -> Ends:
    """Range of max(-x, 0)."""
    return above((-x[1], -x[0]))


def hinge(call: Call, x: Ends) -> Ends:
    """Range of max(1 - x, 0)."""
    return above((1 - x[1], 1 - x[0]))


def square(x: Ends) -> Ends:
    """Range of x**2."""
    return turning(np.square, x, 0.0)


def times(call: Call, a: Ends, b: Ends) -> Ends:
    """Range of the entrywise product; a product with itself is a square."""
    return square(a) if call.args[0] is call.args[1] else corners(np.multiply, a, b)


def divided(call: Call, a: Ends, b: Ends) -> Ends:
    """Range of a / b; unbounded where b may be 0."""
    if np.any((b[0] <= 0) & (b[1] >= 0)):
        shape = np.broadcast(a[0], b[0]).shape
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    return corners(np.divide, a, b)


def reciprocal(call: Call, x: Ends) -> Ends:
    """Range of 1 / x; unbounded where x may be 0."""
    return divided(call, (np.ones(()), np.ones(())), x)


def power(call: Call, x: Ends, p: Ends) -> Ends:
    """Range of x**p."""
    if p[0].size == 1 and p[1].size == 1 and float(p[0]) == float(p[1]) and float(p[0]) == round(float(p[0])):
        exponent = float(p[0])
        if exponent < 0 and np.any((x[0] < 0) & (x[1] > 0)):
            return np.full(x[0].shape, -np.inf), np.full(x[0].shape, np.inf)
        return (
            turning(lambda v: np.power(v, exponent), x, 0.0)
            if exponent >= 0
            else corners(lambda v: np.power(v, exponent), x)
        )
    return corners(np.power, (np.maximum(x[0], 0), np.maximum(x[1], 0)), p)


def entropy(call: Call, x: Ends) -> Ends:
    """Range of -x log(x), which turns at 1/e."""
    return turning(
        lambda v: np.asarray(np.where(v > 0, -v * np.log(np.where(v > 0, v, 1.0)), 0.0)), above(x), math.exp(-1)
    )


def sigmoid(x: Array) -> Array:
    """Sigmoid 1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))))


def _axis(call: Call) -> int | None:
    axis = call.option("axis")
    return None if axis is None else int(axis)


def reduced(reduce: Callable[..., Array], of: Callable[[Ends], Ends] = lambda x: x) -> Rule:
    """Rule for a reduction that rises with every entry of `of` the argument."""

    def rule(call: Call, x: Ends) -> Ends:
        low, high = of(x)
        return reduce(low, axis=_axis(call)), reduce(high, axis=_axis(call))

    return rule


def sizes(x: Ends) -> Ends:
    """Range of |x|."""
    return turning(np.abs, x, 0.0)


def length(call: Call, x: Ends) -> Ends:
    """Range of the Euclidean norm."""
    return corners(np.sqrt, reduced(np.sum, square)(call, x))


def soft_maximum(x: Array, axis: int | None) -> Array:
    """Value of log(sum(exp(x))) over all entries or along an axis."""
    top = x.max(axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return np.asarray(total.reshape(()) if axis is None else total.squeeze(axis))


def product(call: Call, a: Ends, b: Ends) -> Ends:
    """Range of the matrix product: entrywise products along the common axis."""
    if call.args[0] is call.args[1] and a[0].ndim == 1:
        low, high = square(a)
        return low.sum(), high.sum()
    rows, columns = a[0].shape[0] if a[0].ndim == 2 else 1, b[0].shape[1] if b[0].ndim == 2 else 1
    meet = a[0].shape[-1]
    left = a[0].reshape(rows, meet, 1), a[1].reshape(rows, meet, 1)
    right = b[0].reshape(1, meet, columns), b[1].reshape(1, meet, columns)
    low, high = corners(np.multiply, left, right)
    shape = (*a[0].shape[:-1], *b[0].shape[1:])
    return low.sum(1).reshape(shape), high.sum(1).reshape(shape)
