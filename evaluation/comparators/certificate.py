"""Lower bounds that do not rely on the solver.

For multipliers lam >= 0 and any nu the Lagrangian L(u) = f(u) + lam g(u) + nu (A u - c) is convex and lies below f on
    the feasible
points, so that   f* >= min_X L >= L(x) - max_{u in X} <grad L(x), x - u>   for every x; the last maximum is a linear
                  minimisation.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.interior import Iterate, solve
from oco.evaluation.comparators.products import applied, pulled
from oco.evaluation.comparators.programs import Programs, Scaled, scaled

Array = np.ndarray[Any, Any]


class Bounded(Programs, Protocol):
    """Programs over a set on which linear functions can be minimized."""

    def least(self, slopes: Array, rows: Array) -> Array:
        """Minimum of <c, x> over the set, for each row of `slopes` (b, n): (b,)."""
        ...


@dataclass(frozen=True, eq=False)
class Certified:
    """Solutions of a batch: points x (B, n), f there, lower bounds of f, multipliers of g, and values of g and A x - c.

    `violation` (B,) is the largest violation of a constraint at x, relative to the size of its slope; `size` (B,) is the
    change of f over the set by its slope, the scale for judging a gap.
    """

    x: Array
    f: Array
    bound: Array
    multipliers: Array
    g: Array
    violation: Array
    size: Array
    last: Iterate | None = None


def joined(parts: list[Certified]) -> Certified:
    """Several batches as one, without their last iterates."""
    arrays = [f.name for f in fields(Certified) if f.name != "last"]
    together: dict[str, Any] = {name: np.concatenate([getattr(c, name) for c in parts]) for name in arrays}
    return Certified(**together)


def solve_certified(
    programs: Bounded, start: Array, enough: float = 0.0, until: float = np.inf, before: Iterate | None = None
) -> Certified:
    """Solve a batch from one point (n,) strictly inside the bounds, and bound every member from below.

    before  iterates of similar programs to start from instead; the result's `last` are the final iterates
    enough  gap that need not be reduced, in units of the change of the loss over the set
    until   time at which the search stops; the iterates reached by then are bounded
    """
    begin = np.broadcast_to(start, (programs.count, programs.size)).copy()
    view = scaled(programs, begin)
    solution = solve(view, before or view.inward(begin), enough=enough, until=until)
    return _bounded(programs, view, solution.point)


def _bounded(programs: Bounded, view: Scaled, v: Iterate) -> Certified:
    """Point of the iterates on the bounds or between them, and the bound that the Lagrangian's tangent there gives."""
    rows = np.arange(programs.count)
    y = np.clip(v.x, 0.0, 1.0)
    jet, (matrix, right) = view.jet(y, rows), view.equalities(rows)
    off, lam = applied(matrix, y) - right, np.maximum(v.lam, 0.0)
    x, slope = view.outward(y), np.zeros((programs.count, programs.size))
    slope[:, view.free] = (jet.df + pulled(jet.jacobian, lam) + pulled(matrix, v.nu)) / view.width
    lagrangian = jet.f + (lam * jet.g).sum(axis=1) + (v.nu * off).sum(axis=1)
    with np.errstate(invalid="ignore"):
        tangent = lagrangian + programs.least(slope, rows) - (slope * x).sum(axis=1)
    bound = np.where(np.isfinite(slope).all(axis=1), tangent, -np.inf)  # an infinite slope bounds nothing
    violation = np.maximum(jet.g.max(axis=1, initial=0.0), np.abs(off).max(axis=1, initial=0.0))
    weight, multipliers = view.weight_f, lam * view.weight_g / view.weight_f[:, None]
    return Certified(x, jet.f / weight, bound / weight, multipliers, jet.g / view.weight_g, violation, 1.0 / weight, v)
