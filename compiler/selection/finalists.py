"""Finalists of a choice: verdicts that the constants of their settings may still bring to the first place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oco.compiler.algorithms import Algorithm
from oco.compiler.problem.stores import stores
from oco.compiler.selection.verdicts import Applicability, Informativeness, Verdict, rank
from oco.compiler.theory.best_constants import Rival
from oco.compiler.theory.theorems import Situation

Search = Callable[[Algorithm, Rival], Verdict]
"""Verdict on an algorithm with its constants searched; with the paper's where they come nowhere near another one."""

PREDICTS = "it solves each round on what is known before its decision, and weighs that against steps on what came"
PREDICTS_NOT = "it takes steps on what came, and does not solve the round on what is known before its decision"
VALUES = "it values what a round leaves in store by what filling it costs in the rounds to come"
VALUES_NOT = "what a decision leaves to later rounds counts for nothing in it"


def order(s: Situation, v: Verdict) -> tuple[Any, ...]:
    """Key by which verdicts are sorted: rules that read what is known before the decision first, then by rank."""
    return _ignores_what_is_known(s, v), rank(v)


def outranked(s: Situation, verdicts: Iterable[Verdict]) -> frozenset[str]:
    """Names of algorithms that come behind others whatever their constants are: less is promised, or under more conditions.

    Constants change the numbers of a guarantee, and neither its conditions nor whether there is one.
    """
    usable = [v for v in verdicts if v.applicability is Applicability.APPLICABLE]
    first = min((_leading(s, v) for v in usable if not v.algorithm.baseline), default=None)
    return frozenset(v.name for v in usable if first is not None and _leading(s, v) > first)


def _leading(s: Situation, v: Verdict) -> tuple[Any, ...]:
    """Leading part of the order, which no constant changes; a baseline may have more before it."""
    return _ignores_what_is_known(s, v), v.guarantee is None, (0, 0) if v.guarantee is None else v.guarantee.openness


def searched_finalists(s: Situation, plain: Sequence[Verdict], search: Search) -> list[Verdict]:
    """Verdicts with the constants of finalists searched, in their order; the others come behind and keep the paper's.

    A verdict with numbers that say something is behind none but those with numbers too: once there is one, its sum is what others must
    come near. Hence those that say something and those with few constants are searched first. Of those that say nothing the lowest rate
    is first, which no constant changes, so that the others are searched only where they may come to say something.

    plain  verdicts on all algorithms with the paper's constants
    """
    behind = outranked(s, plain)
    results = {v.name: v for v in plain}
    finalists = [v for v in plain if v.applicability is Applicability.APPLICABLE and v.name not in behind]
    best: Verdict | None = None
    rate = min((v.exponent for v in finalists if not v.algorithm.baseline), default=math.inf)
    for v in sorted(finalists, key=_effort):
        numbers = best is not None and best.informativeness is Informativeness.NUMBERS
        least = best.score if best is not None and numbers and _leading(s, v) >= _leading(s, best) else math.inf
        results[v.name] = full = search(v.algorithm, Rival(least, rate))
        if full.applicability is Applicability.APPLICABLE and (best is None or order(s, full) < order(s, best)):
            best = full
    return list(results.values())


def _effort(v: Verdict) -> tuple[bool, int]:
    """Key of the order in which verdicts are searched."""
    return v.informativeness is not Informativeness.NUMBERS, 0 if v.theorem is None else len(v.theorem.free)


def earliest(s: Situation, v: Verdict) -> tuple[Any, ...]:
    """Key that is not above `order` of the verdict, whatever its constants are."""
    ignores, unpromised, openness = _leading(s, v)
    return ignores, (unpromised, False, openness)


def informed_ahead(s: Situation) -> bool:
    """True where something of a round is known before its decision: predictions, contexts, or constraints that hold in each round.

    With states that follow from decisions, what is best in a round need not be: a store is not emptied because it pays now.
    """
    c = s.canonical
    leaves = any(s.stream.following is not None for s in c.streams)
    return bool(c.predictions or ((c.context or c.known) and not leaves))


def goes_first(s: Situation, a: Algorithm) -> bool:
    """True for algorithms that value what rounds leave in stores where there are some, and that use what is known before where it is."""
    if stores(s.canonical):
        return a.values_left
    return informed_ahead(s) and a.looks_ahead


def reasons_to_go_first(s: Situation) -> tuple[str, str]:
    """Reasons why an algorithm goes first by `goes_first`, and why others come behind it."""
    return (VALUES, VALUES_NOT) if stores(s.canonical) else (PREDICTS, PREDICTS_NOT)


def _ignores_what_is_known(s: Situation, v: Verdict) -> bool:
    return not goes_first(s, v.algorithm) and (informed_ahead(s) or bool(stores(s.canonical)))
