"""Comparators on sets with a projection (nuclear-norm balls, spectrahedra): an augmented Lagrangian method.

Inner problems by accelerated projected gradients with backtracking and restarts (Beck & Teboulle 2009; O'Donoghue &
Candes 2015); multipliers by the method of Hestenes and Powell. The multipliers give the dual bound of `certificate.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.certificate import Certified

Array = np.ndarray[Any, Any]

OUTER, INNER = 40, 400
GAP, EXCESS = 1e-7, 1e-7  # of the loss's own size, of the constraints' slopes


@dataclass(eq=False)
class _Lagrangian:
    """Augmented Lagrangian f + |[lam + rho g]_+|^2 / (2 rho) + |nu + rho h|^2 / (2 rho) of one member of a batch, in
    scaled functions.
    """

    programs: Assembled
    row: Array
    weight: Array
    matrix: Array
    right: Array
    lam: Array
    nu: Array
    rho: float

    def at(self, x: Array) -> tuple[float, Array, Array, Array, float]:
        """Value, gradient, scaled g and h, and f."""
        jet = self.programs.jet(x[None], self.row)
        g, slopes = jet.g[0] * self.weight, jet.jacobian[0] * self.weight[:, None]
        h = self.matrix @ x - self.right
        lam, nu = np.maximum(self.lam + self.rho * g, 0.0), self.nu + self.rho * h
        value = jet.f[0] + ((lam**2).sum() + (nu**2).sum()) / (2 * self.rho)
        return float(value), jet.df[0] + lam @ slopes + nu @ self.matrix, g, h, float(jet.f[0])


def solve_projected(
    programs: Assembled, row: int, until: float, near: Array | None = None, least: float = -np.inf
) -> Certified:
    """Solve one member of a batch from a point `near` (n,), at most until the time `until`; returns a batch of one.

    `least` is a lower bound on the loss.
    """
    region = programs.region
    problem, slope = _problem(programs, row)
    x, bound, step, nearest = region.project(region.start if near is None else near), least, 1.0, np.inf
    for _ in range(OUTER):
        x, step = _minimize(problem, region, x, step, until, 0.1 * GAP * slope)
        _, gradient, g, h, f = problem.at(x)
        problem.lam, problem.nu = np.maximum(problem.lam + problem.rho * g, 0.0), problem.nu + problem.rho * h
        lagrangian = f + problem.lam @ g + problem.nu @ h
        bound = max(bound, lagrangian + float(region.least(gradient[None])[0]) - float(gradient @ x))
        off = max(g.max(initial=0.0), np.abs(h).max(initial=0.0))
        if (off <= EXCESS and f - bound <= GAP * slope) or perf_counter() > until:
            break
        problem.rho *= 4.0 if off > 0.25 * nearest else 1.0
        nearest = min(nearest, off)
    weights, values, off_by = (problem.lam * problem.weight)[None], (g / problem.weight)[None], np.array([off])
    return Certified(x[None], np.array([f]), np.array([bound]), weights, values, off_by, np.array([slope]))


def _problem(programs: Assembled, row: int) -> tuple[_Lagrangian, float]:
    """Augmented Lagrangian with functions scaled by their slopes over the set, and the scale of the loss."""
    region, rows = programs.region, np.array([row])
    x = region.project(region.start)
    jet = programs.jet(x[None], rows)
    width = float(np.linalg.norm(region.upper - region.lower)) or 1.0
    sizes = np.linalg.norm(jet.jacobian[0], axis=1) * width
    weight = 1.0 / np.where(sizes > 0, sizes, np.maximum(np.abs(jet.g[0]), 1.0))
    own = len(region.right)
    matrix, right = (part[0, own:] for part in programs.equalities(rows))
    norms = np.linalg.norm(matrix, axis=1) * width
    scale = np.where(norms > 0, norms, 1.0)
    slope = float(np.linalg.norm(jet.df[0])) * width or 1.0
    zero = np.zeros(len(weight)), np.zeros(len(scale))
    return _Lagrangian(programs, rows, weight, matrix / scale[:, None], right / scale, *zero, rho=10.0 * slope), slope


def _minimize(
    problem: _Lagrangian, region: Any, x: Array, step: float, until: float, tolerance: float
) -> tuple[Array, float]:
    """Accelerated projected gradients until a linear minimisation shows that little is left to gain."""
    y, momentum = x, 1.0
    value, gradient, *_ = problem.at(y)
    for iteration in range(INNER):
        step *= 1.2
        while True:
            new = region.project(y - step * gradient)
            move = new - y
            reached, new_gradient, *_ = problem.at(new)
            if reached <= value + float(gradient @ move) + float(move @ move) / (2 * step) + 1e-12 * abs(value):
                break
            step *= 0.5
        if float((y - new) @ (new - x)) > 0:
            momentum = 1.0
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / later * (new - x)
        x, momentum = new, later
        if iteration % 10 == 0:
            left = float(new_gradient @ new) - float(region.least(new_gradient[None])[0])
            if left <= tolerance or perf_counter() > until:
                break
        y = ahead
        value, gradient, *_ = problem.at(y)
    return x, step
