"""Passes: the sum of the products of two vectors is their inner product, one call instead of two, and that of a vector its inner product
with ones, a call that takes a third of the time.

For targets where an operation is a call; where it is a loop, products and sum are one loop anyway. An inner product may add up in
another order than a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, DType, Equation, Global, Program, Type, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, keep_notes, map_functions, read_by

SHORTEST, LONGEST = 3, 8192
"""Entries of a vector that is added up by ones: fewer are numbers of their own, and of more than 10,000 BLAS gives parts to threads."""


def make_dot_products(program: Program) -> Program:
    """Put `a @ b` in the place of sums of products that nothing else reads."""
    return map_functions(program, lambda f: f.having(_block(f.body, Counter(read_by(f.body)))))


def sum_by_ones(program: Program) -> Program:
    """Put `a @ ones` in the place of sums of vectors."""
    taken = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    taken |= {name for f in all_functions(program) for name in bound_names(f.body)}
    made = dict[int, Global]()

    def ones(n: int) -> Var:
        if n not in made:
            var = Var(identifier(f"ones_{n}", taken), Type(DType.FLOAT, (n,)))
            made[n] = Global(var, np.ones(n), "for sums, which take thrice as long as inner products")
        return made[n].var

    result = map_functions(program, lambda f: f.having(_summed(f.body, ones)))
    return replace(result, constants=(*result.constants, *made.values()))


def _summed(block: Block, ones: Callable[[int], Var]) -> Block:
    equations = list[Equation]()
    for e in block.equations:
        e = e.having(e.args, tuple(_summed(b, ones) for b in e.blocks)) if e.blocks else e
        made = e.args[0].type if e.op == "sum" else None
        if made and made.dtype is DType.FLOAT and len(made.shape) == 1 and SHORTEST <= made.shape[0] <= LONGEST:
            e = replace(e, op="matmul", args=(e.args[0], ones(made.shape[0])), attrs=())
        equations.append(e)
    return block.having(tuple(equations))


def _block(block: Block, reads: Counter[str]) -> Block:
    made_by = {v.name: e for e in block.equations for v in e.outs}
    kept, gone = list[Equation](), set[str]()
    for e in block.equations:
        e = e.having(e.args, tuple(_block(b, reads) for b in e.blocks)) if e.blocks else e
        x = e.args[0] if e.op == "sum" else None
        factors = made_by.get(x.name) if isinstance(x, Var) else None
        if factors is not None and factors.op == "mul" and reads[factors.outs[0].name] == 1 and _vectors(factors):
            e = replace(e, op="matmul", args=factors.args, attrs=())
            gone.add(factors.outs[0].name)
        kept.append(e)
    stay = ((e, not e.outs or e.outs[0].name not in gone) for e in kept)
    return Block(block.params, keep_notes(stay), block.results)


def _vectors(e: Equation) -> bool:
    shapes = [a.type.shape for a in e.args]
    return shapes[0] == shapes[1] and len(shapes[0]) == 1 and e.outs[0].type.dtype is DType.FLOAT
