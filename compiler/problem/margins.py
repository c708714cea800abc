"""Margins that are learned: a constraint that may be broken in a share q of the rounds, met as if its streams had a predicted value.

With g the constraint, s^ a fixed value of the streams that come after the decision, and M at least every g(x; s) - g(x; s^), the decision
x_t satisfies g(x_t; s^) + m_t <= 0. The margin m_t, at most M, is a quantile of what the streams add as predicted
(`margin_predictions`), at a level that the credit

    c_t = c_{t-1} + q - 1[g(x_t; s_t) > 0],   c_0 = 0,

sets: in rounds with c_{t-1} + b_t <= 0 the margin is M, with a loan of b_t = min(sqrt(q (T - t) / 2), q (T - t)), a standard deviation of
the rounds to come that are broken, which is paid back by round T; 0 where T is unknown. Such a round is not broken, and b_{t-1} - b_t <= q,
so that c_t + b_t >= q - 1 and at most q t + 1 - q + b_t of t rounds are broken, q T + 1 - q of all, whatever comes: Proposition 4.1 of
Gibbs & Candes, Adaptive conformal inference, NeurIPS 2021, with level and step as functions of the
credit, M + eta = (1 - q) eta + m_1. A round whose known constraints allow no decision with the margin M may add one: it takes a fallback,
the quantile at a level of at least half the share, however little credit there is (`proximal/fallback_margins`), so that of exchangeable
errors about a share q is broken in the long run. Entries for which M never is enough do not go back to it.

Where feedback comes d rounds late, each of the d + 1 learners in turn has margin and credit of its own, over its own rounds: of all at
most q T + (d + 1) (1 - q) are broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from oco.compiler.problem.feedback_delay import as_expected, errors_of
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.kept_values import kept_range
from oco.compiler.problem.margin_predictions import Margins
from oco.compiler.problem.stream_ranges import Floats, StreamRange, may_forecast
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.diagnostics import fail
from oco.dsl.dims import known
from oco.dsl.enclose import enclose_node, enclosures
from oco.dsl.expressions import Array, Expr, Index, Kind, Name, Slice, constant, names, rewrite, walk
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.source import Span

ROUNDED = 1e-9
"""Part of M, and of the size of g, that is added to M for rounding."""
SPENT = 1e-9
"""Credit up to which there is none, for rounding."""


@dataclass(frozen=True)
class ShareMargin:
    """Margin of a constraint that may be broken in a share q of the rounds.

    usual    g(x; s^), over the decisions and what is known
    measured g(x; s), what the round reveals
    most     M, least  what m never goes below: an entry each for the entries of the constraint
    margins  values that rounds leave to the next, from which m is made
    cut      1 for entries to which the streams may add more than M, as far as a decision goes: of these nothing is promised
    """

    usual: Expr
    measured: Expr
    share: float
    most: tuple[float, ...]
    least: tuple[float, ...]
    margins: Margins = field(compare=False, repr=False)
    shape: tuple[int, ...] = field(default=())
    cut: tuple[float, ...] = ()

    @property
    def enough(self) -> bool:
        """True where the margin M is enough whatever the streams are."""
        return not any(self.cut)

    @property
    def greatest(self) -> Floats:
        """M, which the margin never exceeds."""
        return self._array(self.most)

    @property
    def robust(self) -> Expr:
        """Constraint with the greatest margin, which decisions in hindsight satisfy."""
        return call("add", self.usual, constant(self.greatest))

    @property
    def moving(self) -> Expr:
        """Constraint with the margin of the round."""
        return call("add", self.usual, self.margins.of_round(self._margin, self._stated))

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Margin, credit, fallback and what predictions keep, values that are known before the decision; the margins begin at M."""
        own = replace(self.margins, now=call("sub", self.measured, self.usual))
        broken = call("_positive", self.measured)
        credit = call("add", self._credit, call("sub", self.share, broken))
        goes = call("mul", own.ready, call("_positive", call("sub", call("add", credit, own.loan), SPENT)))
        if not self.enough:
            goes = call("maximum", goes, call("mul", own.ready, constant(self._array(self.cut))))
        asked, fallback = own.following(credit), own.fallback(credit)
        unbounded = np.asarray(-np.inf), np.asarray(np.inf)
        ends = unbounded if own.stated is not None else (self._array(self.least), self.greatest)
        kept = [
            kept_range(self._margin, self._following(*asked, goes), self.greatest, ends),
            kept_range(self._credit, credit),
            kept_range(self._fallback, self._following(*fallback, own.ready), self.greatest, ends),
        ]
        if own.stated is not None:
            kept += [kept_range(self._stated, asked[1]), kept_range(self._stated_fallback, fallback[1])]
        return (*kept, *own.ranges)

    @property
    def fallbacks(self) -> tuple[tuple[str, str], ...]:
        """Names of the values of which the margin of a round is made, each with that of the fallback."""
        pairs = [(self._margin, self._fallback)]
        pairs += [] if self.margins.stated is None else [(self._stated, self._stated_fallback)]
        return tuple((a.name, b.name) for a, b in pairs)

    def _following(self, predicted: Expr, stated: Expr, goes: Expr) -> Expr:
        """Margin of the next round: the predicted one where it `goes`, else M; without what is added of the stated prediction."""
        most, least = constant(self.greatest), constant(self._array(self.least))
        always: Expr = most
        if self.margins.stated is None:
            predicted = call("maximum", call("minimum", predicted, most), least)
        else:
            always = call("sub", most, call("mul", stated, call("minimum", least, 0.0)))
        return call("add", always, call("mul", goes, call("sub", predicted, always)))

    def allowed(self, rounds: int) -> float:
        """Number of the first so many rounds in which an entry may be broken: q t + 1 - q + b_t."""
        return self.share * rounds + self._more + self.margins.lent(rounds)

    @property
    def _more(self) -> float:
        """Rounds beside the share that may be broken: less than one of each learner that takes turns."""
        return self.margins.turns * (1 - self.share)

    @property
    def words(self) -> str:
        """Guarantee, and the constants in it."""
        ends = sorted({f"{m:.6g}" for m in self.most}, key=float)
        size = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
        if not self.enough:
            return (
                f"of its share nothing is promised, for no decision satisfies it whatever the streams are (M = {size})"
            )
        lent, horizon = self.margins.lent(1), self.margins.horizon
        before = f"by round {horizon:,}, and at most {lent:.3g} more before, " if lent else ""
        turns = self.margins.turns
        more = "one more" if turns == 1 else f"one more of each of the {turns} learners in turn"
        return (
            f"broken in at most {self.share:.6g} of the rounds and {more} (c = {self._more:.6g}, M = {size}), {before}"
            "on every sequence whose known constraints leave room for the margin"
        )

    @property
    def _margin(self) -> Name:
        return self.margins.value("margin")

    @property
    def _credit(self) -> Name:
        return self.margins.value("credit")

    @property
    def _stated(self) -> Name:
        return self.margins.value("by_prediction")

    @property
    def _fallback(self) -> Name:
        return self.margins.value("fallback")

    @property
    def _stated_fallback(self) -> Name:
        return self.margins.value("fallback_by_prediction")

    def _array(self, values: tuple[float, ...]) -> Floats:
        return np.reshape(np.array(values), self.shape)


def margin_of(
    label: str,
    expr: Expr,
    share: float,
    folding: Folding,
    boxes: Mapping[str, Interval],
    streams: Sequence[StreamRange],
    span: Span | None,
    stated: Mapping[str, Expr],
    turns: int = 1,
) -> ShareMargin | None:
    """Margin of the constraint `expr <= 0`; None where no stream comes after the decision. Raises OCO528 where there can be none.

    boxes   ranges of the decisions, and of `t`
    stated  predictions of streams that the model states
    turns   learners that take turns where feedback is late
    """
    measured, errors = expr, errors_of(streams)
    expr = as_expected(expr, streams, {n: e.name for n, e in errors.items()})
    streams = (*streams, *errors.values())
    later = {s.name: s for s in streams if not s.stream.known and s.name in names(expr, Kind.STREAM)}
    if not later:
        return None
    for s in later.values():
        if not (np.isfinite(s.lower).all() and np.isfinite(s.upper).all()):
            message = f"`{s.name}` has no bounds, so no margin of `{label}` is enough for every value of it"
            raise fail("OCO528", message, s.stream.span, f"declare `stream {s.name}{list(s.shape) or ''} in [lo, hi]`")
    usual = folding.fold(rewrite(expr, lambda node: _usual(node, later)))
    ranges = {**boxes, **{s.name: interval(s.lower, s.upper, s.shape) for s in streams}}
    shape = tuple(int(n) for n in expr.shape if isinstance(n, int))
    gap = _Gap(folding, later, ranges).of(expr)
    low, high = np.broadcast_to(gap.lo, shape), np.broadcast_to(gap.hi, shape)
    if not np.isfinite(high).all():
        raise fail("OCO528", f"no margin of `{label}` is seen to be enough", span, "bound the streams and the domain")
    most = np.maximum(high, 0.0)
    most = most * (1 + ROUNDED) + ROUNDED * np.where(most > 0, np.maximum(most, -low), 1.0)
    room = _room(usual, boxes, shape)
    cut, most = (most > room).astype(float), np.minimum(most, room)
    least = np.minimum(low, 0.0)
    added = _as_stated(expr, usual, {**_forecasts(later, streams), **stated}, later, boxes)
    taken = frozenset(folding.declared)
    margins = Margins(label, shape, expr, least, most, share, folding.horizon, added, taken, folding.seasons, turns)
    greatest, lowest, entries_cut = (tuple(np.ravel(a).tolist()) for a in (most, least, cut))
    return ShareMargin(usual, measured, share, greatest, lowest, margins, shape, entries_cut)


def _room(usual: Expr, boxes: Mapping[str, Interval], shape: tuple[int, ...]) -> Floats:
    """Largest margin that a decision leaves to each entry; infinite where it changes with what is known before the decision."""
    if names(usual, Kind.STREAM):
        return np.full(shape, np.inf)
    least = np.broadcast_to(enclosures(usual, boxes)[id(usual)].lo, shape)
    room: Floats = np.maximum(-least, 0.0) * (1 - ROUNDED)
    return room


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
    (a - a^) b + a^ (b - b^), so that what stays the same cancels.
    """

    def __init__(self, folding: Folding, later: Mapping[str, StreamRange], ranges: Mapping[str, Interval]) -> None:
        usual = {n: _usual(Name(n, Kind.STREAM, shape=s.shape), later) for n, s in later.items()}
        values = {n: folding.array(v) for n, v in usual.items()}
        self._later, self._ranges = set(later), ranges
        self._at_usual = {**ranges, **{n: point(v) for n, v in values.items()}}
        self._moved = {n: interval(s.lower - values[n], s.upper - values[n], s.shape) for n, s in later.items()}

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
