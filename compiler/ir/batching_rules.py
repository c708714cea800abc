"""How each operation acts on many values at once, side by side along a new last axis (the lanes).

Arrays stretch from the last axis on, so values with lanes go with one another as they are, and a value that all lanes share gets a last
axis of one. Every lane's sums keep their order. Decompositions and sorting go lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.small_solves import LARGEST, eliminate
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Batched:
    """A value, and whether it has lanes."""

    value: Value
    each: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in one lane."""
        return self.value.shape[:-1] if self.each else self.value.shape


@dataclass(frozen=True)
class Lanes:
    """Operations over `count` lanes. `guarded`: some lanes compute with values that are not theirs, so that indices are kept inside."""

    t: Tracer
    count: int
    guarded: bool = False

    def beside(self, x: Batched) -> Value:
        """A value that stretches over the lanes where it has none."""
        return x.value if x.each or not x.value.shape else self.t.reshape(x.value, (*x.value.shape, 1))

    def full(self, x: Batched) -> Value:
        """A value with an entry for each lane."""
        return x.value if x.each else self.t.broadcast(self.beside(x), (*x.shape, self.count))

    def apply(self, op: str, args: Sequence[Batched], attrs: Attributes) -> list[Batched]:
        """The results of an operation: without lanes where no argument has them."""
        if not any(a.each for a in args):
            return [Batched(v, False) for v in self.t.apply(op, *(a.value for a in args), **attrs)]
        if OPS[op].elementwise:
            found: Sequence[Value] = self.t.apply(op, *map(self.beside, args), **attrs)
        elif op in RULES:
            found = [RULES[op](self, args, attrs)]
        else:
            found = self.lane_by_lane(op, args, attrs)
        return [Batched(v, True) for v in found]

    def lane_by_lane(self, op: str, args: Sequence[Batched], attrs: Attributes) -> Sequence[Value]:
        """One lane after the other."""
        t, types = self.t, [Type(a.value.dtype, a.shape) for a in args]
        results = OPS[op].infer(tuple(types), attrs)
        zeros = {DType.FLOAT: 0.0, DType.INT: 0, DType.BOOL: False}
        start = [t.full(zeros[r.dtype], (*r.shape, self.count)) for r in results]

        def lane(i: Value, *outs: Value) -> tuple[Value, ...]:
            own = [t.gather(a.value, *_every(t, a.shape), i) if a.each else a.value for a in args]
            made = t.apply(op, *own, **attrs)
            return tuple(t.put(o, m, *_every(t, m.shape), i) for o, m in zip(outs, made))

        return t.for_(self.count, lane, start)

    def indices(self, base: tuple[int, ...], given: Sequence[Batched], lanes_too: bool) -> list[Value]:
        """An index for each axis of an array: the given ones, then every entry of the axes that are left, then every lane."""
        t, rest = self.t, base[len(given) :]
        found = []
        for k, i in enumerate(given):
            index = t.reshape(i.value, (*i.shape, *(1 for _ in rest), self.count if i.each else 1))
            if self.guarded and i.each:
                index = t.minimum(t.maximum(index, 0), base[k] - 1)
            found.append(index)
        for k, n in enumerate(rest):
            found.append(t.reshape(t.iota(n), (n, *(1 for _ in rest[k + 1 :]), 1)))
        return [*found, t.iota(self.count)] if lanes_too else found


def _every(t: Tracer, shape: tuple[int, ...]) -> list[Value]:
    """Indices of all entries: one array for each axis, which stretch to the shape together."""
    return [t.reshape(t.iota(n), (n, *(1 for _ in shape[k + 1 :]))) for k, n in enumerate(shape)]


Rule = Callable[[Lanes, Sequence[Batched], Attributes], Value]


def _reduction(op: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
        (x,), axis = args, attrs["axis"]
        value = x.value
        if axis is None and len(x.shape) != 1:
            value = lanes.t.reshape(value, (math.prod(x.shape), lanes.count))
        return lanes.t.apply(op, value, axis=axis or 0)[0]

    return rule


def _place_of(further: Callable[[Value, Value], Value]) -> Rule:
    """The first of the extreme entries; NaN counts as the most extreme."""

    def rule(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
        t, (x,) = lanes.t, args
        rows = t.reshape(x.value, (math.prod(x.shape), lanes.count))

        def turn(i: Value, best: Value, place: Value) -> tuple[Value, Value]:
            row = t.gather(rows, i)
            better = t.or_(further(row, best), t.and_(row != row, t.eq(best, best)))
            return t.where(better, row, best), t.where(better, i, place)

        return t.for_(rows.shape[0], turn, (t.gather(rows, 0), t.full(0, (lanes.count,))))[1]

    return rule


def _cumsum(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args

    def turn(i: Value, total: Value, out: Value) -> tuple[Value, Value]:
        total = total + t.gather(x.value, i)
        return total, t.put(out, total, i)

    zero = 0.0 if x.value.dtype is DType.FLOAT else 0
    return t.for_(x.shape[0], turn, (t.full(zero, (lanes.count,)), t.full(zero, x.value.shape)))[1]


def _matmul(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    a, b = map(lanes.beside, args)
    if len(args[1].shape) == 2:  # (m, n) or (n,) with (n, k): the axis k goes last in both
        a = lanes.t.reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    return lanes.t.sum(a * b, axis=len(args[0].shape) - 1)


def _outer(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    a, b = args
    left = lanes.t.reshape(a.value, (*a.shape, *(1 for _ in b.shape), lanes.count if a.each else 1))
    return left * lanes.beside(b)


def _transpose(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args
    rank = len(x.shape)
    if rank < 2:
        return x.value
    places = range(rank)
    order = [t.reshape(t.iota(n), tuple(n if p == rank - 1 - k else 1 for p in places)) for k, n in enumerate(x.shape)]
    return t.gather(x.value, *order)


def _reshape(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    return lanes.t.reshape(args[0].value, (*attrs["shape"], lanes.count))


def _stretched(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    return lanes.t.broadcast(args[0].value, (*attrs["shape"], lanes.count))


def _concat(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    return lanes.t.concat(*map(lanes.full, args), axis=attrs["axis"])


def _stack(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    return lanes.t.stack(*map(lanes.full, args))


def _slice(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    return lanes.t.slice(args[0].value, (*attrs["starts"], 0), (*attrs["stops"], lanes.count))


def _gather(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    base, *given = args
    if not any(i.each for i in given):
        return lanes.t.gather(base.value, *(i.value for i in given))
    return lanes.t.gather(base.value, *lanes.indices(base.shape, given, base.each))


def _put(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    base, value, *given = args
    if not any(i.each for i in given):
        return lanes.t.put(lanes.full(base), lanes.beside(value), *(i.value for i in given))
    return lanes.t.put(lanes.full(base), lanes.beside(value), *lanes.indices(base.shape, given, True))


def _scatter_add(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    value, *given = args
    shape = (*attrs["shape"], lanes.count)
    if not any(i.each for i in given):
        return lanes.t.scatter_add(lanes.beside(value), *(i.value for i in given), shape=shape)
    return lanes.t.scatter_add(lanes.beside(value), *lanes.indices(attrs["shape"], given, True), shape=shape)


def _diag(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    t, (x,) = lanes.t, args
    n = x.shape[0]
    if len(x.shape) == 2:
        return t.gather(x.value, t.iota(n), t.iota(n))
    zero = 0.0 if x.value.dtype is DType.FLOAT else 0
    on = t.reshape(t.eq(t.eye(n), 1.0), (n, n, 1))
    return t.where(on, t.reshape(x.value, (1, n, lanes.count)), zero)


def _solve(lanes: Lanes, args: Sequence[Batched], attrs: Attributes) -> Value:
    t, (a, b) = lanes.t, args
    n = b.shape[0]
    if not 1 <= n <= LARGEST or len(b.shape) != 1:
        return lanes.lane_by_lane("solve", args, attrs)[0]
    left, right = lanes.full(a), lanes.full(b)
    entries = [[t.gather(left, i, j) for j in range(n)] for i in range(n)]
    return t.stack(*(row[0] for row in eliminate(t, entries, [[t.gather(right, i)] for i in range(n)])))


RULES: dict[str, Rule] = {
    **{op: _reduction(op) for op in ("sum", "prod", "max", "min", "any", "all")},
    "argmax": _place_of(lambda a, b: a > b),
    "argmin": _place_of(lambda a, b: a < b),
    "cumsum": _cumsum,
    "matmul": _matmul,
    "outer": _outer,
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": _stretched,
    "full": _stretched,
    "concat": _concat,
    "stack": _stack,
    "slice": _slice,
    "gather": _gather,
    "put": _put,
    "scatter_add": _scatter_add,
    "diag": _diag,
    "solve": _solve,
}
"""Rows for operations of which some argument has lanes; elementwise ones and those that go lane by lane need none."""
