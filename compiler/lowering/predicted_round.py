"""Problem of a round with predictions in place of its data and a margin on each inequality: f(x; s^), g_n(x; s^) + m_n <= 0.

A prediction is a real number for each entry of a stream, even of a stream of integers. Streams that pick entries of arrays are not
predicted, since an average of positions is no position; nor are those that are known before the decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.feedback_delay import errors_of, expected_names
from oco.compiler.problem.stores import is_kink_of_value
from oco.compiler.problem.structure import Structure, separable_over_box, separable_under_rows
from oco.compiler.problem.tied_kinks import any_kink, tied, with_kinks_apart
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS
from oco.dsl import algebra
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, Index, Kind, Name, names, rewrite, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing

Floats = np.ndarray[Any, Any]
LARGEST = 1e300  # ends of ranges stay finite in the state
MOST_KINKS = 128
"""Rows up to which the kinks of a loss stand apart: a step solves systems of as many unknowns."""
PREDICTED, MARGIN, LOSS, SAMPLE = "_predicted_", "_margin", "_loss", "_sample"


@dataclass(frozen=True, eq=False)
class Predicted:
    """Problem over predictions, and the streams that are predicted, each with the number of its entries.

    whole   the problem whose first inequality is the loss, where a penalized step can take it as it is (`penalized_step`); else None
    prices  of its last inequalities, the kinks of the loss that stand apart (`with_kinks_apart`), each of the shape of its row
    """

    canonical: Canonical
    streams: Mapping[str, int]
    whole: Canonical | None = None
    prices: tuple[Expr, ...] = ()

    @property
    def size(self) -> int:
        """Number of entries of all streams that are predicted."""
        return sum(self.streams.values())


Samples = Mapping[str, Value]
"""Values that streams may take, each as likely: (count, size) of each stream."""


def kink_prices(p: Problem, own: Predicted, x: Point) -> Value:
    """Prices of the kinks of the loss that stand apart, as predicted, in units of the rule."""
    prices, scales = p.values(own.prices, x), p.spec.scales
    return prices if scales is None else prices / float(scales.loss)


def picking(canonical: Canonical) -> tuple[str, ...]:
    """Streams that pick entries of arrays, in the order in which they stand."""
    items = [i for e in _exprs(canonical) for n in walk(e) if isinstance(n, Index) for i in n.items]
    return tuple(dict.fromkeys(name for i in items for name in names(i, Kind.STREAM)))


@lru_cache(maxsize=16)
def positions(canonical: Canonical) -> tuple[str, ...]:
    """Streams that pick entries of arrays and are not known before the decision: an average of positions is no position."""
    return tuple(name for name in picking(canonical) if name not in canonical.context)


def _exprs(canonical: Canonical) -> tuple[Expr, ...]:
    moving = () if canonical.moving is None else (canonical.moving,)
    return canonical.objective, *moving, *(c.expr for c in canonical.constraints)


@lru_cache(maxsize=16)
def predicted_of(canonical: Canonical) -> Predicted:
    """Problem of a round as predicted."""
    used = {n for e in _exprs(canonical) for n in names(e, Kind.STREAM)}
    sizes = {
        s.name: math.prod(s.shape)
        for s in canonical.streams
        if s.name in used and not (s.stream.known or s.stream.previous)
    }
    return _of_loss(canonical, sizes, _real(canonical, canonical.objective, sizes))


@lru_cache(maxsize=16)
def averaged_over(canonical: Canonical, sampled: tuple[str, ...], count: int) -> Predicted:
    """Problem of a round as predicted, whose loss is the mean over `count` samples of the `sampled` streams."""
    sizes = predicted_of(canonical).streams

    def mean(values: bool) -> Predicted:
        sample = ({n: f"{SAMPLE}{k}_{n}" for n in sampled} for k in range(count))
        losses = [_real(canonical, canonical.objective, sizes, own, values) for own in sample]
        return _of_loss(canonical, sizes, algebra.mul(algebra.number(1.0 / count), reduce(algebra.add, losses)))

    # A value of stores has kinks at many levels: averaged over samples it has many times as many, for little gain.
    whole = mean(values=True)
    return whole if whole.whole is not None and not whole.prices else mean(values=False)


def _of_loss(canonical: Canonical, sizes: Mapping[str, int], objective: Expr) -> Predicted:
    """Problem with this loss and with margins on the constraints as predicted."""
    rows = tuple(
        replace(c, expr=algebra.add(_real(canonical, c.expr, sizes), Name(f"{MARGIN}{i}", Kind.STREAM, shape=c.shape)))
        for i, c in enumerate(canonical.inequalities)
    )
    free = tuple(replace(c, expr=_real(canonical, c.expr, sizes)) for c in canonical.equalities)
    own = replace(canonical, objective=objective, inequalities=rows, equalities=free)
    whole = _with_loss(own, objective)
    if _is_solved(canonical, whole):
        return Predicted(own, sizes, whole)
    for where in (tied, any_kink) if _is_composed(canonical, kinks=True) else ():
        apart = with_kinks_apart(objective, tuple(b.name for b in canonical.blocks), where)
        if apart is None or sum(c.size for c in apart.rows) > MOST_KINKS:
            continue
        whole = _with_loss(own, apart.rest, apart.rows)
        if whole.structure[0] is Structure.AFFINE or _is_solved(canonical, whole):
            return Predicted(own, sizes, whole, apart.prices)
    return Predicted(own, sizes)


def _with_loss(own: Canonical, loss: Expr, kinks: tuple[Inequality, ...] = ()) -> Canonical:
    """Problem with the loss before its inequalities, and with kinks of it behind them."""
    first = Inequality(LOSS, (), loss, Timing.EACH_ROUND, LOSS)
    return replace(own, inequalities=(first, *own.inequalities, *kinks))


def _is_solved(canonical: Canonical, whole: Canonical) -> bool:
    """True where the penalized step takes the loss of `whole`, its first inequality, and gains by it: entry by entry, over boxes that
    may be cut by a row each. Over those cut every function has to be convex by composition, for what is convex on them alone need not be so
    in every entry."""
    domains, (structure, nonlinear) = [b.domain for b in whole.blocks], whole.structure
    # The loss is the first function of all, so that the first that is not affine is another one where it is affine.
    if nonlinear != LOSS or not separable_under_rows(structure, domains):
        return False
    return separable_over_box(structure, domains) or _is_composed(canonical)


def _is_composed(canonical: Canonical, kinks: bool = False) -> bool:
    """True where the loss is convex by composition, and, but for `kinks` of it, every inequality is."""
    stated = canonical.unscaled or canonical  # what the value of stores adds is convex by construction
    curvature = ProofContext(stated).composition
    exprs = (stated.objective, *(() if kinks else (c.expr for c in canonical.inequalities)))
    return all(curvature(e) in CONVEX_KINDS for e in exprs)


def _real(
    canonical: Canonical,
    expr: Expr,
    predicted: Mapping[str, int],
    sampled: Mapping[str, str] | None = None,
    values: bool = True,
) -> Expr:
    """Expression in predictions, which need not be integers. Of late states the errors are predicted, and added to what is expected.

    sampled  other names that stand for predictions, by stream
    values   True where these stand also in the value of what is left in stores
    """
    late = expected_names(canonical.streams)

    def real(node: Expr, others: Mapping[str, str]) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.STREAM and node.name in predicted:
            own = Name(others.get(node.name, f"{PREDICTED}{node.name}"), Kind.STREAM, shape=node.shape)
            return algebra.add(Name(late[node.name], Kind.STREAM, shape=node.shape), own) if node.name in late else own
        if isinstance(node, Call) and node.integer and not predicted.keys().isdisjoint(names(node, Kind.STREAM)):
            return Call(node.atom, node.args, node.options, shape=node.shape, span=node.span)
        return node

    if not values:
        expr = rewrite(expr, lambda node: rewrite(node, partial(real, others={})) if is_kink_of_value(node) else node)
    return rewrite(expr, partial(real, others=sampled or {}))


def stated_value(p: Problem, expr: Expr) -> Value:
    """Value of a stated prediction, one vector: of what is known before the round alone."""
    nowhere = Point(tuple(p.tracer.zeros(b.shape) for b in p.spec.canonical.blocks))
    return p.values([expr], nowhere)


def data_of(p: Problem) -> Value:
    """Data of the round that predictions stand for, one vector."""
    t, late, parts = p.tracer, expected_names(p.spec.canonical.streams), list[Value]()
    for n, size in predicted_of(p.spec.canonical).streams.items():
        value = t.to_float(p.seen[n])
        parts.append(t.reshape(value - p.seen[late[n]] if n in late else value, (size,)))
    return parts[0] if len(parts) == 1 else t.concat(*parts)


def data_ranges(canonical: Canonical) -> tuple[Floats, Floats]:
    """Least and greatest value of each entry of these data; finite, as they stand in states."""
    ranges = {s.name: s for s in canonical.streams} | errors_of(canonical.streams)
    own = [ranges[n] for n in predicted_of(canonical).streams]
    lower, upper = (
        np.concatenate([np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for s, e in pairs])
        for pairs in ([(s, s.lower) for s in own], [(s, s.upper) for s in own])
    )
    return np.maximum(lower, -LARGEST), np.minimum(upper, LARGEST)


def within_ranges(p: Problem, rows: Value, first: int = 0, end: int | None = None) -> Value:
    """Predictions of the entries from `first` to `end`, cut to their ranges."""
    t, (lower, upper) = p.tracer, (side[first:end] for side in data_ranges(p.spec.canonical))
    return t.minimum(t.maximum(rows, t.constant(lower, "least")), t.constant(upper, "greatest"))


def parts_of(p: Problem, rows: Value) -> list[Value]:
    """Predictions (K, entries) stream by stream: (K, size) of each."""
    ends = np.cumsum([0, *predicted_of(p.spec.canonical).streams.values()])
    return [rows[:, int(a) : int(b)] for a, b in pairwise(ends)]


def as_predicted(
    p: Problem,
    data: Sequence[Value],
    margins: Value,
    following: bool = False,
    whole: bool = False,
    samples: Samples | None = None,
) -> Problem:
    """View of the round, or of the `following` one, with predictions in place of its data, a vector for each stream (`parts_of`).

    margins  (N,), in units of the rule
    whole    with the loss as the first inequality, where `Predicted` has that problem
    samples  over which the loss is averaged, in place of what `data` predicts of their streams
    """
    if p.round is None:
        raise InternalError("no round has been played yet")
    t, own = p.tracer, problem_of(p.spec.canonical, samples)
    seen, shapes = dict(p.seen), {s.name: s.shape for s in p.spec.canonical.streams}
    for name, values in (samples or {}).items():
        seen |= {f"{SAMPLE}{k}_{name}": t.reshape(values[k], shapes[name]) for k in range(values.shape[0])}
    for name, values in zip(own.streams, data, strict=True):
        seen[f"{PREDICTED}{name}"] = t.reshape(values, shapes[name])
    scales, at = p.spec.scales, 0
    units = np.ones(p.constraint_count) if scales is None else scales.inequalities
    sized = margins if (units == 1).all() else margins * t.constant(units, "constraint_size", "G: margins are of g / G")
    for i, c in enumerate(p.spec.canonical.inequalities):
        seen[f"{MARGIN}{i}"] = t.reshape(sized[at : at + c.size], known(c.shape))
        at += c.size
    problem = own.whole if whole and own.whole is not None else own.canonical
    if scales is not None and problem is own.whole:
        kinks = np.ones(sum(math.prod(known(e.shape)) for e in own.prices))
        scales = replace(scales, inequalities=np.concatenate([[scales.loss], scales.inequalities, kinks]))
    spec = replace(p.spec, canonical=problem, structure=problem.structure[0], scales=scales)
    return Problem(t, spec, seen, _next(p) if following else p.round)


def problem_of(canonical: Canonical, samples: Samples | None = None) -> Predicted:
    """Problem of a round as predicted, whose loss is the mean over the samples where there are some."""
    if not samples:
        return predicted_of(canonical)
    return averaged_over(canonical, tuple(samples), next(iter(samples.values())).shape[0])


def after(p: Problem, before: Point) -> Problem:
    """View of the round whose loss is that after the decision `before`; the round itself where none is about the decision before."""
    c = p.spec.canonical
    if c.moving is None:
        return p
    blocks, result = dict(zip(p.spec.decisions, p.units.outward(before).blocks, strict=True)), copy(p)
    result.spec = replace(p.spec, canonical=c.played)
    result.seen = {**p.seen, **{s.name: blocks[s.stream.previous] for s in c.previous if s.stream.previous}}
    return result


def _next(p: Problem) -> Value:
    """Number of the following round of this learner; of the last one after round T."""
    assert p.round is not None
    following = p.round + p.ahead
    return following if p.spec.horizon is None else p.tracer.minimum(following, p.spec.horizon)
