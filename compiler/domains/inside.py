"""A point within a polyhedron, and the directions in which the set goes on from there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.compiler.domains.analytic import cheap_to_solve, interior_point, largest_ball
from oco.compiler.domains.norms import Floats, unit_rows
from oco.compiler.domains.polyhedron_feasibility import nearest
from oco.compiler.domains.polyhedron_vertices import THIN
from oco.compiler.domains.programs import LinearPrograms, Steps
from oco.compiler.domains.rows import UnitRows
from oco.dsl.records import dataclass

LARGE = 256
"""Entries from which null spaces are found by a QR decomposition."""

BALL = 200_000_000
"""Steps that the search for a largest ball within may take."""

FIRM = 1e-6
"""A set that holds a ball of this part of its size is not empty, whatever tolerances linear programs have."""

LEVEL = 1e-11
"""A row of norm one whose part along the set is shorter does not change in it."""

OPEN = 1e-12
"""Room on all sides of a point that is no work of rounding, in units of the right sides."""


@dataclass(frozen=True, eq=False)
class Inside:
    """{ origin + Z w : G w <= h } with unit rows G, Z' Z = I, in the coordinates of some rows; `w` is a point with G w < h.

    `normal` are orthonormal rows that complete Z, `dependent` says that some equality follows from others or contradicts them.
    """

    origin: Floats
    Z: Floats
    normal: Floats
    G: Floats
    h: Floats
    w: Floats
    dependent: bool

    @property
    def point(self) -> Floats:
        """Point with G w < h, in the coordinates of the rows."""
        return np.asarray(self.origin + self.Z @ self.w)


@dataclass(frozen=True, eq=False)
class _Ball:
    """A largest ball about `centre`, of a radius that may be negative, and the multipliers of the inequalities `kept`.

    `level` is the least slack of the inequalities that do not change along the set.
    """

    centre: Floats
    radius: float
    kept: Floats
    multipliers: Floats
    level: float


def inside(rows: UnitRows, fixed: Floats) -> tuple[UnitRows, Inside]:
    """The centre of a largest ball within, and the rows, moved by rounding where the set is thin. An error where it is empty.

    Inequalities that hold with equality everywhere (those with a multiplier when no ball fits) become equalities through a point of the
    set; the entries that are `fixed` (n,) keep their values.
    """
    given, start = rows, np.zeros(rows.size) if rows.anchor is None else rows.down(rows.anchor)
    while True:
        result = solutions(rows, fixed, start)
        result, ball = _largest(rows, result) if result.Z.shape[1] else (result, None)
        if given.anchor is None and not _firm(given, result, ball):
            return inside(nearest(given, Steps(BALL)), fixed)
        if ball is None or ball.radius > THIN:
            if not given.keeps(result.point):
                raise given.too_thin()
            return given, result
        held = rows.A[ball.kept[ball.multipliers > THIN]]
        if not len(held):
            raise given.too_thin()
        centre = ball.centre if np.max(rows.A @ ball.centre - rows.b, initial=0.0) <= LEVEL else start
        E = np.concatenate([rows.E, held])
        rows = replace(rows, E=E, f=E @ centre)


def _firm(rows: UnitRows, result: Inside, ball: _Ball | None) -> bool:
    """True if the ball alone proves that the set is not empty."""
    if ball is None or ball.radius <= FIRM:
        return False
    return (not result.dependent and ball.level >= 0) or rows.broken(rows.up(ball.centre))[1]


def _largest(rows: UnitRows, result: Inside) -> tuple[Inside, _Ball]:
    """The inequalities along Z, and a largest ball, or one about a point within where that is all that can be afforded."""
    result, kept, length, level = moving(rows, result)
    G, h = result.G, result.h
    sparse = len(rows.E) > 0 and rows.size > LARGE
    program = _ball_in_entries(rows, kept, length) if sparse else _ball(G, h)
    cost = np.append(np.zeros(program.A.shape[1] - 1), -1.0)
    solved = program.solve(cost, Steps(BALL))
    inner = interior_point(G, h) if solved is None and cheap_to_solve(*G.shape) else None
    if solved is None and (inner is None or np.min(h - G @ inner) <= OPEN):
        inner, solved = None, program.solve(cost)
    if inner is not None:
        w = largest_ball(G, h, inner)
        radius, multipliers = float(np.min(h - G @ w)), np.zeros(len(kept))
    elif solved.status != 0:
        w, radius, multipliers = result.w, -np.inf, np.zeros(len(kept))
    else:
        w = result.Z.T @ (solved.x[:-1] - result.origin) if sparse else solved.x[:-1]
        radius, multipliers = -solved.fun, -solved.ineqlin.marginals
    return replace(result, w=w), _Ball(result.origin + result.Z @ w, radius, kept, multipliers, level)


def moving(rows: UnitRows, result: Inside) -> tuple[Inside, Floats, Floats, float]:
    """The inequalities that change along Z, in the coordinates of Z: which, and their lengths there; and the least slack of the others."""
    whole = result.Z.shape[0] == result.Z.shape[1]
    G, h = (rows.A, rows.b) if whole else (rows.A @ result.Z, rows.b - rows.A @ result.origin)
    length = np.linalg.norm(G, axis=1)
    kept = np.flatnonzero(length > LEVEL)
    level = float(np.min(np.delete(h, kept), initial=np.inf))
    length = length[kept]
    return replace(result, G=G[kept] / length[:, None], h=h[kept] / length), kept, length, level


def _ball(G: Floats, h: Floats) -> LinearPrograms:
    """max r for a ball of radius r, last, in { w : G w <= h }, for rows of norm one."""
    return LinearPrograms(np.column_stack([G, np.ones(len(G))]), h, np.zeros((0, G.shape[1] + 1)), np.zeros(0))


def _ball_in_entries(rows: UnitRows, kept: Floats, length: Floats) -> LinearPrograms:
    """Program of `_ball` in the entries, whose rows may have few numbers;
    `length` are those of the rows along the solutions of the equalities."""
    A = np.column_stack([rows.A[kept] / length[:, None], np.ones(len(kept))])
    return LinearPrograms(A, rows.b[kept] / length, np.column_stack([rows.E, np.zeros(len(rows.E))]), rows.f)


def solutions(rows: UnitRows, fixed: Floats, start: Floats) -> Inside:
    """The least solution of E y = f with the fixed entries as in `start`, and an orthonormal basis of the directions that keep both."""
    n, free = rows.size, np.flatnonzero(~fixed)
    E, f = rows.E, rows.f
    if len(free) < n:
        E, f = E[:, free], f - E[:, fixed] @ start[fixed]
    origin, Z, normal = _least_solution(E, f)
    dependent = len(normal) < len(E)
    if len(free) < n:
        origin, Z, normal = (
            _among(n, free, start, origin),
            _among(n, free, 0.0 * start, Z.T).T,
            _among(n, free, 0.0 * start, normal),
        )
        normal = np.concatenate([unit_rows(np.flatnonzero(fixed), n), normal])
    none = np.zeros(0)
    return Inside(origin, Z, normal, none.reshape(0, Z.shape[1]), none, np.zeros(Z.shape[1]), dependent)


def _among(n: int, free: Floats, others: Floats, values: Floats) -> Floats:
    """Vectors of n entries with these values in the free ones, and those of `others` elsewhere."""
    whole = np.array(np.broadcast_to(others, (*values.shape[:-1], n)))
    whole[..., free] = values
    return whole


def _least_solution(E: Floats, f: Floats) -> tuple[Floats, Floats, Floats]:
    """The least solution of E y = f, an orthonormal basis of the null space of E, and orthonormal rows that complete it."""
    n = E.shape[1]
    if not len(E):
        return np.zeros(n), np.eye(n), np.zeros((0, n))
    if n <= LARGE:
        u, s, vt = np.linalg.svd(E, full_matrices=len(E) < n)
        rank = int(np.sum(s > LEVEL))
        return vt[:rank].T @ ((u[:, :rank].T @ f) / s[:rank]), vt[rank:].T, vt[:rank]
    from scipy.linalg import qr, solve_triangular

    q, r, order = qr(E.T, pivoting=True)
    rank = int(np.sum(np.abs(np.diag(r)) > LEVEL))
    along = solve_triangular(r[:rank, :rank], f[order[:rank]], trans="T")
    return q[:, :rank] @ along, np.ascontiguousarray(q[:, rank:]), q[:, :rank].T
