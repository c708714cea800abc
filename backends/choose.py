"""Choice of the backend where none is named: C where a compiler exists and the number of rounds makes compiling
worthwhile, else NumPy.

NumPy needs about a microsecond for every operation of a round, which C does not, and either about a nanosecond for
every entry; C needs about a second to compile the program, once. All are estimated from the program, so that the same
plan gets the same backend on every machine that has a compiler.
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
"""Seconds of an operation of NumPy on small arrays."""
SECONDS_AN_ENTRY = 1e-9
"""Seconds for each entry of the largest array of an operation; for a product of matrices, for each multiplication."""
WORTH_SAYING = 10.0
"""Seconds of rounds in C that deserve a note in advance."""
SECONDS_TO_START, SECONDS_A_LINE = 0.3, 0.004
"""Seconds of a C compiler: to start, and for each operation of the program."""
TURNS = 2
"""Assumed turns of a loop whose number of turns is not fixed."""
LARGE = 10_000
"""Entries of a matrix on which LAPACK, which NumPy calls, is quicker than loops."""
LARGE_PRODUCT = 1 << 21
"""Multiplications of a product of matrices on which BLAS is quicker than loops."""


@dataclass(frozen=True)
class Work:
    """Work of a round: operations, and entries that they process."""

    operations: float = 0.0
    entries: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.operations + other.operations, self.entries + other.entries)

    def times(self, turns: int) -> Work:
        """Work of so many turns."""
        return Work(turns * self.operations, turns * self.entries)


@dataclass(frozen=True)
class BackendChoice:
    """Name of the backend, and the reason in a sentence (empty where the user named it)."""

    name: str
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Reason as a note; none where it is empty."""
        return (self.why,) if self.why else ()

    def following(self, recorded: str | None) -> BackendChoice:
        """Backend of a journal, which takes precedence over one chosen for speed."""
        if recorded is None or not self.why:
            return self
        return BackendChoice(recorded, f"it runs with the backend that began the journal, {recorded!r}")


def choose_backend(program: Program, rounds: int | None, asked: str | None = None) -> BackendChoice:
    """Backend `asked` for, or the best one for so many rounds (None: unknown)."""
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
    """Time in words: "0.74 s", "2.5 min", "1.7 h"."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 90 * 60 else f"{seconds / 3600:.3g} h"


def work_of(program: Program) -> Work:
    """Estimated work of a round."""
    functions = {f.name: f for f in program.functions}
    entries = (program.prepare, program.decide, program.update, program.measure)
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
    """True for a product of a large matrix with a vector: it reads each entry once and is bound by memory on any
    backend.
    """
    shapes = [a.type.shape for a in e.args if len(a.type.shape) == 2]
    if e.op == "matmul" and len(shapes) == 2:
        return math.prod(shapes[0]) * shapes[1][1] >= LARGE_PRODUCT
    row = OPS.get(e.op)
    return row is not None and row.cubic and any(math.prod(shape) >= LARGE for shape in shapes)
