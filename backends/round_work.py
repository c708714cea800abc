"""Work of a round of a program: operations, and the entries that they process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oco.compiler.ir.mapping import rows_go_together
from oco.compiler.ir.program import Block, Equation, Function, Literal, Program

TURNS = 2
"""Assumed turns of a loop whose number of turns is not fixed."""
MASKED = 200
"""Entries of rows that turn together whose masks take as long as an operation: loops go on until the last row is done."""


@dataclass(frozen=True)
class RoundWork:
    """Work of a round: operations, and entries that they process."""

    operations: float = 0.0
    entries: float = 0.0

    def __add__(self, other: RoundWork) -> RoundWork:
        return RoundWork(self.operations + other.operations, self.entries + other.entries)

    def times(self, turns: int) -> RoundWork:
        """Work of so many turns."""
        return RoundWork(turns * self.operations, turns * self.entries)


def work_of(program: Program, together: bool = False) -> RoundWork:
    """Estimated work of a round; with `together` an operation over all rows of a map counts once, where rows go together."""
    functions = {f.name: f for f in program.functions}
    entries = (program.prepare, program.decide, program.update, program.measure)
    count = _Count(functions, together, {})
    return sum((count.of_function(f) for f in entries if f is not None), RoundWork())


@dataclass(frozen=True)
class _Count:
    """Work of parts of a program."""

    functions: Mapping[str, Function]
    together: bool
    known: dict[str, RoundWork]

    def of_function(self, function: Function) -> RoundWork:
        if function.name not in self.known:
            self.known[function.name] = self.of_block(function.body)
        return self.known[function.name]

    def of_block(self, block: Block) -> RoundWork:
        return sum(map(self.of_equation, block.equations), RoundWork())

    def of_equation(self, e: Equation) -> RoundWork:
        if e.op == "call":
            return self.of_function(self.functions[e.attr("function")])
        inner = sum(map(self.of_block, e.blocks), RoundWork())
        work = RoundWork(1, 0 if e.blocks else _entries(e)) + inner.times(_turns(e))
        if e.op == "map" and self.together and rows_go_together(e.blocks[0], self.functions):
            return RoundWork(1 + inner.operations + work.entries / MASKED, work.entries)
        return work


def _entries(e: Equation) -> int:
    shapes = [a.type.shape for a in (*e.args, *e.outs)]
    if e.op == "matmul":
        return math.prod(shapes[0]) * (shapes[1][1] if len(shapes[1]) == 2 else 1)
    return max((math.prod(shape) for shape in shapes), default=0)


def _turns(e: Equation) -> int:
    if e.op == "map":
        return e.args[0].type.shape[0]
    if e.op not in ("for", "while"):
        return 1
    count = e.args[0] if e.op == "for" else None
    return int(count.value) if isinstance(count, Literal) else TURNS
