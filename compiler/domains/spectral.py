"""Tools for sets of matrices that are given by their singular values or eigenvalues."""

from __future__ import annotations

from collections.abc import Callable

from oco.compiler.domains.norms import scaled_norm
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

SMALL = 48
"""Up to this many rows or columns a full decomposition is used for one singular pair or eigenvector."""


def column(t: Tracer, v: Value) -> Value:
    """A vector as a matrix of one column."""
    return t.reshape(v, (v.size, 1))


def slopes(t: Tracer, s: Value, f: Value) -> tuple[Value, Value]:
    """(f_i - f_j) / (s_i - s_j) for f = max(s - theta, 0), with the derivative where s_i = s_j; and the indicator of f > 0."""
    active = t.to_float(f > 0.0)
    both = t.outer(active, active)
    gap = column(t, s) - s
    apart = t.and_(both == 0.0, t.not_(gap == 0.0))
    return t.where(apart, (column(t, f) - f) / t.where(apart, gap, 1.0), both), active


def each_row(t: Tracer, f: Callable[[Value], Value], M: Value) -> Value:
    """f of every M[k], stacked."""
    return t.stack(*(f(M[k]) for k in range(M.shape[0])))


def top_singular_pair(t: Tracer, c: Value) -> tuple[Value, Value]:
    """Unit vectors u, v with u' c v the largest singular value of c."""
    u, _, vt = t.svd(scaled_norm(t, c)[0])
    return u[:, 0], vt[0]


def bottom_eigenvector(t: Tracer, c: Value) -> Value:
    """A unit eigenvector of the least eigenvalue of the symmetric c."""
    return t.eigh(scaled_norm(t, c)[0])[1][:, 0]
