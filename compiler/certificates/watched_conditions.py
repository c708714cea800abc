"""Conditions of a guarantee within a learner: running maxima that tell whether one decision satisfied all rounds so far.

A learner keeps the worst of each number that the data of a round add to the constraints, and the last round that raised it. Where the
numbers describe every constraint (`algorithms.memory`), one decision satisfied all rounds exactly if the set that they cut is not empty; a
constraint that they do not describe is watched at the middle of the domain, which shows that it was satisfied there, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.algorithms.memory import Memory, at_centre, kept_of, memory_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility.feasible import Feasibility
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.types import Status
from oco.compiler.theory.conditions import Condition, ConditionLine
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, changes
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback

Floats = np.ndarray[Any, Any]
COMMON, EACH = "feasible.common", "feasible.each_round"
WORST, RAISED = "hardest", "hardest_round"
SYMBOLS = {
    WORST: "greatest value so far of each number that the data of a round add to the constraints, for `conditions`",
    RAISED: "last round that raised it",
}
MOST_NUMBERS = 100_000  # numbers of the state that sums of constraints may take: a round writes them all


@dataclass(frozen=True, eq=False)
class WatchedConstraints:
    """Constraints of a problem whose decisions stand still, as a learner watches them.

    exact   memory that cuts no decision which satisfied all rounds, `inner` one that may; None where it has no constraint
    others  constraints that no memory describes, at the middle of the domain: functions of a round's data
    labels  of these
    """

    problem: Canonical
    exact: Memory | None
    inner: Memory | None
    others: tuple[Expr, ...]
    labels: tuple[str, ...]

    @cached_property
    def observed(self) -> tuple[Expr, ...]:
        """Expressions in the data of a round whose running maxima are kept, those of `exact` first."""
        memories = [m.observed for m in (self.exact, self.inner) if m is not None]
        return (*(e for part in memories for e in part), *self.others)

    @cached_property
    def numbers(self) -> int:
        """Number of running maxima."""
        return sum(map(_size, self.observed))

    @cached_property
    def least(self) -> Floats:
        """Lower bound of each number, whatever a round reveals, shape (numbers,)."""
        ranges = Enclosure(ProofContext(self.problem).box)
        parts = [np.broadcast_to(ranges(e).lo, known(e.shape)).ravel() for e in self.observed]
        lower: Floats = np.concatenate([np.zeros(0), *parts])
        return np.maximum(lower, -HUGE)

    def feasible(self, worst: Floats, exact: bool) -> bool | None:
        """Answer whether some decision satisfies the constraints that these maxima cut; None where it is not proved either way.

        exact  those of `exact` alone
        """
        rows = self._rows(worst, exact)
        if not rows:
            return True
        fixed = replace(
            self.problem,
            inequalities=rows,
            equalities=(),
            streams=(),
            known=(),
            previous=(),
            objective=algebra.number(0),
        )
        fact = next(f for f in Feasibility(ProofContext(fixed)).facts() if f.key == COMMON)
        return {Status.PROVED: True, Status.REFUTED: False}.get(fact.status)

    def centre_serves(self, worst: Floats) -> bool:
        """True where the middle of the domain satisfied every constraint in all rounds."""
        centre = {b.name: b.domain.centre() for b in self.problem.blocks}
        own = self.numbers - sum(map(_size, self.others))
        rows = self._rows(worst, exact=False)
        return bool((worst[own:] <= 0).all()) and all((np.asarray(evaluate(c.expr, centre)) <= 0).all() for c in rows)

    def _rows(self, worst: Floats, exact: bool) -> tuple[Inequality, ...]:
        split = 0 if self.exact is None else sum(self.exact.sizes)
        own = () if self.exact is None else self.exact.cut(worst[:split])
        return own if exact or self.inner is None else (*own, *self.inner.cut(worst[split:]))


def _size(expr: Expr) -> int:
    return math.prod(known(expr.shape))


@lru_cache(maxsize=16)
def watched_constraints(problem: Canonical) -> WatchedConstraints | None:
    """Constraints of a problem (`Canonical.standing`) as learners watch them; None where feedback hides them, or they take too much."""
    if (
        problem.feedback is not Feedback.FULL
        or problem.equalities
        or not any(changes(c.expr) for c in problem.inequalities)
    ):
        return None
    kept = list(zip(problem.inequalities, kept_of(problem)))

    def memory(inner: bool) -> Memory | None:
        own = tuple(c for c, k in kept if k.form is not None and k.inner is inner and not k.slow)
        return memory_of(replace(problem, inequalities=own)) if own else None

    rest = [c for c, k in kept if k.form is None or k.slow]
    others, labels = tuple(at_centre(c.expr, problem) for c in rest), tuple(dict.fromkeys(c.origin for c in rest))
    result = WatchedConstraints(problem, memory(inner=False), memory(inner=True), others, labels)
    return result if 0 < result.numbers <= MOST_NUMBERS else None


class ConditionKeeper:
    """Maxima beside a rule's state; nothing at all where no constraints are watched."""

    def __init__(self, t: Tracer, watched: WatchedConstraints | None) -> None:
        self.t, self.watched = t, watched
        self.names = () if watched is None else (WORST, RAISED)

    def start(self) -> dict[str, Liftable]:
        """Fields before the first round."""
        if self.watched is None:
            return {}
        n = self.watched.numbers
        return {WORST: self.t.full(-HUGE, (n,)), RAISED: self.t.zeros((n,))}

    def after(self, p: Problem, fields: Mapping[str, Any]) -> dict[str, Liftable]:
        """Fields after the round of `p`."""
        if self.watched is None:
            return {}
        t = self.t
        t.note("what the round adds to the constraints, for the conditions of the guarantee")
        seen = t.name("asked", p.values(self.watched.observed, p.centre()))
        raised = t.where(seen > fields[WORST], t.to_float(fields["round"]), fields[RAISED])
        return {WORST: t.maximum(fields[WORST], seen), RAISED: raised}


@dataclass(frozen=True, eq=False)
class WatchedConditions:
    """Conditions of a guarantee, and the constraints that a learner watches for them (None: none)."""

    conditions: tuple[Condition, ...]
    constraints: WatchedConstraints | None

    def lines(self, state: Mapping[str, Any]) -> tuple[ConditionLine, ...]:
        """Outcome of each condition in the rounds that led to a state, by field."""
        return tuple(self._line(c, state) for c in self.conditions)

    def _line(self, condition: Condition, state: Mapping[str, Any]) -> ConditionLine:
        if condition.key not in (COMMON, EACH):
            return condition.undecided("it is about means, which no number of rounds shows")
        if self.constraints is None or WORST not in state:
            return condition.undecided("learners do not watch it: a trace of the rounds says")
        worst, raised = np.asarray(state[WORST]), np.asarray(state[RAISED])
        if int(state["round"]) == 1:
            return condition.undecided("no round is over")
        own = self.constraints
        if own.centre_serves(worst) or (not own.others and own.feasible(worst, exact=False)):
            return condition.held()
        if own.feasible(worst, exact=True) is not False:
            return condition.undecided(self._why)
        since = _since(own, worst, raised)
        if condition.key == COMMON:
            why = (
                f"no decision satisfies all of the first {since} rounds"
                if since > 1
                else "no decision satisfies round 1"
            )
            return condition.failed(since, why)
        if own.feasible(np.where(raised == since, worst, own.least), exact=True) is False:
            return condition.failed(since, f"no decision satisfies round {since}")
        return condition.undecided("no decision satisfies all rounds, and of single rounds nothing is kept")

    @property
    def _why(self) -> str:
        assert self.constraints is not None
        if self.constraints.labels:
            listed = ", ".join(f"`{label}`" for label in self.constraints.labels)
            return f"{listed} is watched at the middle of the domain alone, which breaks a constraint"
        return "no decision satisfies the worst of each entry of the data together, which may ask for more than the rounds did"


def _since(own: WatchedConstraints, worst: Floats, raised: Floats) -> int:
    """Least round up to which the last raises, with all later numbers at their least, leave no decision."""
    rounds = np.unique(raised)
    low, high = 0, len(rounds) - 1
    while low < high:
        middle = (low + high) // 2
        early = np.where(raised <= rounds[middle], worst, own.least)
        if own.feasible(early, exact=True) is False:
            high = middle
        else:
            low = middle + 1
    return int(rounds[low])


def watched_conditions(conditions: tuple[Condition, ...], problem: Canonical) -> WatchedConditions:
    """Conditions with the constraints of a problem (`Canonical.standing`) that learners watch, where one of them is about these."""
    about = any(c.key in (COMMON, EACH) for c in conditions)
    return WatchedConditions(conditions, watched_constraints(problem) if about else None)
