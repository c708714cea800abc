"""Linear programs over a polyhedron, counted: past what they may take together there is no further one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.dsl.records import dataclass

MOST_STEPS = 60_000_000
"""Limit on the steps of the linear programs of one model: some four nanoseconds each."""

SET_UP = 500_000
"""Steps that a program takes beside its pivots and its entries."""

SPARSE = 0.2
"""The share of entries that are not zero up to which rows are kept as a sparse matrix."""


LARGEST = 400_000_000
"""Limit on the expected steps of a program: what is done before the first pivot has no limit of its own."""

INDEPENDENT = 1e-7
"""Least distance of a row of norm one from the span of the others."""

TIGHT = 1e-6
"""The slack of a row that counts as tight."""


@dataclass(frozen=True, eq=False)
class LinearPrograms:
    """Linear programs over { x : A x <= b, E x = f }."""

    A: Floats
    b: Floats
    E: Floats
    f: Floats
    bounds: tuple[tuple[float | None, float | None], ...] = ((None, None),)
    """Bounds of each variable, or one pair for all."""

    @cached_property
    def _given(self) -> dict[str, Any]:
        """Arguments in the form of SciPy."""
        equalities = {"A_eq": _kept(self.E), "b_eq": self.f} if len(self.E) else {}
        return equalities | ({"A_ub": _kept(self.A), "b_ub": self.b} if len(self.A) else {})

    @cached_property
    def _entries(self) -> int:
        """Number of entries that are not zero."""
        return int(np.count_nonzero(self.A) + np.count_nonzero(self.E))

    @property
    def _lines(self) -> int:
        return len(self.A) + len(self.E) + int(self.A.shape[1])

    @cached_property
    def set_up(self) -> int:
        """Steps that a program takes beside its pivots."""
        return SET_UP + 5 * sum(int(given.size) for name, given in self._given.items() if name.startswith("A"))

    @property
    def pivot(self) -> int:
        """Steps that a pivot takes: some for each row and column, one for each entry that is not zero."""
        return 10 * self._lines + self._entries

    @property
    def expected(self) -> int:
        """Steps that a program takes, or less: a pivot for each row and each column."""
        return self.set_up + self._lines * self.pivot

    def solve(self, cost: Floats, steps: Steps | None = None) -> Any:
        """min cost x over the set, as SciPy says it; None where the steps are over before. Without steps there is no limit."""
        from scipy.optimize import linprog

        if steps is None:
            return linprog(cost, **self._given, bounds=self.bounds, method="highs")
        most = (steps.left - self.set_up) // self.pivot
        if most < 1 or self.expected > LARGEST:
            return None
        result = linprog(cost, **self._given, bounds=self.bounds, method="highs", options={"maxiter": int(most)})
        steps.left -= self.set_up + self.pivot * int(result.nit or 0)
        return None if result.status == 1 else result


@dataclass
class Steps:
    """Remaining steps that programs may take."""

    left: int = MOST_STEPS


def cheapest_rows(c: Floats, G: Floats, h: Floats) -> Floats | None:
    """d independent rows that are tight where <c, w> is least over { w : G w <= h }, those with multipliers first.

    None where they are not found.
    """
    d, largest = G.shape[1], float(np.max(np.abs(c)))
    result = LinearPrograms(G, h, np.zeros((0, d)), np.zeros(0)).solve(c / (largest or 1.0), Steps())
    if result is None or result.status != 0:
        return None
    slack, multipliers = h - G @ result.x, -result.ineqlin.marginals
    order = np.lexsort((slack, -multipliers))[: 3 * d]
    chosen: list[int] = []
    free = np.eye(d)
    for row in order:
        along = free.T @ G[row]
        length = float(np.linalg.norm(along))
        if length > INDEPENDENT and len(chosen) < d:
            chosen.append(int(row))
            free = orthogonal(free, along)
    rows = np.array(chosen)
    near = len(rows) == d and float(np.max(slack[rows])) <= TIGHT
    return rows if near else None


def orthogonal(free: Floats, along: Floats) -> Floats:
    """An orthonormal basis (columns) of the combinations of the columns `free` that are orthogonal to `free @ along`, by a reflection."""
    normal = along.copy()
    normal[0] += np.copysign(np.linalg.norm(normal), normal[0])
    return np.asarray(free - np.outer(free @ normal, normal * (2 / (normal @ normal))))[:, 1:]


def _kept(rows: Floats) -> Any:
    if rows.size < 10_000 or np.count_nonzero(rows) > SPARSE * rows.size:
        return rows
    from scipy.sparse import csr_array

    return csr_array(rows)
