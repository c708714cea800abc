"""Rounds that the value of what is left in stores looks ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.costs_to_come import rounds_predicted
from oco.compiler.algorithms.learned_costs import DAY
from oco.compiler.problem.store_forms import NO_ENTRY
from oco.compiler.problem.stores import stores
from oco.compiler.theory.settings import Default, Setting, count
from oco.compiler.theory.theorems import Situation
from oco.dsl.magnitudes import TINY

AHEAD = "ahead"
"""Setting with the rounds that the value of what is left looks ahead."""
MOST_AHEAD = 96
"""Largest number of these rounds where none are predicted, of whole seasons that fit; the least is a day."""
TURNS = 2.0
"""Times that the largest flows fill a store in these rounds, where that is more than a day: what is too much has to flow out again."""


def rounds_ahead(s: Situation) -> dict[str, Default]:
    """Setting with the rounds to look ahead; none where the problem has no stores."""
    if not stores(s.canonical):
        return {}
    wanted = min(max(DAY, math.ceil(TURNS * _turn(s))), MOST_AHEAD)
    whole, predicted = min(s.season * -(-wanted // s.season), MOST_AHEAD), rounds_predicted(s.canonical) - 1
    why = "rounds to come that what is left in a store is for: of a day, or of a season"
    if predicted > whole:
        return {AHEAD: Default(float(predicted), "rounds to come that the model predicts")}
    return {AHEAD: Default(float(whole), why)}


def _turn(s: Situation) -> float:
    """Rounds in which the largest flows fill the slowest store from one end to the other."""
    turns = list[float]()
    for own in stores(s.canonical):
        flows, moved = np.bincount(own.filled, own.most - own.least, own.size), own.filled[own.entries != NO_ENTRY]
        turns.append(float(((own.ends.upper - own.ends.lower) / np.maximum(flows, TINY))[moved].max(initial=0)))
    return max(turns)


def count_ahead(s: Situation, settings: Mapping[str, Setting]) -> int:
    """Rounds that an algorithm with these settings looks ahead; 0 where it has no such setting."""
    return count(settings, AHEAD, s.horizon or 1) if AHEAD in settings else 0


def stores_valued(s: Situation, settings: Mapping[str, Setting]) -> str:
    """Reason why nothing is promised of a problem with stores; "" where it has none, or no round ahead is looked at."""
    names = [store.name for store in stores(s.canonical)]
    if count_ahead(s, settings) == 1:
        return ""
    return f"what is left in `{names[0]}` has a value, which is an estimate" if names else ""
