"""Combinatorics of boxes with a total: extreme points, and how far two of their points can be apart."""

from __future__ import annotations

import itertools
import math

import numpy as np

from oco.compiler.domains.norms import Floats, exact_sum

MAX_FREE_ENTRIES = 7  # entries whose 2^n corners are listed


def extreme_points(low: Floats, high: Floats, total: float) -> Floats | None:
    """All extreme points of { low <= x <= high : sum x = total }: every entry but one at a bound. None beyond a few entries."""
    free = np.flatnonzero(low < high)
    if len(free) > MAX_FREE_ENTRIES:
        return None
    if not len(free):
        return low[None, :].copy()
    results: dict[tuple[float, ...], Floats] = {}
    slack = 1e-12 * (high - low).max()
    for last in free:
        others = free[free != last]
        for corner in itertools.product((0, 1), repeat=len(others)):
            x = low.copy()
            x[others] = np.where(corner, high[others], low[others])
            rest = total - (exact_sum(x) - x[last])
            if low[last] - slack <= rest <= high[last] + slack:
                x[last] = np.clip(rest, low[last], high[last])
                results.setdefault(tuple(np.round((x - low) / (high - low).max(), 9)), x)
    return np.array(list(results.values()))


def largest_transfer(low: Floats, high: Floats, total: float) -> tuple[float, bool]:
    """max over x, y of the sum of [x - y]_+, which is half the l1 diameter; and whether the number is exact, not just a bound.

    For entries A that grow and the rest that shrink it is min(W_A, W - W_A, H - total, total - L), with W the widths and L, H the sums
    of the bounds; the best A splits the widths evenly, which is found by halves (exact for equal widths) or by greedy filling.
    """
    width = np.sort((high - low)[high > low])[::-1]
    if not len(width):
        return 0.0, True
    W = exact_sum(width)
    room = min(exact_sum(high) - total, total - exact_sum(low))
    sides = [0.0, 0.0]
    for w in width:
        sides[int(sides[1] < sides[0])] += float(w)
    split = min(sides)
    if len(width) <= 2 * MAX_FREE_ENTRIES:
        sums = np.zeros(1)
        for w in width:
            sums = np.concatenate([sums, sums + w])
        split = float(np.minimum(sums, W - sums).max())
        return max(min(room, split), 0.0), True
    even = bool(width[0] - width[-1] <= 1e-12 * width[0])
    if room <= split or even:
        return max(min(room, split), 0.0), True
    return max(min(room, W / 2), 0.0), False


def spread_of_transfer(width: Floats, transfer: float) -> float:
    """A bound of |x - y|_2 where both [x - y]_+ and [y - x]_+ sum to at most `transfer` and |x - y| <= width.

    Each side is largest when it fills the widest entries one after another; exact when all widths are equal.
    """
    w = np.sort(width)[::-1]
    largest = float(w[0])
    if largest == 0:
        return 0.0
    taken = np.clip(transfer - (np.cumsum(w) - w), 0, w) / largest
    return largest * math.sqrt(2 * exact_sum(taken**2))
