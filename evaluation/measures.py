"""Measures of a run: regret and violation after every round. Plain functions of arrays with the round first."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
ViolationKind = Literal["hard", "soft"]
Total = Literal["papers", "scaled"]
TOGETHER = 1 << 18
"""Rounds whose violations are in memory at once where their sums alone are wanted."""
ROW = 512
"""Numbers of a row with which a call of NumPy is worth its cost."""


def regret(loss: Array, comparator_loss: Array) -> Array:
    """Cumulative regret sum_{s <= t} f_s(x_s) - f_s(x*_s) for every t: (T,)."""
    return np.asarray(np.cumsum(loss - comparator_loss))


def violation(constraints: Array, kind: ViolationKind) -> Array:
    """Violation after every round (T, N) for values g (T, N): hard is sum_t [g_t]_+, soft is [sum_t g_t]_+."""
    if kind == "hard":
        return np.asarray(np.cumsum(np.maximum(constraints, 0.0), axis=0))
    return np.asarray(np.maximum(np.cumsum(constraints, axis=0), 0.0))


def last_violation(constraints: Array, kind: ViolationKind) -> Array:
    """Violation after the last round (N,) for values g (T, N)."""
    if kind == "hard":
        starts = range(0, len(constraints), TOGETHER)
        parts = (summed(np.maximum(constraints[k : k + TOGETHER], 0.0)) for k in starts)
        return sum(parts, np.zeros(constraints.shape[1]))
    return np.asarray(np.maximum(summed(constraints), 0.0))


def summed(values: Array) -> Array:
    """Sum over the rounds of values (T, N), which are few beside each other: as a product, which reads them in one pass."""
    return np.asarray(np.broadcast_to(1.0, len(values)) @ values)


def over_rounds(function: np.ufunc, values: Array) -> Array:
    """Result (N,) of a function of two numbers, such as the greater one, over the rounds of values (T, N), which are few beside each other:
    rounds that fill a long row are taken side by side, since NumPy goes through short rows number by number.
    """
    rounds, width = values.shape
    side = ROW // max(width, 1)
    if width and 1 < side <= rounds:
        whole = rounds // side * side
        rows = function.reduce(values[:whole].reshape(-1, side * width), axis=0).reshape(side, width)
        values = np.concatenate([rows, values[whole:]])
    return np.asarray(function.reduce(values, axis=0))


def equality_violation(equalities: Array) -> Array:
    """Violation |sum_t h_t| after every round, for values h (T, M): (T, M)."""
    return np.asarray(np.abs(np.cumsum(equalities, axis=0)))


def total(violations: Array, kind: Total, scales: Array | None) -> Array:
    """Total over constraints of violations (T, N), one number a round: "papers" is the plain sum; "scaled" divides each
    by its scale first.

    The scale of a constraint is its largest |g| over domain and streams; one of scale zero is dropped.
    """
    if kind == "papers":
        return np.asarray(violations.sum(axis=1))
    scale = np.ones(violations.shape[1]) if scales is None else scales
    kept = scale > 0
    return np.asarray((violations[:, kept] / scale[kept]).sum(axis=1))


def fitted_exponent(values: Array) -> float | None:
    """Slope of log(values) against log(t) by least squares from a tenth of the rounds on.

    None where there are too few rounds, the values are not positive, or no power of t describes them (R^2 below 0.9).
    """
    t = np.unique(np.geomspace(max(1, len(values) // 10), max(1, len(values)), 200).astype(np.int64))
    picked = values[t - 1]
    if len(t) < 10 or not np.all(picked > 0):
        return None
    x, y = np.log(t) - np.log(t).mean(), np.log(picked) - np.log(picked).mean()
    slope = float((x * y).sum() / (x * x).sum())
    unexplained = float(((y - slope * x) ** 2).sum())
    return slope if unexplained <= 0.1 * float((y * y).sum()) or float(np.ptp(y)) < 0.05 else None
