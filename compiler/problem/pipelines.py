"""Pipelines of orders on their way to a store: states that hand on from round to round what was ordered.

    n_L' = r_{L+1} x,    n_k' = r_{k+1} n_{k+1},    s' = keep s + r_1 n_1 + drift,

where each entry takes from a single one. An order reaches the store L rounds later than if it filled the store at once. The position

    y = keep^{L+1} s + sum_k keep^{L+1-k} r_1 ... r_k n_k

is what s will be after L + 1 rounds without drifts and orders, where the range cuts nothing. With r = r_1 ... r_{L+1} an order moves it to
y + r x at once, and then

    s_{t+L+1} = y_t + r x_t + sum_{j<=L} keep^{L-j} drift_{t+j},        y_{t+1} = keep (y_t + r x_t) + keep^{L+1} drift_t:

orders are decided by the position as those without a lead time are by the stock (Scarf 1960; Zipkin 2000, section 6.2).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.build import call
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, changes, constant, names, rewrite
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
ROUNDING = 1e-9
"""Share of a range by which what is handed on may seem to leave it."""


@dataclass(frozen=True, eq=False)
class PipelineStage:
    """Entries of a state that orders for the m entries of a store pass on their way.

    state    the state
    entries  its flattened entries n_k, (m,)
    share    what a unit there counts in the position, (m,)
    """

    state: StreamRange
    entries: Floats
    share: Floats


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Way of orders to a store with m entries; arrays are (m,).

    stages   L of them, the next to arrive first
    entries  the entries x of the flattened decisions
    rate     r, the part of an ordered unit that arrives
    keep     the part of what is in the store that stays there for a round
    ordered  r x, of the shape of the store
    """

    stages: tuple[PipelineStage, ...]
    entries: Floats
    rate: Floats
    keep: Floats
    ordered: Expr

    @property
    def length(self) -> int:
        """L: number of rounds by which an order comes later than if it filled the store at once."""
        return len(self.stages)

    @property
    def of_stock(self) -> Floats:
        """Part that a unit in the store counts in the position, (m,)."""
        return np.asarray(self.keep ** (self.length + 1))

    @property
    def of_drifts(self) -> Floats:
        """Parts of the drifts of rounds t, ..., t + L that are in the store when the order of round t has come, (L + 1, m)."""
        return np.stack([self.keep ** (self.length - j) for j in range(self.length + 1)])


@dataclass(frozen=True, eq=False)
class _Taken:
    """Source of m entries: one entry of a state, or of the flattened decisions (None), for each, with its factor, (m,)."""

    state: StreamRange | None
    entries: Floats
    factors: Floats


def pipeline(canonical: Canonical, s: StreamRange) -> Pipeline | None:
    """Pipeline through which decisions fill a state; None where they fill it at once, or in another way."""
    rows, m = _factors(canonical, s), math.prod(s.shape)
    if rows is None:
        return None
    keep = np.diag(rows[s.name]).copy()
    taken = None if (rows[s.name] != np.diag(keep)).any() or (keep < 0).any() else _taken(canonical, s, rows)
    share, stages, most = np.ones(m), list[PipelineStage](), sum(f.shape[1] for f in rows.values())
    while taken is not None and taken.state is not None:
        a, share = taken.state, share * taken.factors
        if a.name == s.name or len(stages) == most:  # states that go round hand on for ever
            return None
        stages.append(PipelineStage(a, taken.entries, share))
        taken = _handed_on(canonical, a, taken.entries)
    if taken is None or not stages:
        return None
    L, rate = len(stages), share * taken.factors
    ordered = _ordered(canonical, s, stages[-1], taken.entries, rate)
    if ordered is None:
        return None
    stages = [replace(g, share=g.share * keep ** (L - k)) for k, g in enumerate(stages)]
    return Pipeline(tuple(stages), taken.entries, rate, keep, ordered)


def _factors(canonical: Canonical, s: StreamRange) -> dict[str, Floats] | None:
    """Factors of decisions (under "") and states in the next value of m entries, (m, entries of each); None where they change."""
    assert s.uncut is not None
    states = [o for o in canonical.streams if o.uncut is not None]
    sizes = {b.name: b.shape for b in canonical.blocks} | {o.name: o.shape for o in states}
    own = rewrite(s.uncut, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name in sizes else n)
    if not is_affine(own, tuple(sizes)):
        return None
    slopes, m = jacobian(algebra.broadcast(own, s.shape), tuple(sizes)), math.prod(s.shape)
    if any(changes(e) for e in slopes.values()):
        return None
    parts = {n: np.broadcast_to(evaluate(e, {}), (*s.shape, *sizes[n])).reshape(m, -1) for n, e in slopes.items()}
    return {"": np.concatenate([parts[b.name] for b in canonical.blocks], axis=1)} | {
        o.name: parts[o.name] for o in states
    }


def _taken(canonical: Canonical, s: StreamRange, rows: dict[str, Floats]) -> _Taken | None:
    """Source that moves a state beside itself and its drift; None where an entry is moved by more than one entry."""
    parts = {n: f for n, f in rows.items() if n != s.name and f.any()}
    if len(parts) != 1:
        return None
    ((name, factors),) = parts.items()
    return _alone(canonical, name, factors)


def _alone(canonical: Canonical, name: str, factors: Floats) -> _Taken | None:
    if not ((factors != 0).sum(axis=1) == 1).all():
        return None
    entries = np.argmax(factors != 0, axis=1)
    state = next((o for o in canonical.streams if o.name == name), None)
    return _Taken(state, entries, factors[np.arange(len(factors)), entries])


def _handed_on(canonical: Canonical, a: StreamRange, entries: Floats) -> _Taken | None:
    """Source of these entries of a state; None where one takes from more than one entry, or where the state's range cuts what it takes."""
    rows = _factors(canonical, a)
    parts = {} if rows is None else {n: f[entries] for n, f in rows.items() if f[entries].any()}
    if len(parts) != 1 or not _drifts_not(canonical, a):
        return None
    ((name, factors),) = parts.items()
    taken = _alone(canonical, name, factors)
    if taken is None:
        return None
    ends = decision_ends(canonical, taken.entries) if taken.state is None else _range(taken.state, taken.entries)
    least, most = np.sort(taken.factors * ends, axis=0)
    lower, upper = _range(a, entries)
    room = ROUNDING * (1.0 + abs(upper) + abs(lower))
    return taken if (least >= lower - room).all() and (most <= upper + room).all() else None


def _drifts_not(canonical: Canonical, a: StreamRange) -> bool:
    """True where the next value of a state is made of decisions and states alone, with nothing added."""
    assert a.uncut is not None
    sizes = {b.name: b.shape for b in canonical.blocks}
    sizes |= {o.name: o.shape for o in canonical.streams if o.uncut is not None}
    own = names(a.uncut)
    return set(own) <= set(sizes) and not evaluate(a.uncut, {n: np.zeros(sizes[n]) for n in own}).any()


def _range(a: StreamRange, entries: Floats) -> Floats:
    """Least and greatest values of entries of a state, (2, m)."""
    return np.stack(
        [np.broadcast_to(np.asarray(e, dtype=np.float64), a.shape).ravel()[entries] for e in (a.lower, a.upper)]
    )


def decision_ends(canonical: Canonical, entries: Floats) -> Floats:
    """Least and greatest values of entries of the flattened decisions, (2, m)."""
    ends = list[tuple[float, float]]()
    offsets = np.cumsum([0, *(math.prod(b.shape) for b in canonical.blocks)])
    for i in entries:
        k = int(np.searchsorted(offsets, i, side="right")) - 1
        block = canonical.blocks[k]
        at = np.zeros(math.prod(block.shape))
        at[int(i) - offsets[k]] = 1.0
        direction = at.reshape(block.shape)
        ends.append((-float(block.domain.support(-direction)), float(block.domain.support(direction))))
    return np.array(ends).T


def _ordered(canonical: Canonical, s: StreamRange, last: PipelineStage, entries: Floats, rate: Floats) -> Expr | None:
    """r x, of the shape of the store: as the model writes what follows the last stage, where that is all of it; None where x are entries
    of several decisions, or of a matrix.
    """
    assert last.state.uncut is not None
    m, whole = math.prod(s.shape), last.state.shape == s.shape and (last.entries == np.arange(math.prod(s.shape))).all()
    if whole:
        return algebra.mul(constant(last.share.reshape(s.shape)), algebra.broadcast(last.state.uncut, s.shape))
    offset = 0
    for b in canonical.blocks:
        n, own = math.prod(b.shape), entries - offset
        if (own >= 0).all() and (own < n).all():
            x = Name(b.name, Kind.DECISION, shape=b.shape)
            if b.shape == s.shape and (own == np.arange(m)).all():
                return algebra.mul(constant(rate.reshape(s.shape)), x)
            picks = np.zeros((m, n))
            picks[np.arange(m), own] = rate
            if len(b.shape) != 1 or len(s.shape) > 1:
                return None
            return (
                call("sum", algebra.mul(constant(picks[0]), x)) if s.shape == () else algebra.matmul(constant(picks), x)
            )
        offset += n
    return None
