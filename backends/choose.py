"""Which backend runs a plan when nobody names one: C where a compiler is there and the rounds repay its time, else NumPy.

NumPy spends a microsecond or so on every operation of a round, which C does not, and either a nanosecond or so on every entry; C a second
or so on compiling the program, once. All are estimated from the program, so that the same plan gets the same backend on every machine that
has a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oco.backends.registry import backend
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Literal, Program
from oco.compiler.ir.rewrite import all_functions, equations_of

SECONDS_AN_OPERATION = 1e-6
"""Of NumPy, on small arrays."""
SECONDS_AN_ENTRY = 1e-9
"""Of the largest array of an operation; for a product of matrices, of each multiplication."""
WORTH_SAYING = 10.0
"""Seconds of rounds in C that a person would want to know of before."""
SECONDS_TO_START, SECONDS_A_LINE = 0.3, 0.004
"""Of a C compiler: to begin with, and for each operation of the program."""
TURNS = 2
"""Of a loop whose number of turns is not written out."""
LARGE = 10_000
"""Entries of a matrix on which LAPACK, which NumPy calls, is quicker than loops."""
LARGE_PRODUCT = 1 << 21
"""Multiplications of a product of matrices on which BLAS is."""


@dataclass(frozen=True)
class Work:
    """What is done in a round: operations, and entries that they go through."""

    operations: float = 0.0
    entries: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.operations + other.operations, self.entries + other.entries)

    def times(self, turns: int) -> Work:
        return Work(turns * self.operations, turns * self.entries)


@dataclass(frozen=True)
class BackendChoice:
    """The backend's name, and why, in a sentence (empty where the user named it)."""

    name: str
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.why,) if self.why else ()

    def following(self, recorded: str | None) -> BackendChoice:
        """The backend of a journal goes before one that was chosen for speed."""
        if recorded is None or not self.why:
            return self
        return BackendChoice(recorded, f"it runs with the backend that began the journal, {recorded!r}")


def choose_backend(program: Program, rounds: int | None, asked: str | None = None) -> BackendChoice:
    """`asked`, or what suits so many rounds (None: nobody knows how many)."""
    if asked is not None:
        return BackendChoice(asked)
    if rounds is None:
        return BackendChoice("numpy", "it runs in NumPy: how many rounds there are is not known")
    work, length = work_of(program), f"{rounds:,} round{'' if rounds == 1 else 's'}"
    saved, in_c = rounds * work.operations * SECONDS_AN_OPERATION, rounds * work.entries * SECONDS_AN_ENTRY
    in_numpy = saved + in_c
    if _has_large_matrices(program):
        return BackendChoice(
            "numpy",
            f"it runs in NumPy, whose linear algebra suits its large matrices: {length} take about {duration(in_numpy)}",
        )
    to_compile = SECONDS_TO_START + SECONDS_A_LINE * sum(
        1 for f in all_functions(program) for _ in equations_of(f.body)
    )
    if saved <= to_compile:
        spared = f"C would save {duration(saved)} of these and take a compiler {duration(to_compile)}"
        return BackendChoice("numpy", f"it runs in NumPy: {length} take about {duration(in_numpy)}; {spared}")
    if reason := backend("c").unavailable_reason():
        return BackendChoice("numpy", f"it runs in NumPy: C would be quicker ({reason})")
    why = (
        f"it runs in C: {length} would take NumPy about {duration(in_numpy)}, a C compiler about {duration(to_compile)}"
    )
    return BackendChoice("c", why if in_c < WORTH_SAYING else f"{why}, and C itself about {duration(in_c)}")


def duration(seconds: float) -> str:
    """A time in words: "0.74 s", "2.5 min", "1.7 h"."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 90 * 60 else f"{seconds / 3600:.3g} h"


def work_of(program: Program) -> Work:
    """About what a round takes."""
    functions = {f.name: f for f in program.functions}
    entries = (program.decide, program.update, program.measure)
    known: dict[str, Work] = {}
    return sum((_of_function(f, functions, known) for f in entries if f is not None), Work())


def _of_function(function: Function, functions: Mapping[str, Function], known: dict[str, Work]) -> Work:
    if function.name not in known:
        known[function.name] = _of_block(function.body, functions, known)
    return known[function.name]


def _of_block(block: Block, functions: Mapping[str, Function], known: dict[str, Work]) -> Work:
    return sum((_of_equation(e, functions, known) for e in block.equations), Work())


def _of_equation(e: Equation, functions: Mapping[str, Function], known: dict[str, Work]) -> Work:
    if e.op == "call":
        return _of_function(functions[e.attr("function")], functions, known)
    inner = sum((_of_block(b, functions, known) for b in e.blocks), Work())
    return Work(1, 0 if e.blocks else _entries(e)) + inner.times(_turns(e))


def _entries(e: Equation) -> int:
    shapes = [a.type.shape for a in (*e.args, *e.outs)]
    if e.op == "matmul":
        return math.prod(shapes[0]) * (shapes[1][1] if len(shapes[1]) == 2 else 1)
    return max((math.prod(shape) for shape in shapes), default=0)


def _turns(e: Equation) -> int:
    if e.op not in ("for", "while"):
        return 1
    count = e.args[0] if e.op == "for" else None
    return int(count.value) if isinstance(count, Literal) else TURNS


def _has_large_matrices(program: Program) -> bool:
    return any(_has_large_matrix(e) for f in all_functions(program) for e in equations_of(f.body))


def _has_large_matrix(e: Equation) -> bool:
    """Products with a vector read each entry once: memory is what they wait for, however they are written."""
    shapes = [a.type.shape for a in e.args if len(a.type.shape) == 2]
    if e.op == "matmul" and len(shapes) == 2:
        return math.prod(shapes[0]) * shapes[1][1] >= LARGE_PRODUCT
    row = OPS.get(e.op)
    return row is not None and row.cubic and any(math.prod(shape) >= LARGE for shape in shapes)
