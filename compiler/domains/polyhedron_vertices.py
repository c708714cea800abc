"""Vertices of a full-dimensional polyhedron { w : G w <= h } around 0."""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.base import MAX_VERTICES
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import orthogonal
from oco.dsl.diagnostics import InternalError

THIN = 1e-9
"""A polyhedron thinner than this, relative to its size, is taken to be flat."""

MOST_FACES = 20_000
"""About how many vertices are enumerated to find those of which there are few."""

EXACT = 1e-12
"""By how much a vertex of a table may break a row."""


def corners(G: Floats, h: Floats) -> Floats | None:
    """All vertices where they are few, in lexicographic order; None too where rows are so nearly parallel that they are not exact."""
    m, d = G.shape
    if d == 1:
        ends = h / G[:, 0]
        return np.array([[np.max(ends[G[:, 0] < 0])], [np.min(ends[G[:, 0] > 0])]])
    if m ** (d // 2) > MOST_FACES:
        return None
    from scipy.spatial import HalfspaceIntersection

    rough = HalfspaceIntersection(np.column_stack([G, -h]), np.zeros(d)).intersections
    rough = rough[np.all(np.isfinite(rough), axis=1)]
    if len(np.unique(np.round(rough, 6), axis=0)) > MAX_VERTICES:
        return None
    results: dict[tuple[float, ...], Floats] = {}
    for w in rough[np.unique(np.round(rough, 9), axis=0, return_index=True)[1]]:
        tight = h - G @ w < 1e-8
        exact = w + np.linalg.lstsq(G[tight], h[tight] - G[tight] @ w, rcond=None)[0]
        results.setdefault(tuple(np.round(exact, 8) + 0.0), exact)
    table = np.array([results[key] for key in sorted(results)])
    return table if np.max(table @ G.T - h) <= EXACT else None


def first_basis(G: Floats, h: Floats) -> Floats:
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
        free = orthogonal(free, free.T @ G[row])
    return np.array(basis, dtype=np.int64)
