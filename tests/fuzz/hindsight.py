"""Law of comparators: the best decisions in hindsight are those that CVXPY finds from the model as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from fuzz.case import Case, Refused, Violation, product
from fuzz.learners import streams

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.compiler.problem.degrees import degree_in
from oco.dsl.statements import Timing
from oco.evaluation.comparators import Comparator, ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data, load_data

TOLERANCE = 1e-5
"""Share of the size of the losses by which two solvers may differ."""
NARROW = 1e-5
"""Share of the size of the constraints within which solvers may not agree whether anything satisfies them."""
SECONDS = 3.0


@dataclass
class Program:
    """The convex program of some rounds: the sum of their losses, and what binds."""

    variables: Mapping[str, Any]
    constraints: list[Any]
    loss: Any = 0
    sums: dict[str, Any] = field(default_factory=dict)
    least: list[Any] = field(default_factory=list)


def comparators(case: Case) -> None:
    """Static, dynamic and of prefixes: certified values are those of CVXPY, and no bound is above them."""
    rng = case.rng(9)
    data = revealed(case, rng, int(rng.integers(1, 7)))
    everything = list(range(data.rounds))
    budget = ComparatorBudget(seconds=SECONDS)
    with product():
        static, dynamic = compare(case.problem, data, "static", budget), compare(case.problem, data, "dynamic", budget)
        ends = np.unique([1, data.rounds])
        several = compare_prefixes(case.problem, data, ends, budget)
    _judge(case, data, static, [everything], "static")
    _judge(case, data, dynamic, [[t] for t in everything], "dynamic")
    for k, end in enumerate(ends):
        one = Comparator("static", several.status[k], value=several.value[k], bound=several.bound[k], why=several.why)
        _judge(case, data, one, [everything[:end]], "prefix")


def revealed(case: Case, rng: np.random.Generator, rounds: int) -> Data:
    """Data of a few rounds, within all bounds."""
    drawn = streams(case, rng, rounds)
    arrays = {s.name: np.stack([d[s.name] for d in drawn]) for s in case.problem.streams}
    carried = {name: arrays.pop(name) for name in case.carried}
    with product():
        return load_data(case.problem, arrays or None, rounds=rounds).joined(carried)


def _judge(case: Case, data: Data, found: Comparator, parts: Sequence[list[int]], kind: str) -> None:
    """One program for each part; a comparator that needs none, as on data of no bounds, is not judged."""
    try:
        values = [least_loss(program(case.problem, data, rounds, kind != "dynamic")) for rounds in parts]
    except (cp.error.DCPError, ValueError, TypeError) as error:  # not every convex function is one in CVXPY's rules
        raise Refused("CVXPY", str(error)) from None
    if any(v is None for v in values):
        return
    total, infeasible = sum(v for v in values if v is not None), any(np.isinf(v) for v in values if v is not None)
    said = fault(found, None if infeasible else float(total), _size(case, data))
    if said:
        raise Violation(f"{kind} comparator", f"{said} ({found.words}; {found.method}) over {_shown(data)}")


def _shown(data: Data) -> dict[str, Any]:
    return {s.name: data.array(s.name).tolist() for s in data.problem.streams}


def _size(case: Case, data: Data) -> float:
    """Size of the losses of the rounds together."""
    rng, env = case.rng(10), case.problem.streams
    sizes = []
    for t in range(data.rounds):
        at = {s.name: data.array(s.name)[t] for s in env}
        loss = next(f for f in case.functions if f.prefix == "loss")
        sizes.append(abs(float(loss({**case.decisions(rng), **at}, t + 1.0))))
    return max(1e-3, float(np.nansum(sizes)))


def program(problem: Canonical, data: Data, rounds: Sequence[int], averages: bool) -> Program:
    """The best decision of these rounds. With `averages`, what binds on average binds in sum, at the means of known distributions."""
    variables = {b.name: cp.Variable(b.shape) for b in problem.blocks}
    made = Program(variables, [c for b in problem.blocks for c in b.domain.constraints(cp, variables[b.name])])
    means = {
        s.name: np.broadcast_to(s.mean, s.shape)
        for s in problem.streams
        if s.mean is not None and s.distribution is not None
    }
    for t in rounds:
        env = {s.name: data.array(s.name)[t] for s in problem.streams}
        made.loss = made.loss + to_cvxpy(problem.objective, variables, env, t + 1)
        for c in problem.constraints:
            equal = c in problem.equalities
            mean = averages and (equal or getattr(c, "timing", None) is Timing.ON_AVERAGE)
            expected = {n: v for n, v in means.items() if mean and degree_in(c.expr, n) <= 1}
            g = to_cvxpy(c.expr, variables, {**env, **expected}, t + 1)
            if mean:
                made.sums[c.label] = made.sums.get(c.label, 0) + g
            else:
                made.least.append((g, equal))
    equal_labels = {c.label for c in problem.equalities}
    made.least += [(s / len(rounds), label in equal_labels) for label, s in made.sums.items()]
    return made


def least_loss(p: Program) -> float | None:
    """The least sum of losses; infinite where nothing satisfies the constraints by a clear margin, None where that is open."""
    excess = cp.Variable(nonneg=True)
    relaxed = [c for g, equal in p.least for c in ([g <= excess, -g <= excess] if equal else [g <= excess])]
    strict = [g == 0 if equal else g <= 0 for g, equal in p.least]
    if relaxed:
        least = _solved(excess, [*p.constraints, *relaxed])
        if least is None:
            return None
        if least > NARROW:
            return np.inf
        spare = [g == 0 if equal else g <= -NARROW for g, equal in p.least]
        if _solved(cp.Constant(0), [*p.constraints, *spare]) != 0:
            return None
    found = _solved(p.loss, [*p.constraints, *strict])
    return None if found is None or np.isinf(found) else found


def _solved(objective: Any, constraints: list[Any]) -> float | None:
    """The value; infinite where nothing is feasible, None where the solver gives up."""
    made = cp.Problem(cp.Minimize(objective), constraints)
    if not made.is_dcp():
        raise cp.error.DCPError("CVXPY does not see that it is convex")
    try:
        made.solve(solver=cp.CLARABEL)
    except cp.error.SolverError:
        return None
    if made.status == "infeasible":
        return np.inf
    return float(made.value) if made.status == "optimal" else None


def fault(found: Comparator, value: float | None, size: float) -> str:
    """Fault of a comparator whose least loss is `value`, None where nothing is feasible; "" where nothing is."""
    room = TOLERANCE * (size + abs(value or 0.0))
    if value is None:
        fits = found.status in (ComparatorStatus.LEAST_VIOLATING, ComparatorStatus.NOT_COMPUTED)
        return "" if fits else "nothing is feasible"
    if found.bound > value + room:
        return f"the bound {found.bound} is above {value}"
    if found.status is ComparatorStatus.LEAST_VIOLATING:
        return f"{value} is feasible"
    if found.status is ComparatorStatus.CERTIFIED and abs(found.value - value) > 5 * room:
        return f"{found.value} is not {value}"
    if found.status is ComparatorStatus.INTERVAL and found.value < value - 5 * room:
        return f"{value} is not in the interval"
    return ""
