"""Static comparator: the one decision that would have been best for all rounds together, or for the first of them."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unsolved
from oco.evaluation.comparators.certificate import Certified, joined, solve_certified
from oco.evaluation.comparators.evaluated import evaluated_rows
from oco.evaluation.comparators.first_order import METHOD as FIRST_ORDER
from oco.evaluation.comparators.functions import TOGETHER, General, OfRounds, QuadraticRounds, RoundArrays
from oco.evaluation.comparators.infeasible import FEASIBLE, conflict, infeasibility_of
from oco.evaluation.comparators.of_expressions import implicit
from oco.evaluation.comparators.projected import solve_projected
from oco.evaluation.comparators.region import Region
from oco.evaluation.comparators.sums import Chosen, deciding_rounds, summed, values_upto

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-7  # excess of a round's constraint that counts as none, in units of its slope over the region
ENOUGH = 5e-7  # of how much the loss can change over the set: the gap at which one of many prefixes is left
FIRST, MORE = 64, 128  # rounds whose constraints are taken first, and at most added at a time
PASSES = 80  # passes after which the interval that is known is given


@dataclass(frozen=True, eq=False)
class StaticProblem:
    """Parts of static programs: rounds over smooth functions, and the set.

    `ends` are the prefixes, one program each; `original` the rounds over the functions as the model has them, whose
    decisions come first among the variables; `definitions` (each at most zero) define the others.
    """

    rounds: RoundArrays
    region: Region
    original: RoundArrays
    ends: Array
    definitions: tuple[Expr, ...] = ()

    def function(self, expr: Expr) -> OfRounds:
        """Expression in each round as a function."""
        return implicit(self.rounds, expr)

    def total(self, expr: Expr) -> OfRounds:
        """Sum over the rounds of each prefix."""
        return summed(self.rounds, expr, self.ends, np.ones(len(self.ends)))

    def mean(self, expr: Expr) -> OfRounds:
        """Mean over the rounds of each prefix."""
        differ = self.rounds.enters(expr)
        rounds, ends = (self.rounds, self.ends) if differ else (self.rounds.first(1), np.ones_like(self.ends))
        return summed(rounds, expr, ends, 1.0 / ends)

    def defining(self, expr: Expr) -> OfRounds:
        """Function that defines a variable."""
        return Chosen.of(self.function(expr), [np.zeros(1, dtype=np.int64) for _ in self.ends])


@dataclass(frozen=True, eq=False)
class _EachRound:
    """Constraint that binds in every round; for each prefix the decisive rounds, where they are known from the start.

    Affine ones that differ by the round are taken apart: each entry counts as a round of its own, `pieces` of them in
    one round.
    """

    function: OfRounds
    pieces: int
    deciding: list[Array] | None
    slope: Array
    ends: Array


@dataclass(frozen=True, eq=False)
class _Parts:
    """Functions of all programs; `each` binds in every round."""

    loss: OfRounds
    averages: tuple[OfRounds, ...]
    equations: tuple[OfRounds, ...]
    definitions: tuple[OfRounds, ...]
    each: tuple[_EachRound, ...]

    @classmethod
    def of(cls, static_problem: StaticProblem) -> _Parts:
        problem = static_problem.rounds.problem
        return cls(
            static_problem.total(problem.objective),
            tuple(static_problem.mean(c.expr) for c in problem.inequalities if c.timing is Timing.ON_AVERAGE),
            tuple(static_problem.mean(c.expr) for c in problem.equalities),
            tuple(static_problem.defining(d) for d in static_problem.definitions),
            tuple(_each_round(static_problem, c.expr) for c in problem.inequalities if c.timing is Timing.EACH_ROUND),
        )

    def programs(self, region: Region, members: Array, chosen: list[list[Array]]) -> Assembled:
        """Programs of some prefixes, with the constraints of the rounds that are chosen for each."""
        stacks = (
            Chosen.of(e.function, rounds, members, e.pieces)
            for e, rounds in zip(self.each, chosen)
            if any(len(rounds[member]) for member in members)
        )
        return Assembled(region, members, self.loss, (*self.averages, *stacks), self.equations, self.definitions)


@dataclass(frozen=True, eq=False)
class _Solved:
    """Programs with the constraints that were taken, their solutions, flags for those that meet all constraints, and for
    those that ran out of time.
    """

    programs: Assembled
    certified: Certified
    met: Array
    late: Array


def static(static_problem: StaticProblem, budget: ComparatorBudget) -> Comparator:
    """Best decision for all rounds: `static_problem` has the one prefix that is the whole run."""
    began = perf_counter()
    solved = _solve_all(static_problem, began + budget.seconds)
    if solved.late[0]:
        return unsolved(
            "static",
            "the constraints were not all met within the budget of time",
            float(solved.certified.bound[0]),
            began,
        )
    if not solved.met[0]:
        return _least_violating(static_problem, solved, began)
    return comparator_of(static_problem, solved.certified, began)


def prefixes(static_problem: StaticProblem, budget: ComparatorBudget) -> Prefixes:
    """Best decisions for the first rounds, all programs solved side by side."""
    began = perf_counter()
    solved = _solve_all(static_problem, began + budget.seconds)
    result, status = solved.certified, [ComparatorStatus.CERTIFIED] * len(static_problem.ends)
    unmet = np.flatnonzero(~solved.met & ~solved.late)
    if len(unmet) and static_problem.region.complete:
        broken = infeasibility_of(replace(solved.programs, members=unmet))
        proved = np.flatnonzero(broken.proved)
        result = stored(result, unmet[proved], broken.best(proved)) if len(proved) else result
        for member in unmet[proved]:
            status[member] = ComparatorStatus.LEAST_VIOLATING
    values = np.array([losses.sum() for losses in _losses(static_problem.original, result.x, static_problem.ends)])
    for member, known in enumerate(solved.met & ~solved.late):
        if status[member] is ComparatorStatus.CERTIFIED:
            reached = ComparatorStatus.of_gap(values[member], result.bound[member], result.size[member])
            status[member] = reached if known else ComparatorStatus.NOT_COMPUTED
    values[[s is ComparatorStatus.NOT_COMPUTED for s in status]] = np.nan
    decision = static_problem.original.arrays(result.x)
    spent = perf_counter() - began
    return Prefixes(
        static_problem.ends, values, result.bound, tuple(status), decision, _method(static_problem.region), spent
    )


def _solve_all(static_problem: StaticProblem, until: float) -> _Solved:
    """Solve the programs, adding constraints of single rounds as they turn out violated: a bound with some holds with
    all.
    """
    parts, region = _Parts.of(static_problem), static_problem.region
    everything = np.arange(len(static_problem.ends))
    chosen = [_first_rounds(e, static_problem) for e in parts.each]
    solution: Certified | None = None
    open_, met, late = everything, np.ones(len(everything), dtype=bool), np.zeros(len(everything), dtype=bool)
    for _ in range(PASSES):
        result = solve_programs(parts.programs(region, open_, chosen), until)
        solution = result if solution is None else stored(solution, open_, result)
        met[open_] = result.violation <= FEASIBLE
        wanting = open_[met[open_]]
        added = [_violated(e, c, solution.x, wanting) for e, c in zip(parts.each, chosen)]
        chosen = [[np.union1d(c, a) for c, a in zip(rounds, more)] for rounds, more in zip(chosen, added)]
        open_ = np.array([b for b in wanting if any(len(more[b]) for more in added)], dtype=np.int64)
        if not len(open_) or perf_counter() > until:
            break
    late[open_] = True
    late |= ~met & (perf_counter() > until)
    assert solution is not None
    return _Solved(parts.programs(region, everything, chosen), solution, met, late)


def solve_programs(programs: Assembled, until: float) -> Certified:
    """Points and bounds; multipliers and values of constraints, whose number differs from pass to pass, are left out."""
    if programs.region.complete:
        result = solve_certified(programs, programs.region.start, ENOUGH if programs.count > 1 else 0.0, until)
    else:
        result = _projected(programs, until)
    none = np.zeros((programs.count, 0))
    return replace(result, multipliers=none, g=none, last=None)


def _projected(programs: Assembled, until: float) -> Certified:
    """Solutions one after another, the longest prefix first: each starts where the last ended."""
    results: list[Certified] = []
    for row in reversed(range(programs.count)):
        results.insert(0, solve_projected(programs, row, until, results[0].x[0] if results else None))
    return joined(results)


def stored(solution: Certified, members: Array, part: Certified) -> Certified:
    """Solution with that of some members replaced."""
    changed = {name: getattr(solution, name).copy() for name in ("x", "f", "bound", "violation", "size")}
    for name, array in changed.items():
        array[members] = getattr(part, name)
    return replace(solution, **changed)


def _each_round(static_problem: StaticProblem, expr: Expr) -> _EachRound:
    region, count, pieces = static_problem.region, static_problem.rounds.count, 1
    evaluated = evaluated_rows(static_problem.rounds, expr)
    function = evaluated or static_problem.function(expr)
    deciding = deciding_rounds(function, static_problem.rounds, region.start, static_problem.ends)
    if evaluated is not None:
        pieces = evaluated.base.entries
    elif isinstance(function, QuadraticRounds) and function.differs and len(function.constant) == count:
        function, pieces = function.apart, function.entries
    step = max(1, TOGETHER // max(1, function.entries * static_problem.rounds.size))
    parts = [np.arange(k, min(k + step, count * pieces)) for k in range(0, count * pieces, step)]
    slope = np.concatenate([_steepest(function, region, rows) for rows in parts])
    return _EachRound(function, pieces, deciding, slope, static_problem.ends * pieces)


def _steepest(function: OfRounds, region: Region, rows: Array) -> Array:
    """Most that one entry of x changes each function in these rounds, (b, entries): what violations are measured by."""
    values, slopes = function.jet(region.start[None], rows)
    size = np.abs(slopes * (region.upper - region.lower)).max(axis=2)
    return np.where(size > 0, size, np.maximum(np.abs(values), 1.0))


def _first_rounds(each: _EachRound, static_problem: StaticProblem) -> list[Array]:
    if each.deciding is not None:
        return each.deciding
    values = each.function.values(static_problem.region.start[None], np.arange(len(each.slope))) / each.slope
    few = max(1, FIRST // each.function.entries)
    return [np.unique(np.argpartition(values[:end], -min(few, end), axis=0)[-min(few, end) :]) for end in each.ends]


def _violated(each: _EachRound, chosen: list[Array], x: Array, wanting: Array) -> list[Array]:
    """Rounds of each prefix, worst first, whose constraint x breaks and which are not yet included; computed for
    `wanting` alone.
    """
    results = [np.zeros(0, dtype=np.int64)] * len(each.ends)
    if each.deciding is not None or not len(wanting):
        return results
    for member, values in zip(wanting, values_upto(each.function, x[wanting], each.ends[wanting])):
        worst = (values / each.slope[: len(values)]).max(axis=1)
        worst[chosen[member]] = -np.inf
        order = np.flatnonzero(worst > TOLERANCE)
        results[member] = order[np.argsort(-worst[order])[:MORE]]
    return results


def _losses(rounds: RoundArrays, x: Array, ends: Array) -> list[Array]:
    """Loss in each round of each prefix."""
    loss = General(rounds, rounds.problem.objective, 1, False)
    return [values[:, 0] for values in values_upto(loss, x[:, : rounds.size], ends)]


def _violation(rounds: RoundArrays, x: Array) -> Array:
    """Violation at x of each inequality as it binds the static comparator: in the worst round, or in the mean."""
    parts = [np.zeros(0)]
    for c in rounds.problem.inequalities:
        values = rounds.at_each(c.expr, x[None]).reshape(rounds.count, -1)
        parts.append(values.mean(axis=0) if c.timing is Timing.ON_AVERAGE else values.max(axis=0))
    return np.maximum(np.concatenate(parts), 0.0)


def _method(region: Region) -> str:
    return "interior point" if region.complete else FIRST_ORDER


def comparator_of(static_problem: StaticProblem, result: Certified, began: float, method: str = "") -> Comparator:
    """Comparator with the decision at the head of a solution, its loss in each round and its violations."""
    rounds = static_problem.original
    x = result.x[0, : rounds.size]
    losses = _losses(rounds, result.x, static_problem.ends)[0]
    value, bound = float(losses.sum()), float(result.bound[0])
    return Comparator(
        "static",
        ComparatorStatus.of_gap(value, bound, float(result.size[0])),
        rounds.split(x[None]),
        losses,
        value,
        bound,
        _violation(rounds, x),
        method=method or _method(static_problem.region),
        seconds=perf_counter() - began,
    )


def _least_violating(static_problem: StaticProblem, solved: _Solved, began: float) -> Comparator:
    """Prove that the constraints cannot hold together, or leave it open; then the best of the least violating points."""
    if not static_problem.region.complete:
        return unsolved(
            "static", "the constraints were not met within the budget", float(solved.certified.bound[0]), began
        )
    broken = infeasibility_of(solved.programs)
    if not broken.proved[0]:
        return unsolved("static", "the solver stopped without a certificate", float(solved.certified.bound[0]), began)
    result, which = (
        comparator_of(static_problem, broken.best(np.zeros(1, dtype=np.int64)), began),
        broken.conflicting(0),
    )
    return replace(result, status=ComparatorStatus.LEAST_VIOLATING, impossible=which + 1, why=conflict(which))
