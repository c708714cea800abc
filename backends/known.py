"""Contexts: what a learner is told of a round before it decides, kept until the round is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.python.state_file import unpack
from oco.compiler.ir.program import Program
from oco.dsl.diagnostics import fail

Array = np.ndarray[Any, Any]


class Contexts:
    """Contexts of one round at a time. `names` are those of the model, in its order; none where it has none.

    decisive  True where the round must be prepared before its decision, even where there are no names
    """

    def __init__(self, names: Sequence[str], decisive: bool) -> None:
        self.names = tuple(names)
        self.awaited = bool(names) or decisive
        self._now: tuple[int, dict[str, Array]] | None = None
        self._before: tuple[Any, ...] = ()

    def of(self, round: int) -> dict[str, Array] | None:
        """Values of a round by name; None where they are still to be given."""
        if not self.awaited:
            return {}
        return self._now[1] if self._now is not None and self._now[0] == round else None

    def needed(self, round: int) -> dict[str, Array]:
        """Values of a round by name. Raises OCO860 where they are still to be given."""
        values = self.of(round)
        if values is None:
            given = ", ".join(f"{name}=..." for name in self.names)
            message = f"the decision of round {round} needs {', '.join(self.names)}, which is known before it"
            raise fail("OCO860", message, hint=f"call decide({given}) first")
        return values

    def is_new(self, round: int, values: Mapping[str, Array]) -> bool:
        """True where the round has no contexts yet. Raises OCO860 where it was decided with others."""
        known = self.of(round)
        if known is None:
            return True
        for name, value in values.items():
            if not np.array_equal(known[name], value):
                raise fail("OCO860", f"round {round} was decided with another {name}")
        return False

    def take(self, round: int, values: Mapping[str, Array], before: tuple[Any, ...]) -> None:
        """Keep the values of a round, and the learner's state before it was prepared with them."""
        self._before, self._now = before, (round, dict(values))

    def unprepared(self, round: int, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """State of a round before it was prepared with its contexts; `state` itself where it was not."""
        return state if not self.awaited or self.of(round) is None else self._before

    def drop(self) -> None:
        """Forget the values, as after a decision that failed."""
        self._now = None


def recorded(program: Program, decided: Any, revealed: Any) -> dict[str, Array]:
    """Values known before the decision of a round, by a journal's records of its decisions, and of its data if it is over."""
    contexts = zip(program.context, decided[len(program.decision) :], strict=True) if program.context else ()
    streams = (revealed or {}).get("streams", {})
    before = ((name, streams[name]) for name, _ in program.previous if name in streams)
    return {name: unpack(value) for name, value in (*contexts, *before)}
