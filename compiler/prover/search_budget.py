"""Budget of a proof's searches, in steps of about a microsecond: not seconds, so that facts agree on every machine."""

from __future__ import annotations

import math

from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, parts
from oco.dsl.records import dataclass

STEPS = 3_000_000
"""Steps of all searches of one proof at the usual effort; the examples take at most 150,000."""

MORE = 4
"""Factor of effort that is proposed, or a power of it."""


@dataclass(frozen=True)
class SearchBudget:
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
        return Allowance(share * STEPS * self.effort, self.effort)


USUAL = SearchBudget()


class Allowance:
    """Steps left to some searches.

    refused   count of the requests that it could not meet
    outgrown  effort at which all searches would have been tried that were not, for the number of things; 0 where there are none
    """

    def __init__(self, steps: float, effort: float, whole: Allowance | None = None) -> None:
        self.steps = self.left = steps
        self.effort, self.refused, self.outgrown = effort, 0, 0.0
        self._whole, self._wanted = whole, 1.0  # how many times the steps would have met every request

    def take(self, steps: float) -> bool:
        """Take steps where so many are left; False where the search is to give up."""
        if not self.affords(steps):
            return False
        self._spend(steps)
        return True

    def affords(self, steps: float) -> bool:
        """True if so many steps are left, for a search that takes them itself."""
        short = self._short(steps)
        if short > 1:
            self._refuse(short)
        return short <= 1

    def fits(self, count: float, usual: float) -> bool:
        """True if a search over so many things is tried: over `usual` of them, times an effort above 1. False where it is to give up."""
        times = count / usual
        if times <= max(1.0, self.effort):
            return True
        self.outgrown = max(self.outgrown, times)
        return False

    def part(self, share: float) -> Allowance:
        """An allowance for one search, of which each step is a step of this one too: at most a share of all its steps."""
        return Allowance(share * self.steps, self.effort, self)

    @property
    def more(self) -> float:
        """An effort at which the requests that were refused would have been met, a power of `MORE` times this one; where none were, one
        at which all searches are tried.
        """
        if self.outgrown and not self.refused:
            return float(MORE) ** math.ceil(math.log(self.outgrown, MORE) - 1e-9)
        power = max(1, math.ceil(math.log(self._wanted, MORE) - 1e-9))
        return max(1.0, self.effort * float(MORE) ** power)

    @property
    def gave_up(self) -> bool:
        """True where a search gave up."""
        return bool(self.refused or self.outgrown)

    @property
    def advice(self) -> str:
        """Advice on how to go on after a search that gave up."""
        return f"`oco --effort {self.more:g} ...` or `oco.check(model, effort={self.more:g})` goes on"

    def ended(self, about: str, why: Step | None) -> Step:
        """The step above `why` where the search for more about something gave up. Its value is the effort that is proposed."""
        words = f"{about} is {ProofRule.NOT_SEARCHED}: {self.advice}"
        return Step(ProofRule.NOT_SEARCHED, words, self.more, () if why is None else (why,))

    def _short(self, steps: float) -> float:
        """Multiple of the steps of the shortest allowance that so many more would need."""
        own = (self.steps - self.left + steps) / self.steps
        return own if self._whole is None else max(own, self._whole._short(steps))

    def _refuse(self, wanted: float) -> None:
        self.refused += 1
        self._wanted = max(self._wanted, wanted)
        if self._whole is not None:
            self._whole._refuse(wanted)

    def _spend(self, steps: float) -> None:
        self.left -= steps
        if self._whole is not None:
            self._whole._spend(steps)


def size(expr: Expr) -> int:
    """Parts of an expression, shared ones counted once."""
    return sum(parts(expr).values())
