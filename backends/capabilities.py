"""Capabilities of backends, known before a backend is imported."""

from __future__ import annotations

from dataclasses import dataclass

EXACT = "exact"
"""Precision of double, with every operation of a rule rounded on its own."""
OTHERWISE_CALLED = {"float64": EXACT}
"""Precisions by other names of theirs."""


@dataclass(frozen=True)
class Speed:
    """Estimated seconds of a backend: to compile a program, `start` and `line` for each of its operations; in a round,
    `operation` for each operation and `entry` for each entry that it processes (for a product of matrices, each
    multiplication).
    """

    start: float = 0.0
    line: float = 0.0
    operation: float = 0.0
    entry: float = 0.0


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
