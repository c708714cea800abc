"""Capabilities of backends, known before a backend is imported."""

from __future__ import annotations

from oco.dsl.records import dataclass

EXACT = "exact"
"""Precision of double, with every operation of a rule rounded on its own."""
OTHERWISE_CALLED = {"float64": EXACT}
"""Precisions by other names of theirs."""


@dataclass(frozen=True)
class CompileTime:
    """Estimated seconds to compile a program: to begin, for each of its operations, and more for each whose loop is unrolled."""

    start: float = 0.0
    operation: float = 0.0
    unrolled: float = 0.0


@dataclass(frozen=True)
class Speed:
    """Estimated speed of a backend, in seconds of a processor.

    compiling  a program, optimized as far as its compiler does
    hastily    the same program, optimized little
    a_round    a round, whatever the program is
    operation  of a round on arrays, without their entries
    number     an operation of a round on numbers
    addition   of two entries of arrays, the unit in which `backends/round_work.py` counts what operations do to entries
    slow       an entry that comes from memory, or of a decomposition of a matrix (its entries times its lesser side)
    draw       a random number
    """

    compiling: CompileTime = CompileTime()
    hastily: CompileTime = CompileTime()
    a_round: float = 0.0
    operation: float = 0.0
    number: float = 0.0
    addition: float = 0.0
    slow: float = 0.0
    draw: float = 0.0


@dataclass(frozen=True)
class Registered:
    """Row of the registry.

    place           module and class of the backend, "module:Class"; the module is imported on first use
    title           name in sentences: "it runs in NumPy"
    speed           estimated speed; None: the backend runs only where it is named
    linear_algebra  True where large products and factorizations go to a library of linear algebra
    standalone      True where it writes files that run without this package
    parts           True where it can write its module in parts, as files of a folder
    whole_runs      True where its programs play many rounds in one call
    gradients       True where it differentiates the cost of a run in settings (`backends/gradients.py`)
    growth          True where it works out the wealth of bets against streams (`compiler/evidence/wealth.py`)
    precisions      precisions of those files, the usual one first: exact, fast, float32
    learners_have   those of them that learners in this process may have
    targets         platforms that it compiles learners for, beside this machine: wasm
    """

    place: str
    title: str
    speed: Speed | None = None
    linear_algebra: bool = False
    standalone: bool = True
    parts: bool = False
    whole_runs: bool = False
    gradients: bool = False
    growth: bool = False
    precisions: tuple[str, ...] = (EXACT,)
    learners_have: tuple[str, ...] = (EXACT,)
    targets: tuple[str, ...] = ()
