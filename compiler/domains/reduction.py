"""From inequalities and equalities as given to a full-dimensional polyhedron of size about one that holds 0, by linear programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.dsl.diagnostics import InternalError, fail

THIN = 1e-9
"""A polyhedron thinner than this, relative to its size, is taken to be flat."""

MAX_CORNERS = 20_000

EXACT = 1e-12
"""By how much a vertex of a table may break a row."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """{ x = origin + size Z w : G w <= h } with Z' Z = I, unit rows G, h > 0: the set of the w is full-dimensional around 0.

    `vertices` are those of the w, or None where they are many. `hull` are the least and the greatest values of the entries of x (2, n),
    outwards where they are rounded.
    """

    origin: Floats
    size: float
    Z: Floats
    G: Floats
    h: Floats
    vertices: Floats | None
    hull: Floats

    @property
    def dimension(self) -> int:
        return int(self.Z.shape[1])

    @cached_property
    def basis(self) -> Floats:
        """d rows that are tight at one vertex."""
        return _first_basis(self.G, self.h)


def reduce_polyhedron(
    A: Floats, b: Floats, E: Floats, f: Floats, name: str, hull: tuple[Floats, Floats] | None = None
) -> Reduced:
    """The reduction of { x : A x <= b, E x = f }; an error where the set is empty or unbounded.

    hull  the least and the greatest value of each entry, where they are known: else each takes a linear program
    """
    stated = _stated(A, b)
    A, b = _unit_rows(A, b, name)
    E, f = _unit_rows(E, f, name)
    # Units in which the right sides are about one, so that the tolerances of the linear programs mean something.
    unit = float(max(np.max(np.abs(b), initial=0.0), np.max(np.abs(f), initial=0.0))) or 1.0
    b, f = b / unit, f / unit
    if hull is None:
        (lower, upper), met = _hull(A, b, E, f, name)
        known = np.where(met, stated, [lower * unit, upper * unit])
    else:
        lower, upper, known = hull[0] / unit, hull[1] / unit, np.stack(hull)
    if np.array_equal(lower, upper):
        return _point(lower * unit)
    size = max(float(np.max(upper - lower)) / 2, 1e-12 * float(np.max(np.abs([lower, upper]))))
    centre = (lower + upper) / 2
    if size == 0:
        return _point(centre * unit)
    b, f = (b - A @ centre) / size, (f - E @ centre) / size
    origin, Z, G, h = _full_dimensional(A, b, E, f, name)
    where = (centre + size * origin) * unit
    if Z.shape[1] == 0:
        return _point(where)
    return Reduced(where, size * unit, Z, G, h, _corners(G, h), known)


def _point(x: Floats) -> Reduced:
    n = len(x)
    return Reduced(x, 1.0, np.zeros((n, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros((1, 0)), np.stack([x, x]))


def _unit_rows(A: Floats, b: Floats, name: str) -> tuple[Floats, Floats]:
    """Rows of norm one, without those that say nothing."""
    largest = np.max(np.abs(A), axis=1, initial=0.0)
    kept = largest > 0
    A, b = A[kept] / largest[kept, None], b[kept] / largest[kept]
    length = np.linalg.norm(A, axis=1)
    return A / length[:, None], b / length


def _program(cost: Floats, A: Floats, b: Floats, E: Floats, f: Floats, bounds: Any = (None, None)) -> Any:
    from scipy.optimize import linprog

    equalities = {"A_eq": E, "b_eq": f} if len(E) else {}
    inequalities = {"A_ub": A, "b_ub": b} if len(A) else {}
    return linprog(cost, **inequalities, **equalities, bounds=bounds, method="highs")


def _hull(A: Floats, b: Floats, E: Floats, f: Floats, name: str) -> tuple[Floats, Floats]:
    """Least and greatest value of each entry (2, n), and which of them a row states."""
    n = A.shape[1]
    if _program(np.zeros(n), A, b, E, f).status == 2:
        raise fail("OCO410", f"{name} is empty: its inequalities contradict each other")
    bounds = _stated(A, b)
    met = _met(bounds, A, b, E, f)
    slopes, multipliers = [], []
    for row, sign in enumerate((1.0, -1.0)):
        for i in np.flatnonzero(~met[row]):
            slope = sign * np.eye(n)[i]
            found = _program(slope, A, b, E, f)
            if found.status != 0:
                side = "small" if row == 0 else "large"
                said = f"{name} is unbounded: entry {i} can be arbitrarily {side}"
                raise fail("OCO418", said, hint="add bounds on every entry")
            bounds[row, i] = sign * found.fun
            slopes.append(slope)
            multipliers.append(np.append(np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals))
    if slopes:
        # By duality, c x >= lam b + nu f + (c - lam A - nu E) x for lam <= 0: below the least value whatever the solver rounds.
        duals, rest = np.array(multipliers), 2 * np.abs(bounds).max(axis=0)
        least = duals @ np.append(b, f) - np.abs(np.array(slopes) - duals @ np.concatenate([A, E])) @ rest
        below, above = (~met[0]).sum(), met[1]
        bounds[0, ~met[0]], bounds[1, ~above] = least[:below], -least[below:]
    return bounds, met


def _met(stated: Floats, A: Floats, b: Floats, E: Floats, f: Floats) -> Floats:
    """For which stated bounds there is a vertex. Programs for all that are left find some at once, as long as one finds any."""
    met = np.zeros(stated.shape, dtype=bool)
    for row, sign in enumerate((1.0, -1.0)):
        while np.any(left := np.isfinite(stated[row]) & ~met[row]):
            found = _program(sign * left, A, b, E, f)
            if found.status != 0:
                break
            met |= found.x == stated
            if not np.any(left & met[row]):
                break
    return met


def _stated(A: Floats, b: Floats) -> Floats:
    """Lower and upper bounds of single entries among the rows, infinite where none is stated."""
    stated = np.stack([np.full(A.shape[1], -np.inf), np.full(A.shape[1], np.inf)])
    for k in np.flatnonzero(np.count_nonzero(A, axis=1) == 1):
        i = int(np.flatnonzero(A[k])[0])
        row, pick = (1, min) if A[k, i] > 0 else (0, max)
        stated[row, i] = pick(stated[row, i], b[k] / A[k, i])
    return stated


def _full_dimensional(A: Floats, b: Floats, E: Floats, f: Floats, name: str) -> tuple[Floats, Floats, Floats, Floats]:
    """(origin, Z, G, h): {A x <= b, E x = f} = {origin + Z w : G w <= h}, the origin at the centre of a largest ball within.

    Inequalities that hold with equality everywhere (those with a multiplier when no ball fits) become equalities.
    """
    n = A.shape[1]
    while True:
        origin, Z = _solutions(E, f)
        if Z.shape[1] == 0:
            return origin, Z, np.zeros((0, 0)), np.zeros(0)
        G, h = A @ Z, b - A @ origin
        length = np.linalg.norm(G, axis=1)
        if np.any(h[length <= THIN] < -1e-7):
            raise fail("OCO410", f"{name} is empty: its equalities and inequalities contradict each other")
        rows = np.flatnonzero(length > THIN)
        G, h = G[rows] / length[rows, None], h[rows] / length[rows]
        ball = _program(
            np.append(np.zeros(G.shape[1]), -1.0),
            np.column_stack([G, np.ones(len(G))]),
            h,
            np.zeros((0, n)),
            np.zeros(0),
        )
        if ball.status != 0:
            raise fail("OCO410", f"{name} is empty: its equalities and inequalities contradict each other")
        if -ball.fun > THIN:
            w = ball.x[:-1]
            h = h - G @ w
            near = h <= 2 * math.sqrt(n) + 1
            return origin + Z @ w, Z, *_distinct(G[near], h[near])
        flat = rows[ball.ineqlin.marginals < -THIN]
        E, f = np.concatenate([E, A[flat]]), np.concatenate([f, b[flat]])


def _solutions(E: Floats, f: Floats) -> tuple[Floats, Floats]:
    """The least solution of E x = f and an orthonormal basis of the null space of E."""
    n = E.shape[1]
    if not len(E):
        return np.zeros(n), np.eye(n)
    u, s, vt = np.linalg.svd(E)
    rank = int(np.sum(s > THIN))
    return vt[:rank].T @ ((u[:, :rank].T @ f) / s[:rank]), vt[rank:].T


def _distinct(G: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Without repeated rows; of parallel ones the tightest stays."""
    order = np.argsort(h, kind="stable")
    _, first = np.unique(np.round(G[order], 12), axis=0, return_index=True)
    kept = np.sort(order[first])
    return G[kept], h[kept]


def _first_basis(G: Floats, h: Floats) -> Floats:
    """d independent rows that are tight at one vertex, found by walking from 0 until row after row becomes tight."""
    d = G.shape[1]
    w = np.zeros(d)
    basis: list[int] = []
    free = np.eye(d)
    while len(basis) < d:
        rates = G @ free[:, 0]
        rates[basis] = 0.0
        slack = np.maximum(h - G @ w, 0.0)
        ratio = np.where(rates > THIN, slack / np.where(rates > THIN, rates, 1.0), np.inf)
        row = int(np.argmin(ratio))
        if not math.isfinite(ratio[row]):
            raise InternalError("a bounded polyhedron in which a line goes on for ever")
        w = w + ratio[row] * free[:, 0]
        basis.append(row)
        free = _without(free, G[row])
    return np.array(basis, dtype=np.int64)


def _without(free: Floats, row: Floats) -> Floats:
    """An orthonormal basis (columns) of the directions of `free` that are orthogonal to `row`, by a reflection."""
    normal = row @ free
    normal[0] += math.copysign(float(np.linalg.norm(normal)), normal[0])
    return np.asarray(free - np.outer(free @ normal, normal * (2 / (normal @ normal))))[:, 1:]


def _corners(G: Floats, h: Floats) -> Floats | None:
    """All vertices where they can be few, in lexicographic order; None too where rows are so nearly parallel that they are not exact."""
    m, d = G.shape
    if d == 1:
        ends = h / G[:, 0]
        return np.array([[np.max(ends[G[:, 0] < 0])], [np.min(ends[G[:, 0] > 0])]])
    if m ** (d // 2) > MAX_CORNERS:
        return None
    from scipy.spatial import HalfspaceIntersection

    rough = HalfspaceIntersection(np.column_stack([G, -h]), np.zeros(d)).intersections
    found: dict[tuple[float, ...], Floats] = {}
    for w in rough[np.all(np.isfinite(rough), axis=1)]:
        tight = h - G @ w < 1e-8
        exact = w + np.linalg.lstsq(G[tight], h[tight] - G[tight] @ w, rcond=None)[0]
        found.setdefault(tuple(np.round(exact, 8) + 0.0), exact)
    corners = np.array([found[key] for key in sorted(found)])
    return corners if np.max(corners @ G.T - h) <= EXACT else None
