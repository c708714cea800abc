"""A traced value: it stands for an array that a running program will have, and records what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.ir.program import DType, Operand, Type
from oco.dsl.diagnostics import InternalError

if TYPE_CHECKING:
    from oco.compiler.ir.methods import PrimitiveMethods


OPERAND, TYPE = attrgetter("operand"), attrgetter("operand.type")
"""Operand of a value, and its type: a comprehension over the arguments of every equation takes twice the time."""


class Value:
    """An array of known type. Arithmetic, comparisons, indexing, `.T` and `@` mean what they mean in NumPy."""

    __slots__ = ("operand", "tracer")
    __array_ufunc__ = None  # so that `array * value` asks the value

    def __init__(self, tracer: PrimitiveMethods, operand: Operand) -> None:
        self.tracer = tracer
        self.operand = operand

    @property
    def type(self) -> Type:
        """Kind and shape."""
        return self.operand.type

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.operand.type.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> DType:
        """Kind of the entries."""
        return self.operand.type.dtype

    @property
    def T(self) -> Value:
        """Transpose."""
        return self.tracer.transpose(self)

    def _binary(self, op: str, other: Liftable, swapped: bool = False) -> Value:
        """One equation; other kinds of objects get the chance to answer themselves."""
        if not isinstance(other, LIFTABLE):
            return NotImplemented
        return self.tracer.apply(op, *((other, self) if swapped else (self, other)))[0]

    def __add__(self, other: Liftable) -> Value:
        return self._binary("add", other)

    def __radd__(self, other: Liftable) -> Value:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: Liftable) -> Value:
        return self._binary("sub", other)

    def __rsub__(self, other: Liftable) -> Value:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: Liftable) -> Value:
        return self._binary("mul", other)

    def __rmul__(self, other: Liftable) -> Value:
        return self._binary("mul", other, swapped=True)

    def __truediv__(self, other: Liftable) -> Value:
        return self._binary("div", other)

    def __rtruediv__(self, other: Liftable) -> Value:
        return self._binary("div", other, swapped=True)

    def __pow__(self, other: Liftable) -> Value:
        return self.tracer.pow(self, other) if isinstance(other, LIFTABLE) else NotImplemented

    def __rpow__(self, other: Liftable) -> Value:
        return self._binary("pow", other, swapped=True)

    def __mod__(self, other: Liftable) -> Value:
        return self._binary("mod", other)

    def __matmul__(self, other: Liftable) -> Value:
        return self._binary("matmul", other)

    def __rmatmul__(self, other: Liftable) -> Value:
        return self._binary("matmul", other, swapped=True)

    def __neg__(self) -> Value:
        return self.tracer.neg(self)

    def __abs__(self) -> Value:
        return self.tracer.abs(self)

    def __lt__(self, other: Liftable) -> Value:
        return self._binary("lt", other)

    def __le__(self, other: Liftable) -> Value:
        return self._binary("le", other)

    def __gt__(self, other: Liftable) -> Value:
        return self._binary("lt", other, swapped=True)

    def __ge__(self, other: Liftable) -> Value:
        return self._binary("le", other, swapped=True)

    def __eq__(self, other: Liftable) -> Value:  # type: ignore[override]
        return self.tracer.eq(self, other)

    def __ne__(self, other: Liftable) -> Value:  # type: ignore[override]
        return self.tracer.not_(self.tracer.eq(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Liftable) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Liftable) -> Value:
        return self._binary("or", other)

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


LIFTABLE = (Value, float, int, np.generic, np.ndarray)
Liftable = Value | float | int | bool | np.generic | np.ndarray[Any, Any]
