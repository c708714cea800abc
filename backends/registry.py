"""Backends by name, and the learners and fleets of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from oco.backends import BACKENDS
from oco.backends.arguments import is_integer
from oco.backends.base import Compiled
from oco.backends.capabilities import OTHERWISE_CALLED, Registered
from oco.backends.contract import Contract
from oco.backends.delayed import DelayedFleet, DelayedLearner
from oco.backends.fleet import Fleet
from oco.backends.gradients import Prices, RecordedInputs, SettingsLoss
from oco.backends.learner import Learner
from oco.compiler.evidence.wealth import A_ROUND, Evidence, Growth
from oco.compiler.ir.program import Program
from oco.dsl.diagnostics import fail

REPAYS = 1 << 17
"""Payments of bets that take NumPy a millisecond; what is compiled for them takes three to load, once in a process."""


class Backend(Protocol):
    """Target that programs are compiled to; its row in `BACKENDS` has its capabilities.

    `learner` and `fleet` are the classes that run its compiled programs: `Learner`, and `Fleet` where it has no fleet of
    its own, or none without measures.
    """

    @property
    def name(self) -> str:
        """Name of the backend in `BACKENDS`."""

    @property
    def learner(self) -> type[Learner]:
        """Class of learners."""

    def fleet(self, program: Program, size: int) -> type[Fleet]:
        """Class of fleets of so many learners of a program."""

    def unavailable_reason(self) -> str | None:
        """Advice to make the backend work on this machine; None where it works."""
        ...

    def compile(self, program: Program, contract: Contract | None = None) -> Compiled:
        """Program as functions. `run` checks the contract's bounds."""
        ...

    def files(self, program: Program, contract: Contract) -> dict[str, str]:
        """Names and texts of the files that run elsewhere, without this package; the learner's own text first."""
        ...

    def usage(self, path: str, names: Sequence[str], data: str | None) -> str:
        """Sentences on the `files` of these names, written at `path`: the language, its needs, and a command that runs
        them.

        path  of the file, or of the folder of several files
        data  path of the data to run on; None where feedback is values of the decisions, which no file can hold
        """
        ...


def backend(name: str | None = None) -> Backend:
    """Backend of a name; without one, the first. Raises OcoError (OCO732) where there is none."""
    module, _, made = registered(name).place.partition(":")
    result: Backend = getattr(import_module(module), made)()
    return result


def registered(name: str | None = None) -> Registered:
    """Row of a backend in the registry; without a name, the first. Raises OcoError (OCO732) where there is none."""
    row = BACKENDS.get(next(iter(BACKENDS)) if name is None else name)
    if row is None:
        known = ", ".join(f'"{known}"' for known in BACKENDS)
        raise fail("OCO732", f"there is no backend called {name!r}", hint=f"backends: {known}")
    return row


def usable(name: Any) -> str | None:
    """Name of a backend that is registered and works on this machine; None for anything else."""
    known = isinstance(name, str) and name in BACKENDS
    return name if known and backend(name).unavailable_reason() is None else None


def growth_of(name: str, evidence: Evidence, rounds: int) -> Growth | None:
    """Wealth of the bets of evidence in a backend, where it has it and so many rounds repay what it takes to load; None: in NumPy."""
    if not (evidence.entries and registered(name).growth) or rounds * (len(evidence.begun) + A_ROUND) < REPAYS:
        return None
    made: Growth = backend(name).growth(evidence.entries)  # type: ignore[attr-defined]
    return made


def compiled_by(name: str | None, program: Program, contract: Contract, precision: str | None = None) -> Compiled:
    """`Backend.compile` of a backend, with numbers of a precision where its learners have it, else of its usual one."""
    own = registered(name).learners_have
    if precision not in own[1:]:
        return backend(name).compile(program, contract)
    made: Compiled = backend(name).compile(program, contract, precision)  # type: ignore[call-arg]
    return made


def usage_of(name: str | None, path: str, names: Sequence[str], data: str | None, precision: str) -> str:
    """`Backend.usage` of a backend, of files with numbers of a precision."""
    if precision not in registered(name).precisions[1:]:
        return backend(name).usage(path, names, data)
    words: str = backend(name).usage(path, names, data, precision)  # type: ignore[call-arg]
    return words


def precision_called(name: str | None) -> str | None:
    """Precision of a name, which may be another one of its."""
    return None if name is None else OTHERWISE_CALLED.get(name, name)


def precision_of_learners(name: str) -> str:
    """Precision of a name, which learners in this process have on some backend. Raises OCO740 where none has."""
    known = dict.fromkeys(known for row in BACKENDS.values() for known in row.learners_have)
    if (called := precision_called(name)) not in known:
        hint = f"precisions of learners: {', '.join(known)}; `plan.files` and `plan.write` take those of files"
        raise fail("OCO740", f"no learner here has numbers of precision {name!r}", hint=hint)
    return called or name


def differentiating(name: str | None = None) -> str:
    """Name of the backend that differentiates runs in settings, which is `name` where one is given. Raises OCO874 where that does not."""
    able = [other for other, row in BACKENDS.items() if row.gradients]
    if able and name in (None, *able):
        return name or able[0]
    raise fail("OCO874", f"the backend {name!r} does not differentiate", hint=f"backends that do: {', '.join(able)}")


def settings_loss(
    compiled: Compiled, recorded: RecordedInputs, settings: Mapping[str, float], prefix: str, prices: Prices
) -> SettingsLoss:
    """Cost of the run of a compiled program over recorded inputs as a function of settings, which its backend differentiates."""
    made: SettingsLoss = backend(compiled.backend).settings_loss(compiled.program, recorded, settings, prefix, prices)  # type: ignore[attr-defined]
    return made


def standalone_files(name: str, program: Program, contract: Contract, precision: str | None = None) -> dict[str, str]:
    """`Backend.files` of a backend, with numbers of a precision; None: its usual one. Raises OcoError: OCO734 where it writes none, OCO740
    where it writes none of that precision.
    """
    if not registered(name).standalone:
        known = ", ".join(f'"{other}"' for other, row in BACKENDS.items() if row.standalone)
        raise fail(
            "OCO734", f"the backend {name!r} writes no files that run elsewhere", hint=f"backends that do: {known}"
        )
    precision, precisions = precision_called(precision), registered(name).precisions
    if precision is None or precision == precisions[0]:
        return backend(name).files(program, contract)
    if precision not in precisions:
        others = [f'"{other}"' for other, row in BACKENDS.items() if row.standalone and precision in row.precisions]
        known = f"backend {' or '.join(others)} does" if others else f"precisions: {', '.join(precisions)}"
        raise fail("OCO740", f"the backend {name!r} writes no numbers of precision {precision!r}", hint=known)
    written: dict[str, str] = backend(name).files(program, contract, precision)  # type: ignore[call-arg]
    return written


def builder(target: str, name: str | None = None) -> str:
    """Name of the backend that compiles learners for another platform, which is `name` where one is given. Raises OCO690 where there is
    none.
    """
    able = [other for other, row in BACKENDS.items() if target in row.targets]
    if able and name in (None, *able):
        return name or able[0]
    known = ", ".join(dict.fromkeys(known for row in BACKENDS.values() for known in row.targets))
    hint = f"leave the backend out, or take {' or '.join(able)}" if able else f"targets: {known}"
    raise fail("OCO690", f"learners are not compiled for {target!r}{f' by {name!r}' if able else ''}", hint=hint)


def built_files(
    name: str | None, program: Program, contract: Contract, target: str, precision: str | None = None
) -> dict[str, str | bytes]:
    """Learner compiled for another platform by `builder`, with what runs it there, by file name. Raises OcoError: what `builder` raises,
    OCO740 for a precision that it does not write, OCO691 and OCO692 where its compiler is missing or fails.
    """
    name = builder(target, name)
    precision, known = precision_called(precision), registered(name).precisions
    if precision not in (None, *known):
        raise fail(
            "OCO740", f"{target} has no numbers of precision {precision!r}", hint=f"precisions: {', '.join(known)}"
        )
    made: dict[str, str | bytes] = backend(name).built(program, contract, target, precision or known[0])  # type: ignore[attr-defined]
    return made


def parts_of(name: str, program: Program, contract: Contract) -> dict[str, str]:
    """Texts by file name of a backend that writes its one module in parts."""
    written: dict[str, str] = backend(name).parts(program, contract)  # type: ignore[attr-defined]
    return written


def make_learner(compiled: Compiled, contract: Contract, **options: Any) -> Learner:
    """Learner of the backend that compiled the program, with the options of `Learner`."""
    made = backend(compiled.backend).learner
    if contract.delay:  # it plays the part of a learner
        return cast(Learner, DelayedLearner.of(made, compiled, contract, **options))
    return made(compiled, contract, **options)


def restored(state: Mapping[str, Any], compiled: Compiled, contract: Contract) -> Learner:
    """Learner from its `Learner.state`. Raises OcoError (OCO850 to OCO859) where the state is of another one."""
    made = backend(compiled.backend).learner
    if contract.delay:
        return cast(Learner, DelayedLearner.from_state(made, state, compiled, contract))
    return made.from_state(state, compiled, contract)


def make_fleet(
    compiled: Compiled,
    contract: Contract,
    size: int,
    *,
    start: Any = None,
    seeds: Sequence[int] | None = None,
    workers: int = 1,
    timeout: float | None = 0.0,
) -> Fleet:
    """Fleet of `size` learners of the backend that compiled the program; `workers` threads share them where the backend
    can; `timeout` is that of `Owned`.

    Raises OcoError (OCO852) for sizes, seeds and workers that do not fit.
    """
    if not is_integer(size) or size < 1 or (seeds is not None and len(seeds) != size):
        raise fail("OCO852", f"a fleet has at least one learner, and a seed for each: {size!r} learners")
    if not is_integer(workers) or workers < 1:
        raise fail("OCO852", f"one thread or more share the work of a fleet, not {workers!r}")
    made = backend(compiled.backend).fleet(compiled.program, size)
    options: dict[str, Any] = {"start": start, "seeds": seeds, "workers": workers, "timeout": timeout}
    if contract.delay:  # it plays the part of a fleet
        return cast(Fleet, DelayedFleet.of(made, compiled, contract, size, **options))
    return made(compiled, contract, size, **options)
