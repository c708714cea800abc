"""How much a proof may search, in steps of about a microsecond. Steps and not seconds, so that facts are the same on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oco.compiler.facts.types import Step
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, parts

STEPS = 3_000_000
"""Steps of all searches of one proof at the usual effort; the examples take at most 120,000."""

NOT_SEARCHED = "not searched further"
"""The rule of a step that stands above what was known when a search gave up."""


@dataclass(frozen=True)
class Budget:
    """Steps that the searches of one proof may take: `effort` times the usual number.

    Raises OcoError (OCO526) where `effort` is not a positive number.
    """

    effort: float = 1.0

    def __post_init__(self) -> None:
        times = self.effort
        if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < math.inf:
            raise fail("OCO526", f"an effort is a positive number, not {times!r:.60}", hint="1 is the usual effort")

    def allowance(self, share: float) -> Allowance:
        """A share of the steps, for searches that take from it one after the other."""
        return Allowance(share * STEPS * self.effort)

    @property
    def advice(self) -> str:
        """That a search gave up, and how to go on."""
        more = f"{4 * self.effort:g}"
        return f"{NOT_SEARCHED} at this effort; `oco --effort {more} ...` or `oco.check(model, effort={more})` goes on"

    def ended(self, about: str, why: Step | None) -> Step:
        """The step above `why` where the search for more about something gave up."""
        return Step(NOT_SEARCHED, f"{about} is {self.advice}", None, () if why is None else (why,))


USUAL = Budget()


def size(expr: Expr) -> int:
    """Parts of an expression, shared ones counted once."""
    return sum(parts(expr).values())


class Allowance:
    """Steps left to some searches. `refused` counts the requests that it could not meet."""

    def __init__(self, steps: float, whole: Allowance | None = None) -> None:
        self.steps = self.left = steps
        self.refused = 0
        self._whole = whole

    def take(self, steps: float) -> bool:
        """Take steps where so many are left; False where the search is to give up."""
        if not self._holds(steps):
            self._refuse()
            return False
        self._spend(steps)
        return True

    def part(self, share: float) -> Allowance:
        """An allowance for one search, of which each step is a step of this one too: at most a share of all its steps."""
        return Allowance(share * self.steps, self)

    def _holds(self, steps: float) -> bool:
        return self.left >= steps and (self._whole is None or self._whole._holds(steps))

    def _refuse(self) -> None:
        self.refused += 1
        if self._whole is not None:
            self._whole._refuse()

    def _spend(self, steps: float) -> None:
        self.left -= steps
        if self._whole is not None:
            self._whole._spend(steps)
