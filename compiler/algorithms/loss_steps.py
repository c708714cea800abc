"""Points that move by the loss alone, next to which experts of `hedged` decide. Where the loss is curved through data, as in regression,
these are second-order steps (`curvature_steps`); for an exp-concave loss over a simplex:

* the first decision, which stays: for a portfolio uniform rebalancing;
* online Newton steps of Agarwal, Hazan, Kale & Schapire 2006, section 3, as in their experiments: with h_t = theta grad f_t(y_t) and
  exp(-theta f) concave, the point of the simplex of sum s that is nearest to delta A^-1 b in the norm of A = I / s^2 + sum h h',
  b = sum (<h, y> - 1) h, delta = 1/8; for a portfolio b = 2 sum r / <r, y>;
* exponentiated gradient steps y <- y exp(-eta s h), normalised (Helmbold, Schapire, Singer & Warmuth 1998), of a small and a large
  rate: the second is close to buying and holding.

Nothing is promised of these: weights with the rate of an exp-concave loss cost at most ln K / theta beside the best (`de_rooij2014`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.algorithms.curvature_steps import FORGETTING, curved_through_data, steps_after, steps_at_start
from oco.compiler.algorithms.dual_prices import DualPrices
from oco.compiler.algorithms.learned_margins import NO_MARGIN
from oco.compiler.algorithms.predictions import RECENT
from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.predicted_round import as_predicted, predicted_of
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, rows
from oco.compiler.problem.canonical import Canonical
from oco.compiler.proximal.norm_step import NormStep
from oco.compiler.proximal.penalty import penalized_step

SHARE = 0.125
"""delta of the Newton steps."""
RATES = (0.05, 1.0)
"""eta of the exponentiated gradient steps."""
QUANTILES = (0.75, 0.98)
"""Quantiles that the margins of the experts next to each point follow."""
POINTS, OUTER, TARGET = "y", "A", "b"
CURVATURE = "theta"
"""Setting that a problem has where its loss is known to be exp-concave and the domain a simplex."""


def is_curved(p: Problem) -> bool:
    """True where the loss is known to be exp-concave over a simplex."""
    return CURVATURE in p.spec.settings


def over_simplex(canonical: Canonical, curved: bool) -> bool:
    """True where points move by an exp-concave loss over a simplex; curved: it is known to be exp-concave."""
    return curved and len(canonical.blocks) == 1 and canonical.blocks[0].domain.is_simplex


def point_count(canonical: Canonical, curved: bool) -> int:
    """Number of points; 0 where the loss is neither exp-concave over a simplex nor curved through data."""
    if over_simplex(canonical, curved):
        return 1 + _takes_newton(canonical) + len(RATES)
    return len(FORGETTING) if curved_through_data(canonical) else 0


def _takes_newton(canonical: Canonical) -> bool:
    return canonical.size <= MAX_DENSE_ORDER


def beside(canonical: Canonical, curved: bool) -> tuple[tuple[int, float, float], ...]:
    """Experts next to each point: the row of the recent average, which predicts the constraints, no reach, the quantile."""
    quantiles = QUANTILES if canonical.inequalities else (NO_MARGIN,)
    row = RECENT if predicted_of(canonical).size else 0
    return tuple((row, 0.0, q) for _ in range(point_count(canonical, curved)) for q in quantiles)


def second_order(canonical: Canonical, curved: bool) -> int:
    """Number of the last experts, at second-order steps, that have the weight at first; 0 where there are none."""
    alike = over_simplex(canonical, curved) or not curved_through_data(canonical)
    return 0 if alike else len(beside(canonical, curved))


def decided_beside(p: Problem, state: State, given: Sequence[Value], following: bool) -> tuple[Value, ...]:
    """S, which stays, and the decisions next to the points within the constraints as predicted.

    given  of these experts: S, margins where there are constraints, predictions stream by stream, last decisions
    """
    t, N = p.tracer, p.constraint_count
    (S, *rest), points = given, rows(state, POINTS)
    each = S.shape[0] // points.count
    at = t.constant(np.repeat(np.arange(points.count), each), "beside", "the point that each expert is next to")
    near = points.map(lambda b: b[at])
    if not N:
        return S, *near.blocks
    caps = DualPrices(p).caps_beside(t.full(1.0, (N,)) * p.setting("Q"))

    count = len(near.blocks)

    def one(*given: Value) -> tuple[Value, ...]:
        y, (margin, *row) = Point(given[:count]), given[count:]
        own = as_predicted(p, row, margin, following)
        return penalized_step(own, y, y * 0.0, t.lift(0.5), caps, own.constraints(y)).blocks

    return S, *t.map_(one, *near.blocks, *rest[:-count])


def points_at_start(p: Problem, start: Point) -> State:
    """State before the first round, with all points at `start`."""
    t, canonical = p.tracer, p.spec.canonical
    count, d = point_count(canonical, is_curved(p)), canonical.size
    if not count:
        return {}
    if not over_simplex(canonical, is_curved(p)):
        return joined({POINTS: repeated(t, start, count)}, steps_at_start(p))
    newton = {OUTER: t.zeros((d, d)), TARGET: t.zeros((d,))} if _takes_newton(canonical) else {}
    return joined({POINTS: repeated(t, start, count)}, newton)


def points_after(p: Problem, state: State) -> State:
    """State after a round."""
    if POINTS not in state:
        return {}
    if not over_simplex(p.spec.canonical, is_curved(p)):
        points, curvatures = steps_after(p, state, rows(state, POINTS))
        return {POINTS: points, **curvatures}
    (y,) = rows(state, POINTS).blocks
    stay, moving, own = [y[:1]], y[1:], dict[str, Value]()
    if _takes_newton(p.spec.canonical):
        after, own = _newton(p, state, Point((y[1],)))
        stay, moving = [*stay, p.tracer.reshape(after.blocks[0], (1, *y.shape[1:]))], y[2:]
    return {POINTS: Rows((p.tracer.concat(*stay, _exponentiated(p, moving)),)), **own}


def _newton(p: Problem, state: State, y: Point) -> tuple[Point, dict[str, Value]]:
    t, domain = p.tracer, p.spec.domains[0]
    p.note("online Newton step on the loss")
    h = t.name("h", p.setting(CURVATURE) * domain.flat(t, p.gradient(y).blocks[0]))
    at = domain.flat(t, y.blocks[0])
    A = t.name("A", array(state, OUTER) + t.outer(h, h))
    b = t.name("b", array(state, TARGET) + (t.sum(h * at) - 1.0) * h)
    eps = 1.0 / _total(p) ** 2
    slope = Point((domain.shaped(t, A @ at + eps * at - SHARE * b),))
    return NormStep(p, y, slope, t.lift(0.5 * eps), A).solved(), {OUTER: A, TARGET: b}


def _exponentiated(p: Problem, y: Value) -> Value:
    t = p.tracer
    sizes = t.constant(np.array(RATES) * _total(p), "rates", "eta s")

    def one(size: Value, own: Value) -> tuple[Value, ...]:
        step = size * p.setting(CURVATURE) * p.gradient(Point((own,)))
        return p.domain.bregman_step(Point((own,)), step).blocks

    p.note("exponentiated gradient steps on the loss")
    (moved,) = t.map_(one, sizes, y)
    return moved


def _total(p: Problem) -> float:
    """Sum s of the entries of a point."""
    domain = p.spec.domains[0]
    return float(domain.support(np.ones(domain.shape)))
