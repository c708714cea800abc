"""Constraints that data never bring near their limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.measured import covered, observed
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.statements import Timing
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import FEWEST_ROUNDS, Data
from oco.evaluation.numbers import number

NEAR = 0.01
"""Share of its range to which a constraint may come without being near its limit."""


def spare_limits(problem: Canonical, data: Data, budget: ComparatorBudget | None = None) -> Iterator[Diagnostic]:
    """Warn of constraints that keep more than a hundredth of their range to spare in every round (on average, where they hold on
    average), at the best fixed decision of the data and at the best decision of each round. A constraint with that much to spare at
    the minimum of a convex problem can be left out without changing the minimum.
    """
    judged = [c for c in problem.inequalities if c.label == c.origin and c.moving is None and c.learned is None]
    if not judged or data.rounds < FEWEST_ROUNDS:
        return
    best = [compare(problem, data, kind, budget) for kind in ("static", "dynamic")]
    if any(b.status is not ComparatorStatus.CERTIFIED for b in best):
        return
    streams = data.read(0, data.rounds)
    rounds = RoundArrays.of(problem, streams, np.arange(data.rounds) + 1)
    ranges = ProofContext(covered(problem, observed(problem, streams))).ranges
    for c in judged:
        scale = float(np.max(ranges(c.expr).hi - ranges(c.expr).lo))
        spare = min(_spare(rounds, c, b) for b in best)
        if np.isfinite(scale) and spare > NEAR * scale > 0:
            when = "on average" if c.timing is Timing.ON_AVERAGE else "in every round of the data"
            message = f"`{c.label}` is never near its limit: the best decisions keep {number(spare)} to spare {when}"
            hint = "look at its right side and its units; the best decisions of these data are the same without it"
            yield Diagnostic("OCO636", message, c.span, hint, Severity.WARNING)


def _spare(rounds: RoundArrays, c: Inequality, best: Comparator) -> float:
    """Least distance of a constraint `g <= 0` from its limit at the decisions of a comparator."""
    parts = [np.asarray(best.decision[name], dtype=np.float64) for name in rounds.variables]
    x = np.concatenate([p.reshape(rounds.count if best.kind == "dynamic" else 1, -1) for p in parts], axis=1)
    values = values_of(rounds.evaluate(c.expr, x, rounds.everything), rounds.count)
    if c.timing is Timing.ON_AVERAGE:
        values = values.mean(axis=0)
    return -float(np.max(values))
