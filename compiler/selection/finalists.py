"""Finalists of a choice: verdicts that the constants of their settings may still bring to the first place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oco.compiler.selection.verdicts import Applicability, Verdict, rank
from oco.compiler.theory.theorems import Situation


def order(s: Situation, v: Verdict) -> tuple[Any, ...]:
    """Key by which verdicts are sorted: rules that read what is known before the decision first, then by rank."""
    return _ignores_what_is_known(s, v), rank(v)


def outranked(s: Situation, verdicts: Iterable[Verdict]) -> frozenset[str]:
    """Names of algorithms that come behind others whatever their constants are: less is promised, or under more conditions.

    Constants change the numbers of a guarantee, and neither its conditions nor whether there is one.
    """
    usable = [v for v in verdicts if v.applicability is Applicability.APPLICABLE]
    first = min((_fixed(s, v) for v in usable if not v.algorithm.baseline), default=None)
    return frozenset(v.name for v in usable if first is not None and _fixed(s, v) > first)


def _fixed(s: Situation, v: Verdict) -> tuple[Any, ...]:
    """Leading part of the order, which no constant changes; a baseline may have more before it."""
    return _ignores_what_is_known(s, v), v.guarantee is None, (0, 0) if v.guarantee is None else v.guarantee.openness


def informed_ahead(s: Situation) -> bool:
    """True where something of a round is known before its decision: predictions, contexts, or constraints that hold in each round.

    With states that follow from decisions, what is best in a round need not be: a store is not emptied because it pays now.
    """
    c = s.canonical
    leaves = any(s.stream.following is not None for s in c.streams)
    return bool(c.predictions or ((c.context or c.known) and not leaves))


def _ignores_what_is_known(s: Situation, v: Verdict) -> bool:
    return informed_ahead(s) and not v.algorithm.looks_ahead
