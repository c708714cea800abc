"""Ranges of single operations, written a second time for the replay: by corners and turning points, in plain floating point.

Nothing here is shared with the prover. Results are exact up to rounding; the replay compares with a relative tolerance.
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
BIG = 1e308


def _corners(f: Callable[..., Array], *ranges: Ends) -> Ends:
    """Of a function that is monotone in each argument alone."""
    with np.errstate(all="ignore"):
        values = [np.nan_to_num(f(*c), nan=0.0, posinf=np.inf, neginf=-np.inf) for c in itertools.product(*ranges)]
    return np.minimum.reduce(np.broadcast_arrays(*values)), np.maximum.reduce(np.broadcast_arrays(*values))


def _turning(f: Callable[[Array], Array], x: Ends, at: float) -> Ends:
    """Of a function that is monotone on either side of one point."""
    low, high = _corners(f, x)
    inside = (x[0] <= at) & (at <= x[1])
    value = f(np.asarray(at))
    return np.where(inside, np.minimum(low, value), low), np.where(inside, np.maximum(high, value), high)


def _power(x: Ends, p: Ends) -> Ends:
    if p[0].size == 1 and p[1].size == 1 and float(p[0]) == float(p[1]) and float(p[0]) == round(float(p[0])):
        exponent = float(p[0])
        if exponent < 0 and np.any((x[0] < 0) & (x[1] > 0)):
            return np.full(x[0].shape, -np.inf), np.full(x[0].shape, np.inf)
        return (
            _turning(lambda v: np.power(v, exponent), x, 0.0)
            if exponent >= 0
            else _corners(lambda v: np.power(v, exponent), x)
        )
    return _corners(np.power, (np.maximum(x[0], 0), np.maximum(x[1], 0)), p)


def _entropy(x: Array) -> Array:
    return np.where(x > 0, -x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def _divided(a: Ends, b: Ends) -> Ends:
    if np.any((b[0] <= 0) & (b[1] >= 0)):
        shape = np.broadcast(a[0], b[0]).shape
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    return _corners(np.divide, a, b)


def _positive(x: Ends) -> Ends:
    return np.maximum(x[0], 0.0), np.maximum(x[1], 0.0)


ENTRYWISE: dict[str, Callable[..., Ends]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "minus": lambda a: (-a[1], -a[0]),
    "mul": lambda a, b: _corners(np.multiply, a, b),
    "div": _divided,
    "pow": _power,
    "power": _power,
    "abs": lambda a: _turning(np.abs, a, 0.0),
    "square": lambda a: _turning(np.square, a, 0.0),
    "pos": _positive,
    "neg": lambda a: _positive((-a[1], -a[0])),
    "hinge": lambda a: _positive((1 - a[1], 1 - a[0])),
    "sqrt": lambda a: _corners(np.sqrt, _positive(a)),
    "exp": lambda a: _corners(np.exp, a),
    "log": lambda a: _corners(np.log, _positive(a)),
    "log1p": lambda a: _corners(np.log1p, (np.maximum(a[0], -1.0), np.maximum(a[1], -1.0))),
    "logistic": lambda a: _corners(lambda v: np.logaddexp(0.0, v), a),
    "inv_pos": lambda a: _divided((np.ones(()), np.ones(())), a),
    "entr": lambda a: _turning(_entropy, _positive(a), math.exp(-1)),
    "maximum": lambda *args: (
        np.maximum.reduce(np.broadcast_arrays(*(a[0] for a in args))),
        np.maximum.reduce(np.broadcast_arrays(*(a[1] for a in args))),
    ),
    "minimum": lambda *args: (
        np.minimum.reduce(np.broadcast_arrays(*(a[0] for a in args))),
        np.minimum.reduce(np.broadcast_arrays(*(a[1] for a in args))),
    ),
    "_sign": lambda a: (np.sign(a[0]), np.sign(a[1])),
    "_positive": lambda a: ((a[0] > 0) * 1.0, (a[1] > 0) * 1.0),
    "_nonneg": lambda a: ((a[0] >= 0) * 1.0, (a[1] >= 0) * 1.0),
    "_sigmoid": lambda a: _corners(lambda v: 1 / (1 + np.exp(-np.clip(v, -700, 700))), a),
}

REDUCTIONS: dict[str, Callable[..., Ends]] = {
    "sum": lambda a, axis: (a[0].sum(axis), a[1].sum(axis)),
    "mean": lambda a, axis: (a[0].mean(axis), a[1].mean(axis)),
    "max": lambda a, axis: (a[0].max(axis), a[1].max(axis)),
    "min": lambda a, axis: (a[0].min(axis), a[1].min(axis)),
    "sum_squares": lambda a, axis: REDUCTIONS["sum"](_turning(np.square, a, 0.0), axis),
    "norm1": lambda a, axis: REDUCTIONS["sum"](_turning(np.abs, a, 0.0), axis),
    "norm_inf": lambda a, axis: REDUCTIONS["max"](_turning(np.abs, a, 0.0), axis),
    "norm2": lambda a, axis: _corners(np.sqrt, REDUCTIONS["sum_squares"](a, axis)),
    "log_sum_exp": lambda a, axis: (_lse(a[0], axis), _lse(a[1], axis)),
}


def _lse(x: Array, axis: int | None) -> Array:
    top = x.max(axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return np.asarray(total.reshape(()) if axis is None else total.squeeze(axis))


def _product(a: Ends, b: Ends) -> Ends:
    """The matrix product: entrywise products along the axis where the two meet."""
    rows, columns = a[0].shape[0] if a[0].ndim == 2 else 1, b[0].shape[1] if b[0].ndim == 2 else 1
    meet = a[0].shape[-1]
    left = a[0].reshape(rows, meet, 1), a[1].reshape(rows, meet, 1)
    right = b[0].reshape(1, meet, columns), b[1].reshape(1, meet, columns)
    low, high = _corners(np.multiply, left, right)
    shape = (*a[0].shape[:-1], *b[0].shape[1:])
    return low.sum(1).reshape(shape), high.sum(1).reshape(shape)


def replayed(node: Call, args: list[Ends]) -> Ends | None:
    """The range of the call over full-shape ranges of its arguments; None for atoms that the replay does not know."""
    if node.atom in ENTRYWISE:
        if node.atom in ("mul", "matmul", "dot") and node.args[0] is node.args[1]:
            return ENTRYWISE["square"](args[0])
        return ENTRYWISE[node.atom](*args)
    axis = node.option("axis")
    if node.atom in REDUCTIONS:
        return REDUCTIONS[node.atom](args[0], None if axis is None else int(axis))
    if node.atom in ("matmul", "dot"):
        return _product(*args)
    if node.atom == "transpose":
        return args[0][0].T, args[0][1].T
    return None
