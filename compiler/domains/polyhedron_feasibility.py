"""Feasibility of a polyhedron: a point that satisfies its rows as far as rounding lets it, or a proof that there is none."""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.base import Halfspaces
from oco.compiler.domains.exact import EPS, contradicts
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import LinearPrograms, Steps
from oco.compiler.domains.rows import KEPT, UnitRows, both_ways

ZOOMS = 8
"""Linear programs, each in units of what the last one left."""

RADIUS = 1e6
"""Bound on the variables of such a program, in these units."""


def nearest(rows: UnitRows, steps: Steps) -> UnitRows:
    """The rows anchored at a point x that breaks them no more than rounding of the data does, or by `KEPT`.

    An error where the set is proved to be empty, or where no such point is found. Linear programs leave what their tolerances allow, so
    they are solved again in units of what was left (iterative refinement: Gleixner, Steffy & Wolter, INFORMS J. Comput. 28, 2016).
    """
    box = rows.known.copy()
    if np.any(box[0] - box[1] > 4 * EPS * np.abs(box).max(axis=0)):
        raise rows.empty()
    box[1] = np.maximum(box[0], box[1])
    x, best, unit = rows.centre, math.inf, 1.0
    multipliers = np.zeros(len(rows.given.b) + 2 * len(rows.given.f))
    for k in range(ZOOMS):
        near = rows.about(x, rows.scale * unit)
        program, cost = _least_violation(near, RADIUS if k else None), np.append(np.zeros(rows.size), 1.0)
        result = program.solve(cost, steps)
        if result is None:
            result = program.solve(cost)
        if result.status != 0:
            break
        multipliers = -result.ineqlin.marginals / np.concatenate([near.lengths[0], near.lengths[1], near.lengths[1]])
        if refuted(rows, multipliers, box):
            raise rows.empty()
        moved = np.clip(near.up(result.x[:-1]), *box)
        left, rounding = rows.broken(moved)
        gained = left <= best / 2
        if left < best:
            x, best = moved, left
        if rounding or not gained:
            break
        unit = best
    if best > KEPT and not rows.broken(x)[1]:
        raise rows.too_thin()
    return rows.anchored(x, multipliers)


def refuted(rows: UnitRows, multipliers: Floats, box: Floats) -> bool:
    """True if multipliers prove that no point of the box (2, n) satisfies the rows; those of rows of one entry are left to the box."""
    A, b = both_ways(rows.given)
    used = np.flatnonzero((multipliers > 0) & (np.count_nonzero(A, axis=1) > 1))
    return contradicts(A[used], b[used], multipliers[used], box[0], box[1])


def _least_violation(rows: UnitRows, radius: float | None) -> LinearPrograms:
    """min v over A y <= b + v, |E y - f| <= v, v >= 0, and |y_i| <= radius; slacks that are larger than such y can use are cut."""
    A, b = both_ways(Halfspaces(rows.A, rows.b, rows.E, rows.f))
    if radius is not None:
        b = np.minimum(b, 2 * radius * math.sqrt(rows.size))
    M, n = np.column_stack([A, -np.ones(len(A))]), rows.size
    ends = (None if radius is None else -radius, radius)
    return LinearPrograms(M, b, np.zeros((0, n + 1)), np.zeros(0), (*((ends,) * n), (0.0, None)))
