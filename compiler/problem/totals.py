"""Constraints in total: what all rounds together cost is at most B, whatever comes.

With a_t(x) >= 0 the cost of round t, a^_t(x) the most that it can be once what is known before the decision is known, and x0 a decision
with a^_t(x0) <= 0 in every round, the known constraint of round t is

    spent_{t-1} + a^_t(x) <= b min(t, T) / T,      spent_t = spent_{t-1} + a_t(x_t),      b = B less a part for rounding.

x0 satisfies it in every round, so spent_T <= B on every sequence: a decision is never ahead of an even plan, and what is left of a round's
part goes to later ones. A decision u with a^_t(u) <= b / T for all t satisfies the constraints of all rounds, whatever the learner spent.
Where feedback is late, rounds whose a_t is still to come count as a^_t in what was spent (`proximal.handing_on`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.constraint_parts import difference
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.monotone import at_worst, direction
from oco.compiler.problem.parts import DecisionBlock, Inequality, TotalBudget
from oco.compiler.problem.shares import in_share
from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.compiler.problem.sublevel import has_nearest_point
from oco.dsl import algebra
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.enclose import enclose, enclosures
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Constant, Expr, Kind, constant, names
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.statements import Constraint as Statement
from oco.dsl.statements import Feedback, Relation, Timing

ROUNDED = 1e-7
"""Part of the largest cost of a round that is kept of B for rounding."""


def timed(
    c: Inequality,
    statement: Statement,
    folding: Folding,
    blocks: Sequence[DecisionBlock],
    streams: Sequence[StreamRange],
    stated: Mapping[str, Expr],
    delay: int,
) -> Inequality:
    """Constraint with what a learner keeps for it: its margin in a share of the rounds, its budget in total.

    stated  predictions of streams that the model states
    delay   rounds by which feedback comes later
    """
    if statement.timing is Timing.IN_TOTAL:
        return _in_total(c, statement, folding, blocks, streams)
    return (
        c if statement.percent is None else in_share(c, statement.percent, folding, blocks, streams, stated, delay + 1)
    )


def _in_total(
    c: Inequality,
    statement: Statement,
    folding: Folding,
    blocks: Sequence[DecisionBlock],
    streams: Sequence[StreamRange],
) -> Inequality:
    """Constraint in total with its budget. Raises OCO750 where nothing makes sure that it is never exceeded."""
    cost, total = _sides(c, statement, folding)
    if folding.model.feedback is not Feedback.FULL:
        raise _refused(
            c, f"`{c.label}` counts what each round costs, from full feedback", "leave out the `feedback` line"
        )
    if folding.horizon is None:
        fix = (
            "state it: `horizon T = 1000`; or, where the cost is known beforehand, let `state left = left - COST in [0, B] start B` "
            "say what is left, and a round take a part of it: `COST <= 0.01 * left each round`"
        )
        raise _refused(c, f"`{c.label}` is spent over the rounds, whose number is unknown", fix)
    ranges = _ranges(folding, blocks, streams)
    if not (np.asarray(enclose(cost, ranges).lo) >= 0).all():
        fix = "bound its streams so that no cost is below 0, or write `on average`"
        raise _refused(c, f"what a round of `{c.label}` costs is not seen to be at least 0", fix)
    worst = folding.fold(_worst(c, cost, streams, ranges))
    most = enclose(worst, ranges)
    if not np.isfinite(most.hi).all():
        raise _refused(c, f"nothing bounds what a round of `{c.label}` costs", "bound the streams and the domain")
    if not has_nearest_point(worst, blocks):
        raise _refused(
            c,
            f"`{c.label}` costs what no step keeps within a budget",
            "let it cost an affine function, or a smooth one",
        )
    largest = np.broadcast_to(most.hi, c.shape)
    name = f"spent_{c.label}"
    while name in folding.declared:
        name += "_"
    kept = np.maximum(np.broadcast_to(total, c.shape) - ROUNDED * largest, 0.0)
    entries = [tuple(np.ravel(a).tolist()) for a in (total, kept, largest)]
    budget = TotalBudget(cost, worst, name, entries[0], entries[1], entries[2], folding.horizon, c.shape)
    return replace(c, expr=budget.robust, moving=budget.moving, timing=Timing.EACH_ROUND, known=True, budget=budget)


def with_free_decision(
    inequalities: Sequence[Inequality],
    folding: Folding,
    blocks: Sequence[DecisionBlock],
    streams: Sequence[StreamRange],
) -> list[Inequality]:
    """Constraints, the known ones last, those in total with a decision that costs nothing and satisfies the known ones in every round.

    Raises OCO750 where there is none.
    """
    ordered = sorted(inequalities, key=lambda c: c.known)
    own = [c for c in ordered if c.budget is not None]
    if not own:
        return ordered
    ranges = _ranges(folding, blocks, streams)
    free = _free(own, blocks, ranges)
    if free is None:
        fix = "let a decision of the domain cost nothing, such as 0, or write `on average`"
        raise _refused(own[0], f"no decision is seen to cost nothing of `{own[0].label}` in every round", fix)
    there = {**ranges, **{b.name: point(x) for b, x in zip(blocks, free, strict=True)}}
    for c in ordered:
        if c.known and c.budget is None and not _holds(c.expr if c.moving is None else c.moving, there):
            fix = f"write `each round, penalty V` after `{c.origin}`, so that it is learned, or `on average` after `{own[0].label}`"
            raise _refused(own[0], f"a decision that costs nothing of `{own[0].label}` may break `{c.origin}`", fix)
    point_ = tuple(tuple(np.ravel(x).tolist()) for x in free)
    return [c if c.budget is None else replace(c, budget=replace(c.budget, free=point_)) for c in ordered]


def _sides(c: Inequality, statement: Statement, folding: Folding) -> tuple[Expr, Floats]:
    """Cost of a round, and what all rounds may cost."""
    left, right = folding.fold(statement.left), folding.fold(statement.right)
    cost, total = (left, right) if statement.relation is Relation.LE else (right, left)
    if not isinstance(total, Constant):
        raise _refused(
            c, f"`{c.label}` compares costs with what is not one fixed total", "write `cost <= B`, with B fixed data"
        )
    value = np.asarray(total.value.array, dtype=np.float64)
    if not (value >= 0).all():
        raise _refused(c, f"the total of `{c.label}` is negative", "write a total of at least 0")
    return difference(cost, constant(np.zeros(c.shape))), np.broadcast_to(value, c.shape)


def _worst(c: Inequality, cost: Expr, streams: Sequence[StreamRange], ranges: Mapping[str, Interval]) -> Expr:
    """Most that a round can cost, once what is known before the decision is known: streams at their worst values."""
    used, own = set(names(cost, Kind.STREAM)), enclosures(cost, ranges)
    later = [s for s in streams if s.name in used and not s.stream.known]
    s = at_worst(cost, later, lambda node: own[id(node)])
    if not isinstance(s, StreamRange):
        return s
    if direction(cost, s.name, lambda node: own[id(node)]) is None:
        fix = f"make `{s.name}` a `context`, or write `on average`"
        raise _refused(c, f"`{s.name}` has no value at which every decision costs most of `{c.label}`", fix)
    fix = f"declare `stream {s.name} in [lo, hi]`, or make it a `context`"
    raise _refused(c, f"`{s.name}` has no bounds, so nothing bounds what `{c.label}` costs", fix)


def _free(
    own: Sequence[Inequality], blocks: Sequence[DecisionBlock], ranges: Mapping[str, Interval]
) -> tuple[Floats, ...] | None:
    """Decision that costs nothing in any round: the one nearest to 0, or one of least cost where costs are linear."""
    worst = [c.budget.worst for c in own if c.budget is not None]
    total = reduce(algebra.add, (w if w.shape == () else algebra.call("sum", w) for w in worst))
    high = {n: np.where(np.isfinite(r.hi), r.hi, 1.0) for n, r in ranges.items()}
    env = {n: np.broadcast_to(v, ranges[n].shape) for n, v in high.items()} | {
        b.name: b.domain.centre() for b in blocks
    }
    slopes = gradient(total, tuple(b.name for b in blocks))
    candidates = []
    if all(b.domain.is_cheap("project") for b in blocks):
        candidates.append(tuple(b.domain.project_array(np.zeros(b.shape)) for b in blocks))
    if all(b.domain.is_cheap("lmo") for b in blocks):
        values = (np.broadcast_to(evaluate(slopes[b.name], env, 1.0), b.shape) for b in blocks)
        candidates.append(tuple(b.domain.lmo_array(v) for b, v in zip(blocks, values)))
    for x in candidates:
        there = {**ranges, **{b.name: point(np.asarray(v)) for b, v in zip(blocks, x, strict=True)}}
        if all(_holds(w, there) for w in worst):
            return x
    return None


def _holds(expr: Expr, ranges: Mapping[str, Interval]) -> bool:
    """True where the expression is at most 0 over the ranges."""
    return bool((np.asarray(enclose(expr, ranges).hi) <= 0).all())


def _ranges(folding: Folding, blocks: Sequence[DecisionBlock], streams: Sequence[StreamRange]) -> dict[str, Interval]:
    boxes = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in blocks}
    data = {s.name: interval(s.lower, s.upper, s.shape) for s in streams}
    return {**boxes, **data, "t": interval(1.0, float(folding.horizon or np.inf), ())}


def _refused(c: Inequality, message: str, fix: str) -> OcoError:
    return fail("OCO750", message, c.span, fix)
