"""Work of a round of a program: its operations, and what they do to entries, from which `backends/capabilities.py` tells seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.backends import BACKENDS
from oco.backends.capabilities import CompileTime, Speed
from oco.compiler.ir.mapping import rows_go_together
from oco.compiler.ir.ops import OPS, VIEWS
from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.compiler.ir.small_arrays import LARGEST
from oco.dsl.records import dataclass

TURNS = 2
"""Assumed turns of a loop that ends by a test; of one inside another 1, since it begins near where it ended in the turn before."""
ADDITIONS = {
    **dict.fromkeys(("div", "sqrt", "mod"), 3),
    **dict.fromkeys(("exp", "log", "log1p", "expm1"), 15),
    "pow": 30,
    **dict.fromkeys(("gather", "put", "scatter_add"), 10),
    **dict.fromkeys(("sort", "argsort", "weighted_quantile"), 80),
    "solve": 2,
}
"""Additions of two entries that take as long as an operation for an entry (`RoundWork.entries`); those that are not named take one."""
CACHED = 1 << 17
"""Entries of an array that stays in a processor's cache, at most."""
UNROLLED = range(5, 65)
"""Entries of arrays over which compilers unroll a loop."""
DECOMPOSITIONS = {"svd": 150, "eigh": 150}
"""Such loops that take as long to compile as the function behind a decomposition of a matrix."""

RUNS = 10
"""Runs over which optimizing the code of a learner has to pay: plans are run again, tuned and served."""
GAIN = 0.5
"""Seconds that optimized code saves, of those that it runs."""


@dataclass(frozen=True)
class RoundWork:
    """Work of a round.

    operations  on arrays and on numbers, those of control among them
    numbers     those among them on numbers alone
    entries     numbers that operations make or add up; of a product of matrices, multiplications, of a decomposition or a solution of
                equations, the entries of the matrix times its lesser side
    additions   of two entries that take as long as what operations do to theirs
    slow        entries that take as long in every backend: of arrays larger than `CACHED`, which come from memory, and of decompositions
    draws       random numbers
    """

    operations: float = 0.0
    numbers: float = 0.0
    entries: float = 0.0
    additions: float = 0.0
    slow: float = 0.0
    draws: float = 0.0

    def __add__(self, other: RoundWork) -> RoundWork:
        return RoundWork(
            self.operations + other.operations,
            self.numbers + other.numbers,
            self.entries + other.entries,
            self.additions + other.additions,
            self.slow + other.slow,
            self.draws + other.draws,
        )

    def times(self, turns: int) -> RoundWork:
        """Work of so many turns."""
        return RoundWork(
            turns * self.operations,
            turns * self.numbers,
            turns * self.entries,
            turns * self.additions,
            turns * self.slow,
            turns * self.draws,
        )

    def at_once(self, rows: int) -> RoundWork:
        """Work of the same operations, each of which takes so many rows at once."""
        return RoundWork(self.operations, 0, rows * self.entries, rows * self.additions, rows * self.slow)

    def seconds(self, speed: Speed) -> float:
        """Estimated seconds of a round."""
        calls = (self.operations - self.numbers) * speed.operation + self.numbers * speed.number
        entries = self.additions * speed.addition + self.slow * speed.slow
        return speed.a_round + calls + entries + self.draws * speed.draw


def work_of(program: Program, together: bool = False) -> RoundWork:
    """Estimated work of a round; with `together` an operation over all rows of a map counts once, where rows go together."""
    functions = {f.name: f for f in program.functions}
    entries = (program.prepare, program.decide, program.update, program.measure)
    count = _Count(functions, together, {})
    drawn = RoundWork(draws=sum(math.prod(f.type.shape) for f in program.draws))
    return sum((count.of_function(f) for f in entries if f is not None), drawn)


CONTROL = RoundWork(1)
"""Work of a loop in each of its turns, or of a branch, beside what is done there."""


@dataclass(frozen=True)
class Workload:
    """Rounds of a program: the work of each, the operations to compile, and the loops among them that are unrolled."""

    rounds: int
    work: RoundWork
    operations: int
    unrolled: int

    @classmethod
    def of(cls, program: Program, rounds: int) -> Workload:
        """So many rounds of a program."""
        every = [e for f in all_functions(program) for e in equations_of(f.body) if e.op not in VIEWS]
        unrolled = sum(max(map(_size, (*e.args, *e.outs))) in UNROLLED for e in every if not e.blocks)
        kernels = sum(DECOMPOSITIONS.get(op, 0) for op in {e.op for e in every})
        return cls(rounds, work_of(program, together=True), len(every), unrolled + kernels)

    def optimized(self, speed: Speed) -> bool:
        """True where compiling as far as possible saves more time than it takes, over some runs."""
        more = self._to_compile(speed.compiling) - self._to_compile(speed.hastily)
        return RUNS * GAIN * self.to_run(speed) > more

    def to_compile(self, speed: Speed) -> float:
        """Seconds to compile, as far as pays."""
        return self._to_compile(speed.compiling if self.optimized(speed) else speed.hastily)

    def to_run(self, speed: Speed) -> float:
        """Seconds of all rounds."""
        return self.rounds * self.work.seconds(speed)

    def _to_compile(self, seconds: CompileTime) -> float:
        return seconds.start + seconds.operation * self.operations + seconds.unrolled * self.unrolled


def optimizing_pays(program: Program, rounds: int | None, name: str) -> bool:
    """True where a compiler that optimizes fully saves more time than it takes, over some runs of so many rounds (None: unknown)."""
    speed = BACKENDS[name].speed
    return rounds is None or speed is None or Workload.of(program, rounds).optimized(speed)


@dataclass(frozen=True)
class _Count:
    """Work of parts of a program; `looped` says of a part that it stands in a loop which ends by a test."""

    functions: Mapping[str, Function]
    together: bool
    known: dict[tuple[str, bool], RoundWork]

    def of_function(self, function: Function, looped: bool = False) -> RoundWork:
        if (key := (function.name, looped)) not in self.known:
            self.known[key] = self.of_block(function.body, looped)
        return self.known[key]

    def of_block(self, block: Block, looped: bool) -> RoundWork:
        return sum((self.of_equation(e, looped) for e in block.equations), RoundWork())

    def of_equation(self, e: Equation, looped: bool) -> RoundWork:
        if e.op == "call":
            return self.of_function(self.functions[e.attr("function")], looped)
        if not e.blocks:
            return work_of_operation(e)
        parts = [self.of_block(b, looped or e.op == "while") for b in e.blocks]
        if e.op == "if":
            return CONTROL + max(parts, key=lambda part: part.operations + part.additions)
        turn = sum(parts, CONTROL)
        if e.op != "map":
            return turn.times(_turns(e, looped))
        rows = e.args[0].type.shape[0]
        at_once = self.together and rows_go_together(e.blocks[0], self.functions)
        return turn.at_once(rows) if at_once else turn.times(rows)


def work_of_operation(e: Equation) -> RoundWork:
    """Work of an equation without blocks. Entries that are looked at in other places, or that an operation leaves as they are, are none."""
    if e.op in VIEWS:
        return RoundWork(1, 1)
    entries, largest = _entries(e), max(map(_size, (*e.args, *e.outs)))
    slow = entries if e.op in DECOMPOSITIONS else largest if largest > CACHED else 0
    additions = ADDITIONS.get(e.op, 1) * max(0, entries - slow)  # memory is slower than one addition for what it brings
    return RoundWork(1, _of_numbers(e), entries, additions, slow)


def _entries(e: Equation) -> float:
    row, made = OPS[e.op], sum(map(_size, e.outs))
    if e.op == "matmul":
        second = e.args[1].type.shape
        return _size(e.args[0]) * (second[1] if len(second) == 2 else 1)
    if row.cubic:
        shapes = [a.type.shape for a in e.args if len(a.type.shape) == 2]
        return max(math.prod(shape) * min(shape) for shape in shapes)
    if e.op in ("put", "scatter_add"):
        return _size(e.args[1])
    return made if row.pointwise else max(made, *map(_size, e.args))


def _size(operand: Operand) -> int:
    return math.prod(operand.type.shape)


def _of_numbers(e: Equation) -> bool:
    """True where NumPy's modules write numbers (`compiler/ir/small_arrays.py`)."""
    return all(n <= LARGEST for a in (*e.args, *e.outs) for n in a.type.shape)


def _turns(e: Equation, looped: bool) -> int:
    if e.op == "for" and isinstance(e.args[0], Literal):
        return int(e.args[0].value)
    return int(dict(e.attrs).get("turns", 1 if looped else TURNS))
