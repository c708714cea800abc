"""Linear combinations of matrices that are not written out, over the step IR: what a Frank-Wolfe method adds up on large matrices.

The terms are few outer products (the iterates), lists of entries (gradients of gathered entries, and their sums) and whole arrays. An
update rule writes `x + sigma * (v - x)` as for arrays; what it keeps is stored in the room that its state has.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from oco.compiler.domains import low_rank
from oco.compiler.domains.low_rank import LowRank
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Liftable, Value


@dataclass(frozen=True)
class Sparse:
    """The matrix of `shape` with `values` at (rows, columns), vectors; a place that occurs twice holds the sum.

    `following` is where the next entries go in a list that is kept; when it is full the oldest are forgotten.
    """

    data: Value
    rows: Value
    columns: Value
    shape: tuple[int, int]
    following: Value | None = None

    PARTS: ClassVar[tuple[str, ...]] = ("entries", "rows", "columns", "following")

    @property
    def values(self) -> tuple[Value, ...]:
        """Arrays of the representation, in the order of `PARTS`."""
        kept = () if self.following is None else (self.following,)
        return self.data, self.rows, self.columns, *kept

    def rebuilt(self, values: Value, rows: Value, columns: Value, following: Value | None = None) -> Sparse:
        """Matrix of the same shape from these arrays."""
        return Sparse(values, rows, columns, self.shape, following)

    def forward(self, v: Value) -> Value:
        """Product A v, shape (m,), of the matrix (m, n) and v (n,)."""
        t = v.tracer
        return t.scatter_add(self.data * t.gather(v, self.columns), self.rows, shape=self.shape[:1])

    def backward(self, u: Value) -> Value:
        """Product A' u, shape (n,), of the transpose and u (m,)."""
        t = u.tracer
        return t.scatter_add(self.data * t.gather(u, self.rows), self.columns, shape=self.shape[1:])

    def dense(self) -> Value:
        """Matrix written out, shape (m, n)."""
        return self.data.tracer.scatter_add(self.data, self.rows, self.columns, shape=self.shape)


@dataclass(frozen=True)
class Whole:
    """A matrix that is written out."""

    array: Value

    PARTS: ClassVar[tuple[str, ...]] = ("whole",)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (m, n)."""
        return self.array.shape

    @property
    def values(self) -> tuple[Value, ...]:
        """Arrays of the representation: the matrix."""
        return (self.array,)

    def rebuilt(self, array: Value) -> Whole:
        """Matrix from its array."""
        return Whole(array)

    def forward(self, v: Value) -> Value:
        """Product A v, shape (m,)."""
        return self.array @ v

    def backward(self, u: Value) -> Value:
        """Product A' u, shape (n,)."""
        return u @ self.array

    def dense(self) -> Value:
        """Matrix written out: its array."""
        return self.array


Matrix = LowRank | Sparse | Whole


@dataclass(frozen=True)
class Combination:
    """sum_k c_k A_k. Arithmetic joins terms that are the same matrix, so that `x - x` has none."""

    terms: tuple[tuple[Liftable, Matrix], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (m, n) of the matrices."""
        return self.terms[0][1].shape

    def __add__(self, other: Combination) -> Combination:
        results = list(self.terms)
        for factor, matrix in other.terms:
            same = next((k for k, (_, m) in enumerate(results) if m is matrix), None)
            if same is None:
                results.append((factor, matrix))
            else:
                results[same] = (results[same][0] + factor, matrix)  # type: ignore[operator]
        return Combination(tuple(results))

    def __mul__(self, factor: Liftable) -> Combination:
        return Combination(tuple((_product(factor, own), matrix) for own, matrix in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> Combination:
        return self * -1.0

    def __sub__(self, other: Combination) -> Combination:
        return self + -other

    def __truediv__(self, divisor: Liftable) -> Combination:
        return self * (1.0 / divisor)  # type: ignore[operator]

    def forward(self, v: Value) -> Value:
        """A v."""
        return _sum([_scaled(c, m.forward(v)) for c, m in self.terms])

    def backward(self, u: Value) -> Value:
        """A' u."""
        return _sum([_scaled(c, m.backward(u)) for c, m in self.terms])

    def entries(self, rows: Value, columns: Value) -> Value:
        """A[rows, columns], pairwise, for vectors of places; of combinations of few outer products."""
        results = [(c, m) for c, m in self.terms if isinstance(m, LowRank)]
        if len(results) < len(self.terms):
            raise InternalError("entries are gathered from decisions")
        return _sum([_scaled(c, m.entries(rows, columns)) for c, m in results])

    def gathered(self, rows: Value, columns: Value) -> Value:
        """A[rows, columns] for places that pair by broadcasting."""
        t, shape = rows.tracer, np.broadcast_shapes(rows.shape, columns.shape)
        size = int(np.prod(shape, dtype=np.int64))
        i, j = (t.reshape(t.broadcast(v, shape), (size,)) for v in (rows, columns))
        return t.reshape(self.entries(i, j), shape)

    def inner(self, other: Combination) -> Value:
        """<A, B>."""
        return _sum([_scaled(_product(a, b), _inner(m, n)) for a, m in self.terms for b, n in other.terms])


def _product(a: Liftable, b: Liftable) -> Liftable:
    if isinstance(a, float) and a == 1:
        return b
    return a if isinstance(b, float) and b == 1 else a * b  # type: ignore[operator]


def _scaled(factor: Liftable, value: Value) -> Value:
    return value if isinstance(factor, float) and factor == 1 else factor * value


def _sum(parts: list[Value]) -> Value:
    return reduce(lambda a, b: a + b, parts)


def _inner(a: Matrix, b: Matrix) -> Value:
    """<a, b> without a product of two lists of entries, which no rule needs."""
    if not isinstance(a, LowRank):
        a, b = b, a
    if not isinstance(a, LowRank):
        raise InternalError(f"an inner product of {type(a).__name__} and {type(b).__name__}")
    t = a.s.tracer
    if isinstance(b, LowRank):
        return low_rank.inner(t, a, b)  # type: ignore[arg-type]
    if isinstance(b, Sparse):
        return t.sum(b.data * a.entries(b.rows, b.columns))
    result = t.sum(t.sum((b.array @ a.V) * a.U, axis=0) * a.s)
    return result if a.diagonal is None else result + a.diagonal * t.sum(t.diag(b.array))


def chosen(t: Tracer, c: Value, a: Combination, b: Combination) -> Combination:
    """`a` where the truth value holds, else `b`, both brought to the layout of b's first matrix."""
    like = b.terms[0][1]
    one, other = laid_out(t, a, like), laid_out(t, b, like)
    return Combination(((1.0, like.rebuilt(*(t.where(c, u, v) for u, v in zip(one.values, other.values)))),))


def laid_out(t: Tracer, x: Combination, like: Matrix) -> Matrix:
    """The sum as one matrix with the room of `like`."""
    if isinstance(like, Whole):
        return Whole(_sum([_scaled(c, m.dense()) for c, m in x.terms]))
    first = next((k for k, (_, m) in enumerate(x.terms) if _same_room(m, like)), None)
    if first is None:
        raise InternalError("a sum without the matrix that it is kept as")
    factor, begun = x.terms[first]
    if len(x.terms) == 1 and isinstance(factor, float) and factor == 1:
        return begun
    rest = [term for k, term in enumerate(x.terms) if k != first]
    if isinstance(like, LowRank):
        return _stored_terms(t, factor, begun, rest)
    return _stored_entries(t, factor, begun, rest)


def _same_room(m: Matrix, like: Matrix) -> bool:
    return type(m) is type(like) and [v.type for v in m.values] == [v.type for v in like.values]


def _stored_terms(t: Tracer, factor: Liftable, begun: Matrix, rest: list[tuple[Liftable, Matrix]]) -> LowRank:
    assert isinstance(begun, LowRank)
    result = begun if isinstance(factor, float) and factor == 1 else low_rank.scaled(begun, factor)
    for c, m in rest:
        if not isinstance(m, LowRank):
            raise InternalError("a decision is a sum of outer products")
        result = low_rank.sum_of(t, result, low_rank.scaled(m, c))
    return result


def _stored_entries(t: Tracer, factor: Liftable, begun: Matrix, rest: list[tuple[Liftable, Matrix]]) -> Sparse:
    """The kept list with the new entries after the last ones, in a circle."""
    assert isinstance(begun, Sparse) and begun.following is not None
    values, rows, columns, following = _scaled(factor, begun.data), begun.rows, begun.columns, begun.following
    room = values.size
    for c, m in rest:
        if not isinstance(m, Sparse):
            raise InternalError("a sum of gradients is a list of entries")
        places = t.mod(following + t.iota(m.data.size), room)
        values = t.put(values, _scaled(c, m.data), places)
        rows, columns = t.put(rows, m.rows, places), t.put(columns, m.columns, places)
        following = t.mod(following + m.data.size, room)
    return Sparse(values, rows, columns, begun.shape, following)
