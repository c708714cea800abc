"""Matrices kept as few outer products, over the step IR: the iterates of Frank-Wolfe methods on nuclear and trace balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value


@dataclass(frozen=True)
class LowRank:
    """X = sum_k s_k u_k v_k' with the u_k as columns of U (m, K), the v_k of V (n, K) and at most K terms, `count` of them in use.

    `lost` bounds the nuclear norm of all that recompression has dropped so far.
    """

    U: Value
    s: Value
    V: Value
    count: Value
    lost: Value

    @property
    def values(self) -> tuple[Value, ...]:
        """The parts in order, as they stand in a program's state."""
        return self.U, self.s, self.V, self.count, self.lost

    @property
    def capacity(self) -> int:
        return self.s.size


def zero(t: Tracer, shape: tuple[int, int], capacity: int) -> LowRank:
    """The zero matrix, with room for `capacity` terms."""
    m, n = shape
    return LowRank(t.zeros((m, capacity)), t.zeros((capacity,)), t.zeros((n, capacity)), t.lift(0), t.lift(0.0))


def entries(t: Tracer, X: LowRank, rows: Value, columns: Value) -> Value:
    """X[rows, columns], pairwise."""
    return t.sum(t.gather(X.U, rows) * X.s * t.gather(X.V, columns), axis=1)


def inner(t: Tracer, X: LowRank, C: Value) -> Value:
    """<C, X> for a dense C."""
    return t.sum(t.sum((C @ X.V) * X.U, axis=0) * X.s)


def dense(X: LowRank) -> Value:
    """X as a matrix of shape (m, n)."""
    return (X.U * X.s) @ X.V.T


def forward(X: LowRank, v: Value) -> Value:
    """X v."""
    return X.U @ (X.s * (v @ X.V))


def backward(X: LowRank, u: Value) -> Value:
    """X' u."""
    return X.V @ (X.s * (u @ X.U))


def move_towards(t: Tracer, X: LowRank, sigma: Value, u: Value, v: Value) -> LowRank:
    """(1 - sigma) X + sigma u v', the step of a Frank-Wolfe method; a full X is first recompressed to half its capacity."""
    U, s, V, count, lost = t.if_(X.count >= X.capacity, lambda: _recompressed(t, X).values, lambda: X.values)
    length = t.sqrt(t.sum(u * u))
    unit = u / t.where(length > 0.0, length, 1.0)
    m, n = U.shape[0], V.shape[0]
    return LowRank(
        t.put(U, unit, t.iota(m), count),
        t.put(s * (1.0 - sigma), sigma * length, count),
        t.put(V, v, t.iota(n), count),
        count + 1,
        lost * (1.0 - sigma),
    )


def _recompressed(t: Tracer, X: LowRank) -> LowRank:
    """The singular value decomposition of X by those of its factors, cut to half the capacity; what is dropped counts as lost.

    Cutting singular values leaves X in every nuclear ball that holds it.
    """
    half = X.capacity // 2
    A, a, At = t.svd(X.U)
    B, b, Bt = t.svd(X.V)
    core, s, coret = t.svd(((At * X.s) @ Bt.T) * t.outer(a, b))
    kept = t.to_float(t.iota(X.capacity) < half)
    used = t.minimum(t.sum(t.to_int(s > np.finfo(float).eps * s[0])), half)
    return LowRank((A @ core) * kept, s * kept, (B @ coret.T) * kept, used, X.lost + t.sum(s * (1.0 - kept)))
