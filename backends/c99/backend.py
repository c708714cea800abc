"""C backend: the emitted source, compiled for this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oco.backends.base import Compiled
from oco.backends.c99.arithmetic import ARITHMETICS, EXACT
from oco.backends.c99.betting import growth
from oco.backends.c99.bindings import beside
from oco.backends.c99.build import INSTALL, has_compiler, library
from oco.backends.c99.example import example_main
from oco.backends.c99.flags import command
from oco.backends.c99.fleet import NativeFleet
from oco.backends.c99.learner import NativeLearner
from oco.backends.c99.module import emit
from oco.backends.c99.native import Native
from oco.backends.c99.webassembly import webassembly
from oco.backends.contract import Contract
from oco.backends.fleet import Fleet
from oco.backends.learner import Learner
from oco.backends.python.executed import on_demand
from oco.backends.round_work import optimizing_pays
from oco.compiler.evidence.bets import StatedEntry
from oco.compiler.evidence.wealth import Growth
from oco.compiler.ir.program import Program
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class CBackend:
    """C99, compiled with the system's compiler. `skip` names passes of `LOOPS` to leave out."""

    name: str = "c"
    skip: tuple[str, ...] = ()

    @property
    def learner(self) -> type[Learner]:
        """Class of learners: `NativeLearner`."""
        return NativeLearner

    def fleet(self, program: Program, size: int) -> type[Fleet]:
        """Class of fleets: `NativeFleet` where the program has measures, and its decisions hang on the state alone."""
        alone = program.measure is not None and not program.context and program.prepare is None
        return NativeFleet if alone else Fleet

    def unavailable_reason(self) -> str | None:
        """Advice to install a compiler; None where there is one."""
        return None if has_compiler() else INSTALL

    def compile(self, program: Program, contract: Contract | None = None, precision: str = EXACT.name) -> Compiled:
        """Program as functions of a compiled library, with numbers of a precision, exact or fast.

        It is optimized less where it runs about as long as the compiler would take.
        """
        alone = replace(program, certificate=None)
        source = emit(
            alone,
            (contract or _no_promises(program)).of_one_turn,
            self.skip,
            vectors=True,
            arithmetic=ARITHMETICS[precision],
        )
        optimized = optimizing_pays(program, contract.horizon if contract else None, self.name)
        native = Native(alone, source, library(source, optimized))
        measure = None if program.measure is None else native.measure
        entries = native.init, native.decide, native.update, measure, on_demand(program, program.slopes)
        prepare = None if program.prepare is None else native.prepare
        certificate = on_demand(program, program.certificate)
        return Compiled(self.name, program, source.code, *entries, native.run, native, prepare, certificate)

    def growth(self, entries: tuple[StatedEntry, ...]) -> Growth:
        """Growth of the wealth of bets, in C."""
        return growth(entries)

    def files(self, program: Program, contract: Contract, precision: str = EXACT.name) -> dict[str, str]:
        """Source, header, an example, a build and bindings by file name; `precision` is a name in `ARITHMETICS`."""
        source = emit(program, contract, arithmetic=ARITHMETICS[precision])
        return {
            f"{source.name}.c": source.code,
            f"{source.name}.h": source.header,
            f"{source.name}_example.c": example_main(program, source, contract),
            **beside(source),
        }

    def built(self, program: Program, contract: Contract, target: str, precision: str) -> dict[str, str | bytes]:
        """Learner compiled for another platform, `wasm`, with what runs it there, by file name. Raises what `webassembly` raises."""
        return webassembly(emit(program, contract, arithmetic=ARITHMETICS[precision]))

    def usage(self, path: str, names: Sequence[str], data: str | None, precision: str = EXACT.name) -> str:
        """Command that compiles the files and runs the example; for WebAssembly, the statements that load them."""
        if module := next((name for name in names if name.endswith(".mjs")), None):
            return (
                f'WebAssembly with an ES module ({", ".join(names)}). Use it: import {{ load }} from "{path}/{module}"'
            )
        fused = ARITHMETICS[precision].fused
        return f"C99, libm alone ({', '.join(names)}). Try it: {command(f'{path}/*.c', fused=fused)} && ./a.out"


def _no_promises(program: Program) -> Contract:
    return Contract("", "", None, {f.name: np.zeros(f.type.shape) for f in program.decision})
