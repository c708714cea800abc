"""NumPy backend: it executes the very text that it emits, so a learner here and the written module give the same bits."""

from __future__ import annotations

from collections.abc import Sequence

from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.fleet import Fleet
from oco.backends.learner import Learner
from oco.backends.python.executed import executed, on_demand, watched
from oco.backends.python.fleet import BatchedFleet, goes_in_batches
from oco.backends.python.module import emit, emit_parts, rule_text
from oco.compiler.ir.names import identifier
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import Program
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class NumpyBackend:
    """Functions over NumPy arrays. `skip` names passes of `CALLS` to leave out."""

    name: str = "numpy"
    skip: tuple[str, ...] = ()

    @property
    def learner(self) -> type[Learner]:
        """Class of learners: `Learner`."""
        return Learner

    def fleet(self, program: Program, size: int) -> type[Fleet]:
        """Class of fleets: `BatchedFleet` of many learners whose rounds one call takes together."""
        return BatchedFleet if goes_in_batches(program, size) else Fleet

    def unavailable_reason(self) -> str | None:
        """None: NumPy is always available."""
        return None

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """Standalone module by file name."""
        return {f"{identifier(program.name)}_learner.py": emit(program, contract)}

    def parts(self, program: Program, contract: Contract) -> dict[str, str]:
        """Rule and learner as modules of their own, the rule first."""
        return emit_parts(program, contract)

    def usage(self, path: str, names: Sequence[str], data: str | None) -> str:
        """Command that runs the module; the call that gives it values, where no file can hold them."""
        path = path if len(names) == 1 else f"{path}/{names[-1]}"
        if data is None:
            return (
                f"NumPy alone. Use it: `Learner` of {path} decides, and `observe(loss=..., ...)` takes what that cost"
            )
        return f"NumPy alone. Run it: python {path} {data}"

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """Program as functions of the emitted text."""
        entries = [f for f in program.entries if f not in (program.slopes, program.certificate)]
        short = shorten(program, self.skip)
        source = rule_text(short, entries)
        result = executed(program, source, entries)
        decide = watched(result["decide"], [f.name for f in program.decision])
        state = [f.name for f in program.state]
        update = watched(result["update"], state, of_state=True)
        prepare = watched(result["prepare"], state, of_state=True) if program.prepare is not None else None
        entry = result["init"], decide, update, result.get("measure"), on_demand(program, program.slopes, short)
        certificate = on_demand(program, program.certificate, short)
        return Compiled(self.name, program, source, *entry, prepare=prepare, certificate=certificate)
