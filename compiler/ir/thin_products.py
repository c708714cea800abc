"""Pass: products of matrices with axes of one entry, as inner products and as multiples of an array.

For targets with explicit loops, where an inner product or a multiple shares its loop with what makes the entries and with what reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from oco.compiler.ir.program import Block, Equation, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import free_names, map_functions
from oco.dsl.records import dataclass


def flatten_thin_products(program: Program) -> Program:
    """Put inner products and products entry by entry in the place of matrix products with axes of one entry."""

    return map_functions(program, lambda f: f.having(_ThinProducts(free_names(f, program)).block(f.body)))


@dataclass(frozen=True)
class _ThinProducts:
    """Rewriting of one function, with names that are free in it."""

    free: Iterator[str]

    def block(self, block: Block) -> Block:
        results = list[Equation]()
        for e in block.equations:
            if e.blocks:
                e = e.having(e.args, tuple(map(self.block, e.blocks)))
            results += self.flat(e) if e.op == "matmul" else [e]
        return block.having(tuple(results))

    def flat(self, e: Equation) -> list[Equation]:
        """Equations that make what a product makes: itself where it is of no such kind."""
        (a, b), (out,) = e.args, e.outs
        (*rows, inner), (same, *columns) = a.type.shape, b.type.shape
        if (not rows and not columns) or inner != same or out.type.shape != (*rows, *columns):
            return [e]
        results = list[Equation]()
        if math.prod(out.type.shape) == 1 and inner > 1:
            pair = tuple(self.reshaped(results, x, (inner,)) for x in (a, b))
            dot = Var(next(self.free), Type(out.type.dtype))
            return [*results, replace(e, outs=(dot,), args=pair), _reshape(out, dot)]
        for one, other in ((a, b), (b, a)) if inner == 1 else ():
            if math.prod(one.type.shape) == 1:
                pair = self.reshaped(results, one, ()), self.reshaped(results, other, out.type.shape)
                return [*results, replace(e, op="mul", args=pair)]
        return [e]

    def reshaped(self, results: list[Equation], x: Operand, shape: tuple[int, ...]) -> Operand:
        """Array of the entries of another in a shape."""
        if x.type.shape == shape:
            return x
        out = Var(next(self.free), replace(x.type, shape=shape))
        results.append(_reshape(out, x))
        return out


def _reshape(out: Var, x: Operand) -> Equation:
    return Equation((out,), "reshape", (x,), attrs=(("shape", out.type.shape),))
