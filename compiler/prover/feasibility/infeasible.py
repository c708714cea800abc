"""Proofs that no decision satisfies the constraints, and the smallest sets of constraints that cannot hold together.

For convex g_n and weights l_n >= 0 the function L = sum l_n g_n lies above its tangent at any point z, so
min over X of L >= L(z) + min over X of <grad L(z), x - z>. A positive right side proves that no x has g(x) <= 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.prover.curvature.composition import CONVEX_KINDS
from oco.compiler.prover.feasibility.scenario import Scenario, worst_streams
from oco.compiler.prover.feasibility.slater import cheap_points, corner_towards, downhill
from oco.compiler.prover.feasibility.solver import affords_program, decision_variables, least_violation, solve
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.ranges.support import support
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Step, Witness
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
WEIGHT = 1e-6  # multipliers below this share of the largest take no part in a proof
MOST_NAMED = 6  # constraints of a conflict that are named one by one
ROW = 500  # steps that an entry takes to be written as a row


@dataclass(frozen=True, eq=False)
class ConstraintEntry:
    """One entry of a constraint as `expr <= 0`; an equality has two. `name` is that of the user's model: `limits[NYC]`."""

    name: str
    expr: Expr
    constraint: Inequality | Equality


@dataclass(frozen=True, eq=False)
class Impossible:
    """The proof: the rows that take part, and the stream values for which no decision fits. `one_round`: all in the same round."""

    rows: tuple[ConstraintEntry, ...]
    step: Step
    witness: Witness
    one_round: bool


def rows_of(scenario: Scenario, constraints: Iterable[Inequality | Equality]) -> list[ConstraintEntry]:
    """Every entry of the constraints; none where there are no steps for so many."""
    results: list[ConstraintEntry] = []
    constraints = tuple(constraints)
    if not scenario.search.take(ROW * sum(c.size for c in constraints)):
        return []
    for c in constraints:
        for at, name in zip(np.ndindex(*c.shape), scenario.setting.canonical.names_of(c)):
            g = scenario.setting.simplify(entry(c.expr, at))
            results.append(ConstraintEntry(name, g, c))
            if isinstance(c, Equality):
                results.append(ConstraintEntry(name, scenario.setting.simplify(call("minus", g)), c))
    return results


def impossible(scenario: Scenario, rows: list[ConstraintEntry]) -> Impossible | None:
    """Look for the proof at a corner of a box, then with the solver's multipliers; None where there is none or none is found."""
    met = any(all(scenario.worst(r.expr, x).greatest <= 0 for r in rows) for x in cheap_points(scenario))
    if not rows or met:
        return None
    attempts = (attempt(scenario, rows) for attempt in (_at_corner, _least_violation))
    proofs = (_impossible_by(scenario, rows, *given[1:]) for given in attempts if given is not None and given[0] > 0)
    return next((proof for proof in proofs if proof is not None), None)


def _impossible_by(
    scenario: Scenario, rows: list[ConstraintEntry], weights: Floats, z: dict[str, Floats]
) -> Impossible | None:
    """The proof with the tangent at z of the rows' sum with these weights; None where that is no proof."""
    weights = np.where(weights > WEIGHT * weights.max(), weights, 0.0)
    total, slopes, streams = _combination(scenario, rows, weights, z)
    lowest = total.least
    for b in scenario.setting.canonical.blocks:
        slope = slopes[b.name]
        lowest -= (slope * point(z[b.name])).sum().greatest + support(b.domain, scenario.setting.box[b.name], -slope)
    if not lowest > 0:
        return None
    taking_part = tuple(r for r, w in zip(rows, weights) if w > 0)
    labels = list(dict.fromkeys(r.name for r in taking_part))
    missed = number(lowest / max(float(weights.sum()), SMALLEST))
    merged = _merged([s for s, w in zip(streams, weights) if w > 0])
    which, where = "it" if len(labels) == 1 else "one of them", "" if merged is not None else " at some of them"
    words = f"{conflict(labels, merged is not None)} {scenario.words}: every decision misses {which} by at least {missed}{where}"
    witness = Witness(merged or streams[int(np.argmax(weights))], lowest, words)
    proof = Step(
        ProofRule.TANGENT_BOUND,
        words,
        lowest,
        (),
        taking_part[0].constraint.span,
        (taking_part, weights[weights > 0], z, streams),
    )
    return Impossible(taking_part, proof, witness, merged is not None)


def never_holds(scenario: Scenario, row: ConstraintEntry) -> Impossible | None:
    """Proof that one row is positive at every decision and every value of the streams; None where its range says no such thing."""
    least = float(Enclosure({**scenario.setting.box, **scenario.streams})(row.expr).least)
    if not least > 0:
        return None
    words = (
        f"{conflict([row.name], True)}, whatever the streams are: every decision misses it by at least {number(least)}"
    )
    centre = {b.name: b.domain.centre() for b in scenario.setting.canonical.blocks}
    streams = worst_streams(scenario, row.expr, centre)
    step = Step(ProofRule.RANGE_ABOVE_ZERO, words, least, (), row.constraint.span, row.expr)
    return Impossible((row,), step, Witness(streams, least, words), True)


def free_streams(scenario: Scenario, expr: Expr) -> frozenset[str]:
    """Streams of an expression that may take several values in the scenario: not held at their mean, nor of one value."""
    used = frozenset(names(expr, Kind.STREAM)) - scenario.averaged
    ends = {n: scenario.streams[n].expanded() for n in used}
    return frozenset(n for n, (low, high) in ends.items() if not np.array_equal(low, high))


def conflict(labels: list[str], one_round: bool) -> str:
    """Sentence on what constraints cannot do: in one round, or for one decision that is to serve several."""
    shown = labels if len(labels) <= MOST_NAMED else [", ".join(labels[:3]), f"{len(labels) - 3} others"]
    names = " and ".join(shown)
    if not one_round:
        return f"no single decision satisfies {names}"
    return f"{names} cannot hold{' together' if len(labels) > 1 else ''}"


def irreducible(scenario: Scenario, rows: tuple[ConstraintEntry, ...]) -> list[ConstraintEntry]:
    """A subset of the rows that cannot hold together while every smaller one can: drop one after the other (Chinneck 2008, ch. 6)."""
    kept = list(rows)
    for row in rows:
        fewer = [r for r in kept if r is not row]
        solved = _least_violation(scenario, fewer) if fewer else None
        if solved is not None and solved[0] > 1e-9:
            kept = fewer
    return kept


def relaxations(scenario: Scenario, rows: list[ConstraintEntry]) -> list[tuple[ConstraintEntry, float]]:
    """For each row of an irreducible set, by how much it alone must be relaxed so that all hold."""
    results: list[tuple[ConstraintEntry, float]] = []
    for row in rows:
        others = [r for r in rows if r is not row]
        least = _least_of(scenario, row, others)
        if least is not None and least > 0:
            results.append((row, least))
    return sorted(results, key=lambda pair: pair[1])


def _least_of(scenario: Scenario, row: ConstraintEntry, others: list[ConstraintEntry]) -> float | None:
    """min g over the domain subject to the others."""
    import cvxpy as cp

    if not affords_program(scenario.setting.canonical.blocks, scenario.search):
        return None
    variables, domain = decision_variables(scenario.setting.canonical.blocks)
    cvxpy_forms = [scenario.in_cvxpy(r.expr, variables) for r in (row, *others)]
    if any(t is None for t in cvxpy_forms):
        return None
    objective, *rest = (t[0] for t in cvxpy_forms if t is not None)
    value = solve(cp.Minimize(objective), [*domain, *(g <= 0 for g in rest)])
    return value if value is not None and np.isfinite(value) else None


def _least_violation(scenario: Scenario, rows: list[ConstraintEntry]) -> tuple[float, Floats, dict[str, Floats]] | None:
    """min over the domain of max_n g_n: the value, multipliers, and the decision."""
    least = least_violation(scenario, _grouped(rows)) if scenario.bounded else None
    return None if least is None else (least.value, least.weights, least.x)


def _grouped(rows: list[ConstraintEntry]) -> list[Expr]:
    """Expressions of the rows in their order, that of an inequality where all its rows follow each other."""
    results: list[Expr] = []
    k = 0
    while k < len(rows):
        c = rows[k].constraint
        whole = isinstance(c, Inequality) and all(r.constraint is c for r in rows[k : k + c.size])
        whole = whole and c.size > 1 and len(rows) >= k + c.size
        results.append(c.expr if whole else rows[k].expr)
        k += c.size if whole else 1
    return results


def _at_corner(scenario: Scenario, rows: list[ConstraintEntry]) -> tuple[float, Floats, dict[str, Floats]] | None:
    """`_least_violation` of one row over a box, where it falls towards one corner everywhere; None elsewhere. No solver is loaded."""
    boxes = all(b.domain.is_box for b in scenario.setting.canonical.blocks)
    if len(rows) != 1 or not boxes or not scenario.bounded:
        return None
    g = rows[0].expr
    if scenario.setting.curvatures(g) not in CONVEX_KINDS or not scenario.search.take(2 * scenario.cost([g])):
        return None
    falls = downhill(scenario, g)
    if falls is None:
        return None
    z = corner_towards(scenario, falls)
    return float(scenario.worst(g, z).greatest), np.ones(1), z


def _combination(
    scenario: Scenario, rows: list[ConstraintEntry], weights: Floats, z: Mapping[str, Floats]
) -> tuple[Interval, dict[str, Interval], list[dict[str, Floats]]]:
    """Value and gradient at z of the weighted sum, each row at its worst stream values there; averaged streams at any mean in range."""
    blocks = scenario.setting.canonical.blocks
    total, streams = interval(0.0, 0.0, ()), []
    slopes = {b.name: interval(0.0, 0.0, b.shape) for b in blocks}
    at_z = {n: point(v) for n, v in z.items()}
    for row, weight in zip(rows, weights):
        worst = worst_streams(scenario, row.expr, z)
        streams.append(worst)
        if weight == 0:
            continue
        fixed = {n: point(v) for n, v in worst.items() if n not in scenario.averaged}
        ranges, factor = (
            Enclosure({**scenario.setting.box, **scenario.streams, **at_z, **fixed}),
            point(float(weight)),
        )
        total = total + factor * ranges(row.expr)
        for name, slope in gradient(row.expr, [b.name for b in blocks]).items():
            slopes[name] = slopes[name] + factor * ranges(slope).broadcast(slopes[name].shape)
    return total, slopes, streams


def _merged(streams: list[dict[str, Floats]]) -> dict[str, Floats] | None:
    """The values of one round that holds all of these; None where two of them contradict each other."""
    merged: dict[str, Floats] = {}
    for values_of_row in streams:
        for name, value in values_of_row.items():
            if name in merged and not np.array_equal(merged[name], value):
                return None
            merged[name] = value
    return merged
