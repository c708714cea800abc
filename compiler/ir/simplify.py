"""Pass: identities that hold bit for bit, also for NaN, infinities and -0.0.

x * 1, x / 1, x - 0 are x; a + (-b) is a - b; (-1) * x is -x; a stretch that the next operation makes anyway goes, as do
transposes of transposes and shapes of shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Literal, Operand, Program, Var
from oco.compiler.ir.rewrite import keep_notes, map_functions
from oco.compiler.ir.type_rules import broadcast_shapes

Answer = Operand | Equation | None


def simplify(program: Program) -> Program:
    """Rewrite a program with fewer operations; what is no longer read is left to the dead-code pass."""
    return map_functions(program, lambda f: replace(f, body=_Simplifier().block(f.body)))


@dataclass
class _Simplifier:
    """`made_by` holds the equation that binds each variable; `values` what stands for a variable that went."""

    made_by: dict[str, Equation] = field(default_factory=dict)
    values: dict[str, Operand] = field(default_factory=dict)

    def block(self, block: Block) -> Block:
        kept: list[tuple[Equation, bool]] = []
        for e in block.equations:
            e = e.having(tuple(map(self.read, e.args)))
            answer = self.simpler(e)
            while isinstance(answer, Equation):
                e, answer = answer, self.simpler(answer)
            if answer is None:
                e = e.having(e.args, tuple(map(self.block, e.blocks))) if e.blocks else e
                self.made_by |= {v.name: e for v in e.outs}
            else:
                self.values[e.outs[0].name] = answer
            kept.append((e, answer is None))
        return Block(block.params, keep_notes(kept), tuple(map(self.read, block.results)))

    def read(self, operand: Operand) -> Operand:
        return self.values.get(operand.name, operand) if isinstance(operand, Var) else operand

    def simpler(self, e: Equation) -> Answer:
        """An operand that equals the result, or an equation that replaces this one, or None."""
        if e.op in OPS and OPS[e.op].elementwise and (shorter := self.without_stretches(e)) is not None:
            return shorter
        rule = _RULES.get(e.op)
        return rule(self, e) if rule else None

    def source(self, operand: Operand, op: str) -> Equation | None:
        """The equation behind an operand, if it is of this kind."""
        result = self.made_by.get(operand.name) if isinstance(operand, Var) else None
        return result if result is not None and result.op == op else None

    def unstretched(self, operand: Operand) -> Operand:
        """Value that an operand is a stretch of, or the operand."""
        behind = self.source(operand, "broadcast") or self.source(operand, "full")
        return behind.args[0] if behind else operand

    def without_stretches(self, e: Equation) -> Equation | None:
        """Arguments taken before they were stretched, where the operation stretches them to the same shape itself."""
        before = [self.unstretched(a) for a in e.args]
        if before == list(e.args) or broadcast_shapes(*(a.type.shape for a in before)) != e.outs[0].type.shape:
            return None
        return replace(e, args=tuple(before))


def _is(operand: Operand, value: float) -> bool:
    return isinstance(operand, Literal) and repr(operand.value) == repr(type(operand.value)(value))


def _same_type(e: Equation, operand: Operand) -> Answer:
    return operand if operand.type == e.outs[0].type else None


def _add(s: _Simplifier, e: Equation) -> Answer:
    a, b = e.args
    if behind := s.source(b, "neg"):
        return replace(e, op="sub", args=(a, behind.args[0]))
    if behind := s.source(a, "neg"):
        return replace(e, op="sub", args=(b, behind.args[0]))
    return None


def _sub(s: _Simplifier, e: Equation) -> Answer:
    a, b = e.args
    if _is(b, 0.0):
        return _same_type(e, a)
    if behind := s.source(b, "neg"):
        return replace(e, op="add", args=(a, behind.args[0]))
    return None


def _mul(s: _Simplifier, e: Equation) -> Answer:
    for one, other in (e.args, e.args[::-1]):
        if _is(one, 1.0):
            return _same_type(e, other)
        if _is(one, -1.0) and other.type == e.outs[0].type:
            return replace(e, op="neg", args=(other,))
    a, b = s.source(e.args[0], "neg"), s.source(e.args[1], "neg")
    return replace(e, args=(a.args[0], b.args[0])) if a and b else None


def _div(s: _Simplifier, e: Equation) -> Answer:
    return _same_type(e, e.args[0]) if _is(e.args[1], 1.0) else None


def _twice(op: str) -> Callable[[_Simplifier, Equation], Answer]:
    """An operation that undoes itself."""

    def rule(s: _Simplifier, e: Equation) -> Answer:
        behind = s.source(e.args[0], op)
        return behind.args[0] if behind else None

    return rule


def _transpose(s: _Simplifier, e: Equation) -> Answer:
    return e.args[0] if len(e.args[0].type.shape) < 2 else _twice("transpose")(s, e)


def _chained(op: str) -> Callable[[_Simplifier, Equation], Answer]:
    """An operation whose result alone counts when it is done twice; nothing, where the shape is there already."""

    def rule(s: _Simplifier, e: Equation) -> Answer:
        if e.args[0].type.shape == e.outs[0].type.shape:
            return e.args[0]
        behind = s.source(e.args[0], op)
        return replace(e, args=behind.args) if behind else None

    return rule


def _whole(s: _Simplifier, e: Equation) -> Answer:
    return _same_type(e, e.args[0])


def _single(s: _Simplifier, e: Equation) -> Answer:
    return e.args[0] if len(e.args) == 1 else None


def _where(s: _Simplifier, e: Equation) -> Answer:
    condition, a, b = e.args
    if isinstance(condition, Literal):
        return _same_type(e, a if condition.value else b)
    return _same_type(e, a) if a == b and isinstance(a, Var) else None


_RULES: dict[str, Callable[[_Simplifier, Equation], Answer]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _twice("neg"),
    "not": _twice("not"),
    "transpose": _transpose,
    "reshape": _chained("reshape"),
    "broadcast": _chained("broadcast"),
    "slice": _whole,
    "concat": _single,
    "to_float": lambda s, e: _same_type(e, e.args[0]),
    "where": _where,
}
