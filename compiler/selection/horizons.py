"""Horizons from which a vacuous guarantee would say something, with the settings of each horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from oco.compiler.selection.choice import Choice
from oco.compiler.selection.resolve_again import in_its_units, revised
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.delays import in_turns
from oco.compiler.theory.guarantees import Guarantee
from oco.compiler.theory.moves import promise
from oco.compiler.theory.seen_worst import on_data
from oco.compiler.theory.theorems import Situation, UnknownFact
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity
from oco.dsl.records import dataclass

LARGEST = 2**15
"""Rounds up to which guarantees are worked out; beyond, they are extrapolated as powers of T."""
MOST = 1e30  # rounds beyond which no run goes: a guarantee that says nothing there says nothing
LONGER = 100
"""Times the horizon up to which another one is proposed: beyond, it is the ranges that are wide, not the horizon that is short."""


@dataclass(frozen=True)
class UsefulHorizon:
    """The first horizon at which a bound is below the trivial one; None where it never is. `exact`: worked out, not extrapolated."""

    horizon: float | None
    exact: bool = True

    def __str__(self) -> str:
        if self.horizon is None:
            return f"it comes no nearer to saying something up to T = {LARGEST}"
        if self.exact:
            return f"it would say something from T = {self.horizon:.0f}"
        return f"it would say something from about T = {self.horizon:.1e}"


def useful_from(s: Situation, v: Verdict) -> dict[str, UsefulHorizon]:
    """For each vacuous measure of a verdict, the horizon from which it is not."""
    s, results = seen_by(v.algorithm, s), dict[str, UsefulHorizon]()
    if v.guarantee is None or v.theorem is None or s.rounds is None:
        return results
    for k, bound in enumerate(v.guarantee.bounds):
        if bound.vacuous(s.rounds):
            results[bound.measure] = _first(_Shares(s, v, k), s.rounds)
    return results


@dataclass(frozen=True, eq=False)
class _Shares:
    """The share of a bound in the trivial one at a horizon, its settings made for it; infinite where it has no value."""

    s: Situation
    v: Verdict
    k: int

    def __call__(self, T: int) -> float:
        try:
            share = self.guarantee(T).bounds[self.k].share(T)
        except (OcoError, UnknownFact, OverflowError, ZeroDivisionError, ValueError):
            return math.inf
        return math.inf if share is None or math.isnan(share) else share

    def guarantee(self, T: int) -> Guarantee:
        """Guarantee at a horizon, in the units of the settings."""
        s, v = revised(self.s, self.v, horizon=T)
        assert v.theorem is not None
        return in_turns(on_data(promise(v.theorem, in_its_units(s, v), v.settings), s, v.scales), s.canonical)


def _first(share: Callable[[int], float], horizon: int) -> UsefulHorizon:
    """Doubling, then bisection."""
    if horizon >= LARGEST or share(LARGEST) >= 1:
        return _extrapolated(share(LARGEST // 4), share(LARGEST))
    low, high = horizon, 2 * horizon
    while high <= LARGEST and share(high) >= 1:
        low, high = high, 2 * high
    if high > LARGEST:
        return _extrapolated(share(LARGEST // 4), share(LARGEST))
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) < 1 else (middle, high)
    return UsefulHorizon(float(high))


def _extrapolated(before: float, last: float) -> UsefulHorizon:
    """Horizon where C T^-p through the shares at LARGEST / 4 and LARGEST falls to 1."""
    if last < 1:
        return UsefulHorizon(float(LARGEST))
    fall = math.log(before / last) / math.log(4) if math.isfinite(before) and math.isfinite(last) else 0.0
    if fall <= 0.01:
        return UsefulHorizon(None)
    exponent = math.log(last) / fall
    return (
        UsefulHorizon(LARGEST * math.exp(exponent), exact=False)
        if exponent < math.log(MOST / LARGEST)
        else UsefulHorizon(None)
    )


def short_horizon(choice: Choice) -> Iterator[Diagnostic]:
    """Warn where every guarantee is vacuous, with the horizon from which that of the first algorithm is not."""
    s, rounds = choice.situation, choice.situation.rounds
    if rounds is None or not choice.vacuous:
        return
    first = choice.usable[0]
    useful = useful_from(s, first).values()
    horizons = [u.horizon for u in useful if u.exact and u.horizon is not None]
    if not horizons or len(horizons) < len(useful) or max(horizons) > LONGER * rounds:
        return
    message = f"T = {rounds} is too short: until then no algorithm guarantees anything; `{first.name}` does from T = {max(horizons):.0f}"
    hint = "give the number of rounds that the learner is to run, or `horizon T unknown`"
    yield Diagnostic("OCO635", message, s.canonical.model.horizon.span, hint, Severity.WARNING)
