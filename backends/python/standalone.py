"""Learner of an emitted module. This text is part of every one; the names from `interface` are defined above it there."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from oco.backends.python.intake import Intake, NotFinite, finite
from oco.backends.python.interface import (
    AFTER_HORIZON,
    CONTEXT,
    DRAWS,
    HORIZON,
    LIPSCHITZ,
    MODEL,
    MODEL_HASH,
    PLAN_HASH,
    PREVIOUS,
    START,
    STATE,
    STREAMS,
    certificate,
    decide,
    init,
    measure,
    prepare,
    slopes,
    update,
)
from oco.backends.python.state_file import StateError, check_round, entry_of, pack, read_state, unpack, write_state


class Feedback(NamedTuple):
    """Result of a round: the loss, and the value of each constraint."""

    round: int
    loss: float
    constraints: Any
    equalities: Any

    @property
    def violation(self) -> Any:
        """Violation of each constraint, zero where it holds; then the distance from each equality."""
        return np.concatenate([np.maximum(self.constraints, 0), np.abs(self.equalities)])


class Learner:
    """Learner that decides round by round: `decide()` first, then `observe(...)` with the data that the round revealed.
    `decide` takes the model's contexts by name, and `observe` the other streams.

    Threads may use it in turns; one that comes while another is at work gets a RuntimeError, and the learner is
    unchanged.
    """

    def __init__(self, start: Any = None, seed: int = 0) -> None:
        """Begin at the model's start, or at a first decision (a dict if there are several); `seed` is for random draws."""
        given = {} if start is None else start if isinstance(start, dict) else {next(iter(START)): start}
        first = {**START, **{name: np.array(value, dtype=float) for name, value in given.items()}}
        if list(first) != list(START) or any(np.shape(first[n]) != np.shape(START[n]) for n in START):
            raise ValueError(f"a start has these decisions and shapes: { {n: np.shape(v) for n, v in START.items()} }")
        self._take = Intake(STREAMS)
        self._take_context = Intake({name: STREAMS[name] for name in CONTEXT})
        self._context: dict[str, Any] | None = None
        self._unprepared: tuple[Any, ...] | None = None  # the state before `prepare` took the contexts of this round
        self._random = np.random.default_rng(seed)
        self._values = _tuple(init(*first.values()))
        self._drawn: list[Any] | None = None
        self._decision: tuple[Any, ...] | None = None
        self._steep: set[str] = set()
        self._owner = RLock()

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """Lock held while other threads must not see a partial change."""
        if not self._owner.acquire(blocking=False):
            raise RuntimeError(f"another thread is using this learner, in round {self.round}")
        try:
            yield
        finally:
            self._owner.release()

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._values[0])

    @property
    def values(self) -> dict[str, Any]:
        """State of the algorithm, by the paper's symbols."""
        return {name: np.array(value) for name, value in zip(STATE, self._values)}

    def certificate(self) -> dict[str, Any]:
        """Upper bound of the static regret so far (`bound`), and what proves it: `least`, no more than what every fixed decision that
        satisfied the constraints lost; `rounding`, taken off it; the point and the multipliers. A bound of -inf: no fixed decision did.
        """
        if certificate is None:
            raise ValueError('this learner keeps no certificate: compile the model with certify="static"')
        with self._owned(), np.errstate(all="ignore"):
            least, most, rounding, at, multipliers = certificate(*self._values)
            loss, begun = float(self._values[STATE.index("sum_loss")]), self.round > 1
        least = float(least) - float(rounding) if begun else 0.0
        bound = -np.inf if begun and least > most + rounding else float(np.nextafter(loss - least, np.inf)) * begun
        results = {"bound": bound, "loss": loss, "least": least, "rounding": float(rounding)}
        return {**results, "at": np.array(at), "multipliers": np.array(multipliers)}

    def decide(self, /, **context: Any) -> Any:
        """Decision of this round from its contexts, which are given once; a dict of them if the model has several. A second call in
        one round gives one decision.
        """
        with self._owned(), np.errstate(all="ignore"):
            self._learn_context(context)
            if self._decision is None:
                self._decision = self._finite(START, decide(*self._values, *self._draw()))
            return self._named(self._decision)

    def second_point(self) -> Any:
        """Second point of a round that reveals the loss at two, as `second_loss`: the decision of the opposite draw."""
        if "second_loss" not in STREAMS:
            raise ValueError("this model's feedback has no second point")
        with self._owned(), np.errstate(all="ignore"):
            return self._named(self._finite(START, decide(*self._values, *(-a for a in self._draw()))))

    def _named(self, result: tuple[Any, ...]) -> Any:
        """Decisions as they are given out: an array, or a dict of them by name."""
        return np.array(result[0]) if len(START) == 1 else {n: np.array(v) for n, v in zip(START, result)}

    def _learn_context(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Contexts of this round, taken where they are given. ValueError where they are missing or change."""
        known = self._context
        if given or (known is None and not CONTEXT):
            values = {name: v[()] for name, v in zip(CONTEXT, self._take_context(given))}
            changed = [name for name, old in (known or {}).items() if not np.array_equal(old, values[name])]
            if changed:
                raise ValueError(f"round {self.round} was decided with another {changed[0]}")
            if known is None and prepare is not None:
                with np.errstate(all="ignore"):
                    prepared = self._finite(STATE, prepare(*self._values, *values.values()))
                self._unprepared, self._values = self._values, prepared
            known = self._context = values
        if known is None:
            raise ValueError(f"round {self.round} is decided with {', '.join(CONTEXT)}: give them to `decide`")
        return known

    def observe(self, /, **streams: Any) -> Feedback:
        """Take the round's data, return the loss and constraints of the decision, and go on. Wrong data raises an error
        and changes nothing; a RuntimeError where `decide` has not answered this round.
        """
        with self._owned():
            known = self._learn_context({name: streams[name] for name in CONTEXT if name in streams})
            before = {name: self._values[STATE.index(own)] for name, own in PREVIOUS.items()}
            values = [v[()] for v in self._take({**streams, **known, **before})]
            if self._decision is None:
                raise RuntimeError(
                    f"round {self.round} is observed before it was decided: call `decide` first, once a round"
                )
            decisions = self._decision
            drawn = self._draw()
            with np.errstate(all="ignore"):
                loss, constraints, equalities = measure(self.round, *decisions, *values)
                following = self._finite(STATE, update(*self._values, *values, *drawn))
            feedback = Feedback(self.round, float(loss), constraints, equalities)
            self._values, self._decision = following, None
            self._unprepared, self._drawn, self._context = None, None, None
        if feedback.round - 1 == HORIZON:
            warnings.warn(f"the horizon of {HORIZON} rounds is over: {AFTER_HORIZON}", stacklevel=2)
        if LIPSCHITZ and feedback.round & (feedback.round - 1) == 0:
            self._look(feedback.round, decisions, values)
        return feedback

    def skip(self) -> None:
        """Leave this round out, as its data never come: the next decision is made from the same state, and counts as this round's."""
        with self._owned():
            self._values, self._decision = self._before, None
            self._unprepared, self._drawn, self._context = None, None, None

    @property
    def _before(self) -> tuple[Any, ...]:
        """State before the contexts of this round were taken."""
        return self._values if self._unprepared is None else self._unprepared

    def _finite(self, names: Iterable[str], values: Any) -> tuple[Any, ...]:
        """Values of a function; OverflowError where one is not finite, and the learner stays in the round."""
        result = _tuple(values)
        try:
            finite(names, result)
        except NotFinite as error:
            raise OverflowError(f"round {self.round}: {error}; the learner is as before") from None
        return result

    def _look(self, round: int, decisions: Any, values: list[Any]) -> None:
        """Warn once of each gradient that is larger than the guarantee allows; checked in rounds 1, 2, 4, 8, ..."""
        with np.errstate(all="ignore"):
            loss, constraints = slopes(round, *decisions, *values)
        for (name, bound), seen in zip(LIPSCHITZ, [loss, *constraints]):
            if seen > bound * (1 + 1e-9) and name not in self._steep:
                self._steep.add(name)
                message = f"the gradient of {name} reached {seen:.6g}, and its bound is {bound:.6g}"
                warnings.warn(f"{message}: the guarantee may not hold", stacklevel=3)

    def _draw(self) -> list[Any]:
        """Random arrays of this round, drawn once: an interruption takes nothing from the generator."""
        if self._drawn is None and DRAWS:
            before = self._random.bit_generator.state
            try:
                self._drawn = [
                    self._random.random(s) if distribution == "uniform" else self._random.normal(size=s)
                    for s, distribution in DRAWS.values()
                ]
            except BaseException:
                self._random.bit_generator.state = before
                raise
        return self._drawn or []

    def state(self) -> dict[str, Any]:
        """JSON values from which a learner continues bit for bit."""
        with self._owned():
            return {
                "model": MODEL,
                "model_hash": MODEL_HASH,
                "plan_hash": PLAN_HASH,
                "values": {name: pack(value) for name, value in zip(STATE, self._before)},
                "random": self._random.bit_generator.state,
                "drawn": [pack(a) for a in self._drawn] if self._drawn else None,
                "context": {name: pack(v) for name, v in (self._context or {}).items()},
                "decided": self._decision is not None,
            }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Learner:
        """Learner from its `state`. Raises StateError where that is damaged or of another learner."""
        if state.get("model_hash") != MODEL_HASH or state.get("plan_hash") != PLAN_HASH:
            raise StateError(f"this state is of another learner: of the model {state.get('model')!r}")
        learner = cls()
        try:
            learner._values = tuple(
                entry_of(name, state["values"][name], np.shape(first), np.asarray(first).dtype.kind)
                for name, first in zip(STATE, learner._values)
            )
            check_round(learner.round)
            learner._random.bit_generator.state = state["random"]
            drawn = [] if state["drawn"] is None else state["drawn"]
            if drawn and len(drawn) != len(DRAWS):
                raise StateError("its random arrays are not as many")
            results = [entry_of(name, a, shape, "f") for (name, (shape, _)), a in zip(DRAWS.items(), drawn)]
            learner._drawn = results or None
            if context := state.get("context"):
                learner._learn_context({name: unpack(v) for name, v in context.items()})
            if state.get("decided"):
                learner.decide()
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise StateError(f"this state is not whole: {type(error).__name__}: {error}") from None
        return learner

    def save(self, path: str) -> None:
        """Write the state to a file, completely or not at all."""
        write_state(path, self.state())

    @classmethod
    def load(cls, path: str) -> Learner:
        """Learner that continues where the saved one stopped, bit for bit."""
        return cls.from_state(read_state(path))


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)
