"""The static comparator: the one decision that would have been best for all rounds together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.dsl.expressions import Expr
from oco.dsl.model import Timing
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.assembly import Assembled, Stacked, Summed, binding_rounds, summed
from oco.evaluation.comparators.base import Budget, Comparator, Status
from oco.evaluation.comparators.certificate import Certified, solve_certified
from oco.evaluation.comparators.elastic import least_violation
from oco.evaluation.comparators.expectation import expected
from oco.evaluation.comparators.functions import OfRounds, Rounds
from oco.evaluation.comparators.make import implicit
from oco.evaluation.comparators.projected import solve_projected
from oco.evaluation.comparators.region import Region
from oco.evaluation.comparators.relaxed import Relaxed
from oco.evaluation.comparators.spread import Spread

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-7  # excess of a round's constraint that counts as none, in units of its slope over the region
FIRST, MORE = 64, 256  # rounds whose constraints are taken first, and at most added at a time
PASSES = 40


@dataclass(frozen=True, eq=False)
class _EachRound:
    """A constraint that binds in every round, and the rounds that decide where they are known from the start."""

    function: OfRounds
    deciding: Array | None
    slope: Array


@dataclass(frozen=True, eq=False)
class Setting:
    """What the static program is made of: the rounds over smooth functions, the set, and variables that each round has for itself.

    `original` are the rounds over the functions as the model has them; their decisions come first.
    """

    rounds: Rounds
    region: Region
    original: Rounds
    definitions: tuple[Expr, ...] = ()
    own: int = 0

    def function(self, expr: Expr) -> OfRounds:
        """The expression in each round, over all variables."""
        found = implicit(self.rounds, expr)
        return Spread(found, self.rounds.size - self.own, self.own, self.rounds.count) if self.own else found

    def total(self, expr: Expr) -> OfRounds:
        return Summed(self.function(expr), self.rounds, 1.0) if self.own else summed(self.rounds, expr, 1.0)

    def mean(self, expr: Expr) -> OfRounds:
        """The mean over the rounds; in expectation where the law of what enters is known."""
        if self.own:
            return Summed(self.function(expr), self.rounds, 1.0 / self.rounds.count)
        known = expected(self.rounds, expr)
        return summed(known, expr, 1.0 / known.count)

    def defining(self, expr: Expr) -> OfRounds:
        once = not self.own and not self.rounds.enters(expr)
        return Stacked(self.function(expr), np.arange(1) if once else self.rounds.everything)


def static(setting: Setting, budget: Budget) -> Comparator:
    """Solve for the sum over the rounds. Constraints of single rounds come in as they turn out to be violated.

    The bound of a program with some of the constraints is a bound with all of them.
    """
    began = perf_counter()
    problem, region = setting.rounds.problem, setting.region
    loss = setting.total(problem.objective)
    averages = tuple(setting.mean(c.expr) for c in problem.inequalities if c.timing is Timing.ON_AVERAGE)
    equations = tuple(setting.mean(c.expr) for c in problem.equalities)
    definitions = tuple(setting.defining(d) for d in setting.definitions)
    each = [_each_round(setting, c.expr) for c in problem.inequalities if c.timing is Timing.EACH_ROUND]
    chosen = [_first_rounds(e, setting) for e in each]
    for _ in range(PASSES):
        stacks = tuple(Stacked(e.function, rows) for e, rows in zip(each, chosen) if len(rows))
        programs = Assembled(region, 1, loss, (*averages, *stacks), equations, definitions)
        found = _solve(programs, region, began + budget.seconds)
        if found.near[0] > 1e-6:
            return _least_violating(setting, programs, found, began)
        added = [_violated(e, rows, found.x[0], setting.rounds) for e, rows in zip(each, chosen)]
        if not any(len(a) for a in added):
            return _comparator(setting, found, began)
        if perf_counter() - began > budget.seconds:
            break
        chosen = [np.union1d(rows, a) for rows, a in zip(chosen, added)]
    return _open(found, "the constraints of single rounds were not all met within the budget", began)


def _solve(programs: Assembled, region: Region, until: float) -> Certified:
    return solve_certified(programs, region.start) if region.complete else solve_projected(programs, 0, until)


def _each_round(setting: Setting, expr: Expr) -> _EachRound:
    function, region = setting.function(expr), setting.region
    values, slopes = function.jet(region.start[None], setting.rounds.everything)
    size = np.abs(slopes * (region.upper - region.lower)).max(axis=2)
    deciding = binding_rounds(function, setting.rounds, region.start)
    return _EachRound(function, deciding, np.where(size > 0, size, np.maximum(np.abs(values), 1.0)))


def _first_rounds(each: _EachRound, setting: Setting) -> Array:
    if each.deciding is not None:
        return each.deciding
    values = _values(each.function, setting.region.start, setting.rounds) / each.slope
    return np.unique(np.argsort(values, axis=0)[-max(1, FIRST // each.function.entries) :])


def _violated(each: _EachRound, chosen: Array, x: Array, rounds: Rounds) -> Array:
    """The rounds, worst first, whose constraint x breaks though it is not yet taken."""
    if each.deciding is not None:
        return np.zeros(0, dtype=np.int64)
    worst = (_values(each.function, x, rounds) / each.slope).max(axis=1)
    worst[chosen] = -np.inf
    order = np.argsort(-worst)[:MORE]
    return np.asarray(order[worst[order] > TOLERANCE])


def _values(function: OfRounds, x: Array, rounds: Rounds) -> Array:
    """(T, entries) at one x (n,)."""
    return function.values(x[None], rounds.everything)


def _losses(rounds: Rounds, x: Array) -> Array:
    values = rounds.evaluate(rounds.problem.objective, x[None], rounds.everything)
    return np.array(values_of(values, rounds.count), dtype=np.float64)


def _excess(rounds: Rounds, x: Array) -> Array:
    """By how much x breaks each inequality as it binds the static comparator: in the worst round, or in the mean."""
    parts = [np.zeros(0)]
    for c in rounds.problem.inequalities:
        known = expected(rounds, c.expr) if c.timing is Timing.ON_AVERAGE else rounds
        values = values_of(known.evaluate(c.expr, x[None], known.everything), known.count).reshape(known.count, -1)
        parts.append(values.mean(axis=0) if c.timing is Timing.ON_AVERAGE else values.max(axis=0))
    return np.maximum(np.concatenate(parts), 0.0)


def _comparator(setting: Setting, found: Certified, began: float) -> Comparator:
    rounds = setting.original
    x = found.x[0, : rounds.size]
    losses = _losses(rounds, x)
    value, bound = float(losses.sum()), float(found.bound[0])
    certified = value - bound <= 1e-6 * max(abs(value), float(found.size[0]))
    return Comparator(
        "static",
        Status.CERTIFIED if certified else Status.INTERVAL,
        rounds.split(x[None]),
        losses,
        value,
        bound,
        _excess(rounds, x),
        method="interior point",
        seconds=perf_counter() - began,
    )


def _least_violating(setting: Setting, programs: Assembled, best: Certified, began: float) -> Comparator:
    """Prove that the constraints cannot hold together, or say that it is open; then the best of the points that break them least."""
    region = setting.region
    if not region.complete:
        return _open(best, "the constraints were not met within the budget", began)
    found, scale = least_violation(programs, np.arange(1), region.start)
    if found.bound[0] <= 1e-6:
        return _open(best, "the solver stopped without a certificate", began)
    allowed = (found.f * (1 + 1e-6) + 1e-6)[:, None] * scale
    again = solve_certified(Relaxed(programs, np.arange(1), allowed), region.start)
    which = _conflicting(programs, found)
    shown = ", ".join(map(str, which[:8] + 1)) + (", ..." if len(which) > 8 else "")
    words = (
        f"rounds {shown} cannot hold together" if len(which) > 1 else f"round {shown} cannot hold" if len(which) else ""
    )
    why = words or "the means cannot hold together"
    return replace(_comparator(setting, again, began), status=Status.LEAST_VIOLATING, impossible=which + 1, why=why)


def _open(best: Certified, why: str, began: float) -> Comparator:
    """No comparator, but what is proved: a lower bound."""
    bound = float(best.bound[0])
    said = f"{why}; it costs at least {bound:.6g}" if np.isfinite(bound) else why
    return Comparator("static", Status.NOT_COMPUTED, bound=bound, why=said, seconds=perf_counter() - began)


def _conflicting(programs: Assembled, found: Certified) -> Array:
    """The rounds whose constraints carry a multiplier in the proof that nothing satisfies all."""
    weights, first, which = found.multipliers[0], 0, []
    for function in programs.inequalities:
        part = weights[first : first + function.entries]
        first += function.entries
        if isinstance(function, Stacked):
            carried = part.reshape(len(function.chosen), -1).max(axis=1)
            which.append(function.chosen[carried > 1e-4 * weights.max(initial=0.0)])
    return np.unique(np.concatenate(which)) if which else np.zeros(0, dtype=np.int64)
