"""Margins of constraints in a share of the rounds (`margins`): how large the one is that is enough whatever comes, and what decisions leave
room for.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from oco.compiler.problem.feedback_delay import as_expected, errors_of
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.followed_streams import Followed, followed_streams, multiplying
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.margin_predictions import Margins
from oco.compiler.problem.margins import ShareMargin
from oco.compiler.problem.monotone import at_worst
from oco.compiler.problem.parts import DecisionBlock
from oco.compiler.problem.spread_margins import MOST_SIZES, spread_over
from oco.compiler.problem.stream_ranges import Floats, StreamRange, may_forecast
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.diagnostics import fail
from oco.dsl.dims import known
from oco.dsl.enclose import enclose_node, enclosures
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Array, Expr, Index, Kind, Name, Slice, changes, constant, names, rewrite, walk
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.records import dataclass
from oco.dsl.source import Span

ROUNDED = 1e-9
"""Part of M, and of the size of g, that is added to M for rounding."""


def margin_of(
    label: str,
    expr: Expr,
    share: float,
    folding: Folding,
    blocks: Sequence[DecisionBlock],
    streams: Sequence[StreamRange],
    span: Span | None,
    stated: Mapping[str, Expr],
    turns: int = 1,
) -> ShareMargin | None:
    """Margin of the constraint `expr <= 0`; None where no stream comes after the decision. Raises OCO528 where there can be none.

    stated  predictions of streams that the model states
    turns   learners that take turns where feedback is late
    """
    measured, errors = expr, errors_of(streams)
    expr = as_expected(expr, streams, {n: e.name for n, e in errors.items()})
    streams = (*streams, *errors.values())
    later = {s.name: s for s in streams if not s.stream.known and s.name in names(expr, Kind.STREAM)}
    if not later:
        return None
    _must_be_bounded(label, later)
    boxes = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in blocks}
    boxes["t"] = interval(1.0, float(folding.horizon or np.inf), ())
    usual = folding.fold(rewrite(expr, lambda node: _usual(node, later)))
    ranges = {**boxes, **{s.name: interval(s.lower, s.upper, s.shape) for s in streams}}
    shape = tuple(int(n) for n in expr.shape if isinstance(n, int))
    low, high = _Gap(folding, later, ranges).ends(expr, shape)
    if not np.isfinite(high).all():
        raise fail("OCO528", f"no margin of `{label}` is seen to be enough", span, "bound the streams and the domain")
    most = np.maximum(high, 0.0)
    most = most * (1 + ROUNDED) + ROUNDED * np.where(most > 0, np.maximum(most, -low), 1.0)
    stated = {**_forecasts(later, streams), **stated}
    late, taken = {e.name for e in errors.values()}, frozenset(folding.declared)
    given = {n: s for n, s in later.items() if n not in late}
    followed = _followed(label, expr, boxes, given, stated, taken, turns)
    hardest = None if followed is None else _Hardest(folding, expr, shape, ranges, tuple(later.values()))
    worst = None if hardest is None else hardest.enough(blocks)
    begin = hardest.likely(share) if hardest and worst and (folding.horizon or 0) // turns > 1 else None
    left = _room(usual, shape, blocks) * (1 - ROUNDED) if worst is None else np.full(shape, np.inf)
    hopeless, left = followed is not None and bool((left < 0).any()), np.maximum(left, 0.0)
    cut, most, least = (most > left).astype(float), np.minimum(most, left), np.minimum(low, 0.0)
    base, own, ends = usual, expr, (least, most)
    if followed is not None:
        own, (low, high) = followed.within(expr), _Gap(folding, later, ranges, followed.predictions).ends(expr, shape)
        later = {n: s for n, s in later.items() if n not in followed.predictions}
        base = folding.fold(rewrite(own, lambda node: _usual(node, later)))
        ends = np.minimum(low, 0.0), np.maximum(high, most)
    added = _as_stated(own, base, stated, later, boxes)
    now = call("sub", measured, base)
    margins = Margins(label, shape, now, *ends, share, folding.horizon, added, taken, folding.seasons, turns)
    spread = None
    if followed is not None and shape == () and added is None and is_affine(expr, tuple(b.name for b in blocks)):
        fixed = rewrite(expr, lambda node: _usual(node, later))
        spread = spread_over(followed, measured, fixed, now, given, margins, ROUNDED * float(np.maximum(-low, high)))
        margins = replace(margins, now=spread.errors, least=np.asarray(-MOST_SIZES), most=np.asarray(MOST_SIZES))
    greatest, entries_cut = (tuple(np.ravel(a).tolist()) for a in (most, cut))
    last = followed, hopeless, spread, worst, begin
    return ShareMargin(usual, measured, share, greatest, margins, base, shape, entries_cut, *last)


@dataclass(frozen=True, eq=False)
class _Hardest:
    """The constraint g(x; s) <= 0 of a shape with its streams at the values where it is hardest to meet, whatever the decision."""

    folding: Folding
    expr: Expr
    shape: tuple[int, ...]
    ranges: Mapping[str, Interval]
    later: tuple[StreamRange, ...]

    def enough(self, blocks: Sequence[DecisionBlock]) -> Expr | None:
        """At the worst values that streams may have; None where these are not known, or no decision satisfies it there."""
        worst = self._at(self.later)
        return worst if worst is not None and bool((_room(worst, self.shape, blocks) >= 0).all()) else None

    def likely(self, share: float) -> Expr | None:
        """At values of stated streams beyond which that share of theirs is worse; None where no distribution is stated."""
        if all(s.distribution is None for s in self.later):
            return None
        return self._at([s if s.distribution is None else _within(s, share) for s in self.later])

    def _at(self, later: Iterable[StreamRange]) -> Expr | None:
        own = enclosures(self.expr, self.ranges)
        at = at_worst(self.expr, later, lambda node: own[id(node)])
        if isinstance(at, StreamRange):
            return None
        size = np.maximum(np.abs(own[id(self.expr)].lo), np.abs(own[id(self.expr)].hi))
        return call("add", self.folding.fold(at), constant(np.broadcast_to(ROUNDED * size, self.shape).copy()))


def _within(s: StreamRange, share: float) -> StreamRange:
    """Stream between the quantiles of its distribution beyond each of which a share of its values lies."""
    assert s.distribution is not None
    low, high = (s.distribution.quantile(q) for q in (share, 1 - share))
    return replace(s, lower=np.asarray(low), upper=np.asarray(high))


def _must_be_bounded(label: str, later: Mapping[str, StreamRange]) -> None:
    """Raise OCO528 for a stream without bounds."""
    for s in later.values():
        if not (np.isfinite(s.lower).all() and np.isfinite(s.upper).all()):
            message = f"`{s.name}` has no bounds, so no margin of `{label}` is enough for every value of it"
            raise fail("OCO528", message, s.stream.span, f"declare `stream {s.name}{list(s.shape) or ''} in [lo, hi]`")


def _room(expr: Expr, shape: tuple[int, ...], blocks: Sequence[DecisionBlock]) -> Floats:
    """Largest m of each entry with expr + m <= 0 for some decision, or a bound of it where the expression is not affine; infinite where it
    changes with what is known before the decision, negative where no decision satisfies it at all.
    """
    if changes(expr):
        return np.full(shape, np.inf)
    sizes = {b.name: b.shape for b in blocks}
    if not is_affine(expr, tuple(sizes)):
        ranges = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in blocks}
        return -np.broadcast_to(enclosures(expr, ranges)[id(expr)].lo, shape)
    slopes, count = jacobian(algebra.broadcast(expr, shape), sizes), math.prod(shape)
    least = np.broadcast_to(evaluate(expr, {n: np.zeros(size) for n, size in sizes.items()}), shape).astype(np.float64)
    for b in blocks:
        rows = np.broadcast_to(evaluate(slopes[b.name], {}), (*shape, *b.shape)).reshape(count, *b.shape)
        least = least - np.array([b.domain.support(-row) for row in rows]).reshape(shape)
    return -least


def _followed(
    label: str,
    expr: Expr,
    boxes: Mapping[str, Interval],
    later: Mapping[str, StreamRange],
    stated: Mapping[str, Expr],
    taken: frozenset[str],
    turns: int,
) -> Followed | None:
    """Predictions of the streams that multiply decisions; None where there are none."""
    own = multiplying(expr, [n for n in boxes if n != "t"], later)
    return followed_streams(label, {n: later[n] for n in own}, stated, taken, turns) if own else None


def _forecasts(later: Mapping[str, StreamRange], streams: Sequence[StreamRange]) -> dict[str, Expr]:
    """Contexts that may be forecasts of streams, where one fits."""
    contexts = [s for s in streams if s.stream.known and s.following is None and not (s.stream.previous or s.expects)]
    results: dict[str, Expr] = {}
    for name, s in later.items():
        fitting = [c for c in contexts if may_forecast(c, s)]
        if len(fitting) == 1:
            context = Name(fitting[0].name, Kind.STREAM, shape=s.shape, integer=fitting[0].integer)
            results[name] = call("add", context, 0.0)
    return results


def _as_stated(
    expr: Expr, usual: Expr, stated: Mapping[str, Expr], later: Mapping[str, StreamRange], boxes: Mapping[str, Interval]
) -> Expr | None:
    """Sum that the streams add to the constraint as the model predicts them, at the middle of the decisions; None without predictions."""
    if stated.keys().isdisjoint(later):
        return None

    def predicted(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.name not in later:
            return node
        s = later[node.name]
        low, high = (np.broadcast_to(e, s.shape) for e in (s.lower, s.upper))
        value = stated.get(node.name)
        return _usual(node, later) if value is None else call("maximum", call("minimum", value, high), low)

    def centred(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.kind is not Kind.DECISION:
            return node
        box = boxes[node.name]
        return constant(np.broadcast_to((box.lo + box.hi) / 2, known(node.shape)))

    own, fixed = (rewrite(e, centred) for e in (rewrite(expr, predicted), usual))
    return call("sub", own, fixed)


def _usual(node: Expr, later: Mapping[str, StreamRange]) -> Expr:
    """Stream at its mean, or where none is known in the middle of its range."""
    if not isinstance(node, Name) or node.name not in later:
        return node
    s = later[node.name]
    value = np.broadcast_to((s.lower + s.upper) / 2 if s.mean is None else s.mean, s.shape)
    return constant(np.rint(value).astype(np.int64) if s.integer else value)


class _Gap:
    """Bounds of f(x; s) - f(x; s^) for the parts f of an expression, by the rules for differences: of a product a b it is
    (a - a^) b + a^ (b - b^), so that what stays the same cancels. Of streams that are `followed` s^ is anything in their ranges.
    """

    def __init__(
        self,
        folding: Folding,
        later: Mapping[str, StreamRange],
        ranges: Mapping[str, Interval],
        followed: Container[str] = (),
    ) -> None:
        usual = {n: _usual(Name(n, Kind.STREAM, shape=s.shape), later) for n, s in later.items()}
        values = {n: folding.array(v) for n, v in usual.items()}
        self._later, self._ranges = set(later), ranges
        self._at_usual = {**ranges, **{n: point(v) for n, v in values.items()}}
        self._moved = {n: interval(s.lower - values[n], s.upper - values[n], s.shape) for n, s in later.items()}
        for n, s in ((n, s) for n, s in later.items() if n in followed):
            self._at_usual[n], self._moved[n] = ranges[n], interval(s.lower - s.upper, s.upper - s.lower, s.shape)

    def ends(self, expr: Expr, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Least and greatest difference of each entry."""
        gap = self.of(expr)
        return np.broadcast_to(gap.lo, shape), np.broadcast_to(gap.hi, shape)

    def of(self, expr: Expr) -> Interval:
        """Bounds of the difference."""
        own, usual = enclosures(expr, self._ranges), enclosures(expr, self._at_usual)
        gaps: dict[int, Interval] = {}
        for node in walk(expr):
            if isinstance(node, Slice):
                continue
            if not set(names(node, Kind.STREAM)) & self._later:
                gaps[id(node)] = interval(0.0, 0.0, known(node.shape))
                continue
            here, there = own[id(node)], usual[id(node)]
            apart = interval(here.lo - there.hi, here.hi - there.lo, here.shape)
            exact = self._exact(node, gaps, own, usual)
            gaps[id(node)] = (
                apart
                if exact is None
                else interval(np.maximum(apart.lo, exact.lo), np.minimum(apart.hi, exact.hi), here.shape)
            )
        return gaps[id(expr)]

    def _exact(
        self, node: Expr, gaps: Mapping[int, Interval], own: Mapping[int, Interval], usual: Mapping[int, Interval]
    ) -> Interval | None:
        """Difference from those of the parts; None where no rule says it."""

        def of(*parts: Interval) -> Interval:
            return enclose_node(node, parts, self._ranges)

        if isinstance(node, Name):
            return self._moved[node.name]
        children = [c for c in node.children if not isinstance(c, Slice)]
        form = form_of(node)
        if isinstance(form, forms.Bilinear):
            a, b = children
            left, right = of(gaps[id(a)], own[id(b)]), of(usual[id(a)], gaps[id(b)])
            return interval(left.lo + right.lo, left.hi + right.hi, left.shape)
        if isinstance(form, (forms.Signed, forms.Transposed, forms.Reshaped, forms.Stretched, forms.Diagonal)):
            return of(*(gaps[id(c)] for c in children))
        if isinstance(node, Array) or (isinstance(form, forms.Total) and not form.of and not form.root):
            return of(*(gaps[id(c)] for c in children))
        fixed = all(gaps[id(c)].is_point for c in children[1:])
        if fixed and (isinstance(node, Index) or form is forms.QUOTIENT):
            return of(gaps[id(children[0])], *(own[id(c)] for c in children[1:]))
        return None
