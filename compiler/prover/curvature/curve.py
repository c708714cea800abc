"""Enclosures of Hessians in the Loewner order, kept as a diagonal plus J' diag(w) J: eigenvalues are taken when all terms are added up.

With w between w_lo and w_hi entry by entry, J' diag(w_lo) J <= J' diag(w) J <= J' diag(w_hi) J; so sums and multiples of enclosures
are enclosures of the sums and multiples. For J = M + E with |E| <= R entry by entry, | |J v| - |M v| | <= |R|_2 |v|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import DecisionBlock
from oco.compiler.prover.curvature.spectrum import SLACK, least_singular, matrix_norm
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
LARGEST = 200  # entries of all decisions up to which matrices of that size are decomposed
STEADY = 10.0  # times its least value that a second derivative times the decision may have so that it counts as a share
ROUND_OFF = 2.0**-50  # of a sum of products, for each of its terms, relative to the sum of their sizes


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """J' diag(w) J with J in `matrix`, shape (rows, entries of all decisions), and w in `weights`, shape (rows,)."""

    matrix: Interval
    weights: Interval

    def scaled(self, ends: Floats) -> Interval:
        """The rows times the square roots of these nonnegative weights."""
        return point(ends).sqrt().reshape((len(ends), 1)) * self.matrix

    @property
    def exact(self) -> bool:
        """True where J is known exactly."""
        return self.matrix.is_point

    @property
    def top(self) -> Floats:
        """The upper ends of the weights."""
        return np.broadcast_to(self.weights.hi, self.weights.shape)


@dataclass(frozen=True, eq=False)
class HessianBounds:
    """The Hessian lies between two sums of a diagonal for some decisions, a multiple of the identity, and rows.

    exact   the Hessian is diagonal, or has one entry, and each takes both ends of its range
    shares  by decision: at x >= 0 its diagonal also lies between c / x + d with both at their lower and both at their upper ends
    """

    diagonal: Mapping[str, Interval] = field(default_factory=dict)
    rest: Interval = field(default_factory=lambda: point(0.0))
    rows: tuple[WeightedRows, ...] = ()
    shares: Mapping[str, tuple[Interval, Interval]] = field(default_factory=dict)
    exact: bool = False

    def __add__(self, other: HessianBounds) -> HessianBounds:
        both = dict(self.diagonal)
        for name, d in other.diagonal.items():
            both[name] = both[name] + d if name in both else d
        shares = {}
        for name in {**self.shares, **other.shares}:
            (c, d), (more, added) = self._share(name), other._share(name)
            shares[name] = c + more, d + added
        exact = (self.is_zero and other.exact) or (other.is_zero and self.exact)
        return HessianBounds(both, self.rest + other.rest, (*self.rows, *other.rows), shares, exact)

    @property
    def is_zero(self) -> bool:
        """True where the Hessian is 0."""
        return not self.diagonal and not self.rows and self.rest.least == 0 == self.rest.greatest

    def _share(self, name: str) -> tuple[Interval, Interval]:
        return self.shares.get(name, (point(0.0), self.diagonal.get(name, point(0.0))))

    def times(self, factor: Interval) -> HessianBounds:
        """The Hessian times a number in a range."""
        rows = tuple(WeightedRows(r.matrix, r.weights * factor) for r in self.rows)
        diagonal = {n: d * factor for n, d in self.diagonal.items()}
        shares = {n: (c * factor, d * factor) for n, (c, d) in self.shares.items()}
        return HessianBounds(diagonal, self.rest * factor, rows, shares, self.exact and factor.is_point)

    def nonnegative(self) -> HessianBounds:
        """Enclosure with the lower ends raised to 0, for convex functions."""
        rows = tuple(WeightedRows(r.matrix, _from_zero(r.weights)) for r in self.rows)
        diagonal = {n: _from_zero(d) for n, d in self.diagonal.items()}
        return replace(self, diagonal=diagonal, rest=_from_zero(self.rest), rows=rows, exact=False)

    @property
    def minus(self) -> HessianBounds:
        """Enclosure of the negative Hessian."""
        return self.times(point(-1.0))

    @property
    def has_negative(self) -> bool:
        """True unless every part of the sums is proved nonnegative."""
        return not all(p.nonnegative for p in (*self.diagonal.values(), self.rest, *(r.weights for r in self.rows)))

    def met(self, name: str, diagonal: Interval) -> HessianBounds:
        """Intersect the diagonal of one decision with a second enclosure of it."""
        own = self.diagonal[name]
        both = interval(np.maximum(own.lo, diagonal.lo), np.minimum(own.hi, diagonal.hi), own.shape)
        return replace(self, diagonal={**self.diagonal, name: both}, exact=False)

    def sharing(self, name: str, share: Interval) -> HessianBounds:
        """Add the number c of one decision, where that says more of the diagonal than its ends do."""
        low, high = sorted((abs(share.least), abs(share.greatest)))
        if share.least <= 0 <= share.greatest or high > STEADY * low:
            return self
        return replace(self, shares={**self.shares, name: (share, point(0.0))})


def _from_zero(x: Interval) -> Interval:
    return interval(np.zeros(()), np.maximum(x.hi, 0.0), x.shape)


def most(curve: HessianBounds, blocks: Sequence[DecisionBlock], along: Floats | None = None) -> float:
    """An upper bound of v' H v for every unit vector v, of those in the span of the orthonormal columns of `along` where they are given."""
    ends = [_end(curve, b) for b in blocks]
    greatest = max(float(end.max()) for end in ends)
    if greatest == np.inf or any(np.any(r.weights.hi == np.inf) for r in curve.rows):
        return math.inf
    above = _stacked([r.scaled(np.maximum(r.top, 0.0)) for r in curve.rows if np.any(r.top > 0)])
    result = greatest if above is None else _up(greatest + matrix_norm(above) ** 2)
    if sum(b.domain.size for b in blocks) > LARGEST:
        return result
    diagonal = np.concatenate([np.broadcast_to(end, b.shape).ravel() for end, b in zip(ends, blocks)])
    if along is None and 0 < len(free := _free(diagonal, curve.rows)) < len(diagonal):
        # Along all other entries the second derivative is 0, which rounding would hide.
        rows = tuple(WeightedRows(_columns(r.matrix, free), r.weights) for r in curve.rows)
        return min(result, max(0.0, _most(diagonal[free], rows, None)))
    return min(result, _most(diagonal, curve.rows, along))


def _most(diagonal: Floats, rows: tuple[WeightedRows, ...], along: Floats | None) -> float:
    """Upper bound of v' H v by decompositions of matrices of the decisions' size."""
    above = _stacked([r.scaled(np.maximum(r.top, 0.0)) for r in rows if np.any(r.top > 0)])
    below = [(r.scaled(np.maximum(-r.top, 0.0)), r.exact) for r in rows if np.any(r.top < 0)]
    if above is None and not below:
        return _largest(diagonal, along)
    exact, all_below = _stacked([q for q, is_exact in below if is_exact]), _stacked([q for q, _ in below])
    results = [_by_middle(diagonal, above, q, along) for q in {id(q): q for q in (exact, all_below)}.values()]
    if above is None and all_below is not None:
        results.append(_up(float(diagonal.max()) - least_singular(all_below) ** 2 * (1 - SLACK)))
    return min(results)


def stretch(curve: HessianBounds, blocks: Sequence[DecisionBlock], along: Floats | None) -> float:
    """An upper bound of |H v| for every unit vector v in the span of `along`: |H v|^2 <= |H| v' H v where H is semidefinite."""
    low, high = least(curve, blocks), most(curve, blocks)
    result = max(abs(low), abs(high))
    if along is None or (low < 0 < high) or not math.isfinite(result):
        return result
    end = high if low >= 0 else -low
    inner = most(curve, blocks, along) if low >= 0 else -least(curve, blocks, along)
    return min(result, _up(math.sqrt(_up(end * max(inner, 0.0)))))


def least(curve: HessianBounds, blocks: Sequence[DecisionBlock], along: Floats | None = None) -> float:
    """A lower bound of v' H v, as `most`."""
    return 0.0 - most(curve.minus, blocks, along)


def _free(diagonal: Floats, rows: tuple[WeightedRows, ...]) -> Floats:
    """The entries along which the second derivative need not be 0; all where there are no rows, and the diagonal tells exactly."""
    moved = diagonal != 0 if rows else np.ones(len(diagonal), dtype=bool)
    for r in rows:
        moved = moved | np.any(r.matrix.magnitude != 0, axis=0)
    return np.flatnonzero(moved)


def _columns(matrix: Interval, places: Floats) -> Interval:
    lo, hi = matrix.expanded()
    return interval(lo[:, places], hi[:, places])


def _end(curve: HessianBounds, b: DecisionBlock) -> Floats:
    """The upper end of the diagonal for one decision, in as many numbers as it needs."""
    return (curve.diagonal[b.name] + curve.rest).hi if b.name in curve.diagonal else curve.rest.hi


def _stacked(parts: list[Interval]) -> Interval | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    lo, hi = zip(*(p.expanded() for p in parts))
    return interval(np.concatenate(lo), np.concatenate(hi))


def _largest(diagonal: Floats, along: Floats | None) -> float:
    """The largest eigenvalue of a diagonal matrix."""
    value = float(diagonal.max())
    if along is None or len(diagonal) > LARGEST or np.all(diagonal == value):
        return value
    along_set = along.T @ (diagonal[:, None] * along)
    return min(value, _largest_eigenvalue(along_set, float(np.abs(diagonal).max()), len(diagonal)))


def _by_middle(diagonal: Floats, above: Interval | None, below: Interval | None, along: Floats | None) -> float:
    """D + S' S - Q' Q with S = M + E: at most the largest eigenvalue of that of the middles, and 2 |E| |M| + |E|^2; for Q, 2 |E| |M|."""
    matrix, size, slack, terms = np.diag(diagonal), float(np.abs(diagonal).max(initial=0.0)), 0.0, 0
    for sign, rows in ((1.0, above), (-1.0, below)):
        if rows is None:
            continue
        if not rows.bounded:
            return math.inf
        middle, spread = _middle(rows)
        matrix = matrix + sign * (middle.T @ middle)
        size, terms = size + float(np.sum(middle**2)), terms + len(middle)
        if np.any(spread):
            off = float(np.linalg.norm(spread, 2)) * (1 + SLACK)
            length = float(np.linalg.norm(middle if along is None else middle @ along, 2)) * (1 + SLACK)
            slack = _up(slack + off * (2 * length + (off if sign > 0 else 0.0)) * (1 + SLACK))
    if along is not None:
        matrix = along.T @ matrix @ along
    return _up(_largest_eigenvalue(matrix, size, terms + len(diagonal)) + slack)


def _middle(rows: Interval) -> tuple[Floats, Floats]:
    lo, hi = rows.expanded()
    middle = np.clip(lo / 2 + hi / 2, lo, hi)
    return middle, np.nextafter(np.maximum(hi - middle, middle - lo), np.inf) * (hi > lo)


def _largest_eigenvalue(matrix: Floats, size: float, terms: int) -> float:
    """At least the largest eigenvalue of a symmetric matrix; its entries are sums of `terms` products whose sizes add up to `size`."""
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return _up(float(values[-1]) + ROUND_OFF * (terms + 16) * size)


def _up(value: float) -> float:
    return float(np.nextafter(value, np.inf))
