"""Learner whose state lives in the struct of its compiled program; plain rounds never leave C."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from oco.backends.base import Compiled, Recorded
from oco.backends.c99.build import stepper
from oco.backends.c99.contexts import NativeContexts
from oco.backends.c99.glue import holds_decisions
from oco.backends.contract import Contract
from oco.backends.feedback import Feedback
from oco.backends.known import Contexts
from oco.backends.learner import Learner
from oco.backends.named import NamedArray
from oco.backends.notifying import OnRound, OnWarning
from oco.backends.turns import OfRound
from oco.compiler.ir.program import ROUND, DType
from oco.compiler.ir.verifier import KINDS

_CODES = {DType.FLOAT: "d", DType.INT: "q", DType.BOOL: "b"}


class NativeLearner(Learner):
    """Learner in C. Rounds with messages (wrong data, the end of the horizon, a journal) go through Python."""

    def __init__(self, compiled: Compiled, contract: Contract, **options: Any) -> None:
        self._quick: Any = None
        self._random_views: tuple[np.ndarray[Any, Any], ...] = ()
        self._lay_out(compiled)
        super().__init__(compiled, contract, **options)
        self._bind_compiled()
        self._share()

    def _lay_out(self, compiled: Compiled) -> None:
        """Memory for the struct of a program, and its fields as arrays over it."""
        native = compiled.native
        self._memory = np.zeros(-(-ctypes.sizeof(native.layout) // 8))
        self._members = [(getattr(native.layout, m), f) for m, f in zip(native.members, compiled.program.state)]
        self._views = self._parts(self._memory)

    def _parts(self, memory: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        """Fields of a struct as arrays over its memory."""
        results: list[np.ndarray[Any, Any]] = []
        for member, field in self._members:
            kind, size = KINDS[field.type.dtype], math.prod(field.type.shape)
            part = memory.view(np.uint8)[member.offset : member.offset + size * np.dtype(kind).itemsize]
            results.append(part.view(kind).reshape(field.type.shape))
        return results

    def _bind_compiled(self) -> None:
        """Replace `decide` and `observe` by C functions, where that is possible."""
        program, native = self.compiled.program, self.compiled.native
        quick = stepper()
        alone = program.factored or program.numbered_by != ROUND
        if quick is None or program.measure is None or alone:
            return
        addresses = [self._address(name) for name in ("decide", "observe", "measure")]
        addresses.append(0 if program.prepare is None else self._address("prepare"))
        horizon = -1 if self.contract.horizon is None else self.contract.horizon + (self.contract.continued is None)
        axes = {name: given for name, given in self.contract.axes.items() if given}
        names = {name: tuple(None if a is None else a.names for a in given) for name, given in axes.items()}
        inputs = tuple((f.name, _CODES[f.type.dtype], f.type.shape, names.get(f.name)) for f in program.feedback)
        decisions = tuple((f.name, "d", f.type.shape, axes.get(f.name)) for f in program.decision)
        counts = [math.prod(r.type.shape) for r in program.measure.body.results[1:]]
        words = partial(Learner.decide, self), partial(Learner.observe, self), partial(Learner.watch_round, self)
        draws = tuple(
            (math.prod(f.type.shape), self.contract.distributions.get(f.name) == "normal") for f in program.draws
        )
        numbers = np.zeros(sum(size for size, _ in draws))
        parts = np.split(numbers, np.cumsum([size for size, _ in draws])[:-1]) if draws else []
        answered, drawn = self._answered, self._drawn
        random = numbers, self._random.bit_generator
        held = holds_decisions(native.source.interface)
        entries = np.zeros(sum(math.prod(f.type.shape) for f in program.known))
        before, bounds = np.zeros(native.state_words), (self._take_context.lower, self._take_context.upper)
        flags = tuple(f.name in program.context for f in program.feedback)
        context = (entries, *bounds, before, flags) if self.contexts.awaited else None
        own = {name: self._views[self._places[field]] for name, field in program.previous}
        left = tuple(own.get(f.name) for f in program.feedback)
        rows = inputs, decisions, horizon, *counts, draws
        self._quick = quick(self._memory, *words, *addresses, *rows, *random, NamedArray, held, context, left)
        if self.contexts.awaited:
            decisive, fields = program.prepare is not None, self._parts(before)
            self.contexts = NativeContexts(program.known, decisive, entries, fields, self._quick)
        self._random_views = tuple(part.reshape(f.type.shape) for part, f in zip(parts, program.draws))
        self._answered, self._drawn = answered, drawn
        self.__dict__.update(decide=self._quick.decide, observe=self._quick.observe)

    def _address(self, name: str) -> int | None:
        """Address of a function of `glue.py`."""
        return ctypes.cast(self.compiled.native.glue(name), ctypes.c_void_p).value

    @property
    def _answered(self) -> int:
        """Last round that `decide` answered, in C or in Python."""
        return self._last_answered if self._quick is None else int(self._quick.answered)

    @_answered.setter
    def _answered(self, round: int) -> None:
        self._last_answered = round
        if self._quick is not None:
            self._quick.answered = round

    @property
    def _drawn(self) -> OfRound | None:
        """Round whose random arrays are drawn, with these, in C or in Python."""
        if self._quick is None or not self._random_views:
            return self._last_drawn
        round = int(self._quick.drawn)
        return (round, tuple(view.copy()[()] for view in self._random_views)) if round else None

    @_drawn.setter
    def _drawn(self, drawn: OfRound | None) -> None:
        self._last_drawn = drawn
        if self._quick is not None:
            for view, values in zip(self._random_views, () if drawn is None else drawn[1]):
                view[...] = values
            self._quick.drawn = (
                0 if drawn is None else drawn[0]
            )  # last: an interruption before it leaves no arrays half written

    @property
    def _draws(self) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Random arrays that the caller gave, which Python takes round by round."""
        return self._given_draws

    @_draws.setter
    def _draws(self, given: Mapping[str, np.ndarray[Any, Any]] | None) -> None:
        self._given_draws = given
        self._share()

    @contextmanager
    def _owned(self, taken: bool = False) -> Iterator[None]:
        """Lock; while Python is at work, calls of the C functions go through Python as well."""
        with super()._owned(taken):
            if self._quick is None or self._quick.busy:
                yield
                return
            self._quick.busy = True
            try:
                yield
            finally:
                self._share()

    def _share(self) -> None:
        """Let all calls go through Python where a journal, other threads, draws of the caller or a watch have a part in them."""
        if self._quick is not None:
            watched = self.contract.alert is not None or self._on_round is not None
            self._quick.busy = self.journal is not None or self.shared or self._draws is not None or watched

    def notify(self, on_round: OnRound | None = None, on_warning: OnWarning | None = None) -> None:
        """Call functions after each round and with each warning; rounds that are told go through Python."""
        super().notify(on_round, on_warning)
        self._share()

    def memory(self) -> bytes:
        """Bytes of the struct."""
        return self._memory.tobytes()

    # The state, in the struct.

    def value_bytes(self) -> bytes | None:
        """Algorithm's values as the bytes that emitted C saves; None in a round that was prepared with its contexts."""
        return None if self.contexts.awaited else self.compiled.native.save_at(self._struct)

    def load_bytes(self, saved: bytes) -> bool:
        """Take the values of `value_bytes`; False where they are damaged or another plan's, and nothing is changed then."""
        taken: bool = self.compiled.native.load_at(self._struct, saved)
        return taken

    @property
    def _state(self) -> tuple[Any, ...]:
        """Copy of the whole state: an interruption leaves the state before or the state after."""
        return tuple(v.copy()[()] for v in self._views)

    @_state.setter
    def _state(self, values: tuple[Any, ...]) -> None:
        """All at once: an interruption leaves the state before or the state after."""
        own = self._memory[: self.compiled.native.state_words]
        following = own.copy()
        for part, value in zip(self._parts(following), values, strict=True):
            part[...] = value
        own[...] = following

    def advance(self, inputs: Sequence[Any], rounds: int, keep: Collection[str]) -> Recorded:
        """Play many rounds, as any learner, in place on the struct."""
        if self.journal is not None:
            return super().advance(inputs, rounds, keep)
        with self._owned():
            self.pass_horizon()
            count = self._until_horizon(rounds)
            given = [array[:count] for array in inputs]
            run = partial(self.compiled.native.run_at, self._struct, given, rounds=count, keep=keep)
            recorded = self._with_random_arrays(count, run)
            self.say_alarm()
            return recorded

    def _go_on(self, compiled: Compiled, contract: Contract, state: tuple[Any, ...]) -> None:
        """Run another program from here, in a struct of its own."""
        self._lay_out(compiled)
        super()._go_on(compiled, contract, state)
        self.__dict__.pop("decide", None)
        self.__dict__.pop("observe", None)
        answered, drawn, self._quick = self._answered, self._drawn, None
        self._answered, self._drawn = answered, drawn
        self.contexts = Contexts(compiled.program.context, compiled.program.prepare is not None)
        self._bind_compiled()
        if self._quick is not None:
            self._quick.busy = True  # until the call that passed the horizon is over

    def update(self, feedback: Feedback) -> None:
        """Go on to the next state, as any learner. Without a journal the struct changes in place: large states are not
        copied.
        """
        if self.journal is not None:
            super().update(feedback)
            return
        with self._owned():
            self._expects(feedback)
            self._keep_last(feedback)
            with self._naming_overflow("the state after it"):
                self.compiled.native.step_at(self._struct, feedback.values.values(), self._random_arrays())
            self._passed(feedback)

    def _prepare(self, context: tuple[Any, ...]) -> None:
        if self.compiled.prepare is not None:
            self.compiled.native.prepare_at(self._struct, context)

    def _decision(self) -> tuple[Any, ...]:
        results: tuple[Any, ...] = self.compiled.native.decide_at(self._struct, self._random_arrays())
        return results

    @property
    def _struct(self) -> ctypes.Structure:
        result: ctypes.Structure = self.compiled.native.layout.from_buffer(self._memory)
        return result

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._views[0])

    def value(self, name: str) -> Any:
        """Single field of the state."""
        return self._views[self._places[name]].copy()[()]
