"""Passes: an entry of each row gathered for all rows before a loop over them, and reductions over a few rows as operations on these.

For targets where an operation is a call: of arrays with few entries one gather takes as long as any other, and a reduction over rows three
times as long as an operation on two of them. Both keep every bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, DType, Equation, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import bound_names, free_names, map_functions
from oco.dsl.records import dataclass

FEW_ROWS = 3
"""Most rows for which the operations on two of them take less time than a reduction."""
MOST_ENTRIES = 1 << 16
"""Entries that are gathered before a loop: half a megabyte, which stays in the cache."""


def gather_before_loops(program: Program) -> Program:
    """Put `all = a[table]` before a loop over `i` and `all[i]` in it, in the place of `a[table[i]]`, for each row of the table."""
    return map_functions(program, lambda f: f.having(_Gathers(free_names(f, program)).block(f.body)))


def reduce_by_rows(program: Program) -> Program:
    """Put `x[0] + x[1]` in the place of `x.sum(axis=0)`, and so for other reductions, where rows are few and are arrays."""
    return map_functions(program, lambda f: f.having(_reduced(f.body, free_names(f, program))))


@dataclass(frozen=True)
class _Gathers:
    """Rewriting of one function, with names that are free in it."""

    free: Iterator[str]

    def block(self, block: Block) -> Block:
        results = list[Equation]()
        for e in block.equations:
            if e.blocks:
                e = e.having(e.args, tuple(map(self.block, e.blocks)))
            before, e = self.loop(e) if e.op == "for" else ([], e)
            results += [*before, e]
        return block.having(tuple(results))

    def loop(self, e: Equation) -> tuple[list[Equation], Equation]:
        """Gathers that go before a loop, and the loop that is left."""
        (body,), turns = e.blocks, e.args[0]
        inside = set(bound_names(body))
        rows: dict[Operand, Operand] = {
            r.outs[0]: r.args[0] for r in body.equations if r.op == "gather" and r.args[1:] == body.params[:1]
        }
        before, equations = list[Equation](), list[Equation]()
        for g in body.equations:
            table = rows.get(g.args[1]) if g.op == "gather" and len(g.args) == 2 else None
            steady = table is not None and not inside & {a.name for a in (g.args[0], table) if isinstance(a, Var)}
            if table is not None and steady and self.pays(g, table, turns):
                made = Type(g.outs[0].type.dtype, (table.type.shape[0], *g.outs[0].type.shape))
                before.append(Equation((Var(next(self.free), made),), "gather", (g.args[0], table)))
                g = replace(g, args=(before[-1].outs[0], body.params[0]))
            equations.append(g)
        return before, replace(e, blocks=(replace(body, equations=tuple(equations)),))

    def pays(self, g: Equation, table: Operand, turns: Operand) -> bool:
        """True where the loop goes over all rows of the table, so that nothing is gathered in vain."""
        rows = table.type.shape[0]
        return (
            isinstance(turns, Literal)
            and turns.value == rows
            and rows * math.prod(g.outs[0].type.shape) <= MOST_ENTRIES
        )


def _reduced(block: Block, free: Iterator[str]) -> Block:
    results = list[Equation]()
    for e in block.equations:
        if e.blocks:
            e = e.having(e.args, tuple(_reduced(b, free) for b in e.blocks))
        x = e.args[0] if e.op in OPS and OPS[e.op].fold and e.attr("axis") == 0 else None
        if x is None or len(x.type.shape) < 2 or not 1 < x.type.shape[0] <= FEW_ROWS:
            results.append(e)
            continue
        row = e.outs[0].type
        places = (Literal(k, Type(DType.INT)) for k in range(x.type.shape[0]))
        first, *others = (Equation((Var(next(free), row),), "gather", (x, k)) for k in places)
        results.append(replace(first, note=e.note))
        for other in others:
            folded = Equation((Var(next(free), row),), OPS[e.op].fold, (results[-1].outs[0], other.outs[0]))
            results += [other, folded]
        results[-1] = replace(results[-1], outs=e.outs)
    return block.having(tuple(results))
