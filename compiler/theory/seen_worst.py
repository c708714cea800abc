"""Guarantees beside what the worst decisions could have done on rounds of data: a number above that says nothing there."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.prover.data_conditions import DataConditions
from oco.compiler.prover.seen_ranges import SeenRanges, seen_ranges
from oco.compiler.theory.guarantees import Bound, Guarantee
from oco.compiler.theory.scales import Scales
from oco.compiler.theory.theorems import Floats, Situation


def on_data(guarantee: Guarantee, s: Situation, scales: Scales | None) -> Guarantee:
    """Guarantee in the theorem's units, its bounds with what the worst decisions added a round on the data; as it is without data.

    s       the situation in the user's units, `scales` those of the theorem (None: the user's)
    """
    if s.seen is None:
        return guarantee
    worst = _ranges(
        replace(s.canonical, horizon=None), s.seen
    )  # which are those of the data, whatever horizon is looked at
    loss = None if worst.loss is None else worst.loss / (1.0 if scales is None else scales.loss)
    above = _summed(worst.inequalities, None if scales is None else scales.inequalities)
    apart = _summed(worst.equalities, None if scales is None else scales.equalities)
    return replace(
        guarantee,
        regret_bound=replace(guarantee.regret_bound, seen=loss),
        violation_bound=_seen(guarantee.violation_bound, above),
        equality_bound=_seen(guarantee.equality_bound, apart),
    )


def _seen(bound: Bound | None, most: float | None) -> Bound | None:
    return None if bound is None else replace(bound, seen=most)


def _summed(values: Floats | None, units: Floats | None) -> float | None:
    if values is None or (units is not None and units.shape != values.shape):
        return None
    return float(values.sum() if units is None else np.sum(values / units))


@lru_cache(maxsize=8)
def _ranges(problem: Canonical, seen: DataConditions) -> SeenRanges:
    return seen_ranges(problem, seen.data)
