"""Sizes of the terms that a traced value is the sum of: what its rounding error is a share of.

|v|_+ is v with the size of each term in the place of the term, in all sums and differences that it is made of, down to what the block is
given and to what is not linear. In arithmetic of relative error u, v is known up to a small multiple of u |v|_+ (Higham 2002, chapter 3).
"""

from __future__ import annotations

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Equation, Literal, Operand, Var
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value


def term_sizes(t: Tracer, v: Value) -> Value | None:
    """|v|_+, of the shape of v; None where v is no sum, so that it is known as well as what the block is given."""
    return _Sizes(t).of(v.operand)


class _Sizes:
    """`made`: the equation of each value of the open blocks. `known`: sizes so far, None for what is no sum."""

    def __init__(self, t: Tracer) -> None:
        self.t = t
        self.made = {out.name: e for e in t.open_equations for out in e.outs}
        self.known: dict[str, Value | None] = {}

    def of(self, v: Operand) -> Value | None:
        if not isinstance(v, Var) or v.type.dtype is not DType.FLOAT or v.name not in self.made:
            return None
        if v.name not in self.known:
            self.known[v.name] = self._made_by(self.made[v.name])
        return self.known[v.name]

    def _made_by(self, e: Equation) -> Value | None:
        row = OPS.get(e.op)
        if row is None or row.sizes is None:
            return None
        counted = row.sizes.counted or len(e.args)
        known = [self.of(a) for a in e.args[:counted]]
        if not row.sizes.adds and all(s is None for s in known):
            return None
        sizes = [self._size(a) if s is None else s for a, s in zip(e.args, known)]
        if row.sizes.on_sizes is None:
            return sizes[0]
        rest = [self._size(a) for a in e.args[counted:]]
        attrs = {name: value for name, value in e.attrs if name in row.attrs}
        return self.t.apply(row.sizes.on_sizes or e.op, *sizes, *rest, **attrs)[0]

    def _size(self, v: Operand) -> Value:
        """The value itself where it is no float, as a condition or an index is, or known to have no entry below 0; else its size."""
        value = Value(self.t, v)
        if v.type.dtype is not DType.FLOAT or (isinstance(v, Literal) and v.value >= 0):
            return value
        constants = (g for g in self.t.constants if isinstance(v, Var) and g.var.name == v.name)
        return value if any((g.value >= 0).all() for g in constants) else abs(value)
