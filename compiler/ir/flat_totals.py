"""Pass: totals of arrays with short rows are taken along all their entries, one after the other in memory.

For targets with explicit loops: a long sum is taken in parts, of which none waits for the additions before, and rows of a few entries leave
no room for that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.ops import OPS, VIEWS
from oco.compiler.ir.program import Block, DType, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import free_names, map_functions, read_by
from oco.dsl.records import dataclass

TOTALS = frozenset({"sum", "max", "min"})


def flatten_totals(program: Program) -> Program:
    """The program with `sum(reshape(x))` in the place of `sum(x)` over all axes, where x has `LONG` entries in rows of fewer."""

    def flattened(f: Function) -> Function:
        return f.having(_Totals(Counter(read_by(f.body)), free_names(f, program)).block(f.body))

    return map_functions(program, flattened)


@dataclass(frozen=True)
class _Totals:
    """Rewriting of one function: how often its variables are read, and names that are free in it."""

    reads: Mapping[str, int]
    free: Iterator[str]

    def block(self, block: Block) -> Block:
        results = list[Equation]()
        for k, e in enumerate(block.equations):
            if e.blocks:
                e = e.having(e.args, tuple(map(self.block, e.blocks)))
            results += self.flat(e, block.equations[:k]) if _is_total(e) else [e]
        return block.having(tuple(results))

    def flat(self, e: Equation, before: Sequence[Equation]) -> list[Equation]:
        """Equations that make a total; itself where its entries would have to be put into memory for that."""
        (x,) = e.args
        made = {v.name: m for m in before for v in m.outs}
        within = self.within(x, before)
        inside = {m.outs[0].name for m in within}
        read = [a for m in within for a in m.args if a.type.shape] or [x]
        if any(_is_view(made.get(a.name)) for a in read if isinstance(a, Var) and a.name not in inside):
            return [e]
        results, flat = list[Equation](), dict[Operand, Operand]()
        for m in within:
            args = tuple(self.reshaped(a, flat, results) for a in m.args)
            flat[m.outs[0]] = self.vector(m.outs[0])
            results.append(replace(m, args=args, outs=(flat[m.outs[0]],)))  # type: ignore[arg-type]
        total = replace(e, args=(self.reshaped(x, flat, results),))
        return [*results, total]

    def within(self, x: Operand, before: Sequence[Equation]) -> list[Equation]:
        """Operations entry by entry by which x is made, and that nothing else reads, in their order."""
        counts, operations = Counter([x]), list[Equation]()
        for m in reversed(before):
            if len(m.outs) == 1 and 0 < counts[m.outs[0]] == self.reads[m.outs[0].name] and _is_entrywise(m):
                counts.update(m.args)
                operations.append(m)
        return operations[::-1]

    def reshaped(self, a: Operand, flat: dict[Operand, Operand], results: list[Equation]) -> Operand:
        """An operand as a vector, of which numbers have no need."""
        if not a.type.shape:
            return a
        if a not in flat:
            out = flat[a] = self.vector(a)
            results.append(Equation((out,), "reshape", (a,), (("shape", out.type.shape),)))
        return flat[a]

    def vector(self, a: Operand) -> Var:
        return Var(next(self.free), replace(a.type, shape=(math.prod(a.type.shape),)))


def _is_total(e: Equation) -> bool:
    """True for the total of many numbers in short rows."""
    if e.op not in TOTALS or e.outs[0].type.shape:
        return False
    made = e.args[0].type
    return made.dtype is DType.FLOAT and len(made.shape) > 1 and made.shape[-1] < LONG <= math.prod(made.shape)


def _is_entrywise(e: Equation) -> bool:
    """True for an operation entry by entry of numbers, and of arrays of the shape of its result."""
    shape = e.outs[0].type.shape
    return e.op in OPS and OPS[e.op].elementwise and all(a.type.shape in ((), shape) for a in e.args)


def _is_view(e: Equation | None) -> bool:
    """True for what has no place in memory of its own."""
    return e is not None and e.op in VIEWS
