"""Matrices kept as few outer products, over the step IR: the iterates of Frank-Wolfe methods on nuclear balls and spectrahedra."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Liftable, Value


@dataclass(frozen=True)
class LowRank:
    """X = sum_k s_k u_k v_k' with the u_k as columns of U (m, K), the v_k of V (n, K) and at most K terms, `count` of them in use.

    `lost` bounds the nuclear norm of all that recompression has changed so far. With a `diagonal` a, X = a I + sum_k s_k u_k v_k'
    with u_k = v_k: a semidefinite matrix, whose trace recompression keeps.
    """

    U: Value
    s: Value
    V: Value
    count: Value
    lost: Value
    diagonal: Value | None = None

    PARTS: ClassVar[tuple[str, ...]] = ("left", "weights", "right", "terms", "lost", "diagonal")

    @property
    def values(self) -> tuple[Value, ...]:
        """The parts in order, as they stand in a program's state."""
        more = () if self.diagonal is None else (self.diagonal,)
        return self.U, self.s, self.V, self.count, self.lost, *more

    @property
    def capacity(self) -> int:
        """Greatest number of terms, K."""
        return self.s.size

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        return self.U.shape[0], self.V.shape[0]

    def rebuilt(self, *values: Value) -> LowRank:
        """A matrix of the same kind from other parts."""
        return LowRank(*values)

    def forward(self, v: Value) -> Value:
        """X v."""
        result = self.U @ (self.s * (v @ self.V))
        return result if self.diagonal is None else self.diagonal * v + result

    def backward(self, u: Value) -> Value:
        """X' u."""
        result = self.V @ (self.s * (u @ self.U))
        return result if self.diagonal is None else self.diagonal * u + result

    def entries(self, rows: Value, columns: Value) -> Value:
        """X[rows, columns], pairwise, for vectors of places."""
        t = self.U.tracer
        result = t.sum(t.gather(self.U, rows) * self.s * t.gather(self.V, columns), axis=1)
        return result if self.diagonal is None else result + t.where(rows == columns, self.diagonal, 0.0)

    def dense(self) -> Value:
        """X as an array of shape (m, n)."""
        results = (self.U * self.s) @ self.V.T
        return results if self.diagonal is None else self.diagonal * self.U.tracer.eye(self.shape[0]) + results

    def trace(self) -> Value:
        """The sum of the diagonal entries."""
        t = self.U.tracer
        result = t.sum(self.s * t.sum(self.U * self.V, axis=0))
        return result if self.diagonal is None else result + self.diagonal * float(self.shape[0])


def zero(t: Tracer, shape: tuple[int, int], capacity: int, identity: bool = False) -> LowRank:
    """The zero matrix, with room for `capacity` terms, and for a multiple of the identity."""
    m, n = shape
    parts = t.zeros((m, capacity)), t.zeros((capacity,)), t.zeros((n, capacity)), t.lift(0), t.lift(0.0)
    return LowRank(*parts, t.lift(0.0) if identity else None)


def given(t: Tracer, U: Value, s: Value, V: Value, diagonal: Value | None = None) -> LowRank:
    """The matrix of these factors; terms that are in use come first."""
    return LowRank(U, s, V, t.sum(t.to_int(s > 0.0)), t.lift(0.0), diagonal)


def atom(t: Tracer, u: Value, v: Value) -> LowRank:
    """u v' with |v| = 1, as one term."""
    length = t.sqrt(t.sum(u * u))
    unit = u / t.where(length > 0.0, length, 1.0)
    one = t.reshape(length, (1,))
    return LowRank(t.reshape(unit, (u.size, 1)), one, t.reshape(v, (v.size, 1)), t.lift(1), t.lift(0.0))


def scaled(X: LowRank, factor: Liftable) -> LowRank:
    """factor X, for a factor that is not negative."""
    return LowRank(X.U, X.s * factor, X.V, X.count, X.lost * factor, _scaled(X.diagonal, factor))


def _scaled(diagonal: Value | None, factor: Liftable) -> Value | None:
    return None if diagonal is None else diagonal * factor


def _added(a: Value | None, b: Value | None) -> Value | None:
    return b if a is None else a if b is None else a + b


def sum_of(t: Tracer, X: LowRank, Y: LowRank) -> LowRank:
    """X + Y with room for as many terms as X has: X is recompressed to half of it when it is full, or the sum where Y has more terms."""
    K, more = X.capacity, Y.capacity
    diagonal = _added(X.diagonal, Y.diagonal)
    if more > K - K // 2:
        U, V = t.concat(X.U, Y.U, axis=1), t.concat(X.V, Y.V, axis=1)
        return _recompressed(t, LowRank(U, t.concat(X.s, Y.s), V, X.count + Y.count, X.lost + Y.lost, diagonal), K, K)
    full, whole = X.count + more > K, replace(X, diagonal=diagonal)
    kept = whole.rebuilt(*t.if_(full, lambda: _recompressed(t, whole, K // 2, K).values, lambda: whole.values))
    count = kept.count
    (m, n), places = X.shape, count + t.iota(more)
    rows, columns = (t.reshape(t.iota(k), (k, 1)) for k in (m, n))
    return LowRank(
        t.put(kept.U, Y.U, rows, places),
        t.put(kept.s, Y.s, places),
        t.put(kept.V, Y.V, columns, places),
        count + Y.count,
        kept.lost + Y.lost,
        kept.diagonal,
    )


def inner(t: Tracer, X: LowRank, Y: LowRank) -> Value:
    """<X, Y>."""
    result = t.sum(t.outer(X.s, Y.s) * (X.U.T @ Y.U) * (X.V.T @ Y.V))
    if X.diagonal is not None:
        result = result + X.diagonal * Y.trace()
    return result if Y.diagonal is None else result + Y.diagonal * replace(X, diagonal=None).trace()


def _recompressed(t: Tracer, X: LowRank, terms: int, capacity: int) -> LowRank:
    """The singular value decomposition of X by those of its factors, cut to `terms`; what is dropped counts as lost.

    Cutting singular values leaves X in every nuclear ball that holds it. With a diagonal, the trace of what is dropped is handed back
    as a multiple of the identity, which leaves a semidefinite X semidefinite.
    """
    A, a, At = t.svd(X.U)
    B, b, Bt = t.svd(X.V)
    core, s, coret = t.svd(((At * X.s) @ Bt.T) * t.outer(a, b))
    terms = min(terms, s.size)
    used = t.minimum(t.sum(t.to_int(s > np.finfo(float).eps * s[0])), terms)
    free = capacity - terms
    left, right, weights = core[:, :terms], coret.T[:, :terms], s[:terms]
    if free:  # what is free comes of the product, too: of the long factors there is no copy
        left, right = (t.concat(x, t.zeros((x.shape[0], free)), axis=1) for x in (left, right))
        weights = t.concat(weights, t.zeros((free,)))
    kept = LowRank(A @ left, weights, B @ right, used, X.lost)
    if s.size <= terms:
        return replace(kept, diagonal=X.diagonal)
    dropped = t.sum(s[terms:])
    if X.diagonal is None:
        return replace(kept, lost=X.lost + dropped)
    handed = (X.trace() - kept.trace()) / float(X.shape[0])
    return replace(kept, lost=X.lost + 2.0 * dropped, diagonal=handed)
