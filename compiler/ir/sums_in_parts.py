"""Pass: short sums along a row are marked as sums in parts, of which none waits for all additions before.

For targets with explicit loops, before values get lanes, so that a fleet adds up in the order of its learners: entry k of a row joins part
k modulo `PARTS`, which begins at 0, and the sum is (part 0 + part 2) + (part 1 + part 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.program import Block, DType, Equation, Program, Var
from oco.compiler.ir.rewrite import map_functions

PARTS = 4
"""Parts of a short sum: an addition takes the time of four."""
FEWEST = 3 * PARTS
"""Entries from which parts save more time than it takes to join them."""


def sum_in_parts(program: Program) -> Program:
    """The program with marks at sums of floats along a row and at products of rows with a vector, of `FEWEST` to `LONG` entries."""
    return map_functions(program, lambda f: replace(f, body=_block(f.body, {})))


def parts_of(e: Equation) -> int:
    """Parts of a short sum; 1 where an equation is none."""
    return int(dict(e.attrs).get("parts", 1))


def _block(block: Block, outer: Mapping[str, Equation]) -> Block:
    made_by = {**outer, **{v.name: e for e in block.equations for v in e.outs}}
    return replace(block, equations=tuple(_marked(e, made_by) for e in block.equations))


def _marked(e: Equation, made_by: Mapping[str, Equation]) -> Equation:
    if e.blocks:
        return replace(e, blocks=tuple(_block(b, made_by) for b in e.blocks))
    if not _along_a_row(e, made_by) or not FEWEST <= e.args[0].type.shape[-1] < LONG:
        return e
    return replace(e, attrs=(*e.attrs, ("parts", PARTS)))


def _along_a_row(e: Equation, made_by: Mapping[str, Equation]) -> bool:
    """True for the sums of a vector and of each row of an array, and for products of rows, as they lie, with a vector."""
    shapes = [a.type.shape for a in e.args]
    if e.op == "sum":
        last = len(shapes[0]) - 1
        return e.args[0].type.dtype is DType.FLOAT and (last == 0 or (last > 0 and e.attr("axis") == last))
    if e.op != "matmul" or len(shapes[1]) != 1:
        return False
    behind = made_by.get(e.args[0].name) if isinstance(e.args[0], Var) else None
    return behind is None or behind.op != "transpose"
