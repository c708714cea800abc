"""Situation as an algorithm sees it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from oco.compiler.algorithms import Algorithm
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR
from oco.compiler.proximal.solvable import known_objections
from oco.compiler.theory.theorems import Objection, Situation


def seen_by(a: Algorithm, s: Situation) -> Situation:
    """Situation in which fixed constraints are known before the first round to an algorithm that keeps to them; facts stay as they are.

    Other algorithms see it as it is: their theorems are about constraints that are met in the long run.
    """
    return _keeping_fixed(s) if a.keeps_fixed else s


@lru_cache(maxsize=32)
def _keeping_fixed(s: Situation) -> Situation:
    """The situation itself where nothing is fixed, no decision satisfies all constraints, or none can be moved to the nearest that does."""
    problem = s.canonical.keeping_fixed
    if problem is s.canonical or isinstance(FEASIBLE_COMPARATOR.test(s), Objection):
        return s
    result = replace(s, canonical=problem, source=None if s.source is None else _keeping_fixed(s.source))
    return s if known_objections(result, True) else result
