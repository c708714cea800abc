"""First-order method of the comparators: an augmented Lagrangian over a set with a projection.

    minimize f(x) + h(v(x))   subject to   x in X,      h(v) = max_{y in Y} <y, v>

for a smooth convex f and a cone or ball Y of multipliers: nonnegative numbers for inequalities v <= 0, all numbers for
equations, the dual ball for a norm of an affine v. The multipliers y are projected onto Y (Hestenes 1969, Powell 1969;
Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm, 1976), the inner problems solved by
accelerated projected gradients with backtracking and restarts (Beck & Teboulle 2009; O'Donoghue & Candes 2015). Any y in
Y gives the dual bound of `certificate.py`, so that nothing here has to be trusted.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]

METHOD = "augmented Lagrangian"
OUTER, INNER = 40, 400
EVERY = 10  # inner steps between two linear minimisations, which tell how much is left to gain
GAP, VIOLATION = 1e-7, 1e-7  # of the loss's own size, of the slopes of v
SHARE = 0.1  # of the gap that is left, to which an inner problem is solved
FASTER = 4.0  # times the penalty, where a step of the multipliers did not fall to `SLOWER` of the last
SLOWER = 0.25
SHORTEST = 1e-200  # step, below which values are not finite nearby
NOISE = 1e-9  # of the value: a smaller change is not read off values


@dataclass(frozen=True, eq=False)
class Local:
    """Smooth f with its gradient df (n,), and v (m,) with its Jacobian (m, n), dense or sparse, at a point."""

    f: float
    df: Array
    v: Array
    jacobian: Any


class Split(Protocol):
    """Problem above. The functions v are scaled: their slopes over the set are of size one, or of one size."""

    @property
    def region(self) -> Region:
        """Set X."""
        ...

    @property
    def size(self) -> float:
        """Change of the objective over the set by its slope: the scale for judging a gap."""
        ...

    @property
    def penalty(self) -> float:
        """First penalty on v."""
        ...

    def at(self, x: Array) -> Local:
        """Values and first derivatives at x (n,)."""
        ...

    def onto(self, y: Array) -> Array:
        """Nearest multipliers (m,) in Y."""
        ...

    def measured(self, here: Local) -> tuple[float, float]:
        """Value of the objective, and the largest violation of a constraint."""
        ...


@dataclass(frozen=True, eq=False)
class FirstOrderResult:
    """Point (n,), the objective and the largest violation there, multipliers (m,), and a lower bound for all points."""

    x: Array
    value: float
    off: float
    multipliers: Array
    bound: float


@dataclass(frozen=True, eq=False)
class _Lagrangian:
    """Augmented Lagrangian f + max_{y in Y} <y, v> - |y - last|^2 / (2 rho)."""

    split: Split
    last: Array
    rho: float

    def at(self, x: Array) -> tuple[float, Array, Array, Local]:
        """Value, gradient, and the maximizing y, with the functions."""
        here = self.split.at(x)
        y = self.split.onto(self.last + self.rho * here.v)
        value = here.f + float(y @ here.v) - float(np.square(y - self.last).sum()) / (2 * self.rho)
        return value, here.df + y @ here.jacobian, y, here


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # of points without a value or a slope
def solve_split(split: Split, until: float, near: Array | None = None, least: float = -np.inf) -> FirstOrderResult:
    """Solve from a point `near` (n,), at most until the time `until`; `least` is a known lower bound.

    It ends where a slope is infinite, with what is reached by then.
    """
    region, size = split.region, split.size
    x = region.project(region.start if near is None else near)
    problem = _Lagrangian(split, split.onto(np.zeros_like(split.at(x).v)), split.penalty)
    step, moved, left = region.diagonal / (float(np.linalg.norm(problem.at(x)[1])) or 1.0), np.inf, size
    best = FirstOrderResult(x, np.inf, np.inf, problem.last, least)
    for _ in range(OUTER):
        x, step = _minimize(problem, x, step, until, SHARE * max(min(left, size), GAP * size))
        _, slope, y, here = problem.at(x)
        if not np.isfinite(slope).all():
            break
        value, off = split.measured(here)
        bound = here.f + float(y @ here.v) + float(region.least(slope[None])[0]) - float(slope @ x)
        best = FirstOrderResult(x, value, off, y, max(best.bound, bound))
        left = abs(value - best.bound)
        if (off <= VIOLATION and value - best.bound <= GAP * max(size, abs(value))) or perf_counter() > until:
            break
        change = float(np.abs(y - problem.last).max(initial=0.0)) / problem.rho
        problem = replace(problem, last=y, rho=problem.rho * (FASTER if change > SLOWER * moved else 1.0))
        moved = min(moved, change)
    return best


def _minimize(problem: _Lagrangian, x: Array, step: float, until: float, tolerance: float) -> tuple[Array, float]:
    """Accelerated projected gradients until a linear minimisation shows that little is left to gain."""
    region, y, momentum = problem.split.region, x, 1.0
    value, gradient, *_ = problem.at(y)
    for iteration in range(INNER):
        if not np.isfinite(gradient).all():
            break
        step *= 1.2
        while step > SHORTEST:
            new = region.project(y - step * gradient)
            move = new - y
            reached, new_gradient, *_ = problem.at(new)
            quadratic, rise = float(move @ move) / (2 * step), float(gradient @ move)
            if quadratic > NOISE * abs(value):
                short = reached <= value + rise + quadratic
            else:  # values differ by rounding alone, slopes do not
                short = float(new_gradient @ move) - rise <= 2 * quadratic
            if short:
                break
            step *= 0.5
        else:
            break
        if float((y - new) @ (new - x)) > 0:
            momentum = 1.0
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / later * (new - x)
        x, momentum = new, later
        if perf_counter() > until:
            break
        if iteration % EVERY == 0:
            left = float(new_gradient @ new) - float(region.least(new_gradient[None])[0])
            if left <= tolerance:
                break
        y = ahead
        value, gradient, *_ = problem.at(y)
    return x, step
