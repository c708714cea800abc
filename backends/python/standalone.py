"""Learner of an emitted module. This text is part of every one; the names from `interface` are defined above it there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from oco.backends.python.intake import Intake, StreamError
from oco.backends.python.interface import (
    AFTER_HORIZON,
    CERTIFIED,
    CONTEXT,
    DRAWS,
    HANDED,
    HORIZON,
    LIPSCHITZ,
    MODEL,
    MODEL_HASH,
    NUMBERED,
    ON_ALARM,
    PLAN_HASH,
    PREVIOUS,
    START,
    STATE,
    STATED,
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

_Method = TypeVar("_Method", bound=Callable[..., Any])


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


def _in_turn(method: _Method) -> _Method:
    """Method that one thread runs at a time; a second one gets a RuntimeError, and the learner is unchanged."""

    @functools.wraps(method)
    def guarded(self: Any, /, *args: Any, **given: Any) -> Any:
        if not self._owner.acquire(blocking=False):
            raise RuntimeError(f"another thread is using this learner, in round {self.round}")
        try:
            with np.errstate(all="ignore"):
                return method(self, *args, **given)
        finally:
            self._owner.release()

    return guarded  # type: ignore[return-value]


class Learner:
    """Learner that decides round by round: `decide()` first, then `observe(...)` with the data that the round revealed.
    `decide` takes the model's contexts by name, and `observe` the other streams. Threads may use it in turns.
    """

    def __init__(self, start: Any = None, seed: Any = 0) -> None:
        """Begin at the model's start, or at a first decision (a dict if there are several); `seed` is for random draws."""
        given = start if isinstance(start, dict) else {} if start is None else {next(iter(START)): start}
        first = {name: np.array(value, dtype=float) for name, value in {**START, **given}.items()}
        shapes = {name: np.shape(value) for name, value in START.items()}
        if {name: value.shape for name, value in first.items()} != shapes:
            raise ValueError(f"a start has these decisions and shapes: {shapes}")
        self._owner = RLock()
        self._take = Intake(STREAMS)
        if DRAWS:
            self._random = np.random.default_rng(seed)
        if CONTEXT:
            self._take_context = Intake({name: STREAMS[name] for name in CONTEXT})
        if LIPSCHITZ:
            self._steep: set[str] = set()
        self._begin(_tuple(init(*first.values())))

    def _begin(self, values: tuple[Any, ...]) -> None:
        """Begin a round from this state."""
        self._values = values
        self._decision: tuple[Any, ...] | None = None
        if CONTEXT:
            self._context: dict[str, Any] | None = None
        if prepare:
            self._unprepared: tuple[Any, ...] | None = None  # the state before `prepare` took the contexts
        if DRAWS:
            self._drawn: list[Any] | None = None

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._values[0])

    @property
    def values(self) -> dict[str, Any]:
        """State of the algorithm, by the paper's symbols."""
        return {name: np.array(value) for name, value in zip(STATE, self._values)}

    if certificate:

        @_in_turn
        def certificate(self) -> dict[str, Any]:
            """Upper bound of the static regret so far (`bound`), and what proves it: `least`, no more than what every fixed decision that
            satisfied the constraints lost; `rounding`, taken off it; the point and the multipliers. A bound of -inf: no fixed decision
            did. `broken`: in how many rounds each constraint was. Where they are kept, upper bounds of the regret to the best decision of
            each round (`dynamic`; -inf: some round allows none) and to the best expert (`best_expert`).
            """
            results = dict(zip(CERTIFIED, certificate(*self._values)))
            results = {name: float(v) if np.ndim(v) == 0 else np.array(v) for name, v in results.items()}
            loss, most, rounding, begun = results["loss"], results.pop("most"), results["rounding"], self.round > 1
            least = results["least"] = results["least"] - rounding if begun else 0.0
            bound = -np.inf if begun and least > most + rounding else float(np.nextafter(loss - least, np.inf)) * begun
            return {"bound": bound, **results}

    if STATED:

        @property
        def alarm(self) -> tuple[int, str] | None:
            """Round in which what the model states of its streams was refuted, and the statement from which most was won; None before."""
            since, statement = (int(self._values[STATE.index(name)]) for name in ("alarm_round", "alarm_statement"))
            return (since, STATED[statement]) if since else None

    @_in_turn
    def decide(self, /, **context: Any) -> Any:
        """Decision of this round, an array or a dict of them by name; a second call in one round gives it again."""
        if CONTEXT:
            self._learn_context(context)
        elif context:
            raise StreamError("name", f"{', '.join(context)} is not among the inputs: there are none")
        if prepare and not CONTEXT and self._unprepared is None:
            self._prepare()
        if self._decision is None:
            made = decide(*self._values, *self._draw()) if DRAWS else decide(*self._values)
            self._decision = self._finite(START, made)
        return _named(self._decision)

    if "second_loss" in STREAMS:

        @_in_turn
        def second_point(self) -> Any:
            """Second point of a round that reveals the loss at two, as `second_loss`: the decision of the opposite draw."""
            return _named(self._finite(START, decide(*self._values, *(-a for a in self._draw()))))

    def _learn_context(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Contexts of this round, taken where they are given. ValueError where they are missing or change."""
        known = self._context
        if given:
            values = dict(zip(CONTEXT, self._take_context(given)))
            changed = [name for name, old in (known or {}).items() if not np.array_equal(old, values[name])]
            if changed:
                raise ValueError(f"round {self.round} was decided with another {changed[0]}")
            if prepare and known is None:
                self._prepare(*values.values())
            known = self._context = values
        if known is None:
            raise ValueError(f"round {self.round} is decided with {', '.join(CONTEXT)}: give them to `decide`")
        return known

    @_in_turn
    def observe(self, /, **streams: Any) -> Feedback:
        """Take the round's data, return the loss and constraints of the decision, and go on. Wrong data raises an error
        and changes nothing; a RuntimeError where `decide` has not answered this round.
        """
        if CONTEXT:
            streams |= self._learn_context({name: streams[name] for name in CONTEXT if name in streams})
        if PREVIOUS:
            streams |= {name: self._values[STATE.index(own)] for name, own in PREVIOUS.items()}
        values = self._take(streams)
        if self._decision is None:
            raise RuntimeError(
                f"round {self.round} is observed before it was decided: call `decide` first, once a round"
            )
        seen = self._values[STATE.index("number")] if NUMBERED else self.round, *self._decision, *values
        loss, constraints, equalities = measure(*seen)
        feedback = Feedback(self.round, float(loss), constraints, equalities)
        if DRAWS:
            values += self._draw()
        self._begin(self._finite(STATE, update(*self._values, *values), self._values))
        if HORIZON is not None and feedback.round - 1 == HORIZON:
            warnings.warn(f"the horizon of {HORIZON} rounds is over: {AFTER_HORIZON}", stacklevel=3)
        if STATED and self.alarm is not None and self.alarm[0] == feedback.round:
            warnings.warn(f"since round {self.alarm[0]} no longer claimed: {self.alarm[1]}; {ON_ALARM}", stacklevel=3)
        if LIPSCHITZ and feedback.round & (feedback.round - 1) == 0:
            self._look(slopes(*seen))
        return feedback

    @_in_turn
    def skip(self) -> None:
        """Leave this round out, as its data never come: the next decision is made from the same state, and counts as this round's."""
        self._begin(self._before if prepare else self._values)

    def _prepare(self, *context: Any) -> None:
        """Take the round's contexts into the state."""
        prepared = self._finite(STATE, prepare(*self._values, *context), self._values)
        self._unprepared, self._values = self._values, prepared

    @property
    def _before(self) -> tuple[Any, ...]:
        """State before the contexts of this round were taken."""
        if self._unprepared is None:
            return self._values
        if HANDED:  # what the round leaves to the next stays
            own = zip(STATE, self._unprepared, self._values)
            return tuple(now if name in HANDED.values() else before for name, before, now in own)
        return self._unprepared

    def _finite(self, names: Iterable[str], values: Any, old: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """Values of a function; OverflowError where one is not finite, and the learner stays in the round."""
        for k, (name, value) in enumerate(zip(names, results := _tuple(values))):
            if (k >= len(old) or value is not old[k]) and not np.isfinite(value).all():
                raise OverflowError(f"round {self.round}: {name} is not finite; the learner is as before")
        return results

    def _look(self, norms: Any) -> None:
        """Warn once of each gradient that is larger than the guarantee allows; checked in rounds 1, 2, 4, 8, ..."""
        for (name, bound), seen in zip(LIPSCHITZ, [norms[0], *norms[1]]):
            if seen > bound * (1 + 1e-9) and name not in self._steep:
                self._steep.add(name)
                message = f"the gradient of {name} reached {seen:.6g}, and its bound is {bound:.6g}"
                warnings.warn(f"{message}: the guarantee may not hold", stacklevel=4)

    def _draw(self) -> list[Any]:
        """Random arrays of this round, drawn once: an interruption takes nothing from the generator."""
        if self._drawn is None:
            before = self._random.bit_generator.state
            try:
                self._drawn = [
                    self._random.random(s) if distribution == "uniform" else self._random.normal(size=s)
                    for s, distribution in DRAWS.values()
                ]
            except BaseException:
                self._random.bit_generator.state = before
                raise
        return self._drawn

    @_in_turn
    def state(self) -> dict[str, Any]:
        """JSON values from which a learner continues bit for bit."""
        state: dict[str, Any] = {
            "model": MODEL,
            "model_hash": MODEL_HASH,
            "plan_hash": PLAN_HASH,
            "values": {name: pack(v) for name, v in zip(STATE, self._before if prepare else self._values)},
            "decided": self._decision is not None,
        }
        if DRAWS:
            drawn = self._drawn and [pack(a) for a in self._drawn]
            state |= {"random": self._random.bit_generator.state, "drawn": drawn}
        if CONTEXT:
            state["context"] = {name: pack(v) for name, v in (self._context or {}).items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Learner:
        """Learner from its `state`. Raises StateError where that is damaged or of another learner."""
        if (state.get("model_hash"), state.get("plan_hash")) != (MODEL_HASH, PLAN_HASH):
            raise StateError(f"this state is of another learner: of the model {state.get('model')!r}")
        learner = cls()
        try:
            kinds = [(name, np.shape(v), np.asarray(v).dtype.kind) for name, v in zip(STATE, learner._values)]
            learner._values = tuple(entry_of(name, state["values"][name], *kind) for name, *kind in kinds)
            check_round(learner.round)
            if DRAWS:
                learner._random.bit_generator.state = state["random"]
                drawn = state["drawn"] or []
                if len(drawn) not in (0, len(DRAWS)):
                    raise StateError("its random arrays are not as many")
                results = [entry_of(name, a, shape, "f") for (name, (shape, _)), a in zip(DRAWS.items(), drawn)]
                learner._drawn = results or None
            if CONTEXT and (context := state.get("context")):
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


def _named(result: tuple[Any, ...]) -> Any:
    """Decisions as they are given out: an array, or a dict of them by name."""
    return np.array(result[0]) if len(START) == 1 else {n: np.array(v) for n, v in zip(START, result)}


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)
