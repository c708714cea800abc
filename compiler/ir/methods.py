"""The primitives as typed methods over traced values: `t.sum(v, axis=0)`. The table `OPS` gives each its type rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.ir.ops import OPS, REDUCTIONS, Op
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.program import DType, Literal, Type
from oco.compiler.ir.value import TYPE, Liftable, Value
from oco.dsl.diagnostics import InternalError

Shape = tuple[int, ...]
_FLOAT = Type(DType.FLOAT)


def _changes_nothing(op: str, given: Type) -> bool:
    """A total of one number is that number, a vector is its own transpose, floats are floats."""
    return (
        (op in REDUCTIONS and not given.shape)
        or (op == "transpose" and len(given.shape) < 2)
        or (op == "to_float" and given.dtype is DType.FLOAT)
        or (op == "to_int" and given.dtype is DType.INT)
    )


class PrimitiveMethods(ABC):
    """Everything that stands in one equation. `Tracer` adds functions and control flow."""

    if not TYPE_CHECKING:  # so that a type checker knows the methods below alone

        def __getattr__(self, name: str) -> Callable[..., Value]:
            """An operation without a typed method, for the `lower` column of atoms."""
            row = OPS.get(name.rstrip("_"))
            if row is None or row.attrs:
                raise AttributeError(name)
            return lambda *args: self.apply(row.name, *args)[0]

    def lift(self, value: Liftable) -> Value:
        """A traced value as it is; a number as a literal; an array as a constant of the program."""
        if isinstance(value, Value):
            if value.tracer is not self:
                raise InternalError("a value of another tracer")
            return value
        if type(value) is float:
            return Value(self, Literal(value, _FLOAT))
        array = np.asarray(value)
        if array.ndim:
            return self.constant(array)
        if isinstance(value, Tolerance):
            return Value(self, Literal(value, Type(DType.FLOAT)))
        if array.dtype == np.bool_:
            return Value(self, Literal(bool(array), Type(DType.BOOL)))
        if np.issubdtype(array.dtype, np.integer):
            return Value(self, Literal(int(array), Type(DType.INT)))
        return Value(self, Literal(float(array), Type(DType.FLOAT)))

    @abstractmethod
    def constant(self, value: np.ndarray[Any, Any] | float, name: str = "", why: str = "") -> Value:
        """Constant of the program; `why` is its comment."""

    @abstractmethod
    def emit(self, op: str, args: tuple[Value, ...], results: tuple[Type, ...], **attrs: Any) -> tuple[Value, ...]:
        """Results of a new equation."""

    def apply(self, op: str, *arguments: Liftable, **attrs: Any) -> tuple[Value, ...]:
        """One equation of a row of `OPS`, after integers were made floats where the row or a neighbour asks for them."""
        row = OPS[op]
        args = self._promoted(row, tuple(map(self.lift, arguments)))
        if args and _changes_nothing(op, args[0].type):
            return args[:1]
        results = row.infer(tuple(map(TYPE, args)), attrs)
        return self.emit(op, args, results, **attrs)

    def _promoted(self, row: Op, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Arguments that are of one dtype, by promotion as in NumPy: bool to int to float."""
        start, stop = row.promoted
        end = len(args) if stop is None else stop
        kinds = [a.operand.type.dtype for a in args[start:end]]
        if not kinds or (kinds[0] in row.accepts and kinds.count(kinds[0]) == len(kinds)):
            return args
        return args[:start] + self._promote(args[start:end], row.accepts) + args[end:]

    def _promote(self, args: tuple[Value, ...], accepts: tuple[DType, ...]) -> tuple[Value, ...]:
        order = (DType.BOOL, DType.INT, DType.FLOAT)
        rank = max((order.index(a.dtype) for a in args), default=0)
        while order[rank] not in accepts and rank < 2:
            rank += 1
        return tuple(self._convert(a, order[rank]) for a in args)

    def _convert(self, value: Value, kind: DType) -> Value:
        if value.dtype is kind:
            return value
        if isinstance(value.operand, Literal) and kind is not DType.BOOL:
            number = value.operand.value
            return self.lift(float(number) if kind is DType.FLOAT else int(number))
        if kind is DType.FLOAT:
            return self.to_float(value)
        if kind is DType.INT and value.dtype is DType.BOOL:
            return self.to_int(value)
        raise InternalError(f"{value!r} where {kind} is needed")

    def _one(self, op: str, *args: Liftable, **attrs: Any) -> Value:
        return self.apply(op, *args, **attrs)[0]

    # elementwise, one argument
    def neg(self, x: Liftable) -> Value:
        return self._one("neg", x)

    def abs(self, x: Liftable) -> Value:
        return self._one("abs", x)

    def sqrt(self, x: Liftable) -> Value:
        return self._one("sqrt", x)

    def exp(self, x: Liftable) -> Value:
        return self._one("exp", x)

    def log(self, x: Liftable) -> Value:
        return self._one("log", x)

    def log1p(self, x: Liftable) -> Value:
        return self._one("log1p", x)

    def expm1(self, x: Liftable) -> Value:
        return self._one("expm1", x)

    def sign(self, x: Liftable) -> Value:
        return self._one("sign", x)

    def floor(self, x: Liftable) -> Value:
        return self._one("floor", x)

    def not_(self, x: Liftable) -> Value:
        return self._one("not", x)

    def isfinite(self, x: Liftable) -> Value:
        return self._one("isfinite", x)

    def to_float(self, x: Liftable) -> Value:
        return self._one("to_float", x)

    def to_int(self, x: Liftable) -> Value:
        return self._one("to_int", x)

    # elementwise, two or three arguments, with broadcasting
    def add(self, a: Liftable, b: Liftable) -> Value:
        return self._one("add", a, b)

    def sub(self, a: Liftable, b: Liftable) -> Value:
        return self._one("sub", a, b)

    def mul(self, a: Liftable, b: Liftable) -> Value:
        return self._one("mul", a, b)

    def div(self, a: Liftable, b: Liftable) -> Value:
        return self._one("div", a, b)

    def pow(self, a: Liftable, b: Liftable) -> Value:
        """x**1, x**2, x**(1/2) and x**-1 are x, x x, sqrt(x) and 1/x: one rounding, the same in every target."""
        exponent = self.lift(b).operand
        if (
            isinstance(exponent, Literal)
            and exponent.value in (1, 2, 0.5, -1)
            and exponent.type.dtype is not DType.BOOL
        ):
            x = self._promote((self.lift(a),), (DType.FLOAT,))[0]
            match exponent.value:
                case 1:
                    return x
                case 2:
                    return self.mul(x, x)
                case -1:
                    return self.div(1.0, x)
            return self.sqrt(x)
        return self._one("pow", a, b)

    def mod(self, a: Liftable, b: Liftable) -> Value:
        return self._one("mod", a, b)

    def maximum(self, a: Liftable, b: Liftable) -> Value:
        return self._one("maximum", a, b)

    def minimum(self, a: Liftable, b: Liftable) -> Value:
        return self._one("minimum", a, b)

    def lt(self, a: Liftable, b: Liftable) -> Value:
        return self._one("lt", a, b)

    def le(self, a: Liftable, b: Liftable) -> Value:
        return self._one("le", a, b)

    def eq(self, a: Liftable, b: Liftable) -> Value:
        return self._one("eq", a, b)

    def and_(self, a: Liftable, b: Liftable) -> Value:
        return self._one("and", a, b)

    def or_(self, a: Liftable, b: Liftable) -> Value:
        return self._one("or", a, b)

    def where(self, condition: Liftable, a: Liftable, b: Liftable) -> Value:
        return self._one("where", condition, a, b)

    # reductions over all entries (axis None) or along one axis
    def _reduce(self, op: str, x: Liftable, axis: int | None) -> Value:
        value = self.lift(x)
        if axis is not None and axis < 0:
            axis += value.ndim
        return self._one(op, value, axis=axis)

    def sum(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("sum", x, axis)

    def max(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("max", x, axis)

    def min(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("min", x, axis)

    def prod(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("prod", x, axis)

    def any(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("any", x, axis)

    def all(self, x: Liftable, axis: int | None = None) -> Value:
        return self._reduce("all", x, axis)

    def argmax(self, x: Liftable) -> Value:
        return self._one("argmax", x) if self.lift(x).ndim else self.lift(0)

    def argmin(self, x: Liftable) -> Value:
        return self._one("argmin", x) if self.lift(x).ndim else self.lift(0)

    def cumsum(self, x: Liftable) -> Value:
        return self._one("cumsum", x)

    # products and shapes
    def matmul(self, a: Liftable, b: Liftable) -> Value:
        return self._one("matmul", a, b)

    def outer(self, a: Liftable, b: Liftable) -> Value:
        return self._one("outer", a, b)

    def transpose(self, x: Liftable) -> Value:
        return self._one("transpose", x)

    def reshape(self, x: Liftable, shape: Shape) -> Value:
        value = self.lift(x)
        return value if value.shape == shape else self._one("reshape", value, shape=tuple(int(n) for n in shape))

    def broadcast(self, x: Liftable, shape: Shape) -> Value:
        value = self.lift(x)
        return value if value.shape == shape else self._one("broadcast", value, shape=tuple(int(n) for n in shape))

    def concat(self, *xs: Liftable, axis: int = 0) -> Value:
        return self._one("concat", *xs, axis=axis)

    def stack(self, *xs: Liftable) -> Value:
        return self._one("stack", *xs)

    # indexing
    def slice(self, x: Liftable, starts: Shape, stops: Shape) -> Value:
        return self._one("slice", x, starts=starts, stops=stops)

    def gather(self, x: Liftable, *indices: Liftable) -> Value:
        return self._one("gather", x, *indices)

    def scatter_add(self, values: Liftable, *indices: Liftable, shape: Shape) -> Value:
        return self._one("scatter_add", values, *indices, shape=tuple(int(n) for n in shape))

    def put(self, x: Liftable, value: Liftable, *indices: Liftable) -> Value:
        return self._one("put", x, value, *indices)

    # constructors
    def full(self, value: Liftable, shape: Shape) -> Value:
        if isinstance(value, tuple):
            raise InternalError("full(value, shape): the value comes first")
        return self._one("full", value, shape=tuple(int(n) for n in shape))

    def zeros(self, shape: Shape) -> Value:
        """Array of zeros."""
        return self.full(0.0, shape)

    def ones(self, shape: Shape) -> Value:
        """Array of ones."""
        return self.full(1.0, shape)

    def iota(self, n: int) -> Value:
        return self._one("iota", n=int(n))

    def eye(self, n: int) -> Value:
        return self._one("eye", n=int(n))

    def diag(self, x: Liftable) -> Value:
        return self._one("diag", x)

    # kernels
    def sort(self, x: Liftable) -> Value:
        return self._one("sort", x)

    def argsort(self, x: Liftable) -> Value:
        return self._one("argsort", x)

    def weighted_quantile(self, keys: Liftable, weights: Liftable, amount: Liftable) -> Value:
        return self._one("weighted_quantile", keys, weights, amount)

    def solve(self, a: Liftable, b: Liftable) -> Value:
        return self._one("solve", a, b)

    def svd(self, x: Liftable) -> tuple[Value, Value, Value]:
        u, s, vt = self.apply("svd", x)
        return u, s, vt

    def eigh(self, x: Liftable) -> tuple[Value, Value]:
        w, v = self.apply("eigh", x)
        return w, v

    def index(self, x: Value, item: Any) -> Value:
        """`x[item]`: integers, slices with step one, integer arrays (paired, as in NumPy), from the first axis on."""
        items = item if isinstance(item, tuple) else (item,)
        if len(items) > x.ndim:
            raise InternalError(f"{len(items)} indices into {x.type}")
        if not any(isinstance(i, slice) for i in items):
            return self.gather(x, *(self._place(i, n) for i, n in zip(items, x.shape)))
        if any(not isinstance(i, (slice, int, np.integer)) for i in items):
            raise InternalError("slices stand beside integers only")
        return self._part(x, items)

    def _part(self, x: Value, items: tuple[Any, ...]) -> Value:
        ranges = [(i if isinstance(i, slice) else slice(i % n, i % n + 1)).indices(n) for i, n in zip(items, x.shape)]
        ranges += [(0, n, 1) for n in x.shape[len(items) :]]
        if any(step != 1 for _, _, step in ranges):
            raise InternalError("slices have step one")
        starts = tuple(a for a, _, _ in ranges)
        stops = tuple(max(a, b) for a, b, _ in ranges)
        kept = tuple(
            b - a for k, (a, b) in enumerate(zip(starts, stops)) if k >= len(items) or isinstance(items[k], slice)
        )
        return self.reshape(self.slice(x, starts, stops), kept)

    def _place(self, index: Any, size: int) -> Liftable:
        if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
            place = int(index) + size if index < 0 else int(index)
            if not 0 <= place < size:
                raise InternalError(f"index {index} into an axis of {size}")
            return place
        result: Liftable = index
        return result
