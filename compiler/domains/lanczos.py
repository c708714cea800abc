"""The largest singular value of a linear operator with its vectors, over the step IR, without a full decomposition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

Map = Callable[[Value], Value]

STEPS = 12
"""Vectors a cycle works with."""
KEPT = 4
"""Approximations that the next cycle begins with."""
FIRST_LOOK = 3
"""Steps before the residual is looked at for the first time: enough from a warm start."""
MAX_CYCLES = 300


def top_pair(
    t: Tracer, forward: Map, backward: Map, shape: tuple[int, int], start: Value, tolerance: float
) -> tuple[Value, Value, Value]:
    """(u, sigma, v) with |u| = |v| = 1, A v = sigma u and |A' u - sigma v| <= tolerance sigma, from the vector `start` (n,).

    `forward` is v -> A v and `backward` u -> A' u, of shape (m, n). Golub-Kahan-Lanczos bidiagonalization with full reorthogonalization
    and thick restarts (Baglama & Reichel, SIAM J. Sci. Comput. 27, 2005): A V' = U' B with orthonormal rows of U (k, m) and V (k + 1, n).
    """
    m, n = shape
    k = min(STEPS, m, n)
    kept = min(KEPT, k - 1)

    def unsettled(U: Value, V: Value, B: Value, begin: Value, residual: Value, cycles: Value) -> Value:
        return t.and_(residual > tolerance, cycles < MAX_CYCLES)

    def cycle(U: Value, V: Value, B: Value, begin: Value, residual: Value, cycles: Value) -> tuple[Value, ...]:
        end = t.where(cycles == 0, min(FIRST_LOOK, k), k)

        def extend(i: Value, U: Value, V: Value, B: Value, beta: Value) -> tuple[Value, ...]:
            return _extend(t, forward, backward, begin + i, U, V, B)

        U, V, B, beta = t.for_(end - begin, extend, (U, V, B, t.lift(0.0)))
        X, S, Yt = t.svd(B)
        # A' u_i = S_i v_i + beta X[end - 1, i] v_next: the last row of X tells every residual.
        tail = beta * t.gather(X, end - 1)
        top = t.maximum(S[0], np.finfo(float).tiny)
        following = t.gather(V, end)
        U = t.concat((X.T @ U)[:kept], t.zeros((k - kept, m)), axis=0)
        V = t.concat((Yt @ V[:k])[:kept], t.reshape(following, (1, n)), t.zeros((k - kept, n)), axis=0)
        spectrum = t.concat(S[:kept], t.zeros((k - kept,)))
        return U, V, t.diag(spectrum), t.lift(kept), t.abs(tail[0]) / top, cycles + 1

    length = t.sqrt(t.sum(start * start))
    V = t.put(t.zeros((k + 1, n)), start / t.where(length > 0.0, length, 1.0), 0)
    init = (t.zeros((k, m)), V, t.zeros((k, k)), t.lift(0), t.lift(np.inf), t.lift(0))
    U, V, B, *_ = t.while_(unsettled, cycle, init)
    return U[0], B[0, 0], V[0]


def _extend(t: Tracer, forward: Map, backward: Map, j: Value, U: Value, V: Value, B: Value) -> tuple[Value, ...]:
    """One step: row j of U and column j of B from A v_j, then row j + 1 of V from A' u_j, orthogonalized twice."""
    p, h = _orthogonal(t, forward(t.gather(V, j)), U)
    alpha = t.sqrt(t.sum(p * p))
    u = p / t.where(alpha > 0.0, alpha, 1.0)
    q, _ = _orthogonal(t, backward(u), V)
    beta = t.sqrt(t.sum(q * q))
    column = t.put(h, alpha, j)
    B = t.put(B.T, column, j).T
    return t.put(U, u, j), t.put(V, q / t.where(beta > 0.0, beta, 1.0), j + 1), B, beta


def _orthogonal(t: Tracer, x: Value, rows: Value) -> tuple[Value, Value]:
    """x without its components along the orthonormal rows (twice, for rounding), and those components."""
    h = rows @ x
    x = x - h @ rows
    again = rows @ x
    return x - again @ rows, h + again
