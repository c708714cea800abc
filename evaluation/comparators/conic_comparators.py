"""Comparators by one conic program over all rounds: norms of matrices, kinks on any set, and everything else that
Clarabel accepts.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.comparators.affine_rows import AffineRows, Space
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unsolved
from oco.evaluation.comparators.conic import ConicProgram, program
from oco.evaluation.comparators.conic_solver import Answer, solve_conic
from oco.evaluation.comparators.first_order import METHOD as FIRST_ORDER
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.infeasible import FEASIBLE, conflict
from oco.evaluation.comparators.kinks import kinked_program
from oco.evaluation.comparators.lift import least_loss, lift, ranges_of
from oco.evaluation.comparators.loosened import elastic, loosened
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.static import StaticProblem, comparator_of
from oco.evaluation.numbers import gibibytes

Array = np.ndarray[Any, Any]

METHOD = "Clarabel, one sparse program"
BYTES = 400  # of memory for each coefficient, in the solver and before it
DENSE = 24  # of memory for each pair of entries of a matrix that is to be positive semidefinite
FIRST = 0.5  # of the time, for Clarabel, after which the first-order method is left
NODE = 2.5e-4  # seconds for each expression that CVXPY takes in
SPARSE = 6e-6  # for each coefficient, in all iterations of the solver
CUBES = 7e-10  # seconds for the cube of the entries of such a matrix, in all iterations of the solver
CARRIED = 1e-4  # of the largest multiplier: a round with less takes no part in a proof


@dataclass(frozen=True, eq=False)
class _Whole:
    """Program of a problem over all of `rounds`."""

    rounds: RoundArrays
    program: ConicProgram

    @classmethod
    def of(cls, rounds: RoundArrays) -> _Whole | None:
        """Program over all rounds; None where its variables are not bounded."""
        lifted = lift(rounds)
        if lifted is None:
            return None
        shared = tuple(b for b in lifted.problem.blocks if b.name not in lifted.each_round)
        place = region(replace(lifted.problem, blocks=shared))
        inner = rounds.under(lifted.problem)
        own = [b.domain for b in lifted.problem.blocks if b.name in lifted.each_round]
        fixed = np.concatenate([place.lower == place.upper, *(np.ravel(d.lower == d.upper) for d in own)])
        space = Space(inner, inner.size - place.size, frozenset(lifted.each_round), fixed)
        return cls(rounds, program(lifted, space, place))

    def solved(self, until: float) -> Answer | float | None:
        return solve_conic(self.program, until)

    def comparator(self, answer: Answer, began: float, method: str = METHOD) -> Comparator:
        static_problem = StaticProblem(self.rounds, self.program.region, self.rounds, np.array([self.rounds.count]))
        return comparator_of(static_problem, answer.certified, began, method)

    def too_much(self, budget: ComparatorBudget) -> str:
        """Reason why the budget does not suffice; "" where it may."""
        coefficients = sum(x.function.matrix.nnz for x in self.program.limits if isinstance(x.function, AffineRows))
        entries = np.array([n * (n + 1) / 2 for n in self.program.orders])
        needed = BYTES * coefficients + DENSE * np.square(entries).sum()
        seconds = NODE * self.program.nodes + CUBES * float((entries**3).sum()) + SPARSE * coefficients
        if needed > budget.memory:
            allowed = gibibytes(budget.memory)
            return f"one program over all rounds takes {gibibytes(needed)}, more than the budget of {allowed}"
        if seconds > budget.seconds:
            return f"one program over all rounds takes about {seconds:.3g} s, more than the budget of {budget.seconds:.3g} s"
        return ""

    def scales(self) -> list[Array]:
        """Largest change of each constraint over the set: for each constraint, in its shape."""
        p, problem = self.program, self.rounds.problem
        middle, result = 0.5 * (p.lower + p.upper), []
        for limits in p.limits:
            if limits.origin is not None:
                shape = problem.inequalities[limits.origin].shape
                changes = limits.function.changes(middle, p.width)
                result.append(np.max(changes.reshape(-1, *shape), axis=0))
        ends = np.cumsum([c.size for c in problem.equalities])[:-1]
        parts = np.split(p.equations.changes(middle, p.width), ends)
        return result + [part.reshape(c.shape) for part, c in zip(parts, problem.equalities)]


def conic_static(rounds: RoundArrays, budget: ComparatorBudget, share: float = 1.0) -> Comparator:
    """Best decision for all rounds, or the least violating one; "not computed" where the budget did not suffice.

    Where the form of the functions allows it, the first-order method does what is too much for Clarabel, which has
    `share` of the time, and no more than half of it then.
    """
    began = perf_counter()
    until, least = began + budget.seconds, rounds.count * least_loss(rounds.problem, rounds.count)
    whole = _Whole.of(rounds)
    if whole is None:
        return unsolved("static", "the range of a function with a kink is not bounded", least, began)
    kinked = kinked_program(whole.program, region(rounds.problem))
    part = replace(budget, seconds=budget.seconds * (min(share, FIRST) if kinked else share))
    why, first = whole.too_much(part), began + part.seconds
    if why and not kinked:
        return unsolved("static", why, least, began)
    answer = None if why else whole.solved(first)
    if isinstance(answer, Answer) and answer.certified.violation[0] <= FEASIBLE:
        return whole.comparator(answer, began)
    if answer is None or perf_counter() > first:
        if kinked:
            return _first_order(whole, kinked.solved(until), began)
        return unsolved("static", "the solver found no answer within the budget of time", least, began)
    return _least_violating(whole, until, began) or unsolved(
        "static", "the solver stopped without a certificate", least, began
    )


def _first_order(whole: _Whole, answer: Answer, began: float) -> Comparator:
    if answer.certified.violation[0] <= FEASIBLE:
        return whole.comparator(answer, began, FIRST_ORDER)
    return unsolved("static", "the constraints were not met within the budget", float(answer.certified.bound[0]), began)


def _least_violating(whole: _Whole, until: float, began: float) -> Comparator | None:
    """Best of the points that break the constraints least, where these are proved infeasible."""
    rounds, scales = whole.rounds, whole.scales()
    softer = _Whole.of(rounds.under(elastic(rounds.problem, scales, ranges_of(rounds))))
    answer = softer.solved(until) if softer else None
    if softer is None or not isinstance(answer, Answer) or not answer.certified.bound[0] / rounds.count > FEASIBLE:
        return None
    least = answer.certified.f[0] / rounds.count * (1 + FEASIBLE) + FEASIBLE
    again = _Whole.of(rounds.under(loosened(rounds.problem, [least * s for s in scales])))
    result = again.solved(until) if again else None
    if not isinstance(result, Answer) or result.certified.violation[0] > FEASIBLE:
        return None
    which = _conflicting(softer, answer)
    return replace(
        whole.comparator(result, began),
        status=ComparatorStatus.LEAST_VIOLATING,
        impossible=which + 1,
        why=conflict(which),
    )


def _conflicting(whole: _Whole, answer: Answer) -> Array:
    """Rounds whose constraints carry a multiplier."""
    most, which = max((w.max(initial=0.0) for w in answer.multipliers), default=0.0), [np.zeros(0, dtype=np.int64)]
    for limits, weights in zip(whole.program.limits, answer.multipliers):
        if limits.origin is not None:
            c = whole.rounds.problem.inequalities[limits.origin]
            if c.timing is Timing.EACH_ROUND:
                which.append(np.flatnonzero(weights.reshape(-1, c.size).max(axis=1) > CARRIED * most))
    return np.unique(np.concatenate(which))


def conic_prefixes(rounds: RoundArrays, ends: Array, budget: ComparatorBudget, before: Prefixes) -> Prefixes:
    """Best decisions for those of the first `ends` rounds that `before` leaves open, the longest first."""
    began = perf_counter()
    value, bound, status = before.value.copy(), before.bound.copy(), list(before.status)
    decision = {
        b.name: before.decision.get(b.name, np.full((len(ends), *b.shape), np.nan)).copy()
        for b in rounds.problem.blocks
    }
    solved = False
    for member in reversed(range(len(ends))):
        if status[member] in (ComparatorStatus.CERTIFIED, ComparatorStatus.LEAST_VIOLATING) or budget.over(began):
            continue
        result = conic_static(rounds.first(int(ends[member])), budget.left(began))
        bound[member] = max(bound[member], result.bound)
        if result.losses is None and not solved:
            break  # what is too much for the longest of them leaves its time to other methods
        if result.losses is None:
            continue
        solved = True
        if not result.value >= value[member] or result.status is ComparatorStatus.LEAST_VIOLATING:
            value[member] = result.value
            for name, part in result.decision.items():
                decision[name][member] = part
        status[member] = result.status
    method = "; ".join(filter(None, (before.method, METHOD if solved else "")))
    return replace(
        before,
        value=value,
        bound=bound,
        status=tuple(status),
        decision=decision,
        method=method,
        seconds=before.seconds + perf_counter() - began,
    )
