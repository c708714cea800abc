"""Array primitives over many rounds at once: every value may carry a leading axis of rounds.

One interpretation of the primitives (see `dsl/primitives.py`), so that an expression is evaluated for all rounds in a
few calls of NumPy. A value without the axis is constant over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oco.compiler.ir.ops import OPS, Op
from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.index import lower_index
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import known
from oco.dsl.expressions import Array as ArrayExpr
from oco.dsl.expressions import Call, Constant, Expr, Index, Kind, Name, Slice

Array = np.ndarray[Any, Any]


class RoundArray:
    """Array for each round: `array` has the rounds first; `shape` is that of one round."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # NumPy leaves operators with arrays to the methods below

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one round."""
        return tuple(self.array.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes of one round."""
        return self.array.ndim - 1

    @property
    def dtype(self) -> Any:
        """Element type of the array."""
        return self.array.dtype

    @property
    def T(self) -> RoundArray:
        """Transpose in each round."""
        return RoundArray(self.array.transpose(0, *range(self.array.ndim - 1, 0, -1)))

    def __neg__(self) -> RoundArray:
        return RoundArray(-self.array)

    def __add__(self, other: Value) -> RoundArray:
        return _batched(np.add, self, other)

    def __radd__(self, other: Value) -> RoundArray:
        return _batched(np.add, other, self)

    def __sub__(self, other: Value) -> RoundArray:
        return _batched(np.subtract, self, other)

    def __rsub__(self, other: Value) -> RoundArray:
        return _batched(np.subtract, other, self)

    def __mul__(self, other: Value) -> RoundArray:
        return _batched(np.multiply, self, other)

    def __rmul__(self, other: Value) -> RoundArray:
        return _batched(np.multiply, other, self)

    def __truediv__(self, other: Value) -> RoundArray:
        return _batched(np.divide, self, other)

    def __rtruediv__(self, other: Value) -> RoundArray:
        return _batched(np.divide, other, self)

    def __mod__(self, other: Value) -> RoundArray:
        return _batched(np.mod, self, other)

    def __rmod__(self, other: Value) -> RoundArray:
        return _batched(np.mod, other, self)

    def __pow__(self, other: Value) -> RoundArray:
        return _batched(np.power, self, other)

    def __rpow__(self, other: Value) -> RoundArray:
        return _batched(np.power, other, self)

    def __matmul__(self, other: Value) -> RoundArray:
        return RoundArray(matmul(self, other).array)

    def __rmatmul__(self, other: Value) -> RoundArray:
        return RoundArray(matmul(other, self).array)

    def __lt__(self, other: Value) -> RoundArray:
        return _batched(np.less, self, other)

    def __le__(self, other: Value) -> RoundArray:
        return _batched(np.less_equal, self, other)

    def __gt__(self, other: Value) -> RoundArray:
        return _batched(np.greater, self, other)

    def __ge__(self, other: Value) -> RoundArray:
        return _batched(np.greater_equal, self, other)


def _batched(operation: Callable[..., Array], *args: Any) -> RoundArray:
    return RoundArray(elementwise(operation, *args).array)


Value = Any  # RoundArray, or an array that is the same in every round


def values_of(value: Value, rounds: int) -> Array:
    """Value of every round: (rounds, *shape)."""
    if isinstance(value, RoundArray):
        return value.array
    array = np.asarray(value)
    return np.broadcast_to(array, (rounds, *array.shape))


def _rank(value: Value) -> int:
    return value.ndim if isinstance(value, RoundArray) else np.ndim(value)


def _aligned(value: Value, rank: int) -> Array:
    """The array with axes of length one after the rounds, so that NumPy broadcasts entries with entries."""
    if not isinstance(value, RoundArray):
        return np.asarray(value)
    missing = rank - value.ndim
    return value.array.reshape(value.array.shape[0], *[1] * missing, *value.shape) if missing else value.array


def _places(index: Value, rank: int) -> Array:
    """Index in line with others; a number of a round may be a float."""
    return _aligned(index, rank).astype(np.int64, copy=False)


def elementwise(operation: Callable[..., Array], *args: Value) -> Value:
    """Apply the operation entry by entry, with broadcasting of the shapes of one round."""
    if not any(isinstance(a, RoundArray) for a in args):
        return operation(*args)
    rank = max(map(_rank, args))
    return RoundArray(np.asarray(operation(*(_aligned(a, rank) for a in args))))


def matmul(a: Value, b: Value) -> Value:
    """`a @ b` round by round; one call of BLAS where one factor is constant over the rounds."""
    if not isinstance(a, RoundArray) and not isinstance(b, RoundArray):
        return np.matmul(a, b)
    if not isinstance(b, RoundArray):
        rows, factor = a.array, np.asarray(b)
        together = rows.flags.c_contiguous  # else each round is a call of BLAS
        flat = rows.reshape(np.prod(rows.shape[:-1]), rows.shape[-1]) if together else rows
        return RoundArray(np.asarray(flat @ factor).reshape(*rows.shape[:-1], *factor.shape[1:]))
    if not isinstance(a, RoundArray) and b.ndim == 1:
        return RoundArray(np.asarray(b.array @ np.asarray(a).T))
    rounds = len(b.array)
    left, right = values_of(a, rounds), b.array
    if _rank(a) == 1 and _rank(b) == 1:
        return RoundArray(np.einsum("ti,ti->t", left, right))
    if _rank(a) == 1:
        return RoundArray(np.matmul(left[:, None, :], right)[:, 0])
    if _rank(b) == 1:
        return RoundArray(np.matmul(left, right[:, :, None])[:, :, 0])
    return RoundArray(np.matmul(left, right))


class BatchOps:
    """Primitives as methods, `ops.exp(x)`. Methods are for operations that NumPy does for all rounds at once; elementwise
    operations and reductions need none, and others without one are done for one round after the other.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __getattr__(self, name: str) -> Callable[..., Value]:
        row = OPS.get(name.rstrip("_"))
        if row is None:
            raise AttributeError(name)
        if row.fold:
            return lambda x, *, axis=None: self._reduce(row, x, axis)
        if row.elementwise:
            return lambda *args: elementwise(row.meaning, *args)
        return lambda *args, **attrs: self._round_by_round(row, args, attrs)

    def _round_by_round(self, row: Op, args: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """One or several results of an operation."""
        if not any(isinstance(a, RoundArray) for a in args):
            return row.meaning(*args, **attrs)
        results = [row.meaning(*own, **attrs) for own in zip(*map(self._all, args))]
        if results and isinstance(results[0], tuple):
            return tuple(RoundArray(np.array(part)) for part in zip(*results))
        return RoundArray(np.array(results))

    def _reduce(self, row: Op, x: Value, axis: int | None) -> Value:
        if not isinstance(x, RoundArray):
            return row.meaning(x, axis=axis)
        if row.fold == "add" and x.dtype == np.float64 and (axis is None or axis in (-1, x.ndim - 1)):
            flat = x.array.reshape(len(x.array), -1) if axis is None else x.array  # few entries: quicker than `np.sum`
            return RoundArray(np.einsum("...i->...", flat))
        axes = tuple(range(1, x.array.ndim)) if axis is None else (axis + 1 if axis >= 0 else axis)
        return RoundArray(np.asarray(row.meaning(x.array, axis=axes)))

    def _all(self, value: Value) -> Array:
        return values_of(value, self.rounds)

    def argmax(self, x: Value) -> Value:
        """Flat index of the largest entry, the first of equals."""
        if not isinstance(x, RoundArray):
            return np.int64(np.argmax(x))
        return RoundArray(np.argmax(x.array.reshape(self.rounds, -1), axis=1))

    def argmin(self, x: Value) -> Value:
        """Flat index of the smallest entry, the first of equals."""
        return self.argmax(elementwise(np.negative, x))

    def cumsum(self, x: Value) -> Value:
        """Cumulative sums of the flattened entries."""
        if not isinstance(x, RoundArray):
            return np.cumsum(x)
        return RoundArray(np.cumsum(x.array.reshape(self.rounds, -1), axis=1))

    def matmul(self, a: Value, b: Value) -> Value:
        """Matrix product."""
        return matmul(a, b)

    def outer(self, a: Value, b: Value) -> Value:
        """Outer product, with the axes of `a` first."""
        return elementwise(np.multiply, self.reshape(a, shape=(*a.shape, *[1] * _rank(b))), b)

    def transpose(self, x: Value) -> Value:
        """Transpose."""
        return x.T if isinstance(x, RoundArray) else np.transpose(x)

    def reshape(self, x: Value, *, shape: tuple[int, ...]) -> Value:
        """Entries in row-major order in another shape."""
        return RoundArray(x.array.reshape(len(x.array), *shape)) if isinstance(x, RoundArray) else np.reshape(x, shape)

    def broadcast(self, x: Value, *, shape: tuple[int, ...]) -> Value:
        """Value broadcast to a shape of one round."""
        if not isinstance(x, RoundArray):
            return np.broadcast_to(x, shape)
        return RoundArray(np.broadcast_to(_aligned(x, len(shape)), (len(x.array), *shape)))

    def concat(self, *xs: Value, axis: int = 0) -> Value:
        """Concatenation along an axis of one round."""
        if not any(isinstance(x, RoundArray) for x in xs):
            return np.concatenate(xs, axis=axis)
        return RoundArray(np.concatenate([self._all(x) for x in xs], axis=axis + 1 if axis >= 0 else axis))

    def stack(self, *xs: Value) -> Value:
        """Stack along a new first axis of one round."""
        if not any(isinstance(x, RoundArray) for x in xs):
            return np.stack(xs)
        return RoundArray(np.stack([self._all(x) for x in xs], axis=1))

    def slice(self, x: Value, *, starts: tuple[int, ...], stops: tuple[int, ...]) -> Value:
        """Entries from `starts` up to, not including, `stops` along each axis."""
        cut = tuple(slice(a, b) for a, b in zip(starts, stops))
        return RoundArray(x.array[(slice(None), *cut)]) if isinstance(x, RoundArray) else np.asarray(x)[cut]

    def gather(self, x: Value, *indices: Value) -> Value:
        """Entries at integer indices, one array for each leading axis."""
        if not isinstance(x, RoundArray) and not any(isinstance(i, RoundArray) for i in indices):
            return np.asarray(x)[tuple(np.asarray(i) for i in indices)]
        if len(indices) == 1 and not isinstance(indices[0], RoundArray):
            return RoundArray(np.asarray(np.take(x.array, np.asarray(indices[0]), axis=1)))
        rank = max(map(_rank, indices))
        places = tuple(_places(i, rank) for i in indices)
        return RoundArray(
            np.asarray(x)[places] if not isinstance(x, RoundArray) else x.array[(self._rows(rank), *places)]
        )

    def _rows(self, rank: int) -> Array:
        return np.arange(self.rounds).reshape(-1, *[1] * rank)

    def scatter_add(self, values: Value, *indices: Value, shape: tuple[int, ...]) -> Value:
        """Array of the shape with the values added at their indices."""
        rank, rest = max(map(_rank, indices)), shape[len(indices) :]
        common = np.broadcast_shapes(*(i.shape if isinstance(i, RoundArray) else np.shape(i) for i in indices))
        places = [np.broadcast_to(_places(i, rank), (self.rounds, *common)) for i in indices]
        size, tail = int(np.prod(shape, dtype=np.int64)), int(np.prod(rest, dtype=np.int64))
        flat = np.ravel_multi_index(places, shape[: len(indices)]) + self._rows(rank) * (size // tail)
        entries = flat[..., None] * tail + np.arange(tail)
        weights = np.broadcast_to(_aligned(values, rank + len(rest)), (self.rounds, *common, *rest))
        total = np.bincount(entries.ravel(), weights.ravel(), minlength=self.rounds * size)
        return RoundArray(total.reshape(self.rounds, *shape))

    def put(self, x: Value, value: Value, *indices: Value) -> Value:
        """Copy with entries replaced at their indices."""
        out = np.array(self._all(x))
        rank = max(map(_rank, indices))
        out[(self._rows(rank), *(_places(i, rank) for i in indices))] = self._all(value)
        return RoundArray(out)

    def full(self, value: Value, *, shape: tuple[int, ...]) -> Value:
        """Array with equal entries."""
        return self.broadcast(value, shape=shape) if isinstance(value, RoundArray) else np.full(shape, value)

    def iota(self, *, n: int) -> Value:
        """Integers 0, ..., n - 1."""
        return np.arange(n, dtype=np.int64)

    def eye(self, *, n: int) -> Value:
        """Identity matrix of order n."""
        return np.eye(n)

    def diag(self, x: Value) -> Value:
        """Diagonal matrix of a vector, or diagonal of a matrix."""
        if not isinstance(x, RoundArray):
            return np.diag(x)
        if x.ndim == 1:
            return RoundArray(x.array[:, :, None] * np.eye(x.shape[0]))
        return RoundArray(np.diagonal(x.array, axis1=1, axis2=2))

    def sort(self, x: Value) -> Value:
        """Entries in rising order along the last axis."""
        return RoundArray(np.sort(x.array, axis=-1)) if isinstance(x, RoundArray) else np.sort(x)

    def argsort(self, x: Value) -> Value:
        """Indices that sort the last axis; the sort is stable."""
        if not isinstance(x, RoundArray):
            return np.argsort(x, kind="stable")
        return RoundArray(np.argsort(x.array, axis=-1, kind="stable"))

    def solve(self, a: Value, b: Value) -> Value:
        """Solution of a x = b for a vector or matrix b. Raises LinAlgError where a matrix is singular."""
        if not isinstance(a, RoundArray) and not isinstance(b, RoundArray):
            return np.linalg.solve(a, b)
        left, right = self._all(a), self._all(b)
        if _rank(b) == 1:
            return RoundArray(np.linalg.solve(left, right[:, :, None])[:, :, 0])
        return RoundArray(np.linalg.solve(left, right))

    def svd(self, x: Value) -> tuple[Value, ...]:
        """Reduced singular value decomposition: U, s, V'."""
        if not isinstance(x, RoundArray):
            return tuple(np.linalg.svd(x, full_matrices=False))
        return tuple(RoundArray(part) for part in np.linalg.svd(x.array, full_matrices=False))

    def eigh(self, x: Value) -> tuple[Value, ...]:
        """Eigenvalues in rising order and eigenvectors of a symmetric matrix."""
        if not isinstance(x, RoundArray):
            return tuple(np.linalg.eigh(x))
        return tuple(RoundArray(part) for part in np.linalg.eigh(x.array))


def evaluate_rounds(expr: Expr, env: Mapping[str, Value], rounds: int, t: Array | None = None) -> Value:
    """Value in `rounds` rounds at once: names stand for arrays, or for `RoundArray` ones; `t` (rounds,) holds the rounds'
    numbers.

    Rules are those of `dsl.evaluate`: the `lower` column of the atoms, each shared node once, nan where there is no
    value.
    """
    ops = BatchOps(rounds)
    results: dict[int, Value] = {}
    with np.errstate(all="ignore"):
        for node in (*expr.below, expr):
            results[id(node)] = _node_value(node, results, env, ops, t)
    return results[id(expr)]


def _node_value(
    node: Expr, results: dict[int, Value], env: Mapping[str, Value], ops: BatchOps, t: Array | None
) -> Value:
    match node:
        case Constant(value=value):
            return value.array
        case Name(kind=Kind.ROUND):
            return RoundArray(np.asarray(t, dtype=np.float64))
        case Name(name=name):
            return env[name]
        case Slice():
            return tuple(None if e is None else int(results[id(e)]) for e in (node.start, node.stop))
        case Call():
            return ATOMS[node.atom].lower(ops, node, *(results[id(a)] for a in node.args))
        case ArrayExpr(items=items):
            return ops.stack(*(results[id(i)] for i in items))
        case Index():
            sizes = known(node.base.shape)
            places = [_place(item, results[id(item)], size) for item, size in zip(node.items, sizes)]
            return lower_index(ops, results[id(node.base)], known(node.shape), sizes, places)
    raise InternalError(f"no value of a {type(node).__name__}")


def _place(item: Expr, value: Value, size: int) -> Value:
    """Item of an index as `lower_index` takes it: a pair for a slice, an integer, or a value."""
    if isinstance(item, Slice):
        return value[0] or 0, size if value[1] is None else value[1]
    if isinstance(item, Constant) and item.shape == ():
        return int(value)
    whole = value.array if isinstance(value, RoundArray) else np.asarray(value)
    places = whole.astype(np.int64, copy=False)  # the round and what is made of it are doubles
    return RoundArray(places) if isinstance(value, RoundArray) else places
