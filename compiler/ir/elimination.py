"""Gaussian elimination with partial pivoting, written out entry by entry for systems of a few unknowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

LARGEST = 3
"""Unknowns of the systems that are written out."""
Rows = list[list["Value"]]


def eliminate(t: Tracer, a: Rows, b: Rows) -> Rows:
    """x with a x = b; a has n rows of n entries, b and x have n rows."""
    n, a, b = len(a), [list(row) for row in a], [list(row) for row in b]
    for j in range(n):
        for i in range(j + 1, n):
            swap = abs(a[i][j]) > abs(a[j][j])
            for rows in (a, b):
                upper, lower = rows[j], rows[i]
                rows[j] = [t.where(swap, q, p) for p, q in zip(upper, lower)]
                rows[i] = [t.where(swap, p, q) for p, q in zip(upper, lower)]
        for i in range(j + 1, n):
            factor = a[i][j] / a[j][j]
            a[i] = [*a[i][: j + 1], *(p - factor * q for p, q in zip(a[i][j + 1 :], a[j][j + 1 :]))]
            b[i] = [p - factor * q for p, q in zip(b[i], b[j])]
    x: Rows = [[] for _ in range(n)]
    for i in reversed(range(n)):
        for c in range(len(b[0])):
            total = b[i][c]
            for j in range(i + 1, n):
                total = total - a[i][j] * x[j][c]
            x[i].append(total / a[i][i])
    return x
