"""Work of a round of a program: operations, and the entries that they process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oco.compiler.ir.program import Block, Equation, Function, Literal, Program

TURNS = 2
"""Assumed turns of a loop whose number of turns is not fixed."""


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


def work_of(program: Program) -> RoundWork:
    """Estimated work of a round."""
    functions = {f.name: f for f in program.functions}
    entries = (program.prepare, program.decide, program.update, program.measure)
    known: dict[str, RoundWork] = {}
    return sum((_of_function(f, functions, known) for f in entries if f is not None), RoundWork())


def _of_function(function: Function, functions: Mapping[str, Function], known: dict[str, RoundWork]) -> RoundWork:
    if function.name not in known:
        known[function.name] = _of_block(function.body, functions, known)
    return known[function.name]


def _of_block(block: Block, functions: Mapping[str, Function], known: dict[str, RoundWork]) -> RoundWork:
    return sum((_of_equation(e, functions, known) for e in block.equations), RoundWork())


def _of_equation(e: Equation, functions: Mapping[str, Function], known: dict[str, RoundWork]) -> RoundWork:
    if e.op == "call":
        return _of_function(functions[e.attr("function")], functions, known)
    inner = sum((_of_block(b, functions, known) for b in e.blocks), RoundWork())
    return RoundWork(1, 0 if e.blocks else _entries(e)) + inner.times(_turns(e))


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
