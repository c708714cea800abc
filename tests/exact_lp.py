"""Linear programs in rational arithmetic: by how much the rows of a cut have to give way for a point of the base, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from oco.compiler.domains.base import Halfspaces

Row = list[Fraction]


def least_violation(base: Halfspaces, A: np.ndarray, b: np.ndarray, E: np.ndarray, f: np.ndarray) -> Fraction:
    """min v over x in the base with A x <= b + v |A|_1 and |E x - f| <= v |E|_1, row by row; at least -1.

    By its dual, min <right, y> over y >= 0 with <columns, y> = 0 and <gives, y> = 1: the base is bounded and not empty.
    """
    rows = [*base.A, *base.E, *-base.E, *A, *E, *-E, np.zeros(base.A.shape[1])]
    right = [*base.b, *base.f, *-base.f, *b, *f, *-f, 1.0]
    hard = len(base.b) + 2 * len(base.f)
    gives = [Fraction(0)] * hard + [sum(map(abs, exact(row)), Fraction(0)) for row in rows[hard:-1]] + [Fraction(1)]
    columns = [[*exact(row), give] for row, give in zip(rows, gives)]
    wanted = [Fraction(0)] * base.A.shape[1] + [Fraction(1)]
    return -_least([list(row) for row in zip(*columns)], wanted, exact(np.array(right)))


def exact(x: np.ndarray) -> Row:
    """The entries as fractions."""
    return [Fraction(float(v)) for v in x]


def violation(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> Row:
    """A x - b, row by row."""
    point = exact(x.ravel())
    return [sum((c * v for c, v in zip(exact(row), point)), -Fraction(float(r))) for row, r in zip(A, b)]


def _least(B: list[Row], d: Row, cost: Row) -> Fraction:
    """min <cost, y> over y >= 0 with B y = d >= 0, by the simplex method in two phases with Bland's rule."""
    m, n = len(B), len(cost)
    table = [row + [Fraction(int(i == k)) for i in range(m)] + [right] for k, (row, right) in enumerate(zip(B, d))]
    basis = list(range(n, n + m))
    _descend(table, basis, [Fraction(0)] * n + [Fraction(1)] * m, n + m)
    assert all(table[k][-1] == 0 for k in range(m) if basis[k] >= n), "the dual program has no solution"
    for k in range(m):
        column = next((j for j in range(n) if basis[k] >= n and table[k][j] != 0), None)
        if column is not None:
            _pivot(table, basis, k, column)
    _descend(table, basis, cost + [Fraction(0)] * m, n)
    return sum((table[k][-1] * cost[basis[k]] for k in range(m) if basis[k] < n), Fraction(0))


def _descend(table: list[Row], basis: list[int], cost: Row, columns: int) -> None:
    while True:
        prices = [cost[j] for j in basis]
        entering = next(
            (
                j
                for j in range(columns)
                if j not in basis and cost[j] < sum((p * row[j] for p, row in zip(prices, table) if p), Fraction(0))
            ),
            None,
        )
        if entering is None:
            return
        ratios = [(row[-1] / row[entering], basis[k], k) for k, row in enumerate(table) if row[entering] > 0]
        assert ratios, "the dual program is unbounded: the base is empty"
        _pivot(table, basis, min(ratios)[2], entering)


def _pivot(table: list[Row], basis: list[int], row: int, column: int) -> None:
    scale = table[row][column]
    table[row] = [v / scale for v in table[row]]
    for k, other in enumerate(table):
        if k != row and other[column]:
            factor = other[column]
            table[k] = [v - factor * w for v, w in zip(other, table[row])]
    basis[row] = column
