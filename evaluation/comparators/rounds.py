"""The dynamic comparator: the best decision of each round under all constraints of that round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.canonical import Canonical
from oco.dsl.expressions import Expr
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.base import Budget, Comparator, Status
from oco.evaluation.comparators.certificate import Certified, solve_certified
from oco.evaluation.comparators.elastic import least_violation
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.make import functions
from oco.evaluation.comparators.projected import solve_projected
from oco.evaluation.comparators.region import Region
from oco.evaluation.comparators.relaxed import Relaxed
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]

TOLERANCE = (
    1e-6  # of the excess, in units of the constraint's slope over the region; of the gap, in units of the losses
)


def dynamic(
    problem: Canonical, data: Data, region: Region, budget: Budget, definitions: tuple[Expr, ...] = ()
) -> Comparator:
    """Solve all rounds, some hundreds or thousands at once, with a certificate for each.

    `definitions` (each at most zero) define decisions of `problem` that stand for its kinks.
    """
    began = perf_counter()
    parts: list[_Part] = []
    for streams, numbers in _chunks(problem, data):
        if perf_counter() - began > budget.seconds:
            why = f"{data.rounds - numbers[0] + 1:,} rounds were left after {budget.seconds:g} s"
            return Comparator("dynamic", Status.NOT_COMPUTED, why=why, seconds=perf_counter() - began)
        rounds = Rounds.of(problem, streams, numbers)
        if region.complete:
            parts.append(_solve(rounds, region, definitions))
            continue
        found = _one_by_one(rounds, region, began + budget.seconds)
        if found is None:
            why = f"a set that is known by its projection takes longer than {budget.seconds:g} s for all rounds"
            return Comparator("dynamic", Status.NOT_COMPUTED, why=why, seconds=perf_counter() - began)
        parts.append(found)
    return _joined(problem, parts, perf_counter() - began)


class _Part:
    """The rounds of one chunk: points, losses, bounds, excess by constraint, and the rounds that are impossible or open."""

    def __init__(self, rounds: Rounds, found: Certified, constraints: int) -> None:
        self.numbers = rounds.numbers
        self.x, self.losses, self.bounds = found.x.copy(), found.f.copy(), found.bound.copy()
        self.sizes = np.maximum(np.abs(found.f), found.size)
        self.excess = np.maximum(found.g[:, :constraints], 0.0)
        self.impossible = np.zeros(rounds.count, dtype=bool)
        self.open = np.zeros(rounds.count, dtype=bool)
        self.rounds = rounds


def _chunks(problem: Canonical, data: Data) -> Iterator[tuple[dict[str, Array], Array]]:
    """The rounds in parts whose working memory stays near 500 MB, and whose data does."""
    width = max(16 * problem.size, data.nbytes // (8 * data.rounds))
    step = max(1, (1 << 22) // max(1, width))
    for start in range(0, data.rounds, step):
        streams = data.read(start, start + step)
        yield streams, np.arange(start, min(start + step, data.rounds)) + 1


def programs_of(rounds: Rounds, region: Region, definitions: tuple[Expr, ...] = ()) -> Assembled:
    """One program a round: the loss under all inequalities and equalities of the round."""
    problem = rounds.problem
    inequalities = tuple(functions(rounds, c.expr) for c in problem.inequalities)
    equations = tuple(functions(rounds, c.expr) for c in problem.equalities)
    defining = tuple(functions(rounds, d) for d in definitions)
    loss = functions(rounds, problem.objective)
    return Assembled(region, rounds.everything, loss, inequalities, equations, defining)


def _solve(rounds: Rounds, region: Region, definitions: tuple[Expr, ...]) -> _Part:
    programs = programs_of(rounds, region, definitions)
    found = solve_certified(programs, region.start)
    part = _Part(rounds, found, sum(c.size for c in rounds.problem.inequalities))
    unmet = np.flatnonzero(~(found.near <= TOLERANCE))
    if len(unmet):
        _repair(part, programs, unmet, region)
    return part


def _one_by_one(rounds: Rounds, region: Region, until: float) -> _Part | None:
    """The same for a set that is known by its projection; None when time is over."""
    programs = programs_of(rounds, region)
    found: list[Certified] = []
    for row in range(rounds.count):
        found.append(solve_projected(programs, row, until))
        if perf_counter() > until:
            return None
    columns = {f.name: np.concatenate([getattr(c, f.name) for c in found]) for f in fields(Certified)}
    part = _Part(rounds, Certified(**columns), sum(c.size for c in rounds.problem.inequalities))
    part.open = columns["near"] > TOLERANCE
    return part


def _repair(part: _Part, programs: Assembled, rows: Array, region: Region) -> None:
    """Rounds whose constraints are not met: those that are proved impossible get the least violating decision, the others stay open."""
    found, scale = least_violation(programs, rows, region.start)
    proved = found.bound > TOLERANCE
    part.impossible[rows[proved]] = True
    part.open[rows[~proved]] = True
    if not proved.any():
        return
    chosen = rows[proved]
    allowed = (found.f[proved] * (1 + TOLERANCE) + TOLERANCE)[:, None] * scale[chosen]
    again = solve_certified(Relaxed(programs, chosen, allowed), region.start)
    constraints = part.excess.shape[1]
    part.x[chosen], part.losses[chosen], part.bounds[chosen] = again.x, again.f, again.bound
    part.excess[chosen] = np.maximum(programs.jet(again.x, chosen).g[:, :constraints], 0.0)


def _joined(problem: Canonical, parts: list[_Part], seconds: float) -> Comparator:
    x = np.concatenate([p.x for p in parts])
    losses, bounds = (np.concatenate([getattr(p, name) for p in parts]) for name in ("losses", "bounds"))
    impossible, still_open = (np.concatenate([getattr(p, name) for p in parts]) for name in ("impossible", "open"))
    layout = parts[0].rounds
    decision = {name: x[:, layout.places[name]].reshape(len(x), *shape) for name, shape in layout.layout}
    excess = np.concatenate([p.excess for p in parts]).max(axis=0, initial=0.0)
    numbers = np.flatnonzero(impossible) + 1
    status, why = Status.CERTIFIED, ""
    if len(numbers):
        status, why = (
            Status.LEAST_VIOLATING,
            f"{_count(len(numbers))} nothing satisfies, the first is round {numbers[0]}",
        )
    elif still_open.any():
        status, why = Status.INTERVAL, f"{_count(int(still_open.sum()))} could not be solved"
    elif not losses.sum() - bounds.sum() <= TOLERANCE * sum(p.sizes.sum() for p in parts):
        status, why = Status.INTERVAL, "the solver stopped before full accuracy"
    return Comparator(
        "dynamic",
        status,
        decision,
        losses,
        float(losses.sum()),
        float(bounds.sum()),
        excess,
        numbers,
        "interior point",
        seconds,
        why,
    )


def _count(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"
