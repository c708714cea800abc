"""Forms of states that are stores (`stores`), and what makes the others none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from oco.compiler.problem.by_round import by_round, cycle_of
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.pipelines import Pipeline, decision_ends, pipeline
from oco.compiler.problem.store_ranges import KeptRange, awaited_range, kept_range
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.enclose import enclose
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.intervals import interval
from oco.dsl.records import dataclass
from oco.dsl.text.printer import print_expr

Floats = np.ndarray[Any, Any]
NO_ENTRY = -1
"""Entry of the decisions in the place of a flow that is none, of width 0, into a store entry that no decision moves."""


@dataclass(frozen=True, eq=False)
class StoreOfState:
    """State that is a store, of m entries that are moved by F flows.

    state        the state; s' is what follows it, before it is cut to its range
    ends         range of what is in store, and what keeps it
    keep         factor of s: a table by the round (`by_round`), (P, m)
    filled       the entry of the state that each flow moves, in order, (F,)
    entries      the entry of the flattened decisions that each flow is of, (F,); `NO_ENTRY` where no decision moves an entry of the state
    rate         its factor, (F,): the middle of its range where it changes
    least, most  range of each flow rate x_k, (F,)
    changing     factors of all entries of the decisions in s', by block, where some change with data or the round; else none
    coupled      factors of the levels of entries of stores that move it, by state: tables (P, m, entries), its own with 0 on the diagonal
    pipeline     way of what is decided to the state where it comes rounds later; None where it is there at once
    """

    state: StreamRange
    ends: KeptRange
    keep: Floats
    filled: Floats
    entries: Floats
    rate: Floats
    least: Floats
    most: Floats
    coupled: Mapping[str, Floats] = field(default_factory=dict)
    changing: tuple[Expr, ...] = ()
    pipeline: Pipeline | None = None

    @property
    def name(self) -> str:
        """Name of the state."""
        return self.state.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the state."""
        return self.state.shape

    @property
    def following(self) -> Expr:
        """s', before it is cut to its range."""
        assert self.state.uncut is not None
        return self.state.uncut

    @property
    def moved(self) -> Expr:
        """Expression that the value of what is left is of: s', before the cut; rate x_i where there is a pipeline."""
        return self.following if self.pipeline is None else self.pipeline.ordered

    @property
    def size(self) -> int:
        """Number of entries, m."""
        return math.prod(self.shape)

    @property
    def drift(self) -> Expr:
        """s' where nothing is in store or on its way to it, nor in stores that move it, and nothing is decided."""
        own = {
            self.name,
            *self.coupled,
            *(() if self.pipeline is None else (stage.state.name for stage in self.pipeline.stages)),
        }

        def empty(node: Expr) -> Expr:
            is_own = isinstance(node, Name) and (node.kind is Kind.DECISION or node.name in own)
            return constant(np.zeros(known(node.shape))) if is_own else node

        return algebra.broadcast(rewrite(self.following, empty), self.shape)


UNMOVED = "no decision moves it"
SHARED_RATES = "a factor of what is decided changes with the rounds, and decisions or levels tie it to other states"


@dataclass(frozen=True, eq=False)
class NoStore:
    """State that is no store.

    state   the state
    reason  what makes it none, in words
    """

    state: StreamRange
    reason: str


def store_of(canonical: Canonical, s: StreamRange) -> StoreOfState | NoStore:
    """State as a store, whose entries have a flow or are moved by other entries, or why it is none."""
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for e in (s.lower, s.upper))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        return NoStore(s, "its range has no width, or no end")
    factors, rates = _factors(canonical, s), _rates(canonical, s)
    if factors is None or rates is None:
        return NoStore(s, _not_linear(canonical, s))
    kept, (flows, changing) = factors.pop(s.name), rates
    keep = np.diagonal(kept, axis1=1, axis2=2).copy()
    coupled = {n: f for n, f in {s.name: kept - keep[:, :, None] * np.eye(len(flows)), **factors}.items() if f.any()}
    moved = (flows != 0).any(axis=1)
    if (keep < 0).any():
        return NoStore(s, f"the more of `{s.name}` there is, the less the next round has")
    if not (moved.all() or coupled):
        return NoStore(s, "no decision moves some of its entries" if moved.any() else UNMOVED)
    kept_within = kept_range(canonical, s, moved)
    if isinstance(kept_within, str):
        return NoStore(s, kept_within)
    filled, entries = np.nonzero(flows)
    rate = flows[filled, entries]
    least, most = np.sort(rate * decision_ends(canonical, entries), axis=0).reshape(2, -1)
    still = np.flatnonzero(~moved)
    none, order = np.zeros(still.size), np.argsort(np.concatenate([filled, still]), kind="stable")
    columns = [(filled, still), (entries, np.full(still.size, NO_ENTRY)), (rate, none + 1), (least, none), (most, none)]
    filled, entries, rate, least, most = (np.concatenate(c)[order] for c in columns)
    return StoreOfState(s, kept_within, keep, filled, entries, rate, least, most, coupled, changing)


def _factors(canonical: Canonical, s: StreamRange) -> dict[str, Floats] | None:
    """Factors of the state and of other states in s', tables (P, m, entries) each by name; None where that of the state hangs on more than
    the round, or s' is not affine in it and in what is decided. Of the others those are left out that do.
    """
    assert s.uncut is not None
    decided = {b.name: b.shape for b in canonical.blocks}
    others = {o.name: o.shape for o in canonical.streams if o.uncut is not None and o.name in names(s.uncut)}
    m = math.prod(s.shape)

    def of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Floats] | None:
        assert s.uncut is not None
        own = rewrite(
            s.uncut, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in shapes else n
        )
        if not is_affine(own, tuple(shapes)):
            return None
        result = dict[str, Floats]()
        for n, e in jacobian(algebra.broadcast(own, s.shape), shapes).items():
            if n in decided:
                continue
            if not names(e, Kind.STREAM) and (cycle := cycle_of(canonical.horizon, e)) is not None:
                table = by_round(algebra.broadcast(e, (*s.shape, *shapes[n])), cycle)
                result[n] = table.reshape(len(table), m, -1)
        return result

    result = of({**decided, s.name: s.shape})
    if not result:
        return None
    together = of({**decided, s.name: s.shape, **others})
    return result if together is None else {**together, **result}


def _rates(canonical: Canonical, s: StreamRange) -> tuple[Floats, tuple[Expr, ...]] | None:
    """Factors of all entries of the decisions in s', (m, entries), the middles of their ranges, and by block as expressions where some
    change; None where the sign of one is not known, or it has no range.
    """
    assert s.uncut is not None
    shapes = {b.name: b.shape for b in canonical.blocks}
    exprs = jacobian(algebra.broadcast(s.uncut, s.shape), shapes)
    factors = [algebra.broadcast(exprs[b.name], (*s.shape, *b.shape)) for b in canonical.blocks]
    ends = [_ends_of_factor(canonical, f) for f in factors]
    if not all(map(_has_sign, ends)):
        return None
    least, most = np.concatenate([e.reshape(2, math.prod(s.shape), -1) for e in ends if e is not None], axis=2)
    changes = least < most
    return np.where(changes, 0.5 * (least + most), least), tuple(factors) if changes.any() else ()


def _ends_of_factor(canonical: Canonical, factor: Expr) -> Floats | None:
    """Least and greatest values of the entries of a factor of decisions, (2, *shape); None where it is not made of data and the round."""
    if names(factor, Kind.DECISION):
        return None
    if not names(factor, Kind.STREAM) and (cycle := cycle_of(canonical.horizon, factor)) is not None:
        table = by_round(factor, cycle)
        return np.stack([table.min(axis=0), table.max(axis=0)])
    data = [o for o in canonical.streams if o.uncut is None and not o.stream.previous]
    if not {o.name for o in data}.issuperset(names(factor, Kind.STREAM)):
        return None
    rounds = interval(1.0, float(canonical.horizon or np.inf), ())
    ends = enclose(factor, {"t": rounds} | {o.name: interval(o.lower, o.upper, o.shape) for o in data})
    return np.stack(ends.expanded())


def _has_sign(ends: Floats | None) -> bool:
    """True where all factors with these least and greatest values, (2, ...), are numbers of one sign, whatever comes."""
    if ends is None or not np.isfinite(ends).all():
        return False
    return not ((ends[0] < 0) & (ends[1] > 0)).any()


def awaited_store(canonical: Canonical, s: StreamRange) -> StoreOfState | None:
    """State as a store that decisions fill rounds later; None where it is none, or constraints are on it."""
    way = pipeline(canonical, s)
    ends = None if way is None else awaited_range(canonical, s)
    if way is None or ends is None:
        return None
    least, most = np.sort(way.rate * decision_ends(canonical, way.entries), axis=0)
    return StoreOfState(
        s, ends, way.keep.reshape(1, -1), np.arange(way.keep.size), way.entries, way.rate, least, most, pipeline=way
    )


def _not_linear(canonical: Canonical, s: StreamRange) -> str:
    """Reason why s' is not linear in the state and the decisions, with numbers or data of one sign as factors."""
    assert s.stream.following is not None
    own = (*(b.name for b in canonical.blocks), s.name)
    for term in _terms(s.stream.following):
        decided = rewrite(
            term, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in own else n
        )
        if not is_affine(decided, own):
            return f"`{print_expr(term)}` is not linear in `{s.name}` and what is decided"
        for name, e in jacobian(decided, own).items():
            if name != s.name:
                if not _has_sign(_ends_of_factor(canonical, e)):
                    return f"`{print_expr(term)}` has a factor of which no range of data gives the sign and an end"
            elif names(e, Kind.STREAM) or cycle_of(canonical.horizon, e) is None:
                return f"`{print_expr(term)}` has a factor that changes with the rounds"
    return f"what follows it is not linear in `{s.name}` and what is decided, with factors of known signs"


def _terms(expr: Expr) -> Iterator[Expr]:
    """Terms of a sum."""
    if isinstance(form_of(expr), forms.Signed):
        for child in expr.children:
            yield from _terms(child)
    else:
        yield expr
