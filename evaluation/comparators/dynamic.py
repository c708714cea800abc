"""Dynamic comparator: the best decision of each round under all constraints of that round."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass
from oco.evaluation.batch import values_of
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Estimate, unsolved
from oco.evaluation.comparators.certificate import Certified, joined, solve_certified
from oco.evaluation.comparators.conic_comparators import METHOD, conic_static
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.infeasible import infeasibility_of
from oco.evaluation.comparators.lift import least_loss
from oco.evaluation.comparators.of_expressions import functions
from oco.evaluation.comparators.projected import solve_projected
from oco.evaluation.comparators.region import Region
from oco.evaluation.comparators.sampled import estimate_of, evenly_spaced
from oco.evaluation.data import FEWEST_ROUNDS, Data
from oco.evaluation.numbers import number

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")

EARLIER = 16  # times shorter is the first chunk of several, which shows what all would take
CHUNKS_AT_ONCE = 2  # in threads: NumPy leaves the interpreter to others in large operations only (docs/speed.md)
TOLERANCE = 1e-6  # of the excess, in units of the constraint's slope over the set; of the gap, in those of the losses
PATIENCE = 2.0  # seconds after which it is asked whether the budget can do: less, the farther it is from that
SAMPLED = 0.1  # of the budget, for an estimate beside a run that takes no longer than all of it
HOPELESS = 2.0  # times the budget: an estimate beyond which it cannot


@dataclass(frozen=True, eq=False)
class Formulation:
    """Formulation for solving several rounds side by side: a problem without kinks, whose decisions begin with the
    model's, over its set.

    `definitions` (each at most zero) define those decisions of `problem` that replace kinks of the model.
    """

    problem: Canonical
    region: Region
    definitions: tuple[Expr, ...] = ()


def dynamic(problem: Canonical, data: Data, formulation: Formulation | None, budget: ComparatorBudget) -> Comparator:
    """Solve all rounds, some hundreds or thousands at once, with a certificate for each.

    Rounds that stay open, or all where there is no such formulation, are solved one by one as conic programs.
    """
    clock, floor = _RoundsClock(perf_counter(), budget, data.rounds), least_loss(problem, data.rounds)
    parts: list[_Part] = []

    def begun(streams: dict[str, Array], numbers: Array, clock: _RoundsClock = clock) -> tuple[RoundArrays, _Part]:
        rounds = RoundArrays.of(problem, streams, numbers)
        return rounds, _side_by_side(rounds, formulation, clock, floor) if formulation else _none_yet(rounds, floor)

    def sampled(count: int) -> _Part:
        left = replace(budget, seconds=budget.seconds - clock.spent, progress=None)
        own = _RoundsClock(perf_counter(), left, count)
        rounds, part = begun(*evenly_spaced(data, count), own)
        if not formulation or part.solved:
            _one_after_another(part, rounds, own, budget.memory)
        return part

    at_once = _rounds_at_once(formulation.problem if formulation else problem, data)
    chunks = _chunks(data, at_once)
    for rounds, part in _in_order(begun, chunks, CHUNKS_AT_ONCE if formulation and formulation.region.complete else 1):
        if not formulation or part.solved:
            _one_after_another(part, rounds, clock, budget.memory)
        parts.append(part)
        if clock.over(sum(p.solved for p in parts)):
            result = _unfinished(parts, floor, clock)
            return replace(result, estimate=_estimated(parts, clock, at_once, sampled))
    return _joined(parts, clock)


def _in_order(work: Callable[..., Result], chunks: Iterator[tuple[Any, ...]], at_once: int) -> Iterator[Result]:
    """Results of the chunks in their order; the first, which shows what all would take, alone, then so many at once in threads."""
    yield work(*next(chunks))
    if at_once == 1:
        yield from (work(*chunk) for chunk in chunks)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        for chunk in chunks:
            begun.append(pool.submit(work, *chunk))
            if len(begun) == at_once:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


@dataclass(frozen=True)
class _RoundsClock:
    """Starting time, the budget, and the rounds to solve."""

    began: float
    budget: ComparatorBudget
    rounds: int

    @property
    def seconds(self) -> float:
        """Seconds allowed."""
        return self.budget.seconds

    @property
    def spent(self) -> float:
        return perf_counter() - self.began

    @property
    def until(self) -> float:
        return self.began + self.seconds

    @property
    def until_of_one(self) -> float:
        """Time at which a round that was just begun shows that the budget will not suffice."""
        return min(self.until, perf_counter() + max(PATIENCE, HOPELESS * self.seconds / self.rounds))

    def estimate(self, solved: int) -> float:
        """Estimated seconds for all rounds from the time spent on those solved."""
        return self.spent * self.rounds / solved if solved else np.inf

    def over(self, solved: int) -> bool:
        """True where rounds are left and time is over or far too short; those that are solved are reported."""
        self.budget.solved(solved, self.rounds)
        if solved == self.rounds:
            return False
        share = HOPELESS * self.seconds / self.estimate(solved) if solved else 1.0
        return self.spent > self.seconds or (share < 1 and self.spent > share * PATIENCE)


def _unfinished(parts: list[_Part], floor: float, clock: _RoundsClock) -> Comparator:
    """Comparator without a decision, with a lower bound: from the rounds that were solved, and the least possible loss
    of the others.
    """
    solved, reached = sum(p.solved for p in parts), sum(len(p.bounds) for p in parts)
    bound = sum(float(p.bounds.sum()) for p in parts) + (
        floor * (clock.rounds - reached) if reached < clock.rounds else 0.0
    )
    if not solved:
        return unsolved("dynamic", f"no round was solved within the budget of {clock.seconds:g} s", bound, clock.began)
    needed = clock.estimate(solved)
    why = f"all {clock.rounds:,} rounds would take about {_duration(needed)}, and the budget is {clock.seconds:g} s"
    return replace(unsolved("dynamic", why, bound, clock.began), needed=needed)


def _estimated(
    parts: Sequence[_Part], clock: _RoundsClock, most: int, sampled: Callable[[int], _Part]
) -> Estimate | None:
    """Estimate by rounds at equal distances: at most `most`, and as many as are solved in the time that passed before, in `PATIENCE`, or in
    `SAMPLED` of a budget that is shorter. None where these are too few, or some are not solved.
    """
    solved, spent = sum(p.solved for p in parts), clock.spent
    usual = min(PATIENCE, SAMPLED * clock.seconds)
    in_time = int(solved / spent * min(clock.seconds - spent, max(spent, usual)))
    count = min(in_time, most, clock.rounds // 2)
    if count < FEWEST_ROUNDS:
        return None
    part = sampled(count)
    known = part.solved == count and not part.impossible.any() and not len(part.unsolved())
    return estimate_of(part.losses, clock.rounds) if known else None


def _duration(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{number(seconds / 60, 2)} min"


class _Part:
    """Rounds of one chunk: points, losses, bounds, excess by constraint, and the infeasible or open rounds.

    The first `solved` of them were finished in time; of the others only the bounds are of use.
    """

    def __init__(self, rounds: RoundArrays, result: Certified, constraints: int, floor: float) -> None:
        self.solved = rounds.count
        self.x, self.losses = result.x.copy(), result.f.copy()
        self.bounds = np.maximum(result.bound, floor)
        self.sizes = np.maximum(np.abs(result.f), result.size)
        self.violation = np.maximum(result.g[:, :constraints], 0.0)
        self.impossible = np.zeros(rounds.count, dtype=bool)
        self.open = np.zeros(rounds.count, dtype=bool)
        self.rounds = rounds
        self.method = "interior point"

    def unsolved(self) -> Array:
        """Rounds without a decision that satisfies their constraints and is optimal up to the tolerance."""
        close = self.losses - self.bounds <= TOLERANCE * self.sizes
        return np.flatnonzero(self.open | ~close)

    def in_terms_of(self, rounds: RoundArrays) -> None:
        """Part without the decisions that replace kinks of the model."""
        rows = rounds.everything
        self.x, self.rounds = self.x[:, : rounds.size], rounds
        self.losses = np.array(
            values_of(rounds.evaluate(rounds.problem.objective, self.x, rows), len(rows)), dtype=float
        )
        self.violation = np.maximum(rounds.inequalities_at(self.x), 0.0)

    def take(self, row: int, result: Comparator) -> None:
        """Replace a round by its separate solution."""
        self.bounds[row] = max(self.bounds[row], result.bound)
        impossible = result.status is ComparatorStatus.LEAST_VIOLATING
        if result.losses is None or not (self.open[row] or impossible or result.value < self.losses[row]):
            return
        self.x[row] = np.concatenate([np.ravel(result.decision[name]) for name, _ in self.rounds.layout])
        self.losses[row], self.violation[row] = result.value, result.violation
        self.open[row], self.impossible[row] = False, impossible
        certified = result.status is not ComparatorStatus.INTERVAL
        self.bounds[row] = result.bound if impossible else self.bounds[row]
        # what is certified has a gap within the tolerance of its size
        self.sizes[row] = max(abs(result.value), result.gap / TOLERANCE if certified else 0.0)


def _rounds_at_once(problem: Canonical, data: Data) -> int:
    """Rounds of a chunk; the working memory of those that are solved at once, and their data, stay near 500 MB."""
    width = max(16 * problem.size, data.nbytes // (8 * data.rounds))
    return max(1, (1 << 22) // (CHUNKS_AT_ONCE * max(1, width)))


def _chunks(data: Data, most: int) -> Iterator[tuple[dict[str, Array], Array]]:
    """Consecutive chunks of at most so many rounds."""
    start = 0
    step = most if data.rounds <= most else max(1, most // EARLIER)
    while start < data.rounds:
        streams = data.read(start, start + step)
        yield streams, np.arange(start, min(start + step, data.rounds)) + 1
        start, step = start + step, min(2 * step, most)


def programs_of(rounds: RoundArrays, region: Region, definitions: tuple[Expr, ...] = ()) -> Assembled:
    """Programs of the rounds: the loss under all inequalities and equalities of each round."""
    problem = rounds.problem
    inequalities = tuple(functions(rounds, c.expr) for c in problem.inequalities)
    equations = tuple(functions(rounds, c.expr) for c in problem.equalities)
    defining = tuple(functions(rounds, d) for d in definitions)
    loss = functions(rounds, problem.objective)
    return Assembled(region, rounds.everything, loss, inequalities, equations, defining)


def _side_by_side(rounds: RoundArrays, formulation: Formulation, clock: _RoundsClock, floor: float) -> _Part:
    solve = _solve if formulation.region.complete else _one_by_one
    part = solve(rounds.under(formulation.problem), formulation, clock, floor)
    if formulation.problem is not rounds.problem:
        part.in_terms_of(rounds)
    return part


def _none_yet(rounds: RoundArrays, floor: float) -> _Part:
    """Part without decisions, with the least possible losses as bounds."""
    constraints, unknown = sum(c.size for c in rounds.problem.inequalities), np.full(rounds.count, np.nan)
    nothing = np.zeros((rounds.count, constraints))
    result = Certified(
        np.zeros((rounds.count, rounds.size)), unknown, unknown, nothing, nothing, unknown, np.zeros(rounds.count)
    )
    part = _Part(rounds, result, constraints, floor)
    part.bounds[:], part.open[:], part.solved = floor, True, 0
    return part


def _one_after_another(part: _Part, rounds: RoundArrays, clock: _RoundsClock, memory: int) -> None:
    """Solve the open rounds as conic programs while time remains."""
    fresh, before = part.solved == 0, int(rounds.numbers[0]) - 1
    for row in part.unsolved():
        if clock.spent > clock.seconds:
            return
        part.take(
            int(row), conic_static(rounds.one(int(row)), ComparatorBudget(clock.until_of_one - perf_counter(), memory))
        )
        part.method = METHOD if fresh else f"interior point; {METHOD}"
        part.solved = int(row) + 1 if fresh else part.solved
        if fresh and clock.over(before + part.solved):
            return


def _solve(rounds: RoundArrays, formulation: Formulation, clock: _RoundsClock, floor: float) -> _Part:
    programs = programs_of(rounds, formulation.region, formulation.definitions)
    result = solve_certified(programs, formulation.region.start, until=clock.until)
    part = _Part(rounds, result, sum(c.size for c in rounds.problem.inequalities), floor)
    unmet = np.flatnonzero(~(result.violation <= TOLERANCE))
    if clock.spent > clock.seconds:
        part.solved = 0
    elif len(unmet):
        _repair(part, programs, unmet)
    return part


def _one_by_one(rounds: RoundArrays, formulation: Formulation, clock: _RoundsClock, floor: float) -> _Part:
    """Solve the rounds singly on a set with a projection, while time remains."""
    programs = programs_of(rounds, formulation.region, formulation.definitions)
    results: list[Certified] = []
    before = int(rounds.numbers[0]) - 1
    for row in range(rounds.count):
        results.append(solve_projected(programs, row, clock.until_of_one, least=floor))
        if clock.over(before + row + 1):
            break
    together = joined(results)
    part = _Part(rounds, together, sum(c.size for c in rounds.problem.inequalities), floor)
    part.solved = len(results)
    part.open = together.violation > TOLERANCE
    return part


def _repair(part: _Part, programs: Assembled, rows: Array) -> None:
    """Treat rounds whose constraints are not met: infeasible ones get the least violating decision, the others stay
    open.
    """
    broken = infeasibility_of(replace(programs, members=programs.members[rows]))
    proved = broken.proved
    part.impossible[rows[proved]] = True
    part.open[rows[~proved]] = True
    if not proved.any():
        return
    chosen, again = rows[proved], broken.best(np.flatnonzero(proved))
    constraints = part.violation.shape[1]
    part.x[chosen], part.losses[chosen], part.bounds[chosen] = again.x, again.f, again.bound
    part.violation[chosen] = np.maximum(programs.jet(again.x, chosen).g[:, :constraints], 0.0)


def _joined(parts: list[_Part], clock: _RoundsClock) -> Comparator:
    x = np.concatenate([p.x for p in parts])
    losses, bounds = (np.concatenate([getattr(p, name) for p in parts]) for name in ("losses", "bounds"))
    impossible, still_open = (np.concatenate([getattr(p, name) for p in parts]) for name in ("impossible", "open"))
    if still_open.any():
        return unsolved(
            "dynamic", f"{_count(int(still_open.sum()))} could not be solved", float(bounds.sum()), clock.began
        )
    decision = parts[0].rounds.arrays(x)
    violation = np.concatenate([p.violation for p in parts]).max(axis=0, initial=0.0)
    numbers = np.flatnonzero(impossible) + 1
    status, why = ComparatorStatus.CERTIFIED, ""
    if len(numbers):
        status, why = (
            ComparatorStatus.LEAST_VIOLATING,
            f"{_count(len(numbers))} nothing satisfies, the first is round {numbers[0]}",
        )
    elif not losses.sum() - bounds.sum() <= TOLERANCE * sum(p.sizes.sum() for p in parts):
        status, why = ComparatorStatus.INTERVAL, "the solver stopped before full accuracy"
    return Comparator(
        "dynamic",
        status,
        decision,
        losses,
        float(losses.sum()),
        float(bounds.sum()),
        violation,
        numbers,
        max((p.method for p in parts), key=len),
        clock.spent,
        why,
    )


def _count(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"
