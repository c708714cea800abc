"""Backend that interprets the step IR; the file that it writes is the program as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oco.backends.base import Arrays, Compiled
from oco.backends.contract import Contract
from oco.backends.fleet import Fleet
from oco.backends.learner import Learner
from oco.backends.python.intake import finite
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.program import Program


@dataclass(frozen=True)
class ToyBackend:
    """Functions that walk over the equations of a program."""

    name: str = "toy"

    @property
    def learner(self) -> type[Learner]:
        """Class of learners: `Learner`."""
        return Learner

    def fleet(self, program: Program, size: int) -> type[Fleet]:
        """Class of fleets: `Fleet`."""
        return Fleet

    def unavailable_reason(self) -> str | None:
        """None: the interpreter is always there."""
        return None

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """Program as calls of the interpreter."""

        def entry(name: str) -> Callable[..., Arrays]:
            return lambda *values: interpret(program, name, values)

        def checked(name: str, names: Sequence[str]) -> Callable[..., Arrays]:
            return lambda *values: tuple(a[()] for a in finite(names, entry(name)(*values)))

        decide = checked("decide", [f.name for f in program.decision])
        update = checked("update", [f.name for f in program.state])
        measure = None if program.measure is None else entry("measure")
        slopes = None if program.slopes is None else entry(program.slopes.name)
        return Compiled(self.name, program, str(program), entry("init"), decide, update, measure, slopes)

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """Text of the program."""
        return {f"{program.name}.ir": str(program)}

    def usage(self, path: str, names: Sequence[str], data: str | None) -> str:
        """Command that shows the program."""
        return f"equations in plain text. Read them: less {path}"
