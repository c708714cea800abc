"""Pass: the sum of the products of two vectors is their inner product, one call instead of two.

For targets where an operation is a call; where it is a loop, products and sum are one loop anyway. An inner product may add up in
another order than a sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from oco.compiler.ir.program import Block, DType, Equation, Program, Var
from oco.compiler.ir.rewrite import keep_notes, map_functions, read_by


def make_dot_products(program: Program) -> Program:
    """Put `a @ b` in the place of sums of products that nothing else reads."""
    return map_functions(program, lambda f: replace(f, body=_block(f.body, Counter(read_by(f.body)))))


def _block(block: Block, reads: Counter[str]) -> Block:
    made_by = {v.name: e for e in block.equations for v in e.outs}
    kept, gone = list[Equation](), set[str]()
    for e in block.equations:
        e = replace(e, blocks=tuple(_block(b, reads) for b in e.blocks)) if e.blocks else e
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
