"""Values of many learners side by side along a new last axis (the lanes), and an operation over them.

Arrays stretch from the last axis on, so values with lanes go with one another as they are, and a value that all lanes share gets a last
axis of one. Every lane's sums keep their order. Each row of `OPS` says how its operation acts: entrywise, by a rule of its own, or one
lane after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.records import dataclass

Attributes = Mapping[str, Any]
LANE = 1_000_003
"""Length that marks the axis of lanes in shapes, where their number is left open; no array of a rule is as long."""


@dataclass(frozen=True, slots=True)
class LaneValue:
    """A value, and whether it has lanes."""

    value: Value
    each: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in one lane."""
        return self.value.shape[:-1] if self.each else self.value.shape


@dataclass(frozen=True, slots=True)
class Lanes:
    """Operations over `count` lanes. `guarded`: some lanes compute with values that are not theirs, so that indices are kept inside."""

    t: Tracer
    count: int
    guarded: bool = False

    def beside(self, x: LaneValue) -> Value:
        """A value that stretches over the lanes where it has none."""
        return x.value if x.each or not x.value.shape else self.t.reshape(x.value, (*x.value.shape, 1))

    def full(self, x: LaneValue) -> Value:
        """A value with an entry for each lane."""
        return x.value if x.each else self.t.broadcast(self.beside(x), (*x.shape, self.count))

    def apply(self, op: str, args: Sequence[LaneValue], attrs: Attributes) -> list[LaneValue]:
        """The results of an operation: without lanes where no argument has them."""
        if True not in [a.each for a in args]:
            return [LaneValue(v, False) for v in self.t.apply(op, *[a.value for a in args], **attrs)]
        row = OPS[op]
        if row.elementwise:
            results: Sequence[Value] = self.t.apply(op, *map(self.beside, args), **attrs)
        elif row.lanes is not None:
            results = [row.lanes(self, args, attrs)]
        else:
            results = self.lane_by_lane(op, args, attrs)
        return [LaneValue(v, True) for v in results]

    def lane_by_lane(self, op: str, args: Sequence[LaneValue], attrs: Attributes) -> Sequence[Value]:
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

    def indices(self, base: tuple[int, ...], given: Sequence[LaneValue], lanes_too: bool) -> list[Value]:
        """An index for each axis of an array: the given ones, then every entry of the axes that are left, then every lane."""
        t, rest = self.t, base[len(given) :]
        results = []
        for k, i in enumerate(given):
            index = t.reshape(i.value, (*i.shape, *(1 for _ in rest), self.count if i.each else 1))
            if self.guarded and i.each:
                index = t.minimum(t.maximum(index, 0), base[k] - 1)
            results.append(index)
        for k, n in enumerate(rest):
            results.append(t.reshape(t.iota(n), (n, *(1 for _ in rest[k + 1 :]), 1)))
        return [*results, t.iota(self.count)] if lanes_too else results


def _every(t: Tracer, shape: tuple[int, ...]) -> list[Value]:
    """Indices of all entries: one array for each axis, which stretch to the shape together."""
    return [t.reshape(t.iota(n), (n, *(1 for _ in shape[k + 1 :]))) for k, n in enumerate(shape)]
