"""Conditions of a guarantee against the data of a run: held, failed from some round, or undecided."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.theory.conditions import Condition, ConditionLine
from oco.dsl.labels import MOST_NAMED
from oco.evaluation.comparators import Comparator
from oco.evaluation.comparators.base import ComparatorStatus
from oco.evaluation.measured_run import MeasuredRun, RegretKind

COMPARATORS: Mapping[str, RegretKind] = {"feasible.common": "static", "feasible.each_round": "dynamic"}
"""Comparators that exist exactly where a condition holds, by the condition's fact."""


def condition_lines(trace: MeasuredRun, kinds: tuple[RegretKind, ...]) -> tuple[ConditionLine, ...]:
    """Outcomes of all conditions, by the comparators of `kinds`, which are computed where they are not yet."""
    return tuple(_line(trace, c, kinds) for c in trace.promise.conditions)


def _line(trace: MeasuredRun, condition: Condition, kinds: tuple[RegretKind, ...]) -> ConditionLine:
    kind = COMPARATORS.get(condition.key)
    if kind is None:
        return condition.undecided("it is about means that the data do not state")
    if kind not in kinds:
        return condition.undecided(f"the {kind} comparator was not asked for")
    comparator = trace.strict_comparator() if kind == "static" else trace.comparator(kind)
    if comparator.status is ComparatorStatus.LEAST_VIOLATING:
        others = [trace.comparator("dynamic")] if kind == "static" and "dynamic" in kinds else []
        return _failed(condition, comparator, *others)
    if comparator.status is ComparatorStatus.NOT_COMPUTED:
        return condition.undecided(comparator.why)
    return condition.held()


def _failed(condition: Condition, *refuting: Comparator) -> ConditionLine:
    """Line of a refuted condition, by the comparator that refutes it from the earliest round.

    A static one is refuted by rounds that conflict with each other, both kinds by rounds that no decision satisfies.
    """
    ends = {
        int(c.impossible.max() if c.kind == "static" else c.impossible.min()): c for c in refuting if len(c.impossible)
    }
    if not ends:
        return condition.failed(None, refuting[0].why)
    since = min(ends)
    rounds = np.sort(ends[since].impossible)
    if ends[since].kind == "static":
        return condition.failed(since, ends[since].why)
    listed = ", ".join(str(k) for k in rounds[:MOST_NAMED]) + (", ..." if len(rounds) > MOST_NAMED else "")
    why = f"no decision satisfies round{'s' if len(rounds) > 1 else ''} {listed}"
    return condition.failed(since, why)
