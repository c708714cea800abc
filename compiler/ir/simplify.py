"""Pass: identities that hold bit for bit, also for NaN, infinities and -0.0.

x * 1, x / 1, x - 0 are x; a + (-b) is a - b; (-1) * x is -x; a stretch that the next operation makes anyway goes, as do
transposes of transposes and shapes of shapes; arithmetic on stretched numbers is done on the numbers, and on rows of vectors on the
vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from oco.compiler.ir.names import identifier
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program, Var
from oco.compiler.ir.rewrite import LeftAlone, bound_names, keep_notes, map_functions
from oco.compiler.ir.type_rules import broadcast_shapes
from oco.dsl.records import dataclass

Answer = Operand | Equation | None

ROUNDED_ALIKE = frozenset({"add", "sub", "mul", "div", "neg", "abs", "sqrt", "maximum", "minimum"})
"""Operations that every target rounds the same for a number and for entries of an array."""


def simplify(program: Program, left_alone: LeftAlone | None = None) -> Program:
    """Rewrite a program with fewer operations; what is no longer read is left to the dead-code pass."""
    constants = {g.var.name for g in program.constants}

    def simplified(f: Function) -> Function:
        return f.having(_Simplifier(constants | set(bound_names(f.body))).block(f.body))

    return map_functions(program, simplified, left_alone)


@dataclass
class _Simplifier:
    """`taken`: names that something has; `made_by` holds the equation that binds each variable; `values` what stands for a variable that
    went; `stretched` what each stretch is of.
    """

    taken: set[str]
    made_by: dict[str, Equation] = field(default_factory=dict)
    values: dict[str, Operand] = field(default_factory=dict)
    stretched: dict[str, Operand] = field(default_factory=dict)

    def block(self, block: Block) -> Block:
        kept: list[tuple[Equation, bool]] = []
        for e in block.equations:
            e = e.having(tuple(map(self.read, e.args))) if self.values else e
            answer = self.simpler(e)
            while isinstance(answer, Equation):
                e, answer = answer, self.simpler(answer)
            if answer is None and (earlier := self.of_numbers(e) or self.of_vectors(e)) is not None:
                kept.append((earlier, True))
                self.made_by[earlier.outs[0].name] = earlier
                back = "reshape" if earlier.outs[0].type.shape else "broadcast"
                e = Equation(e.outs, back, earlier.outs, (("shape", e.outs[0].type.shape),), note=e.note)
            if answer is None:
                e = e.having(e.args, tuple(map(self.block, e.blocks))) if e.blocks else e
                for v in e.outs:
                    self.made_by[v.name] = e
                if e.op in ("broadcast", "full"):
                    self.stretched[e.outs[0].name] = e.args[0]
            else:
                self.values[e.outs[0].name] = answer
            kept.append((e, answer is None))
        return block.having(keep_notes(kept), tuple(map(self.read, block.results)))

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
        return self.stretched.get(operand.name, operand) if isinstance(operand, Var) else operand

    def of_numbers(self, e: Equation) -> Equation | None:
        """Arithmetic on the numbers that all arguments are stretches of; None where there are other arguments."""
        if not self.stretched or e.op not in ROUNDED_ALIKE or not e.outs[0].type.shape:
            return None
        before = tuple(map(self.unstretched, e.args))
        if any(a.type.shape for a in before):
            return None
        return self.bound(e, before, ())

    def of_vectors(self, e: Equation) -> Equation | None:
        """Operation entry by entry on the vectors that arguments are rows of, beside numbers; None where there are other arguments."""
        shape = e.outs[0].type.shape
        if len(shape) < 2 or shape[0] != 1 or e.op not in OPS or not OPS[e.op].elementwise:
            return None
        rest = shape[1:]
        before = [self.row_of(a, rest) for a in e.args]
        if any(a is None for a in before) or all(a is b or not a.type.shape for a, b in zip(e.args, before)):
            return None
        return self.bound(e, tuple(a for a in before if a is not None), rest)

    def row_of(self, operand: Operand, shape: tuple[int, ...]) -> Operand | None:
        """Vector of this shape that an operand is a row of; a number and an array of this shape are themselves."""
        if operand.type.shape in ((), shape):
            return operand
        behind = self.source(operand, "reshape")
        return behind.args[0] if behind and behind.args[0].type.shape == shape else None

    def bound(self, e: Equation, args: tuple[Operand, ...], shape: tuple[int, ...]) -> Equation:
        """The operation on other arguments, bound to a name that nothing has."""
        out = Var(identifier(e.outs[0].name, self.taken), replace(e.outs[0].type, shape=shape))
        self.taken.add(out.name)
        return Equation((out,), e.op, args, e.attrs)

    def without_stretches(self, e: Equation) -> Equation | None:
        """Arguments taken before they were stretched, where the operation stretches them to the same shape itself."""
        before = tuple(map(self.unstretched, e.args)) if self.stretched else e.args
        if before == e.args or broadcast_shapes(*(a.type.shape for a in before)) != e.outs[0].type.shape:
            return None
        return e.having(before)


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


def _reshape(s: _Simplifier, e: Equation) -> Answer:
    """Shape of what was a shape before, of a stretched number, or the transpose of a row or column, whose entries are in the same order."""
    number = s.unstretched(e.args[0])
    if e.args[0].type.shape and not number.type.shape and 0 not in e.outs[0].type.shape:
        return replace(e, op="full", args=(number,))
    behind = s.source(e.args[0], "transpose")
    if behind and sum(n > 1 for n in behind.args[0].type.shape) <= 1:
        return replace(e, args=behind.args)
    return _chained("reshape")(s, e)


def _broadcast(s: _Simplifier, e: Equation) -> Answer:
    """Stretch of what was stretched before, or of a number."""
    number = s.unstretched(e.args[0])
    if e.args[0].type.shape and not number.type.shape and 0 not in e.args[0].type.shape:
        return Equation(e.outs, "full", (number,), (("shape", e.outs[0].type.shape),))
    return _chained("broadcast")(s, e)


def _whole(s: _Simplifier, e: Equation) -> Answer:
    return _same_type(e, e.args[0])


def _single(s: _Simplifier, e: Equation) -> Answer:
    return e.args[0] if len(e.args) == 1 else None


def _where(s: _Simplifier, e: Equation) -> Answer:
    condition, a, b = e.args
    if isinstance(condition, Literal):
        return _same_type(e, a if condition.value else b)
    return _same_type(e, a) if a == b and isinstance(a, Var) else None


def _extreme(s: _Simplifier, e: Equation) -> Answer:
    """Largest or smallest entry of a stretched number: the number, or a stretch of it."""
    behind = s.unstretched(e.args[0])
    if behind.type.shape or not e.args[0].type.shape or 0 in e.args[0].type.shape:
        return None
    shape = e.outs[0].type.shape
    return Equation(e.outs, "full", (behind,), (("shape", shape),)) if shape else _same_type(e, behind)


_RULES: dict[str, Callable[[_Simplifier, Equation], Answer]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _twice("neg"),
    "not": _twice("not"),
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "slice": _whole,
    "concat": _single,
    "max": _extreme,
    "min": _extreme,
    "to_float": lambda s, e: _same_type(e, e.args[0]),
    "where": _where,
}
