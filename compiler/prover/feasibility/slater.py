"""Slater points and common feasibility: a decision that satisfies every inequality, with how much to spare.

The solver only proposes decisions. What is claimed of one, its margin, is a range of the constraints at that decision over every
value of the streams (or at their mean), so it holds however the decision was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, takewhile
from typing import Any

import numpy as np

from oco.compiler.domains.norms import distinct
from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.feasibility.scenario import Scenario, stream_gradient, worst_streams
from oco.compiler.prover.feasibility.solver import least_violation
from oco.compiler.prover.phrasing import coordinates, number
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.corners import MOST_PROBLEMS
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
Directions = dict[str, Floats]
ENTRY, PART = 300, 60
"""Steps that the corner of an entry of a constraint takes, and more for each part of the constraint."""
ROUNDING = 1e-14
"""Share of the set's scale by which a rounded point may lie outside it: what arithmetic leaves, so that thin sets are not left."""
EXACT = 1e-12
"""Share of a row's value up to which the least value found is the least there is."""
MOST_TRIED = 1 << 18
"""Entries of a decision up to which other points than its centre are tried."""


@dataclass(frozen=True, eq=False)
class SlaterPoint:
    """A decision and its proved margin: every inequality is at most `-margin` there. `best` is what the solver says is possible."""

    x: Mapping[str, Floats]
    margin: float
    step: Step
    best: float | None = None


def slater_point(scenario: Scenario) -> SlaterPoint | None:
    """The decision of the greatest proved margin among the solver's and a few that come to mind; None where no stream is bounded."""
    if not scenario.bounded:
        return None
    proposed, best = _best_corner(scenario) or _best_vertex(scenario) or _solved(scenario)
    result: SlaterPoint | None = None
    for x in chain(cheap_points(scenario), _proposals(scenario, proposed)):
        result = _proved(scenario, x, best, -np.inf if result is None else result.margin) or result
    return result


def _proved(scenario: Scenario, x: Mapping[str, Floats], best: float | None, floor: float) -> SlaterPoint | None:
    """The margin at `x`, with the step that proves it; None where it is not above the floor."""
    steps = []
    margin = np.inf
    for c in scenario.setting.canonical.inequalities:
        most = scenario.worst(c.expr, x).greatest
        margin = min(margin, 0.0 - most)
        if margin <= floor > -np.inf:
            return None
        claim = f"{c.label} is at most {number(most)} there, {scenario.words}"
        steps.append(Step(ProofRule.AT_A_POINT, claim, most, (), c.span, (c.expr, x, scenario.streams)))
    where = ", ".join(f"{n} = {coordinates(v)}" for n, v in x.items())
    words = f"every inequality has {number(margin)} to spare at {where}, {scenario.words}"
    return SlaterPoint(x, float(margin), Step(ProofRule.SLATER_POINT, words, margin, tuple(steps), None, x), best)


def _best_corner(scenario: Scenario) -> tuple[dict[str, Floats], float] | None:
    """A corner towards which an entry of an inequality falls whatever the streams are, where that entry has the least to spare.

    No decision of the box gives that entry more, so the corner has the greatest margin; with it known, no solver is asked. Only the
    entry that has the least to spare at its own corner can be such a one: at the corner of another it has no more.
    """
    setting, search = scenario.setting, scenario.search
    inequalities = setting.canonical.inequalities
    if any(not b.domain.is_box for b in setting.canonical.blocks):
        return None
    own: list[tuple[float, Directions]] = []  # what each entry has to spare at its own corner
    for c in inequalities:
        places = list(np.ndindex(*known(c.shape)))
        for at in places if len(places) <= MOST_PROBLEMS else ():
            if not search.take(ENTRY + PART * size(c.expr)):
                return None
            g = setting.simplify(entry(c.expr, at))
            falls = downhill(scenario, g)
            spare = -np.inf if falls is None else 0.0 - scenario.worst(g, corner_towards(scenario, falls)).greatest
            if falls is not None and np.isfinite(spare):
                own.append((float(spare), falls))
    fewest, tried = min((spare for spare, _ in own), default=np.inf), set[bytes]()
    most = {b.name: sum((falls[b.name] for _, falls in own), np.zeros(b.shape)) for b in setting.canonical.blocks}
    for spare, falls in own:
        if spare > fewest + 1e-12 * abs(spare):
            continue
        # Where an entry of the decision is all the same to this row, it goes where most of the others fall.
        x = corner_towards(scenario, {n: np.where(way == 0, most[n], way) for n, way in falls.items()})
        corner = b"".join(v.tobytes() for v in x.values())
        if corner in tried or not search.take(scenario.cost(_exprs(scenario))):
            continue
        tried.add(corner)
        least = min(0.0 - scenario.worst(expr, x).greatest for expr in _exprs(scenario))
        if spare <= least + 1e-12 * abs(spare):
            return x, spare
    return None


def _exprs(scenario: Scenario) -> list[Expr]:
    return [c.expr for c in scenario.setting.canonical.inequalities]


def downhill(scenario: Scenario, g: Expr) -> Directions | None:
    """Signs of the directions in which a scalar falls at every decision and stream value: 1 upwards, 0 where it is constant.

    None where an entry of the decision has no such direction.
    """
    blocks = scenario.setting.canonical.blocks
    ranges = Enclosure({**scenario.setting.box, **scenario.streams})
    results: Directions = {}
    slopes = gradient(g, [b.name for b in blocks])
    for b in blocks:
        low, high = ranges(scenario.setting.simplify(slopes[b.name])).broadcast(b.shape).expanded()
        if not np.all((low >= 0) | (high <= 0)):
            return None
        results[b.name] = np.where(low >= 0, -(high > 0).astype(float), 1.0)
    return results


def corner_towards(scenario: Scenario, falls: Directions) -> dict[str, Floats]:
    """The corner of the box in these directions; the lower end where an entry has none."""
    blocks = scenario.setting.canonical.blocks
    return {b.name: np.where(falls[b.name] > 0, b.domain.upper, b.domain.lower) for b in blocks}


def _best_vertex(scenario: Scenario) -> tuple[dict[str, Floats], float] | None:
    """A linear minimiser that gives the row with the least to spare as much as any decision does, where all rows have that there.

    For fixed streams s, a row g is at least g(z, s) + <grad g(z, s), x - z>, and its minimiser over the domain is looked at with the s
    towards which g grows at the centre z, and with those in the middle that do not matter there; where g at its own worst is no greater
    at the minimiser, nothing is gained elsewhere. Where the slope is 0, the centre is one.
    """
    setting, search = scenario.setting, scenario.search
    blocks, inequalities = setting.canonical.blocks, setting.canonical.inequalities
    easy = all(b.domain.lmo_start is None and b.domain.is_cheap("lmo") for b in blocks)
    if not easy or len(inequalities) > MOST_PROBLEMS or any(c.shape for c in inequalities):
        return None
    centre = {b.name: b.domain.centre() for b in blocks}
    for c in inequalities:
        if not search.take(ENTRY + PART * size(c.expr) + 2 * scenario.cost([c.expr])):
            return None
        g = setting.simplify(c.expr)
        worst = worst_streams(scenario, g, centre)
        for streams in (worst, _undecided_in_the_middle(scenario, g, centre, worst)):
            result = None if streams is None else _minimiser(scenario, g, {**streams, **centre})
            if result is not None and _serves_all(scenario, g, *result):
                return result[0], -result[1]
    return None


def _undecided_in_the_middle(
    scenario: Scenario, g: Expr, z: Mapping[str, Floats], worst: Mapping[str, Floats]
) -> dict[str, Floats] | None:
    """The worst streams, with those towards which g neither grows nor falls at z in the middle; None where there are none."""
    middle = {n: lo / 2 + hi / 2 for n in worst for lo, hi in [scenario.streams[n].expanded()]}
    slopes = stream_gradient(g, [*worst])
    still = {n: np.broadcast_to(evaluate(slopes[n], {**middle, **z}, 1.0), middle[n].shape) == 0 for n in worst}
    if not any(flags.any() for flags in still.values()):
        return None
    return {n: np.where(still[n], middle[n], worst[n]) for n in worst}


def _minimiser(scenario: Scenario, g: Expr, env: Mapping[str, Floats]) -> tuple[dict[str, Floats], float] | None:
    """A decision that minimises the tangent of g at the centre over the domain, with streams as given, and the least value there."""
    blocks = scenario.setting.canonical.blocks
    gradients = gradient(g, [b.name for b in blocks])
    slopes = {b.name: np.broadcast_to(evaluate(gradients[b.name], env, 1.0), b.shape) for b in blocks}
    if not all(np.isfinite(s).all() for s in slopes.values()):
        return None
    x = {b.name: b.domain.lmo_array(s) if (s := slopes[b.name]).any() else env[b.name] for b in blocks}
    if not all(b.domain.contains(x[b.name], ROUNDING) for b in blocks):
        return None
    return x, float(evaluate(g, env, 1.0)) + sum(float(np.vdot(slopes[n], x[n] - env[n])) for n in x)


def _serves_all(scenario: Scenario, g: Expr, x: Mapping[str, Floats], least: float) -> bool:
    """True if no row is above what g is at least anywhere."""
    own = float(scenario.worst(g, x).greatest)
    most = max([own, *(float(scenario.worst(e, x).greatest) for e in _exprs(scenario))])
    return most <= least + EXACT * max(abs(least), abs(own))


def _solved(scenario: Scenario) -> tuple[dict[str, Floats] | None, float | None]:
    """max m subject to g + m <= 0 in the domain: the point, and the value."""
    least = least_violation(scenario, _exprs(scenario))
    return (None, None) if least is None else (least.x, -least.value)


def cheap_points(scenario: Scenario) -> Iterator[Mapping[str, Floats]]:
    """Points that come to mind: a few whatever they take, so that rows with much to spare are proved however many they are."""
    blocks = scenario.setting.canonical.blocks
    yield {b.name: b.domain.centre() for b in blocks}
    if all(b.domain.is_box for b in blocks):
        yield {b.name: np.array(b.domain.lower) for b in blocks}
        yield {b.name: np.array(b.domain.upper) for b in blocks}
    zero, few = (
        {b.name: np.broadcast_to(0.0, b.shape) for b in blocks},
        all(b.domain.size <= MOST_TRIED for b in blocks),
    )
    elsewhere = few and any(distinct(b.domain.centre()).any() for b in blocks)
    if elsewhere and all(b.domain.contains(zero[b.name]) for b in blocks):
        yield zero
    corners = blocks[0].domain.vertices() if len(blocks) == 1 else None
    if corners is not None and len(corners) <= MOST_PROBLEMS:
        cost = scenario.cost(_exprs(scenario))
        yield from takewhile(lambda _: scenario.search.take(cost), ({blocks[0].name: corner} for corner in corners))


def _proposals(scenario: Scenario, proposed: Mapping[str, Floats] | None) -> Iterator[Mapping[str, Floats]]:
    """The solver's point, and round numbers beside it."""
    blocks = scenario.setting.canonical.blocks
    if proposed is not None:
        yield proposed
        # Solvers stop a hair beside a bound or a round number: try the number itself.
        cost = scenario.cost(_exprs(scenario))
        for digits in (9, 6, 3):
            rounded = {n: np.round(v, digits) for n, v in proposed.items()}
            if all(b.domain.contains(rounded[b.name], ROUNDING) for b in blocks) and scenario.search.take(cost):
                yield rounded
