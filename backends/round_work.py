"""Work of a round of a program: operations, and the entries that they process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oco.backends import BACKENDS
from oco.backends.capabilities import Speed
from oco.compiler.ir.mapping import rows_go_together
from oco.compiler.ir.program import Block, Equation, Function, Literal, Program
from oco.compiler.ir.rewrite import all_functions, equations_of

TURNS = 2
"""Assumed turns of a loop whose number of turns is not fixed."""
MASKED = 200
"""Entries of rows that turn together whose masks take as long as an operation: loops go on until the last row is done."""

RUNS = 10
"""Runs over which optimizing the code of a learner has to pay: plans are run again, tuned and served."""
GAIN, COST = 0.9, 0.65
"""Seconds that optimized code saves, of those that it runs, and seconds that optimizing takes, of those to compile."""


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
class Workload:
    """Rounds of a program: the work of each, and the operations to compile."""

    rounds: int
    work: RoundWork
    lines: int

    @classmethod
    def of(cls, program: Program, rounds: int) -> Workload:
        """So many rounds of a program."""
        return cls(
            rounds,
            work_of(program, together=True),
            sum(1 for f in all_functions(program) for _ in equations_of(f.body)),
        )

    def to_compile(self, speed: Speed) -> float:
        """Seconds to compile."""
        return speed.start + speed.line * self.lines

    def to_run(self, speed: Speed) -> float:
        """Seconds of all rounds."""
        return self.rounds * (self.work.operations * speed.operation + self.work.entries * speed.entry)


def optimizing_pays(program: Program, rounds: int | None, name: str) -> bool:
    """True where a compiler that optimizes fully saves more time than it takes, over some runs of so many rounds (None: unknown)."""
    speed = BACKENDS[name].speed
    if rounds is None or speed is None:
        return True
    load = Workload.of(program, rounds)
    return RUNS * GAIN * load.to_run(speed) > COST * load.to_compile(speed)


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
