"""What is measured of a run: regret and violation after every round. Plain functions of arrays with the round first."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
ViolationKind = Literal["hard", "soft"]
Total = Literal["papers", "scaled"]


def regret(loss: Array, comparator_loss: Array) -> Array:
    """sum over rounds 1..t of f_t(x_t) - f_t(x*_t), for every t: (T,)."""
    return np.asarray(np.cumsum(loss - comparator_loss))


def violation(constraints: Array, kind: ViolationKind) -> Array:
    """For values g (T, N): hard is sum_t [g_t]_+, soft is [sum_t g_t]_+, after every round (T, N)."""
    if kind == "hard":
        return np.asarray(np.cumsum(np.maximum(constraints, 0.0), axis=0))
    return np.asarray(np.maximum(np.cumsum(constraints, axis=0), 0.0))


def equality_violation(equalities: Array) -> Array:
    """|sum_t h_t| after every round, for values h (T, M): (T, M)."""
    return np.asarray(np.abs(np.cumsum(equalities, axis=0)))


def total(violations: Array, kind: Total, scales: Array | None) -> Array:
    """One number a round from violations (T, N): "papers" is the plain sum; "scaled" divides each by its scale first.

    The scale of a constraint is its largest |g| over domain and streams; one of scale zero is dropped.
    """
    if kind == "papers":
        return np.asarray(violations.sum(axis=1))
    scale = np.ones(violations.shape[1]) if scales is None else scales
    kept = scale > 0
    return np.asarray((violations[:, kept] / scale[kept]).sum(axis=1))


def fitted_exponent(values: Array) -> float | None:
    """The slope of log(values) against log(t) by least squares over the second half of the rounds on a logarithmic axis.

    None where fewer than ten rounds of it are positive: no power of t describes them.
    """
    first = max(1, int(np.sqrt(len(values))))
    t = np.unique(np.geomspace(first, len(values), 200).astype(np.int64))
    picked = values[t - 1]
    positive = picked > 0
    if positive.sum() < 10 or not np.all(positive[-5:]):
        return None
    x, y = np.log(t[positive]), np.log(picked[positive])
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())
