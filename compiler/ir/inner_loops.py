"""Pass: a counted loop within the turns of another, where no turn needs what those before made, for all of these turns at once.

For targets where an operation is a call. The inner loop becomes one of a `map` in front of the outer, whose rows go together (`mapping`);
each turn computes what it computed, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.mapping import rows_go_together
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, DType, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import bound_names, equations_of, map_functions, read_by, substitute
from oco.dsl.records import dataclass

MOST_ENTRIES = 1 << 17
"""Entries of all arrays of all turns: a megabyte, which stays in the cache."""
ONE_BY_ONE = {"if", "while", "call", "map", "argmax", "argmin", "cumsum"}
"""Operations that take rows one after the other, or all rows for as long as one of them goes on."""


def inner_loops_at_once(program: Program) -> Program:
    """Put a `map` in front of loops with loops in them, and its rows in the place of these."""
    functions = {f.name: f for f in program.functions}
    constants = {g.var.name for g in program.constants}

    def changed(f: Function) -> Function:
        taken = constants | functions.keys() | set(bound_names(f.body))
        return f.having(_InnerLoops(functions, taken).block(f.body))

    return map_functions(program, changed)


@dataclass(frozen=True)
class _InnerLoops:
    """Rewriting of one function: the functions of the program, and the names that are taken."""

    functions: Mapping[str, Function]
    taken: set[str]

    def block(self, block: Block) -> Block:
        results = list[Equation]()
        for e in block.equations:
            if e.blocks:
                e = e.having(e.args, tuple(map(self.block, e.blocks)))
            before, e = self.split(e) if e.op == "for" else ([], e)
            results += [*before, e]
        return block.having(tuple(results))

    def split(self, e: Equation) -> tuple[list[Equation], Equation]:
        """Equations of the maps that go before a loop, and the loop that is left."""
        (body,), count = e.blocks, e.args[0]
        turns = int(count.value) if isinstance(count, Literal) else 0
        before, equations = list[Equation](), list[Equation]()
        for inner in body.equations:
            own = self.needed(inner, equations, body.params) if inner.op == "for" and turns > 1 else None
            if own is None or not self.pays(own, turns):
                equations.append(inner)
                continue
            made = self.mapped(own, inner, body.params[0], turns)
            before += made
            rows = zip(inner.outs, made[-1].outs)
            equations += [Equation((v,), "gather", (all_rows, body.params[0])) for v, all_rows in rows]
        return before, replace(e, blocks=(replace(body, equations=tuple(equations)),))

    def needed(self, inner: Equation, before: Sequence[Equation], params: Sequence[Var]) -> list[Equation] | None:
        """An inner loop and the equations before it that it needs; None where it needs what the turns before made."""
        names, own = set(_read(inner)), [inner]
        for e in reversed(before):
            if names & {v.name for v in e.outs}:
                names |= set(_read(e))
                own.append(replace(e, note=""))
        return None if names & {p.name for p in params[1:]} else own[::-1]

    def pays(self, own: Sequence[Equation], turns: int) -> bool:
        """True where every operation goes over all turns at once, and their values are few."""
        block = Block((), tuple(own), ())
        inner = list(equations_of(block))
        size = turns * sum(math.prod(v.type.shape) for e in inner for v in e.outs)
        together = rows_go_together(block, self.functions) and not any(e.op in ONE_BY_ONE for e in inner)
        return together and size <= MOST_ENTRIES and isinstance(own[-1].args[0], Literal)

    def mapped(self, own: Sequence[Equation], inner: Equation, index: Var, turns: int) -> list[Equation]:
        """Map of these equations over the turns, after the numbers of the turns, which are the last of its arrays."""
        inside = {v.name for e in own for v in e.outs}
        rows, params = list[Operand](), list[Var]()
        kept = list[Equation]()
        for e in own:
            array = e.args[0] if e.op == "gather" and e.args[1:] == (index,) else None
            if isinstance(array, Var) and array.name not in inside and array.type.shape[0] == turns:
                rows.append(array)
                params.append(e.outs[0])
            else:
                kept.append(e)
        numbers = Var(self.new("v"), Type(DType.INT, (turns,)))
        block = Block((*params, index), tuple(kept), inner.outs)
        block = substitute(block, {n: Var(self.new(n), t) for n, t in _bound(block).items()})
        stacked = tuple(Var(self.new(v.name), Type(v.type.dtype, (turns, *v.type.shape))) for v in inner.outs)
        counted = Equation((numbers,), "iota", (), (("n", turns),))
        return [counted, Equation(stacked, "map", (*rows, numbers), blocks=(block,), note=inner.note)]

    def new(self, name: str) -> str:
        """Name that is free, close to another."""
        result = identifier(name, self.taken)
        self.taken.add(result)
        return result


def _read(e: Equation) -> list[str]:
    """Names that an equation reads, in its blocks too."""
    return read_by(Block((), (e,), ()))


def _bound(block: Block) -> dict[str, Type]:
    """Types of the variables that are bound in a block and in the blocks inside it."""
    inner = [b for e in equations_of(block) for b in e.blocks]
    variables = [v for b in (block, *inner) for v in (*b.params, *(v for e in b.equations for v in e.outs))]
    return {v.name: v.type for v in variables}
