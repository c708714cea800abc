"""Type rules of the operations: from the types of the arguments to the types of the results, or a broken rule in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oco.compiler.ir.program import DType, Type
from oco.dsl.diagnostics import InternalError

Attributes = Mapping[str, Any]
Rule = Callable[[tuple[Type, ...], Attributes], tuple[Type, ...]]

FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL
NUMBER = (FLOAT, INT)
ANY = (FLOAT, INT, BOOL)


def require(condition: bool, message: str | Callable[[], str]) -> None:
    """Long messages are functions, called where a rule is broken: the checker runs after every pass."""
    if not condition:
        raise InternalError(message if isinstance(message, str) else message())


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's rule: axes align at the right, ones stretch."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    if len(shapes) == 2 and () in shapes:
        return shapes[0] or shapes[1]
    rank = max(map(len, shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        require(len(sizes) <= 1, lambda: f"shapes {', '.join(map(str, shapes))} do not fit")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def elementwise(allowed: tuple[DType, ...], result: DType | None = None) -> Rule:
    """All arguments of one of the `allowed` kinds, the same kind; entries of the result of kind `result` (None: the same)."""

    def rule(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        kind, shape = types[0].dtype, types[0].shape
        if kind not in allowed or [t for t in types if t.dtype is not kind]:
            raise InternalError(f"entries {[str(t) for t in types]}, not alike in {allowed}")
        stretched = shape if len(types) == 1 else broadcast_shapes(*[t.shape for t in types])
        return (types[0] if result is None and stretched == shape else Type(result or kind, stretched),)

    return rule


def where(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    condition, a, b = types
    require(condition.dtype is BOOL and a.dtype is b.dtype, "where(bool, a, b) with a and b of one kind")
    return (Type(a.dtype, broadcast_shapes(condition.shape, a.shape, b.shape)),)


def reduction(allowed: tuple[DType, ...], of_none: bool = True) -> Rule:
    """Over all entries (`axis` None) or along one axis; `of_none`: whether there is a result for no entries."""

    def rule(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        (x,), axis = types, attrs["axis"]
        require(x.dtype in allowed and len(x.shape) > 0, lambda: f"a reduction of {x}")
        require(of_none or _size(x.shape) > 0, lambda: f"an extreme entry of {x}")
        if axis is None:
            return (Type(x.dtype),)
        require(0 <= axis < len(x.shape), lambda: f"axis {axis} of {x}")
        return (Type(x.dtype, x.shape[:axis] + x.shape[axis + 1 :]),)

    return rule


def arg_reduction(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(
        types[0].dtype in NUMBER and len(types[0].shape) > 0 and _size(types[0].shape) > 0,
        lambda: f"the place of an extreme entry of {types[0]}",
    )
    return (Type(INT),)


def vector(allowed: tuple[DType, ...], result: DType | None = None) -> Rule:
    """One argument with one axis; the result has the same shape."""

    def rule(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        require(len(types[0].shape) == 1 and types[0].dtype in allowed, lambda: f"a vector, not {types[0]}")
        return (Type(result or types[0].dtype, types[0].shape),)

    return rule


def matmul(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    a, b = types
    require(a.dtype is FLOAT and b.dtype is FLOAT, lambda: f"a product of {a} and {b}")
    require(
        1 <= len(a.shape) <= 2 and 1 <= len(b.shape) <= 2, lambda: f"a product of {a} and {b}: one or two axes each"
    )
    require(a.shape[-1] == b.shape[0], lambda: f"a product of {a} and {b}: inner sizes differ")
    return (Type(FLOAT, a.shape[:-1] + b.shape[1:]),)


def outer(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(all(t.dtype is FLOAT for t in types), "an outer product of floats")
    return (Type(FLOAT, types[0].shape + types[1].shape),)


def transpose(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(len(types[0].shape) > 1, lambda: f"the transpose of {types[0]}")
    return (Type(types[0].dtype, types[0].shape[::-1]),)


def reshape(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    shape = attrs["shape"]
    require(_size(shape) == _size(types[0].shape), lambda: f"{types[0]} does not fill the shape {shape}")
    return (Type(types[0].dtype, shape),)


def broadcast(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    shape = attrs["shape"]
    require(broadcast_shapes(types[0].shape, shape) == shape, lambda: f"{types[0]} does not stretch to {shape}")
    return (Type(types[0].dtype, shape),)


def concat(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    axis, first = attrs["axis"], types[0]
    require(0 <= axis < len(first.shape), lambda: f"axis {axis} of {first}")
    total = 0
    for t in types:
        require(len(t.shape) == len(first.shape), f"{t} beside {first}")
        rest = t.shape[:axis] + t.shape[axis + 1 :]
        require(
            t.dtype is first.dtype and rest == first.shape[:axis] + first.shape[axis + 1 :],
            f"{t} beside {first}",
        )
        total += t.shape[axis]
    return (Type(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def stack(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(len(set(types)) == 1, lambda: f"arrays of one type, not {[str(t) for t in types]}")
    return (Type(types[0].dtype, (len(types), *types[0].shape)),)


def slice_(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    starts, stops, shape = attrs["starts"], attrs["stops"], types[0].shape
    require(len(starts) == len(stops) == len(shape) > 0, "a start and a stop for each axis")
    require(all(0 <= a <= b <= n for a, b, n in zip(starts, stops, shape)), lambda: f"{starts}:{stops} of {types[0]}")
    return (Type(types[0].dtype, tuple(b - a for a, b in zip(starts, stops))),)


def _selected(shape: tuple[int, ...], indices: tuple[Type, ...]) -> tuple[int, ...]:
    """Shape of `x[i, j, ...]` with integer arrays: their common shape, then the axes that are left."""
    require(0 < len(indices) <= len(shape), lambda: f"{len(indices)} indices into {shape}")
    require(all(i.dtype is INT for i in indices), "indices are integers")
    return broadcast_shapes(*(i.shape for i in indices)) + shape[len(indices) :]


def gather(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    return (Type(types[0].dtype, _selected(types[0].shape, types[1:])),)


def scatter_add(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    shape = attrs["shape"]
    selected = _selected(shape, types[1:])
    require(
        types[0].dtype is FLOAT and broadcast_shapes(types[0].shape, selected) == selected,
        lambda: f"{types[0]} into {selected}",
    )
    return (Type(FLOAT, shape),)


def put(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, value, *indices = types
    selected = _selected(x.shape, tuple(indices))
    require(
        x.dtype is value.dtype and broadcast_shapes(value.shape, selected) == selected,
        lambda: f"{value} into {selected} of {x}",
    )
    return (x,)


def full(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(types[0].shape == (), "one number to fill with")
    return (Type(types[0].dtype, attrs["shape"]),)


def iota(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    return (Type(INT, (attrs["n"],)),)


def eye(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    return (Type(FLOAT, (attrs["n"], attrs["n"])),)


def diag(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    shape = types[0].shape
    require(len(shape) in (1, 2), lambda: f"the diagonal of {types[0]}")
    return (Type(types[0].dtype, shape * 2 if len(shape) == 1 else (min(shape),)),)


def _square(a: Type) -> int:
    require(a.dtype is FLOAT and len(a.shape) == 2 and a.shape[0] == a.shape[1], lambda: f"a square matrix, not {a}")
    return a.shape[0]


def weighted_quantile(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    keys, weights, amount = types
    matching = keys == weights and keys.dtype is amount.dtype is FLOAT
    require(
        matching and len(keys.shape) == 1 and keys.shape[0] > 0 and amount.shape == (),
        lambda: f"keys {keys}, weights {weights}",
    )
    return (amount,)


def solve(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    a, b = types
    n = _square(a)
    require(
        b.dtype is FLOAT and len(b.shape) in (1, 2) and b.shape[0] == n, lambda: f"a right-hand side for {a}, not {b}"
    )
    return (b,)


def entries(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (x,) = types
    require(len(x.shape) > 0 and _size(x.shape) > 0, lambda: f"the entries of {x}")
    return tuple(Type(x.dtype) for _ in range(_size(x.shape)))


def svd(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require(types[0].dtype is FLOAT and len(types[0].shape) == 2, lambda: f"a matrix, not {types[0]}")
    m, n = types[0].shape
    k = min(m, n)
    return Type(FLOAT, (m, k)), Type(FLOAT, (k,)), Type(FLOAT, (k, n))


def eigh(types: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    n = _square(types[0])
    return Type(FLOAT, (n,)), Type(FLOAT, (n, n))
