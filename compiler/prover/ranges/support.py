"""Linear functions over a domain: the greatest value of <a, x> for every x in the set and every coefficient in its range."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.prover.ranges.enclosure import compact
from oco.dsl.intervals import Interval

ROUND_OFF = 2.0**-48  # covers the rounding of a domain's own support function, relative to the sum of |a_i x_i|


def support(domain: Domain, hull: Interval, a: Interval) -> float:
    """An upper bound of max <a, x>; the maximum itself where the set is a box or ball, or lies in the nonnegative orthant.

    `hull` is the smallest box around the set.
    """
    over_hull = (a * hull).sum().greatest
    if domain.is_box or not np.isfinite(over_hull):
        return over_hull
    return min(over_hull, _over_set(domain, a, hull))


def _over_set(domain: Domain, a: Interval, hull: Interval) -> float:
    over_ranges = domain.support_over(a)
    if over_ranges is not None:
        return over_ranges.value
    if domain.sign_symmetric:
        return _rounded(domain, a, hull, np.broadcast_to(a.magnitude, domain.shape))
    if hull.nonnegative:
        return _rounded(domain, a, hull, np.broadcast_to(a.hi, domain.shape))
    lo, hi = a.expanded()
    middle = lo / 2 + hi / 2
    spread = Interval(compact((hi - lo) / 2), compact((hi - lo) / 2), a.shape) * Interval(
        hull.magnitude, hull.magnitude, hull.shape
    )
    return _rounded(domain, a, hull, middle) + spread.sum().greatest * (1 + ROUND_OFF)


def _rounded(
    domain: Domain, a: Interval, hull: Interval, c: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> float:
    slack = (a.abs() * hull.abs()).sum().greatest * ROUND_OFF
    return float(domain.support(c)) + slack
