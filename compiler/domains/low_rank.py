"""Matrices kept as few outer products, over the step IR: the iterates of Frank-Wolfe methods on nuclear balls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Liftable, Value


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

    PARTS: ClassVar[tuple[str, ...]] = ("left", "weights", "right", "terms", "lost")

    @property
    def values(self) -> tuple[Value, ...]:
        """The parts in order, as they stand in a program's state."""
        return self.U, self.s, self.V, self.count, self.lost

    @property
    def capacity(self) -> int:
        return self.s.size

    @property
    def shape(self) -> tuple[int, int]:
        return self.U.shape[0], self.V.shape[0]

    def rebuilt(self, *values: Value) -> LowRank:
        """A matrix of the same kind from other parts."""
        return LowRank(*values)

    def forward(self, v: Value) -> Value:
        """X v."""
        return self.U @ (self.s * (v @ self.V))

    def backward(self, u: Value) -> Value:
        """X' u."""
        return self.V @ (self.s * (u @ self.U))

    def entries(self, rows: Value, columns: Value) -> Value:
        """X[rows, columns], pairwise, for vectors of places."""
        t = self.U.tracer
        return t.sum(t.gather(self.U, rows) * self.s * t.gather(self.V, columns), axis=1)

    def dense(self) -> Value:
        """X as an array of shape (m, n)."""
        return (self.U * self.s) @ self.V.T


def zero(t: Tracer, shape: tuple[int, int], capacity: int) -> LowRank:
    """The zero matrix, with room for `capacity` terms."""
    m, n = shape
    return LowRank(t.zeros((m, capacity)), t.zeros((capacity,)), t.zeros((n, capacity)), t.lift(0), t.lift(0.0))


def given(t: Tracer, U: Value, s: Value, V: Value) -> LowRank:
    """The matrix of these factors; terms that are in use come first."""
    return LowRank(U, s, V, t.sum(t.to_int(s > 0.0)), t.lift(0.0))


def atom(t: Tracer, u: Value, v: Value) -> LowRank:
    """u v' with |v| = 1, as one term."""
    length = t.sqrt(t.sum(u * u))
    unit = u / t.where(length > 0.0, length, 1.0)
    one = t.reshape(length, (1,))
    return LowRank(t.reshape(unit, (u.size, 1)), one, t.reshape(v, (v.size, 1)), t.lift(1), t.lift(0.0))


def scaled(X: LowRank, factor: Liftable) -> LowRank:
    """factor X, for a factor that is not negative."""
    return LowRank(X.U, X.s * factor, X.V, X.count, X.lost * factor)


def sum_of(t: Tracer, X: LowRank, Y: LowRank) -> LowRank:
    """X + Y with room for as many terms as X has: X is recompressed to half of it when it is full, or the sum where Y has more terms."""
    K, more = X.capacity, Y.capacity
    if more > K - K // 2:
        U, V = t.concat(X.U, Y.U, axis=1), t.concat(X.V, Y.V, axis=1)
        return _recompressed(t, LowRank(U, t.concat(X.s, Y.s), V, X.count + Y.count, X.lost + Y.lost), K, K)
    full = X.count + more > K
    U, s, V, count, lost = t.if_(full, lambda: _recompressed(t, X, K // 2, K).values, lambda: X.values)
    (m, n), places = X.shape, count + t.iota(more)
    rows, columns = (t.reshape(t.iota(k), (k, 1)) for k in (m, n))
    return LowRank(
        t.put(U, Y.U, rows, places),
        t.put(s, Y.s, places),
        t.put(V, Y.V, columns, places),
        count + Y.count,
        lost + Y.lost,
    )


def inner(t: Tracer, X: LowRank, Y: LowRank) -> Value:
    """<X, Y>."""
    return t.sum(t.outer(X.s, Y.s) * (X.U.T @ Y.U) * (X.V.T @ Y.V))


def _recompressed(t: Tracer, X: LowRank, terms: int, capacity: int) -> LowRank:
    """The singular value decomposition of X by those of its factors, cut to `terms`; what is dropped counts as lost.

    Cutting singular values leaves X in every nuclear ball that holds it.
    """
    A, a, At = t.svd(X.U)
    B, b, Bt = t.svd(X.V)
    core, s, coret = t.svd(((At * X.s) @ Bt.T) * t.outer(a, b))
    terms = min(terms, s.size)
    room = capacity - terms
    used = t.minimum(t.sum(t.to_int(s > np.finfo(float).eps * s[0])), terms)
    U, V = (A @ core)[:, :terms], (B @ coret.T)[:, :terms]
    lost = X.lost + t.sum(s[terms:]) if s.size > terms else X.lost
    if not room:
        return LowRank(U, s[:terms], V, used, lost)
    left, right = (t.concat(x, t.zeros((x.shape[0], room)), axis=1) for x in (U, V))
    return LowRank(left, t.concat(s[:terms], t.zeros((room,))), right, used, lost)
