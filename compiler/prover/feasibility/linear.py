"""Least maximum of affine functions over a box: the program of Slater points, and of proofs that there is none, where all is linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
Step = tuple[Floats, float, Floats, Floats, Floats]
"""Changes of u, v, y, p and r."""
MOST_STEPS = 60
"""Steps of the interior-point method; programs of ordinary size take some twelve."""
GAP = 1e-13
"""Distance between primal and dual values, in units of the largest coefficient, at which the method ends."""
NEARLY, WORSE = 1e-8, 100.0
"""Distance that is near enough where rounding ends the steps, and the factor by which they make it worse then."""
BOUNDARY = 0.995
"""Share of the way to the boundary that a step takes at most."""
SNAPPED = 1e-6
"""Entries of the solution this near to what the active rows say are moved onto it, where that is no worse."""


@dataclass(frozen=True, eq=False)
class LeastMaximum:
    """Value, weights of the functions (nonnegative, of sum 1) with which it is a lower bound, and the point of the box."""

    value: float
    weights: Floats
    x: Floats


def least_maximum(rows: Floats, offsets: Floats, lower: Floats, upper: Floats) -> LeastMaximum | None:
    """Minimum over lower <= x <= upper of the largest entry of `rows @ x + offsets`; None where rounding ends the search early.

    rows of shape (m, n), offsets (m,), lower and upper (n,), all finite. The predictor-corrector method of Mehrotra (1992, SIAM J.
    Optimization 2(4)) from a point that is feasible for both sides, so that every iterate is; then a step onto the active rows.
    """
    width = upper - lower
    moving = width > 0
    with np.errstate(over="ignore", invalid="ignore"):
        matrix, start = rows[:, moving] * width[moving], offsets + rows @ lower
    scale = float(max(np.abs(matrix).max(initial=0.0), np.abs(start).max(initial=0.0)))
    if not (np.isfinite(scale) and np.isfinite(width).all()):
        return None
    if scale == 0.0 or not moving.any():
        return LeastMaximum(float(start.max()), np.eye(len(start))[np.argmax(start)], lower)
    end = _Iterate.first(matrix / scale, start / scale).solved()
    if end is None:
        return None
    u, weights = end.snapped()
    x = lower.astype(np.float64)
    x[moving] = np.where(u == 1.0, upper[moving], lower[moving] + width[moving] * u)
    return LeastMaximum(float((rows @ x + offsets).max()), weights, x)


@dataclass(frozen=True, eq=False)
class _Iterate:
    """Point u of the unit box with height v above all functions A u + b, their slacks s and weights y, and the multipliers p of u >= 0
    and r of u <= 1. Feasible on both sides: s = v - A u - b, A'y = p - r, sum(y) = 1."""

    A: Floats
    b: Floats
    u: Floats
    v: float
    y: Floats
    p: Floats
    r: Floats

    @classmethod
    def first(cls, A: Floats, b: Floats) -> _Iterate:
        """Middle of the box, with equal weights."""
        m, n = A.shape
        u, y = np.full(n, 0.5), np.full(m, 1.0 / m)
        slope = A.T @ y
        return cls(A, b, u, float((A @ u + b).max()) + 1.0, y, np.maximum(slope, 0) + 1.0, np.maximum(-slope, 0) + 1.0)

    @property
    def s(self) -> Floats:
        """Slacks of the functions below the height."""
        return self.v - self.A @ self.u - self.b

    def gap(self) -> float:
        """Primal less dual value."""
        return float(self.y @ self.s + self.p @ self.u + self.r @ (1.0 - self.u))

    @property
    def drift(self) -> Floats:
        """Difference that rounding makes between the slope of the weighted functions and the multipliers of the box."""
        return self.A.T @ self.y - self.p + self.r

    @property
    def error(self) -> float:
        """Bound of what the value may be off by."""
        return self.gap() + float(np.abs(self.drift).sum())

    def solved(self) -> _Iterate | None:
        """Iterate of the least error; None where that is not small."""
        point, best, count = self, self, len(self.b) + 2 * len(self.u)
        for _ in range(MOST_STEPS):
            following = point.step(count)
            if following is None:
                break
            point = following
            best = point if point.error < best.error else best
            if best.error <= GAP or point.error > WORSE * best.error:
                break
        return best if best.error <= NEARLY else None

    def step(self, count: int) -> _Iterate | None:
        """Predictor, then the centred step with its correction; None where the system is singular to working precision."""
        s, q = self.s, 1.0 - self.u
        if min(s.min(), q.min(), self.u.min()) <= 0:
            return None
        newton, products, mu = self._newton(s, q), (self.y * s, self.p * self.u, self.r * q), self.gap() / count
        try:
            du, dv, dy, dp, dr = first = newton(*(-product for product in products))
            after = self._moved(*first, *self._lengths(*first, 1.0)).gap() / count
            moves = dy * (dv - self.A @ du), dp * du, -dr * du
            target = mu * (after / mu) ** 3
            second = newton(*(target - product - move for product, move in zip(products, moves)))
        except np.linalg.LinAlgError:
            return None
        return self._moved(*second, *self._lengths(*second, BOUNDARY))

    def _newton(self, s: Floats, q: Floats) -> Callable[[Floats, Floats, Floats], Step]:
        """Step by which the products of slacks and weights, of u and p, and of q = 1 - u and r change as wanted, to first order."""
        d, drift, missing = self.y / s, self.drift, 1.0 - self.y.sum()
        system = np.empty((len(self.u) + 1,) * 2)
        weighted = self.A.T * d
        system[:-1, :-1] = weighted @ self.A + np.diag(self.p / self.u + self.r / q)
        system[-1, :-1] = system[:-1, -1] = -weighted.sum(axis=1)
        system[-1, -1] = d.sum()
        unit = 1.0 / np.sqrt(system.diagonal())
        system *= unit[:, None] * unit

        def step(ys: Floats, pu: Floats, rq: Floats) -> Step:
            right = np.append(pu / self.u - rq / q - self.A.T @ (ys / s) - drift, (ys / s).sum() - missing)
            *_, dv = solution = unit * np.linalg.solve(system, unit * right)
            du = solution[:-1]
            ds = dv - self.A @ du
            return du, float(dv), (ys - self.y * ds) / s, (pu - self.p * du) / self.u, (rq + self.r * du) / q

        return step

    def _lengths(self, du: Floats, dv: float, dy: Floats, dp: Floats, dr: Floats, share: float) -> tuple[float, float]:
        """Share of the way to the boundary on both sides, 1 at most."""
        primal = ((self.s, dv - self.A @ du), (self.u, du), (1.0 - self.u, -du))
        dual = ((self.y, dy), (self.p, dp), (self.r, dr))
        return _length(primal, share), _length(dual, share)

    def _moved(self, du: Floats, dv: float, dy: Floats, dp: Floats, dr: Floats, primal: float, dual: float) -> _Iterate:
        u, v = self.u + primal * du, self.v + primal * dv
        return _Iterate(self.A, self.b, u, v, self.y + dual * dy, self.p + dual * dp, self.r + dual * dr)

    def snapped(self) -> tuple[Floats, Floats]:
        """The point and the weights with bounds and inactive rows exact, active rows equal and free slopes zero, each where that is a
        small step that costs nothing.
        """
        bound = np.where(self.u < self.p, 0.0, np.where(1.0 - self.u < self.r, 1.0, np.nan))
        free, active = np.isnan(bound), self.y > self.s
        between = self.A[active][:, free]
        u, best = np.where(free, self.u, bound), np.clip(self.u, 0.0, 1.0)
        rest = self.v - self.A[active] @ u - self.b[active]
        u[free] += np.linalg.lstsq(np.column_stack([between, -np.ones(len(rest))]), rest, rcond=None)[0][:-1]
        point = u if _near(u, best) and (u <= 1).all() and self._height(u) <= self._height(best) else best
        y, usual = np.where(active, self.y, 0.0), self.y / self.y.sum()
        off = np.append(-between.T @ y[active], 1.0 - y.sum())
        y[active] += np.linalg.lstsq(np.vstack([between.T, np.ones(len(rest))]), off, rcond=None)[0]
        return point, y if _near(y, usual) and self._floor(y) >= self._floor(usual) else usual

    def _height(self, u: Floats) -> float:
        return float((self.A @ u + self.b).max())

    def _floor(self, y: Floats) -> float:
        """Lower bound of the least maximum by weights of sum 1."""
        return float(self.b @ y + np.minimum(self.A.T @ y, 0.0).sum())


def _near(values: Floats, usual: Floats) -> bool:
    """True for nonnegative values that are the usual ones but for what rounding leaves."""
    return bool((values >= 0).all() and np.abs(values - usual).max(initial=0.0) <= SNAPPED)


def _length(pairs: tuple[tuple[Floats, Floats], ...], share: float) -> float:
    """Largest step up to 1 that keeps the given share of the way to zero."""
    ends = [share * float((-at[way < 0] / way[way < 0]).min(initial=np.inf)) for at, way in pairs]
    return min(1.0, *ends)
