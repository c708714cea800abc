"""Pass: the sum of the quotients that a mask holds is their inner product with the mask.

For targets where an operation is a call: choosing takes longer than a product. Where what a choice leaves out is infinite, a product makes
NaN of it, so divisors have to be known as positive, and so have those of what they are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from oco.compiler.ir.dot_products import LONGEST
from oco.compiler.ir.lower_bounds import LowerBounds
from oco.compiler.ir.program import Block, DType, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import free_names, map_functions, read_by
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

ONE = Literal(1.0, Type(DType.FLOAT))
_FINITE = frozenset({"add", "sub", "mul", "neg", "abs", "maximum", "minimum", "reshape", "transpose", "broadcast"})
"""Operations that give finite numbers of finite ones of sizes that models have."""


def sum_under_masks(program: Program) -> Program:
    """Put `(a / b) @ mask` in the place of the sum of `where(mask, a / b, 0)`, and `a ((1 / b) @ mask)` where a is a number."""
    bounds = LowerBounds(program)

    def changed(f: Function) -> Function:
        summing = _Summing(f.name, bounds, Counter(read_by(f.body)), free_names(f, program))
        return f.having(summing.block(f.body))

    return map_functions(program, changed)


@dataclass
class _Summing:
    """Rewriting of one function. `bounds`: lower bounds of values, `reads`: how often each is read."""

    function: str
    bounds: LowerBounds
    reads: Mapping[str, int]
    free: Iterator[str]
    made_by: dict[str, Equation] = field(default_factory=dict)

    def block(self, block: Block) -> Block:
        results = list[Equation]()
        for e in block.equations:
            e = e.having(e.args, tuple(map(self.block, e.blocks))) if e.blocks else e
            self.made_by |= {v.name: e for v in e.outs}
            results += self.summed(e)
        return block.having(tuple(results))

    def summed(self, e: Equation) -> tuple[Equation, ...]:
        """The equation, or what stands in its place."""
        chosen = self.made(e.args[0]) if e.op == "sum" and not e.outs[0].type.shape else None
        if chosen is None or chosen.op != "where" or self.reads[chosen.outs[0].name] > 1:
            return (e,)
        mask, value, other = chosen.args
        vectors = len(mask.type.shape) == 1 and mask.type.shape == value.type.shape and mask.type.shape[0] <= LONGEST
        quotient = self.quotient(value)
        if not vectors or not isinstance(other, Literal) or other.value != 0 or quotient is None:
            return (e,)
        held = Var(next(self.free), Type(DType.FLOAT, mask.type.shape))
        before, dot = Equation((held,), "to_float", (mask,)), replace(e, op="matmul", args=(value, held), attrs=())
        if quotient.args[0].type.shape or self.reads[quotient.outs[0].name] > 1:
            return before, dot
        part, total = Var(next(self.free), value.type), Var(next(self.free), e.outs[0].type)
        return (
            before,
            Equation((part,), "div", (ONE, quotient.args[1])),
            Equation((total,), "matmul", (part, held)),
            replace(e, op="mul", args=(quotient.args[0], total), attrs=()),
        )

    def made(self, operand: Operand) -> Equation | None:
        return self.made_by.get(operand.name) if isinstance(operand, Var) else None

    def quotient(self, operand: Operand) -> Equation | None:
        """Equation of a finite quotient; None for anything else."""
        e = self.made(operand)
        return e if e is not None and e.op == "div" and self.is_finite(operand) else None

    def is_finite(self, operand: Operand) -> bool:
        """True for what is made of numbers and parameters by operations that give finite numbers, with divisors above `TINY`."""
        e = self.made(operand)
        if e is None or e.blocks or e.op == "call":
            return not isinstance(operand, Literal) or abs(operand.value) < 1 / TINY
        if e.op == "div" and not self.least(e.args[1]) > TINY:
            return isinstance(e.args[1], Literal) and abs(e.args[1].value) > TINY and self.is_finite(e.args[0])
        return e.op in (*_FINITE, "div") and all(map(self.is_finite, e.args))

    def least(self, operand: Operand) -> float:
        """Lower bound of a variable; 0 where none is known."""
        return self.bounds.of[self.function].get(operand.name, 0.0) if isinstance(operand, Var) else 0.0
