"""Rules of operations over lanes: an equation over values of one lane becomes equations over all lanes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oco.compiler.ir.program import DType

if TYPE_CHECKING:
    from oco.compiler.ir.lanes import Lanes, LaneValue
    from oco.compiler.ir.value import Value

Attributes = Mapping[str, Any]
LaneRule = Callable[["Lanes", "Sequence[LaneValue]", Attributes], "Value"]


def reduction_lanes(op: str) -> LaneRule:
    def rule(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
        (x,), axis, more = args, attrs["axis"], {k: v for k, v in attrs.items() if k != "axis"}
        value = x.value
        if axis is None and len(x.shape) != 1:
            value = lanes.t.reshape(value, (math.prod(x.shape), lanes.count))
        return lanes.t.apply(op, value, axis=axis or 0, **more)[0]

    return rule


def place_of_lanes(further: Callable[[Value, Value], Value]) -> LaneRule:
    """The first of the extreme entries; NaN counts as the most extreme."""

    def rule(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
        t, (x,) = lanes.t, args
        rows = t.reshape(x.value, (math.prod(x.shape), lanes.count))

        def turn(i: Value, best: Value, place: Value) -> tuple[Value, Value]:
            row = t.gather(rows, i)
            better = t.or_(further(row, best), t.and_(row != row, t.eq(best, best)))
            return t.where(better, row, best), t.where(better, i, place)

        return t.for_(rows.shape[0], turn, (t.gather(rows, 0), t.full(0, (lanes.count,))))[1]

    return rule


def cumsum_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args

    def turn(i: Value, total: Value, out: Value) -> tuple[Value, Value]:
        total = total + t.gather(x.value, i)
        return total, t.put(out, total, i)

    zero = 0.0 if x.value.dtype is DType.FLOAT else 0
    return t.for_(x.shape[0], turn, (t.full(zero, (lanes.count,)), t.full(zero, x.value.shape)))[1]


def matmul_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    a, b = map(lanes.beside, args)
    if len(args[1].shape) == 2:  # (m, n) or (n,) with (n, k): the axis k goes last in both
        a = lanes.t.reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    return lanes.t.apply("sum", a * b, axis=len(args[0].shape) - 1, **attrs)[0]


def outer_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    a, b = args
    left = lanes.t.reshape(a.value, (*a.shape, *(1 for _ in b.shape), lanes.count if a.each else 1))
    return left * lanes.beside(b)


def transpose_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args
    rank = len(x.shape)
    if rank < 2:
        return x.value
    places = range(rank)
    order = [t.reshape(t.iota(n), tuple(n if p == rank - 1 - k else 1 for p in places)) for k, n in enumerate(x.shape)]
    return t.gather(x.value, *order)


def reshape_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    return lanes.t.reshape(args[0].value, (*attrs["shape"], lanes.count))


def stretched_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    return lanes.t.broadcast(args[0].value, (*attrs["shape"], lanes.count))


def concat_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    return lanes.t.concat(*map(lanes.full, args), axis=attrs["axis"])


def stack_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    return lanes.t.stack(*map(lanes.full, args))


def slice_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    return lanes.t.slice(args[0].value, (*attrs["starts"], 0), (*attrs["stops"], lanes.count))


def gather_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    base, *given = args
    if not any(i.each for i in given):
        return lanes.t.gather(base.value, *(i.value for i in given))
    return lanes.t.gather(base.value, *lanes.indices(base.shape, given, base.each))


def put_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    base, value, *given = args
    if not any(i.each for i in given):
        return lanes.t.put(lanes.full(base), lanes.beside(value), *(i.value for i in given))
    return lanes.t.put(lanes.full(base), lanes.beside(value), *lanes.indices(base.shape, given, True))


def scatter_add_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    value, *given = args
    shape = (*attrs["shape"], lanes.count)
    if not any(i.each for i in given):
        return lanes.t.scatter_add(lanes.beside(value), *(i.value for i in given), shape=shape)
    return lanes.t.scatter_add(lanes.beside(value), *lanes.indices(attrs["shape"], given, True), shape=shape)


def diag_lanes(lanes: Lanes, args: Sequence[LaneValue], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args
    n = x.shape[0]
    if len(x.shape) == 2:
        return t.gather(x.value, t.iota(n), t.iota(n))
    zero = 0.0 if x.value.dtype is DType.FLOAT else 0
    on = t.reshape(t.eq(t.eye(n), 1.0), (n, n, 1))
    return t.where(on, t.reshape(x.value, (1, n, lanes.count)), zero)
