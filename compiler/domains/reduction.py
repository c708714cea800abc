"""From inequalities and equalities as given to a full-dimensional polyhedron of size about one that holds 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.domains.analytic import Centre, interior_point, largest_ball, within_reach
from oco.compiler.domains.corners import THIN, corners, first_basis
from oco.compiler.domains.hull import hull, stated_bounds, stated_ends
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import MOST_STEPS, Program, Steps
from oco.compiler.domains.rows import Rows
from oco.dsl.diagnostics import fail

LARGE = 256
"""Entries from which null spaces are found by a QR decomposition."""

BALL = 200_000_000
"""Steps that the search for a largest ball within may take."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """{ x = origin + size Z w : G w <= h } with Z' Z = I, unit rows G, h > 0: the set of the w is full-dimensional around 0.

    `vertices` are those of the w, or None where they are many. `hull` are the least and the greatest values of the entries of x (2, n),
    outwards where they are rounded. `normal` are orthonormal rows that complete Z. `loose` says that `hull` are bounds which need not be
    attained, and that a larger ball than that about 0 may lie within.
    """

    origin: Floats
    size: float
    Z: Floats
    G: Floats
    h: Floats
    vertices: Floats | None
    hull: Floats
    normal: Floats
    loose: bool = False

    @property
    def dimension(self) -> int:
        return int(self.Z.shape[1])

    @cached_property
    def basis(self) -> Floats:
        """d rows that are tight at one vertex."""
        return first_basis(self.G, self.h)

    def divided(self, unit: float) -> Reduced:
        """That of the set divided by a number."""
        return replace(self, origin=self.origin / unit, size=self.size / unit, hull=self.hull / unit)


@dataclass(frozen=True, eq=False)
class _Inside:
    """{ origin + Z w : G w <= h } with unit rows G, Z' Z = I; `w` is a point with G w < h."""

    origin: Floats
    Z: Floats
    normal: Floats
    G: Floats
    h: Floats
    w: Floats

    @property
    def point(self) -> Floats:
        return np.asarray(self.origin + self.Z @ self.w)


def reduce_polyhedron(
    A: Floats,
    b: Floats,
    E: Floats,
    f: Floats,
    name: str,
    ends: tuple[Floats, Floats] | None = None,
    within: tuple[Floats, Floats] | None = None,
    steps: int = MOST_STEPS,
) -> Reduced:
    """The reduction of { x : A x <= b, E x = f }; an error where the set is empty or unbounded, or too large to tell.

    ends    the least and the greatest value of each entry, where they are known: else each takes a linear program
    within  bounds of each entry that are known besides
    steps   what linear programs may take; sets that take more get bounds instead of ends, by the analytic centre
    """
    stated = stated_bounds(A, b)
    rows = Rows.of(A, b, E, f, name)
    # Units in which the right sides are about one, so that the tolerances of the linear programs mean something.
    unit = rows.unit
    rows, purse = rows.about(0.0, unit), Steps(steps)
    if ends is not None:
        return _scaled(rows, np.stack(ends) / unit, np.stack(ends), unit, False)
    share = steps / MOST_STEPS
    around = np.array([[-np.inf], [np.inf]]) + np.zeros(rows.size) if within is None else np.stack(within) / unit
    feasible, unknown = within_reach(len(rows.A), rows.size, share), int(np.count_nonzero(~np.isfinite(stated)))
    if (
        feasible
        and (unknown + 4) * rows.program.expected > steps
        and (found := _outlined(rows, _both(stated / unit, around), share))
    ):
        return found.divided(1 / unit)
    begun, met = stated_ends(rows, purse)
    left = int(np.count_nonzero(~met)) + 1
    if (
        feasible
        and left * rows.program.expected > purse.left
        and (found := _outlined(rows, _both(begun, around), share))
    ):
        return found.divided(1 / unit)
    bounds, loose = hull(rows, begun, met, around, purse)
    return _scaled(rows, bounds, np.where(met, stated, bounds * unit), unit, loose)


def _both(a: Floats, b: Floats) -> Floats:
    """The narrower ones of two lists of bounds (2, n)."""
    return np.stack([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])


def _scaled(rows: Rows, bounds: Floats, known: Floats, unit: float, loose: bool) -> Reduced:
    """By the centre and the half width of the smallest box around the set."""
    lower, upper = bounds
    if np.array_equal(lower, upper):
        return _point(lower * unit)
    size = max(float(np.max(upper - lower)) / 2, 1e-12 * float(np.max(np.abs([lower, upper]))))
    centre = (lower + upper) / 2
    if size == 0:
        return _point(centre * unit)
    found = _full_dimensional(rows.about(centre, size))
    where = (centre + size * found.point) * unit
    if not found.Z.shape[1]:
        return _point(where)
    return Reduced(where, size * unit, found.Z, *_around(found, rows.size), known, found.normal, loose)


def _around(inside: _Inside, entries: int) -> tuple[Floats, Floats, Floats | None]:
    """Rows about the point within, without those that no point within a box of half width one around another one meets; and vertices."""
    h = inside.h - inside.G @ inside.w
    near = h <= 2 * math.sqrt(entries) + 1
    G, h = _distinct(inside.G[near], h[near])
    return G, h, corners(G, h)


def _point(x: Floats) -> Reduced:
    n = len(x)
    return Reduced(
        x, 1.0, np.zeros((n, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros((1, 0)), np.stack([x, x]), np.eye(n)
    )


def _outlined(rows: Rows, stated: Floats, share: float) -> Reduced | None:
    """With bounds instead of ends, and a ball within that is not a largest one; None where the set is flat or empty."""
    origin, Z, normal = _solutions(rows)
    _, G, h, _ = _moving(rows, origin, Z)
    inner = interior_point(G, h) if len(G) and Z.shape[1] else None
    if inner is None:
        return None
    centre = Centre.of(G, h, inner)
    if centre is None:
        said = f"no bounds were found for {rows.name} of {rows.count:,} rows over {rows.size:,} entries"
        raise fail("OCO418", said, hint="state bounds of the entries: `with x >= lo, x <= hi`")
    above, below = np.split(centre.greatest(np.concatenate([Z.T, -Z.T], axis=1), share), 2)
    bounds = np.stack([np.maximum(origin - below, stated[0]), np.minimum(origin + above, stated[1])])
    size = float(np.max(bounds[1] - bounds[0])) / 2
    inside = _Inside(origin, Z, normal, G, h, largest_ball(G, h, centre.w))
    scaled = replace(inside, origin=origin / size, h=h / size, w=inside.w / size)
    return Reduced(inside.point, size, Z, *_around(scaled, rows.size), bounds, normal, True)


def _full_dimensional(rows: Rows) -> _Inside:
    """The point within is the centre of a largest ball.

    Inequalities that hold with equality everywhere (those with a multiplier when no ball fits) become equalities.
    """
    while True:
        origin, Z, normal = _solutions(rows)
        if Z.shape[1] == 0:
            return _Inside(origin, Z, normal, np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        kept, G, h, length = _moving(rows, origin, Z)
        found = _Inside(origin, Z, normal, G, h, np.zeros(Z.shape[1]))
        sparse = len(rows.E) > 0 and rows.size > LARGE
        program = _ball_in_entries(rows, kept, length) if sparse else _ball(G, h)
        ball = program.solve(Steps(BALL))
        if ball is None:
            inner = interior_point(G, h) if within_reach(*G.shape) else None
            if inner is not None:
                return replace(found, w=largest_ball(G, h, inner))
            ball = program.solve()
        if ball.status != 0:
            raise rows.empty()
        if -ball.fun > THIN:
            w = Z.T @ (ball.x[:-1] - origin) if sparse else ball.x[:-1]
            return replace(found, w=w)
        flat = kept[ball.ineqlin.marginals < -THIN]
        rows = replace(rows, E=np.concatenate([rows.E, rows.A[flat]]), f=np.concatenate([rows.f, rows.b[flat]]))


@dataclass(frozen=True)
class _Ball:
    """max r subject to rows with one more column, which says how much of r a row takes."""

    program: Program

    def solve(self, steps: Steps | None = None) -> Any:
        """The point and r, last."""
        return self.program.solve(np.append(np.zeros(self.program.A.shape[1] - 1), -1.0), steps)


def _ball(G: Floats, h: Floats) -> _Ball:
    """Of a largest ball in { w : G w <= h }, for rows of norm one."""
    return _Ball(Program(np.column_stack([G, np.ones(len(G))]), h, np.zeros((0, G.shape[1] + 1)), np.zeros(0)))


def _ball_in_entries(rows: Rows, kept: Floats, length: Floats) -> _Ball:
    """The same in the entries of x, whose rows may have few numbers; `length` are those of the rows along the solutions of E x = f."""
    A = np.column_stack([rows.A[kept] / length[:, None], np.ones(len(kept))])
    return _Ball(Program(A, rows.b[kept] / length, np.column_stack([rows.E, np.zeros(len(rows.E))]), rows.f))


def _moving(rows: Rows, origin: Floats, Z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Which inequalities change along Z, these in the coordinates of Z with rows of norm one, and their lengths before."""
    G, h = (rows.A, rows.b) if Z.shape[0] == Z.shape[1] else (rows.A @ Z, rows.b - rows.A @ origin)
    length = np.linalg.norm(G, axis=1)
    if np.any(h[length <= THIN] < -1e-7):
        raise fail("OCO410", f"{rows.name} is empty: its equalities and inequalities contradict each other")
    kept = np.flatnonzero(length > THIN)
    length = length[kept]
    return kept, G[kept] / length[:, None], h[kept] / length, length


def _solutions(rows: Rows) -> tuple[Floats, Floats, Floats]:
    """The least solution of E x = f, an orthonormal basis of the null space of E, and orthonormal rows that complete it."""
    E, f, n = rows.E, rows.f, rows.size
    if not len(E):
        return np.zeros(n), np.eye(n), np.zeros((0, n))
    if n <= LARGE:
        u, s, vt = np.linalg.svd(E, full_matrices=len(E) < n)
        rank = int(np.sum(s > THIN))
        return vt[:rank].T @ ((u[:, :rank].T @ f) / s[:rank]), vt[rank:].T, vt[:rank]
    from scipy.linalg import qr, solve_triangular

    q, r, order = qr(E.T, pivoting=True)
    rank = int(np.sum(np.abs(np.diag(r)) > THIN))
    along = solve_triangular(r[:rank, :rank], f[order[:rank]], trans="T")
    return q[:, :rank] @ along, np.ascontiguousarray(q[:, rank:]), q[:, :rank].T


def _distinct(G: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Without repeated rows; of parallel ones the tightest stays."""
    rounded = np.round(G, 12)
    order = np.lexsort((h, *rounded.T))
    first = np.append(True, np.any(rounded[order[1:]] != rounded[order[:-1]], axis=1))
    kept = np.sort(order[first])
    return G[kept], h[kept]
