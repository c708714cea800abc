"""Trade-off of regret against violation: guarantees with the free constants at their best for each weight of the violations."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from oco.compiler.selection.judging import judge
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.selection.resolve_again import given_words
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.objective import ANY_HORIZON
from oco.compiler.theory.theorems import Situation
from oco.dsl.records import dataclass

WEIGHTS = tuple(float(2.0**k) for k in range(-8, 9, 2))


@dataclass(frozen=True)
class FrontierPoint:
    """The bounds that settings for a weight give, in the user's units and as shares of the trivial bounds."""

    weight: float
    regret: float
    violation: float
    regret_share: float
    violation_share: float
    constants: tuple[tuple[str, float], ...]


@lru_cache(maxsize=8)
def frontier(s: Situation, v: Verdict) -> tuple[FrontierPoint, ...]:
    """The guarantees of an algorithm over `WEIGHTS`; empty where its bounds have no numbers or nothing is free."""
    results = []
    for weight in WEIGHTS:
        best = judge(v.algorithm, s, AlgorithmRequest(given=given_words(v), policy=Policy(Mode.LEAST, weight)))
        if best.best is None or best.best.least is None or best.guarantee is None:
            return ()
        results.append(_point(best, weight, s.rounds or ANY_HORIZON))
    return tuple(results)


def _point(v: Verdict, weight: float, rounds: int) -> FrontierPoint:
    assert v.guarantee is not None and v.best is not None
    regret, *others = v.guarantee.bounds
    return FrontierPoint(
        weight,
        regret.number(rounds) or 0.0,
        float(sum(b.number(rounds) or 0.0 for b in others)),
        regret.share(rounds) or 0.0,
        float(np.max([b.share(rounds) or 0.0 for b in others], initial=0.0)),
        tuple(v.best.numbers.items()),
    )


def frontier_text(points: tuple[FrontierPoint, ...]) -> str:
    """A table, a weight a line."""
    if not points:
        return "There is no frontier: the bounds of this algorithm have no numbers, or it leaves nothing free.\n"
    lines = [f"{'weight':>10}  {'regret':>12}  {'violation':>12}  {'of trivial':>21}  constants"]
    for p in points:
        shares = f"{p.regret_share:.3g}, {p.violation_share:.3g}"
        constants = ", ".join(f"{n} {x:g}" for n, x in p.constants)
        lines.append(f"{p.weight:>10.4g}  {p.regret:>12.5g}  {p.violation:>12.5g}  {shares:>21}  {constants}")
    return "\n".join(lines) + "\n"
