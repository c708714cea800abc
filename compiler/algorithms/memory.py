"""Memory of constraints: the worst seen so far of each, in a few numbers, and the constraints that these numbers cut.

The intersection of {x: g(x; s_r) <= 0} over the rounds r <= t has a description that does not grow with t where g is

    fixed      no stream enters: it is its own intersection, nothing is kept
    additive   g(x; s) = phi(x) + b(s): phi(x) + max_r b(s_r) <= 0, one number an entry of the constraint
    monotone   in each stream over the domain: g(x; w) <= 0 with w the worst of each entry of the streams, a subset of the intersection
               and equal to it where one entry of the streams enters an entry of the constraint
    finite     only integer streams enter: g(x; v) <= 0 for each of their values v that was seen, a flag each

All of these are running maxima of functions of the round's data (b, +s or -s, indicators). `memory_of` is a function of the canonical form
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache, reduce
from itertools import product
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.canonical import Canonical, Inequality, StreamRange
from oco.compiler.problem.families import families
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.monotone import direction
from oco.compiler.problem.structure import has_single_entries
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.limits import MOST_PARTS
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
FEW_VALUES = 32
"""Values of a finite family with which a round takes milliseconds: the step has a constraint and a multiplier for each."""
MOST_SLOPES = 10**6
"""Derivatives of the entries of a constraint towards those of its streams that are bounded one by one."""


class MemoryForm(StrEnum):
    """Form in which a constraint is kept."""

    FIXED = "fixed"
    ADDITIVE = "additive"
    MONOTONE = "monotone"
    FINITE = "finite"


@dataclass(frozen=True)
class KeptConstraint:
    """Form in which one inequality is kept, or the reason why it is not (form None).

    directions  of each stream under `MONOTONE`: 1 where its largest value is the worst, -1 where its least is
    values      the values of the streams under `FINITE`, in order of `streams`
    inner       the memory may cut more than the intersection
    """

    label: str
    form: MemoryForm | None
    why: str
    streams: tuple[str, ...] = ()
    directions: tuple[int, ...] = ()
    values: tuple[tuple[int, ...], ...] = ()
    inner: bool = False

    @property
    def slow(self) -> bool:
        """True where a round takes more than milliseconds with the constraints that it stands for."""
        return len(self.values) > FEW_VALUES


@dataclass(frozen=True, eq=False)
class Memory:
    """Numbers that are kept of all inequalities, each in the order of the text.

    canonical  the problem whose inequalities are those of the memory, over the streams `names`
    observed   of each of these streams what its value is the running maximum of: expressions in the round's data
    owner      of each entry of the memory's inequalities the entry of the model's that it stands for
    """

    kept: tuple[KeptConstraint, ...]
    canonical: Canonical
    names: tuple[str, ...]
    observed: tuple[Expr, ...]
    owner: Floats

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers kept of each observed expression."""
        return tuple(math.prod(known(e.shape)) for e in self.observed)

    def cut(self, worst: Floats) -> tuple[Inequality, ...]:
        """Inequalities that these running maxima cut, shape (sum of `sizes`,), without data."""
        ends = np.cumsum([0, *self.sizes])
        parts = zip(self.names, self.observed, ends, ends[1:])
        values = {n: constant(np.reshape(worst[a:b], known(e.shape))) for n, e, a, b in parts}
        return tuple(replace(c, expr=_streams_replaced(c.expr, values)) for c in self.canonical.inequalities)

    def words(self) -> str:
        """Text for a reader: `service` additive: 1 number."""
        return "; ".join(f"`{k.label}` {k.why}" for k in self.kept)


@lru_cache(maxsize=16)
def kept_of(canonical: Canonical) -> tuple[KeptConstraint, ...]:
    """Form in which each inequality is kept. Ranges are those of the user's units, where bounds of 0 are exact."""
    problem = canonical.unscaled or canonical
    return tuple(_kept(c, problem) for c in problem.inequalities)


@lru_cache(maxsize=16)
def memory_of(canonical: Canonical) -> Memory | None:
    """The memory of the inequalities; None where one of them cannot be kept (`kept_of` says which and why)."""
    kept = kept_of(canonical)
    if any(k.form is None for k in kept):
        return None
    rows: list[Inequality] = []
    observed: list[Expr] = []
    owner: list[Floats] = []
    starts = np.cumsum([0, *(c.size for c in canonical.inequalities)])
    kinds = [(c.timing, k.form, k.streams, k.directions, k.values) for c, k in zip(canonical.inequalities, kept)]
    together = families([c.expr for c in canonical.inequalities], kinds)
    for expr, members in zip(together.exprs, together.members):
        c, k = replace(canonical.inequalities[members[0]], shape=known(expr.shape), expr=expr), kept[members[0]]
        parts = _rows(c, k, canonical, lambda expr: _worst(observed, expr))
        rows += [
            replace(c, label=c.label if len(parts) == 1 else f"{c.label}.{i}", expr=e) for i, e in enumerate(parts)
        ]
        owner += [np.concatenate([np.arange(starts[m], starts[m + 1]) for m in members])] * len(parts)
    names_ = tuple(f"_worst{i}" for i in range(len(observed)))
    remembered = replace(canonical, inequalities=tuple(rows))
    return Memory(kept, remembered, names_, tuple(observed), np.concatenate([np.zeros(0, np.int64), *owner]))


def _worst(observed: list[Expr], expr: Expr) -> Name:
    """The stream that holds the running maximum of `expr`, which joins those that are observed."""
    observed.append(expr)
    return Name(f"_worst{len(observed) - 1}", Kind.STREAM, shape=expr.shape)


def _rows(c: Inequality, k: KeptConstraint, canonical: Canonical, worst: Callable[[Expr], Name]) -> list[Expr]:
    """The expressions that stand for the constraint in the memory."""
    if k.form is MemoryForm.FIXED:
        return [c.expr]
    if k.form is MemoryForm.ADDITIVE:
        # phi(x) + max b = [g(x; s) - g(c; s)] + max g(c; s) for any data s and one decision c: no need to take g apart.
        own = _at_reference(c.expr, canonical)
        base = evaluate(own, _centre(canonical))
        return [algebra.add(algebra.sub(own, constant(base)), worst(at_centre(c.expr, canonical)))]
    if k.form is MemoryForm.MONOTONE:
        bounds: dict[str, Expr] = {}
        for node in c.expr._within[0]:
            if node.kind is Kind.STREAM:
                sign = k.directions[k.streams.index(node.name)]
                own = replace(node, integer=False)
                bounds[node.name] = worst(own) if sign > 0 else algebra.minus(worst(algebra.minus(own)))
        return [_streams_replaced(c.expr, bounds)]
    rows: list[Expr] = []
    streams = {n.name: n for n in c.expr._within[0] if n.kind is Kind.STREAM}
    for values in k.values:
        indicators = [_is_value(streams[s], v) for s, v in zip(k.streams, values)]
        flag = worst(reduce(lambda a, b: algebra.call("minimum", a, b), indicators))
        own = _streams_replaced(c.expr, {s: constant(v) for s, v in zip(k.streams, values)})
        # Where the value was not seen: -1 <= 0.
        rows.append(algebra.add(algebra.mul(flag, own), algebra.sub(flag, algebra.number(1))))
    return rows


def _is_value(stream: Name, value: int) -> Expr:
    """1 where an integer is the value, else 0."""
    apart = algebra.call("abs", algebra.sub(stream, constant(float(value))))
    return algebra.call("maximum", algebra.sub(algebra.number(1), apart), algebra.number(0))


# Recognition.


def _kept(c: Inequality, canonical: Canonical) -> KeptConstraint:
    streams = tuple(names(c.expr, Kind.STREAM))
    if not streams and not names(c.expr, Kind.ROUND):
        return KeptConstraint(c.label, MemoryForm.FIXED, "is fixed: nothing is kept")
    if _is_additive(c, canonical):
        numbers = "one number" if c.size == 1 else f"{c.size} numbers, one an entry"
        return KeptConstraint(c.label, MemoryForm.ADDITIVE, f"has data in an additive term alone: {numbers}", streams)
    ranges = Enclosure(ProofContext(canonical).box)
    own = {s.name: s for s in canonical.streams}
    directions = [direction(c.expr, s, ranges) for s in streams]
    if not names(c.expr, Kind.ROUND) and all(d is not None for d in directions):
        size = sum(math.prod(own[s].shape) for s in streams)
        several = not has_single_entries(as_function_of(c.expr, streams), streams)
        what = (
            "the worst of each entry of its data together, which may cut more than the rounds did"
            if several
            else "the worst"
        )
        why = f"is monotone in {_listed(streams)} over the domain: {size} number{'s' if size > 1 else ''}, {what}"
        return KeptConstraint(
            c.label, MemoryForm.MONOTONE, why, streams, tuple(d or 1 for d in directions), inner=several
        )
    if not names(c.expr, Kind.ROUND) and (values := _values(c.expr, [own[s] for s in streams])):
        why = f"has {len(values)} values of {_listed(streams)}: a flag each"
        return KeptConstraint(c.label, MemoryForm.FINITE, why, streams, values=values)
    return KeptConstraint(c.label, None, _why_not(c, streams, directions))


def _why_not(c: Inequality, streams: tuple[str, ...], directions: list[int | None]) -> str:
    if names(c.expr, Kind.ROUND):
        return "depends on the round t by more than an additive term"
    mixed = _listed(tuple(s for s, d in zip(streams, directions) if d is None))
    return (
        f"multiplies {mixed} and decisions, and is not monotone in {mixed} over the domain: its worst is not one number an entry, and "
        f"{mixed} takes too many values to keep a flag for each"
    )


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{s}`" for s in labels)


def _is_additive(c: Inequality, canonical: Canonical) -> bool:
    """No derivative towards the decisions depends on data, and the constraint is a number at the reference data."""
    weights = Name("_weights", Kind.PARAM, shape=c.expr.shape)
    slopes = vector_jacobian(c.expr, weights, tuple(b.name for b in canonical.blocks)).values()
    if any(names(d, Kind.STREAM) or names(d, Kind.ROUND) for d in slopes):
        return False
    base = evaluate(_at_reference(c.expr, canonical), _centre(canonical))
    return bool(np.isfinite(base).all())


def _values(expr: Expr, streams: list[StreamRange]) -> tuple[tuple[int, ...], ...]:
    """All values of integer scalars together; () where the expression at each takes too much memory, or others enter."""
    if any(s.shape or not s.integer or not np.isfinite(s.upper - s.lower) for s in streams):
        return ()
    counts = [int(s.upper) - int(s.lower) + 1 for s in streams]
    if math.prod(counts) * (len(expr.below) + 1) > MOST_PARTS:
        return ()
    return tuple(product(*(range(int(s.lower), int(s.upper) + 1) for s in streams)))


# Data and decisions put in.


def _centre(canonical: Canonical) -> dict[str, Floats]:
    return {b.name: b.domain.centre() for b in canonical.blocks}


def at_centre(expr: Expr, canonical: Canonical) -> Expr:
    """The expression at the centre of the domain."""
    values = {n: constant(np.asarray(v, dtype=np.float64)) for n, v in _centre(canonical).items()}
    return rewrite(expr, lambda n: values[n.name] if isinstance(n, Name) and n.kind is Kind.DECISION else n)


def _at_reference(expr: Expr, canonical: Canonical) -> Expr:
    """The expression at one value of its data: the end of each range that is finite, else 0; round 1."""
    values: dict[str, Expr] = {}
    for s in canonical.streams:
        end = np.where(np.isfinite(s.lower), s.lower, np.where(np.isfinite(s.upper), s.upper, 0.0))
        end = np.broadcast_to(end, s.shape)
        values[s.name] = constant(end.astype(np.int64) if s.integer else end)

    def given(node: Expr) -> Expr:
        return constant(1) if isinstance(node, Name) and node.kind is Kind.ROUND else node

    return rewrite(_streams_replaced(expr, values), given)


def as_function_of(expr: Expr, streams: tuple[str, ...]) -> Expr:
    """The expression as a function of the streams: decisions by their kind, as derivatives and marks want them; decisions are data."""

    def swapped(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.kind not in (Kind.STREAM, Kind.DECISION):
            return node
        return replace(node, kind=Kind.DECISION if node.name in streams else Kind.STREAM)

    return rewrite(expr, swapped)


def _streams_replaced(expr: Expr, by: Mapping[str, Expr]) -> Expr:
    return rewrite(expr, lambda n: by.get(n.name, n) if isinstance(n, Name) and n.kind is Kind.STREAM else n)


# What the memory bounds.


@lru_cache(maxsize=16)
def violation_bounds(canonical: Canonical, upper: tuple[float, ...]) -> Floats:
    """Bound of the violation that all rounds together add to each entry, of decisions x_{t+1} in the memory of the rounds up to t, shape
    (N,); infinite where nothing bounds it. `upper` is sup g_n.

    fixed     [g(x_1)]_+: later decisions satisfy it
    additive  [phi(x_1) + b_1]_+ + max_t b_t - b_1 <= max(sup g, sup b - inf b), the sum where phi(x_1) + b_1 > 0 being phi(x_1) + max b:
              for t > 1 phi(x_t) <= -max_{r<t} b_r, so the excess is at most the growth of the maximum in round t, and that telescopes
    monotone  [g(x_1; s_1)]_+ + sum_i L_i |w_{T,i} - w_{1,i}|, L_i = sup |dg/ds_i|: g(x_t; s_t) <= g(x_t; w_t), g(x_t; w_{t-1}) <= 0, and
              the worst w moves one way
    finite    sup [g]_+ for each value: after it was seen decisions satisfy it
    """
    setting = ProofContext(canonical)
    ranges, results, start = Enclosure(setting.box), list[Floats](), 0
    for c, k in zip(canonical.inequalities, kept_of(canonical)):
        at_start = ranges(at_centre(c.expr, canonical))
        high, low = (np.broadcast_to(e, c.shape).reshape(-1) for e in (at_start.hi, at_start.lo))
        most = np.asarray(upper[start : start + c.size], dtype=np.float64)
        first = np.maximum(most, 0.0)
        if k.form is MemoryForm.ADDITIVE:
            first = np.maximum(first, high - low)
        elif k.form is MemoryForm.MONOTONE:
            first = first + _moves(c, k, setting, ranges)
        elif k.form is MemoryForm.FINITE:
            first = first * len(k.values)
        results.append(np.where(np.isnan(first), np.inf, first))
        start += c.size
    return np.concatenate([np.zeros(0), *results])


def _moves(c: Inequality, k: KeptConstraint, setting: ProofContext, ranges: Enclosure) -> Floats:
    """sum_i L_i (upper_i - lower_i) of the streams of each entry, shape (size,)."""
    total = np.zeros(c.size)
    sizes = {s: math.prod(setting.streams[s].shape) for s in k.streams}
    if c.size * sum(sizes.values()) > MOST_SLOPES:
        return np.full(c.size, np.inf)
    slopes = jacobian(as_function_of(c.expr, k.streams), k.streams)
    for s in k.streams:
        own = setting.streams[s]
        size = np.broadcast_to(ranges(slopes[s]).magnitude, (*c.shape, *own.shape)).reshape(c.size, sizes[s])
        width = np.broadcast_to(own.upper - own.lower, own.shape).reshape(-1)
        with np.errstate(invalid="ignore"):
            total = total + size @ width
    return total
