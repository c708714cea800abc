"""JAX backend: the emitted text, compiled by XLA for this machine's processor or its accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.fleet import Fleet
from oco.backends.gradients import Prices, RecordedInputs, SettingsLoss
from oco.backends.learner import Learner
from oco.backends.python.executed import on_demand
from oco.backends.xla.module import emit, rule_text
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Program
from oco.dsl.extras import EXTRAS, require_package
from oco.dsl.records import dataclass

PACKAGE = "jax"


@dataclass(frozen=True)
class JaxBackend:
    """Functions over arrays in 64 bits, compiled when they are first called."""

    name: str = "jax"

    @property
    def learner(self) -> type[Learner]:
        """Class of learners: `Learner`."""
        return Learner

    def fleet(self, program: Program, size: int) -> type[Fleet]:
        """Class of fleets: `MappedFleet` where the program has measures, and its decisions hang on the state and draws alone."""
        from oco.backends.xla.fleet import MappedFleet

        alone = program.measure is not None and not program.context and program.prepare is None
        return MappedFleet if alone and not program.factored else Fleet

    def unavailable_reason(self) -> str | None:
        """Advice to install JAX; None where it is installed."""
        return None if find_spec(PACKAGE) else f"install the extra `{EXTRAS[PACKAGE]}` for it"

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """Program as compiled functions of the emitted text. Raises OCO911 without JAX, OCO873 for operations that it has no text for."""
        require_package(PACKAGE, f"the backend {self.name!r}")
        from oco.backends.xla.executed import compiled, executed, watched
        from oco.backends.xla.rounds import WholeRuns

        source = rule_text(program)
        made = executed(source, program.name)
        state = [f.name for f in program.state]
        measure = None if program.measure is None else compiled(made["measure"])
        return Compiled(
            self.name,
            program,
            source,
            compiled(made["init"]),
            watched(made["decide"], [f.name for f in program.decision]),
            watched(made["update"], state),
            measure,
            on_demand(program, program.slopes),
            WholeRuns(program, contract, made["play_round"]) if measure else None,
            made,
            None if program.prepare is None else watched(made["prepare"], state),
            on_demand(program, program.certificate),
        )

    def settings_loss(
        self,
        program: Program,
        recorded: RecordedInputs,
        settings: Mapping[str, float],
        prefix: str,
        prices: Prices,
    ) -> SettingsLoss:
        """Cost of the run of a program as a function of settings, for `jax.grad`, `jax.vmap` and `jax.jit`."""
        from oco.backends.xla.settings_loss import DifferentiableLoss

        return DifferentiableLoss(program, recorded, settings, prefix, prices)

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """Standalone module by file name. Raises OCO873."""
        return {f"{identifier(program.name)}_learner.py": emit(program, contract)}

    def usage(self, path: str, names: Sequence[str], data: str | None) -> str:
        """Command that runs the module; the call that gives it values, where no file can hold them."""
        if data is None:
            return (
                f"JAX and NumPy. Use it: `Learner` of {path} decides, and `observe(loss=..., ...)` takes what that cost"
            )
        return f"JAX and NumPy. Run it: python {path} {data}"
