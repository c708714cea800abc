"""Right sides less products, rounded once, and proofs by them that no point of a box satisfies all rows of a polyhedron."""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.norms import Floats

EPS = float(np.finfo(float).eps)

SPLITTER = 134217729.0
"""2^27 + 1, which parts a double into halves whose products are exact."""

MOST_EXACT = 200_000
"""Numbers of a matrix up to which products with it are exact; beyond they are rounded as matrix products are."""


def slacks(A: Floats, b: Floats, x: Floats) -> Floats:
    """b - A x, each entry rounded once, for A of shape (m, n) without numbers near the ends of the range of doubles.

    Products are written as sums of two doubles (Dekker, Numer. Math. 18, 1971), and those are added exactly.
    """
    if A.size > MOST_EXACT:
        return np.asarray(b - A @ x)
    product = A * x
    high, low = _halves(A)
    other_high, other_low = _halves(x)
    error = ((high * other_high - product) + high * other_low + low * other_high) + low * other_low
    terms = np.column_stack([b, -product, -error])
    return np.array([math.fsum(row) for row in terms.tolist()])


def magnitudes(A: Floats, b: Floats, x: Floats) -> Floats:
    """|b| + |A| |x|: half a unit in the last place of the data changes b - A x by at most `EPS` times it."""
    terms = 1 if A.size <= MOST_EXACT else A.shape[1]
    return np.asarray((np.abs(b) + np.abs(A) @ np.abs(x)) * terms)


def contradicts(A: Floats, b: Floats, lam: Floats, lower: Floats, upper: Floats) -> bool:
    """True if multipliers lam >= 0 prove that no x in [lower, upper] satisfies A x <= b, nor with data that round to these.

    <lam, A x - b> is at most 0 for such an x; its least value over the box is found in interval arithmetic, in which every number of A, b
    and of the box stands for all that are within one unit in its last place (Farkas; Neumaier & Shcherbina, Math. Program. 99, 2004).
    """
    lam = np.maximum(lam, 0.0)
    if not np.any(lam):
        return False
    weights = -slacks(np.ascontiguousarray(A.T), np.zeros(A.shape[1]), lam)
    spread = 2 * EPS * magnitudes(np.ascontiguousarray(A.T), np.zeros(A.shape[1]), lam)
    with np.errstate(invalid="ignore", over="ignore"):
        ends = [w * x for w in (weights - spread, weights + spread) for x in (lower, upper)]
        none = (weights == 0) & (spread == 0)
        least = np.where(none, 0.0, np.min(ends, axis=0))
        right = lam * b
        rounding = 2 * EPS * (float(np.sum(np.abs(least))) + float(np.sum(np.abs(right))))
        gap = math.fsum([*least.tolist(), *(-right).tolist()]) if np.isfinite(least).all() else -math.inf
    return gap > rounding


def _halves(x: Floats) -> tuple[Floats, Floats]:
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high
