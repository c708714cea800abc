"""Choice of the backend where none is named: the one that is estimated to take the least time, else the default.

NumPy needs about half a microsecond for every operation of a round, which C does not, and for an entry ten times as long as C; C needs
a fraction of a second, or several, to compile the program, once. All are estimated from the program and the speeds in the registry, so
that the same plan gets the same backend on every machine that has a compiler.
"""

from __future__ import annotations

import math

from oco.backends import BACKENDS
from oco.backends.capabilities import Speed
from oco.backends.registry import backend
from oco.backends.round_work import Workload
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Equation, Program
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.dsl.records import dataclass

LONG_RUN = 10.0
"""Seconds of rounds in compiled code that deserve a note in advance."""
LARGE = 10_000
"""Entries of a matrix on which LAPACK, which NumPy calls, is quicker than loops."""
LARGE_PRODUCT = 1 << 21
"""Multiplications of a product of matrices on which BLAS is quicker than loops."""


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
    default, usual = next(iter(BACKENDS.items()))
    begin = f"it runs in {usual.title}"
    if rounds is None:
        return BackendChoice(default, f"{begin}: how many rounds there are is not known")
    load, length = Workload.of(program, rounds), f"{rounds:,} round{'' if rounds == 1 else 's'}"
    others = {name: row.speed for name, row in BACKENDS.items() if row.speed is not None and name != default}
    if usual.linear_algebra and _has_large_matrices(program):
        others = {name: speed for name, speed in others.items() if BACKENDS[name].linear_algebra}
        begin = f"{begin}, whose linear algebra suits its large matrices"
    speed = usual.speed or Speed()
    here = load.to_run(speed)
    if not others:
        return BackendChoice(default, f"{begin}: {length} take about {duration(here)}")
    best = min(others, key=lambda name: load.to_compile(others[name]) + load.to_run(others[name]))
    title, to_compile, there = BACKENDS[best].title, load.to_compile(others[best]), load.to_run(others[best])
    if here - there <= to_compile:
        saved = f"{title} would save {duration(here - there)} of these and take a compiler {duration(to_compile)}"
        return BackendChoice(default, f"{begin}: {length} take about {duration(here)}; {saved}")
    if reason := backend(best).unavailable_reason():
        return BackendChoice(default, f"{begin}: {title} would be quicker ({reason})")
    why = f"it runs in {title}: {length} would take {usual.title} about {duration(here)}, a {title} compiler about {duration(to_compile)}"
    return BackendChoice(best, why if there < LONG_RUN else f"{why}, and {title} itself about {duration(there)}")


def usual_seconds(program: Program, rounds: int) -> float:
    """Estimated seconds of so many rounds in the default backend, which are the same on every machine."""
    return Workload.of(program, rounds).to_run(next(iter(BACKENDS.values())).speed or Speed())


def duration(seconds: float) -> str:
    """Time in words: "0.74 s", "2.5 min", "1.7 h"."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 90 * 60 else f"{seconds / 3600:.3g} h"


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
