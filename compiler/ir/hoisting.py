"""Pass: compute once, before a loop, what every turn of it would compute again.

What moves depends on nothing that the loop changes and is pure, so its value is the same; a loop that takes no turn computes it in
vain. Decompositions and calls stay (they may cost more than the loop), and so do views, which cost nothing where they stand.
"""

from __future__ import annotations

from dataclasses import replace

from oco.compiler.ir.ops import CONTROL, OPS, VIEWS
from oco.compiler.ir.program import Block, Equation, Program, Var
from oco.compiler.ir.rewrite import LeftAlone, keep_notes, map_functions

STAY = CONTROL.keys() | {name for name, row in OPS.items() if row.stays}


def hoist(program: Program, left_alone: LeftAlone | None = None) -> Program:
    """Move out of loops the computations that do not change from turn to turn."""
    return map_functions(program, lambda f: f.having(_block(f.body)), left_alone)


def _block(block: Block) -> Block:
    equations: list[Equation] = []
    for e in block.equations:
        e = e.having(e.args, tuple(map(_block, e.blocks))) if e.blocks else e
        if e.op in ("for", "while", "map"):
            before, e = _loop(e)
            equations += before
        equations.append(e)
    return block.having(tuple(equations))


def _loop(e: Equation) -> tuple[list[Equation], Equation]:
    """Equations that go before a loop, and the loop that is left."""
    before, blocks = list[Equation](), list[Block]()
    for block in e.blocks:
        moved = _invariant(block)
        before += [replace(m, note="") for m in block.equations if m.outs[0].name in moved]
        kept = keep_notes((m, not m.outs or m.outs[0].name not in moved) for m in block.equations)
        blocks.append(block.having(kept))
    return before, e.having(e.args, tuple(blocks))


def _invariant(block: Block) -> set[str]:
    """First results of the equations that depend on nothing in the block but on each other, less views that nobody else needs."""
    inside = {p.name for p in block.params}
    free = list[Equation]()
    for e in block.equations:
        if e.op in STAY or any(isinstance(a, Var) and a.name in inside for a in e.args):
            inside |= {v.name for v in e.outs}
        else:
            free.append(e)
    wanted: set[str] = set()
    for e in reversed(free):
        if e.op not in VIEWS or e.outs[0].name in wanted:
            wanted |= {v.name for v in e.outs} | {a.name for a in e.args if isinstance(a, Var)}
    return {e.outs[0].name for e in free if e.outs[0].name in wanted}
