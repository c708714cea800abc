"""Learner of a compiled library through ctypes; the tables above it name its inputs and outputs. Needs nothing else."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

# begin tables
NAME = ""
TURNS = 1
STATE_SIZE = 0
ERROR_SIZE = 1
STARTS: tuple[str, ...] = ()
CONTEXT: dict[str, tuple[str, tuple[int, ...]]] = {}
PREPARES = False
INPUTS: dict[str, tuple[str, tuple[int, ...]]] = {}
DRAWS: dict[str, tuple[str, tuple[int, ...]]] = {}
DECISIONS: dict[str, tuple[str, tuple[int, ...]]] = {}
VALUES = (0, 0)
MEASURES = True
WATCHES = False
CERTIFICATE: dict[str, tuple[int, ...]] = {}
# end tables

KINDS: dict[str, Any] = {"d": ctypes.c_double, "q": ctypes.c_int64, "b": ctypes.c_bool}


class LearnerError(ValueError):
    """Error for data that the learner refuses; `code` is what its function returned. The learner is as before."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def library(folder: str = os.path.dirname(os.path.abspath(__file__))) -> str:
    """Path of the shared library, beside this file or in `build` there."""
    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    names = [f"lib{NAME}{ending}", f"{NAME}{ending}"]
    places = [os.path.join(folder, part, name) for part in ("", "build", "build/Release") for name in names]
    for place in places:
        if os.path.exists(place):
            return place
    raise FileNotFoundError(
        f"build the library first: cmake -B build -DBUILD_SHARED_LIBS=ON && cmake --build build; none of {places}"
    )


def flat(value: Any) -> list[Any]:
    """Numbers of nested sequences, row by row."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [x for part in value for x in flat(part)] if isinstance(value, (list, tuple)) else [value]


class Learner:
    """Learner that decides round by round: `decide()`, then `observe(...)` with the data that the round revealed.

    Arrays go in as sequences, nested or row by row, and come out as lists, row by row.
    """

    def __init__(self, path: str | None = None, start: Mapping[str, Any] | None = None) -> None:
        self._library = ctypes.CDLL(path or library())
        size = self._function("sizeof", ctypes.c_int64)()
        self._memory = (ctypes.c_int64 * (-(-size // 8)))()
        first = dict(start or {})
        given = [
            self._array(name, ("d", DECISIONS[name][1]), first[name]) if name in first else None for name in STARTS
        ]
        self._function("init", None)(self._memory, *given)

    def _function(self, name: str, returns: Any = ctypes.c_int64) -> Any:
        function = getattr(self._library, f"{NAME}_{name}")
        function.restype = returns
        return function

    def _array(self, name: str, form: tuple[str, tuple[int, ...]], value: Any) -> Any:
        kind, shape = form
        numbers = flat(value)
        if len(numbers) != math.prod(shape):
            raise LearnerError(0, f"{name} has {math.prod(shape)} entries, not {len(numbers)}")
        return (KINDS[kind] * max(len(numbers), 1))(*numbers) if shape else KINDS[kind](numbers[0])

    def _given(self, forms: Mapping[str, tuple[str, tuple[int, ...]]], values: Mapping[str, Any]) -> list[Any]:
        missing = [name for name in forms if name not in values]
        if missing:
            raise LearnerError(0, f"nothing is given for {', '.join(missing)}")
        return [self._array(name, form, values[name]) for name, form in forms.items()]

    def _checked(self, code: int) -> None:
        if code != 0:
            raise LearnerError(code, self.error(code))

    @property
    def version(self) -> str:
        """Model, algorithm, and digits that change with either."""
        return str(self._function("version", ctypes.c_char_p)().decode())

    def error(self, code: int) -> str:
        """Meaning of a return code."""
        text = ctypes.create_string_buffer(ERROR_SIZE)
        self._function("error", ctypes.c_char_p)(ctypes.c_int64(code), text)
        return text.value.decode()

    def decide(self, **given: Any) -> dict[str, Any]:
        """Decisions of this round by name, from its contexts and the rule's own random numbers, where there are some."""
        if any(name in given for name in CONTEXT) or (PREPARES and not CONTEXT):
            self._checked(self._function("prepare")(self._memory, *self._given(CONTEXT, given)))
        outs = [(ctypes.c_double * max(math.prod(shape), 1))() for _, shape in DECISIONS.values()]
        self._checked(self._function("decide")(self._memory, *self._given(DRAWS, given), *outs))
        return {n: list(out) if shape else out[0] for (n, (_, shape)), out in zip(DECISIONS.items(), outs)}

    def observe(self, /, *, round: int | None = None, **given: Any) -> None:
        """Take the round's data and go on. Raises LearnerError for wrong data, and changes nothing then.

        round  where feedback comes later: an open round, by default the oldest
        """
        if round is not None and TURNS == 1:
            raise LearnerError(0, "feedback of this learner comes at once, for the round that was decided last")
        place = [] if round is None else [ctypes.c_int64(round)]
        function = self._function("observe" if round is None else "observe_round")
        self._checked(function(self._memory, *place, *self._given(INPUTS, given), *self._given(DRAWS, given)))

    @property
    def pending(self) -> tuple[int, ...]:
        """Open rounds, the oldest first, where feedback comes later."""
        rounds = (ctypes.c_int64 * TURNS)()
        return tuple(rounds[: self._function("pending")(self._memory, rounds)]) if TURNS > 1 else ()

    def skip(self, round: int | None = None) -> None:
        """Go on without the data of an open round, by default of the oldest, where feedback comes later. Raises LearnerError."""
        if TURNS == 1:
            raise LearnerError(0, "feedback of this learner comes at once: decide again")
        now = round if round is not None else next(iter(self.pending), 0)
        self._checked(self._function("skip")(self._memory, ctypes.c_int64(now)))

    def measure(self, decisions: Mapping[str, Any], **given: Any) -> tuple[float, list[float], list[float]]:
        """Loss of decisions in a round of these data, values of g (g holds where it is at most 0) and of h."""
        if not MEASURES:
            raise LearnerError(0, "this learner has no function that measures decisions")
        loss, g, h = ctypes.c_double(), (ctypes.c_double * max(VALUES[0], 1))(), (ctypes.c_double * max(VALUES[1], 1))()
        inputs = [*self._given(DECISIONS, decisions), *self._given(INPUTS, given)]
        self._function("measure", None)(self._memory, *inputs, ctypes.byref(loss), g, h)
        return loss.value, list(g)[: VALUES[0]], list(h)[: VALUES[1]]

    @property
    def alarm(self) -> tuple[int, str] | None:
        """Round in which what the model states of its streams was refuted, and the statement; None while nothing is, or nothing watched."""
        if not WATCHES:
            return None
        statement = ctypes.c_char_p()
        since = self._function("alarm")(self._memory, ctypes.byref(statement))
        return (since, (statement.value or b"").decode()) if since else None

    def certificate(self) -> dict[str, Any]:
        """Bounds of what fixed decisions lost so far and what proves them, by name: the regret is at most loss - (least - rounding)."""
        if not CERTIFICATE:
            raise LearnerError(0, "this learner keeps no sums of a certificate: it was compiled without --certify")
        outs = {name: (ctypes.c_double * max(math.prod(shape), 1))() for name, shape in CERTIFICATE.items()}
        self._function("certificate", None)(self._memory, *outs.values())
        return {n: list(out)[: math.prod(CERTIFICATE[n])] if CERTIFICATE[n] else out[0] for n, out in outs.items()}

    def save(self) -> bytes:
        """State as bytes, the same on every machine."""
        state = (ctypes.c_ubyte * STATE_SIZE)()
        self._function("save", None)(self._memory, state)
        return bytes(state)

    def load(self, state: bytes) -> None:
        """Go to a state that `save` gave. Raises LearnerError where it is none of this learner."""
        code = self._function("load", ctypes.c_int)(self._memory, state, ctypes.c_int64(len(state)))
        if code != 0:
            raise LearnerError(code, "this is no whole state of this learner")
