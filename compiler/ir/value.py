"""A traced value: it stands for an array that a running program will have, and records what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.ir.program import DType, Operand, Type
from oco.dsl.diagnostics import InternalError

if TYPE_CHECKING:
    from oco.compiler.ir.methods import PrimitiveMethods


class Value:
    """An array of known type. Arithmetic, comparisons, indexing, `.T` and `@` mean what they mean in NumPy."""

    __slots__ = ("operand", "tracer")
    __array_ufunc__ = None  # so that `array * value` asks the value

    def __init__(self, tracer: PrimitiveMethods, operand: Operand) -> None:
        self.tracer = tracer
        self.operand = operand

    @property
    def type(self) -> Type:
        return self.operand.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.operand.type.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> DType:
        return self.operand.type.dtype

    @property
    def T(self) -> Value:
        return self.tracer.transpose(self)

    def __add__(self, other: Liftable) -> Value:
        return self.tracer.add(self, other)

    def __radd__(self, other: Liftable) -> Value:
        return self.tracer.add(other, self)

    def __sub__(self, other: Liftable) -> Value:
        return self.tracer.sub(self, other)

    def __rsub__(self, other: Liftable) -> Value:
        return self.tracer.sub(other, self)

    def __mul__(self, other: Liftable) -> Value:
        return self.tracer.mul(self, other)

    def __rmul__(self, other: Liftable) -> Value:
        return self.tracer.mul(other, self)

    def __truediv__(self, other: Liftable) -> Value:
        return self.tracer.div(self, other)

    def __rtruediv__(self, other: Liftable) -> Value:
        return self.tracer.div(other, self)

    def __pow__(self, other: Liftable) -> Value:
        return self.tracer.pow(self, other)

    def __rpow__(self, other: Liftable) -> Value:
        return self.tracer.pow(other, self)

    def __mod__(self, other: Liftable) -> Value:
        return self.tracer.mod(self, other)

    def __matmul__(self, other: Liftable) -> Value:
        return self.tracer.matmul(self, other)

    def __rmatmul__(self, other: Liftable) -> Value:
        return self.tracer.matmul(other, self)

    def __neg__(self) -> Value:
        return self.tracer.neg(self)

    def __abs__(self) -> Value:
        return self.tracer.abs(self)

    def __lt__(self, other: Liftable) -> Value:
        return self.tracer.lt(self, other)

    def __le__(self, other: Liftable) -> Value:
        return self.tracer.le(self, other)

    def __gt__(self, other: Liftable) -> Value:
        return self.tracer.lt(other, self)

    def __ge__(self, other: Liftable) -> Value:
        return self.tracer.le(other, self)

    def __eq__(self, other: Liftable) -> Value:  # type: ignore[override]
        return self.tracer.eq(self, other)

    def __ne__(self, other: Liftable) -> Value:  # type: ignore[override]
        return self.tracer.not_(self.tracer.eq(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Liftable) -> Value:
        return self.tracer.and_(self, other)

    def __or__(self, other: Liftable) -> Value:
        return self.tracer.or_(self, other)

    def __invert__(self) -> Value:
        return self.tracer.not_(self)

    def __bool__(self) -> bool:
        raise InternalError("a traced value has no truth while tracing: use if_, while_ or where")

    def __len__(self) -> int:
        if not self.shape:
            raise InternalError("a traced number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Value]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, item: Any) -> Value:
        return self.tracer.index(self, item)

    def __repr__(self) -> str:
        return f"Value({getattr(self.operand, 'name', getattr(self.operand, 'value', ''))}: {self.type})"


Liftable = Value | float | int | bool | np.generic | np.ndarray[Any, Any]
