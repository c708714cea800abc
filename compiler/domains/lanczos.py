"""The largest singular value of a linear operator with its vectors, over the step IR, without a full decomposition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

Map = Callable[[Value], Value]

MANY, FEW = 24, 12
"""Vectors on each side that the iteration works with: few where memory is short."""
LARGE_VECTORS = 1 << 15
"""Entries of a pair of vectors from which memory is short."""
KEPT = 4
"""Approximations that are kept when the basis is full."""
MAX_LOOKS = 600  # products with the matrix after which it ends with the pair that it has
ROUNDING = Tolerance(1e-15)
"""A vector that orthogonalization shortens to this part of its length held nothing new."""


def steps_of(shape: tuple[int, int]) -> int:
    """Number of Lanczos vectors on each side."""
    return min(FEW if sum(shape) > LARGE_VECTORS else MANY, *shape)


def top_pair(
    t: Tracer, forward: Map, backward: Map, shape: tuple[int, int], start: Value, tolerance: float
) -> tuple[Value, Value, Value]:
    """(u, sigma, v) with |u| = |v| = 1, A v = sigma u and |A' u - sigma v| <= tolerance sigma, from the vector `start` (n,).

    `forward` is v -> A v and `backward` u -> A' u, of shape (m, n). Golub-Kahan-Lanczos bidiagonalization with full reorthogonalization
    and thick restarts (Baglama & Reichel, SIAM J. Sci. Comput. 27, 2005): A V' = U' B with orthonormal rows of U (k, m) and V (k + 1, n).
    The residual is looked at after 1, 3, 7, ... steps, so that a warm start costs few products.
    """
    m, n = shape
    k = steps_of(shape)
    kept = min(KEPT, k - 1)
    first = t.to_float(t.iota(k) == 0)

    def not_converged(*state: Value) -> Value:
        *_, residual, looks = state
        return t.and_(residual > tolerance, looks < MAX_LOOKS)

    def look(
        U: Value, V: Value, B: Value, done: Value, x: Value, sigma: Value, y: Value, residual: Value, looks: Value
    ) -> tuple[Value, ...]:
        end = t.minimum(2 * done + 1, k)

        def extend(i: Value, U: Value, V: Value, B: Value, beta: Value) -> tuple[Value, ...]:
            return _extend(t, forward, backward, done + i, U, V, B)

        U, V, B, beta = t.for_(end - done, extend, (U, V, B, t.lift(0.0)))
        X, S, Yt = t.svd(B)
        # A' u_i = S_i v_i + beta X[end - 1, i] v_next: the last row of X tells every residual.
        left = abs(beta * X[end - 1, 0]) / t.maximum(S[0], np.finfo(float).tiny)

        def restarted() -> tuple[Value, ...]:
            following = t.reshape(t.gather(V, end), (1, n))
            U_kept = t.concat((X.T @ U)[:kept], t.zeros((k - kept, m)), axis=0)
            V_kept = t.concat((Yt @ V[:k])[:kept], following, t.zeros((k - kept, n)), axis=0)
            B_kept = t.diag(t.concat(S[:kept], t.zeros((k - kept,))))
            return U_kept, V_kept, B_kept, t.lift(kept), first, first

        U, V, B, done, x, y = t.if_(end >= k, restarted, lambda: (U, V, B, end, X[:, 0], Yt[0]))
        return U, V, B, done, x, S[0], y, left, looks + 1

    length = t.sqrt(t.sum(start * start))
    V = t.put(t.zeros((k + 1, n)), start / t.where(length > 0.0, length, 1.0), 0)
    init = (t.zeros((k, m)), V, t.zeros((k, k)), t.lift(0), first, t.lift(0.0), first, t.lift(np.inf), t.lift(0))
    U, V, _, _, x, sigma, y, *_ = t.while_(not_converged, look, init)
    return x @ U, sigma, y @ V[:k]


def _extend(t: Tracer, forward: Map, backward: Map, j: Value, U: Value, V: Value, B: Value) -> tuple[Value, ...]:
    """One step: row j of U and column j of B from A v_j, then row j + 1 of V from A' u_j, orthogonalized twice."""
    u, alpha, h = _next_direction(t, forward(t.gather(V, j)), U)
    v, beta, _ = _next_direction(t, backward(u), V)
    column = t.put(h, alpha, j)
    return t.put(U, u, j), t.put(V, v, j + 1), t.put(B.T, column, j).T, beta


def _next_direction(t: Tracer, x: Value, rows: Value) -> tuple[Value, Value, Value]:
    """x without its components h along the orthonormal rows, as a unit vector and a length; zero where only rounding is left of it."""
    h = rows @ x
    once = x - h @ rows
    again = rows @ once
    rest = once - again @ rows
    length, whole = t.sqrt(t.sum(rest * rest)), t.sqrt(t.sum(x * x))
    left = length > ROUNDING * whole
    return rest * t.where(left, 1.0 / t.where(left, length, 1.0), 0.0), t.where(left, length, 0.0), h + again
