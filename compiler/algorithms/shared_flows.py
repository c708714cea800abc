"""Costs of filling a store through constraints that it shares with other decisions: under `buy - charge >= load` what is charged is bought.

A round costs J(u) = min_y { f(u, y) : the known constraints hold } at a flow u into a store, where y are all other entries of the
decisions; flows into other stores stay as they were. J is convex with the slope f_u + mu a_u, where mu are the multipliers of the
constraints' rows and a_u the factors of u in them (Rockafellar, Convex Analysis, 1970, Theorem 29.1). In the example mu a_u is 0 while the
flow out of the store serves the load, and the price of what is bought beyond. Where f is piecewise linear, mu is that of the best y at
each of `FLOWS` flows: the charge at the flow in the middle is learned, and for each flow how far its charge is above that. Where f is
curved, mu is that at the decision, near which f is as good as linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import filled_by_flows, has_curvature, has_kinks, stores, without_outside
from oco.compiler.proximal.known_multipliers import KnownMultipliers
from oco.compiler.proximal.known_point import apart, flat_domain
from oco.dsl.dims import known
from oco.dsl.enclose import enclose
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.intervals import Interval, interval
from oco.dsl.magnitudes import TINY

FLOWS = 11
"""Flows at which marginal costs are taken where they are curved or shared; elsewhere the least and the greatest flow are enough."""
ASIDE = 0.0137
"""Share of the range by which the first and the last of them are inside of it: off round numbers, at which other entries are often at a
bound, so that mu is not unique."""
AT_BOUND = 1e-6
"""Share of a width, or of the size of the domain, within which an entry is at its bound or at a kink, and a row no slack."""
NEAR, FAR = 0.1, 100.0
"""Lengths, in sizes of the domain, of the steps whose multipliers are taken: from a decision, longer than the distance that means of
decisions keep from a row; and from a point that may be far from the best one.
"""


@lru_cache(maxsize=16)
def tied_known(canonical: Canonical) -> tuple[Inequality, ...]:
    """Known constraints on more than flows into stores (ranges of stores are such) and what is of no use; none unless one ties a store to
    other decisions.
    """
    fills, ends = filling_entries(canonical), np.cumsum([0, *(b.domain.size for b in canonical.blocks)])
    alone = fills | useless_entries(canonical)
    parts = {b.name: slice(i, k) for b, (i, k) in zip(canonical.blocks, pairwise(ends))}
    decided = [(c, names(c.expr, Kind.DECISION)) for c in canonical.known]
    others = [(c, n) for c, n in decided if not all(alone[parts[name]].all() for name in n)]
    return tuple(c for c, _ in others) if any(fills[parts[name]].any() for _, n in others for name in n) else ()


@lru_cache(maxsize=16)
def useless_entries(canonical: Canonical) -> Floats:
    """Mask of the entries of the flattened decisions, (n,), that fill no store and by which neither the loss nor a constraint gains, as
    what is moved from a place to itself: in boxes the best decisions leave them at their least.
    """
    canonical = canonical.unscaled or canonical
    free = [np.full(b.domain.size, b.domain.is_box) for b in canonical.blocks]
    if not canonical.known or canonical.equalities or canonical.moving is not None:
        return np.zeros(sum(f.size for f in free), dtype=bool)
    ranges = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in canonical.blocks}
    ranges |= {s.name: interval(s.lower, s.upper, s.shape) for s in canonical.streams}
    ranges["t"] = interval(1.0, float(canonical.horizon or np.inf), ())
    shapes = {b.name: b.shape for b in canonical.blocks}
    functions = (
        without_outside(canonical).objective,
        *(c.expr for c in (*canonical.inequalities, *canonical.known)),
    )
    slopes = [jacobian(f, shapes) for f in functions]
    least = [
        [np.min(_lower(j[b.name], ranges, b.shape).reshape(-1, b.domain.size), axis=0) for j in slopes]
        for b in canonical.blocks
    ]
    gained = np.concatenate([np.min(own, axis=0) < 0 for own in least])
    return np.asarray(np.concatenate(free) & ~gained & ~filling_entries(canonical))


@lru_cache(maxsize=16)
def shared_known(canonical: Canonical) -> tuple[str, ...]:
    """Labels of the known constraints of which a row is shared by flows into several stores and hangs on no state: a capacity of all of
    them. Those that tie stores to other decisions are none of these.
    """
    states = {s.name for s in canonical.streams if s.uncut is not None}
    own = stores(canonical)
    places = np.concatenate([s.entries for s in own]) if own else np.zeros(0, dtype=np.int64)
    filled, fills = filled_by_flows(own), filling_entries(canonical)
    shapes, tied = {b.name: b.shape for b in canonical.blocks}, {c.origin for c in tied_known(canonical)}

    def shared(row: Floats) -> bool:
        flows = np.isin(places, np.flatnonzero(row & fills))
        return np.unique(places[flows]).size > 1 and np.unique(filled[flows]).size > 1

    return tuple(
        c.origin
        for c in canonical.known
        if c.origin not in tied
        and c.margin is None
        and states.isdisjoint(names(c.expr))
        and any(map(shared, _uses(c.expr, shapes)))
    )


def _uses(expr: Expr, shapes: Mapping[str, tuple[int, ...]]) -> Floats:
    """True where an entry of an expression may hang on an entry of the flattened decisions, (entries, n)."""
    count, parts = math.prod(known(expr.shape)), list[Floats]()
    for name, slopes in jacobian(expr, shapes).items():
        size = math.prod(shapes[name])
        used = np.ones(1, dtype=bool) if names(slopes) else np.asarray(evaluate(slopes, {})) != 0
        parts.append(np.broadcast_to(used, (*known(expr.shape), *shapes[name])).reshape(count, size))
    return np.concatenate(parts, axis=1)


def charged_by_shared(p: Problem, x: Point, slope: Point) -> Point:
    """Charge sum_n mu_n grad g_n of the constraints that flows into several stores share, for a function with this slope at x;
    those with slack charge nothing.
    """
    t, canonical = p.tracer, p.spec.canonical
    at, none = p.units.outward(x).flat(), np.zeros(filling_entries(canonical).size, dtype=bool)
    own = KnownMultipliers(p, canonical.known, x, none)
    slack = own.rows.r - own.rows.C @ at > AT_BOUND * flat_domain(canonical)[1]
    multipliers = own.of_steps(t.reshape(at, (1, at.size)), slope, NEAR)
    charging = t.where(t.reshape(slack, (1, slack.size)), 0.0, multipliers)
    return apart(t, canonical.blocks, own.charged(charging, shared_known(canonical))[0])


def _lower(slopes: Expr, ranges: Mapping[str, Interval], shape: tuple[int, ...]) -> Floats:
    """Least values of slopes towards a decision of this shape, the last axes."""
    low = np.asarray(enclose(slopes, ranges).lo, dtype=np.float64)
    return np.broadcast_to(low, (*known(slopes.shape)[: len(known(slopes.shape)) - len(shape)], *shape))


@lru_cache(maxsize=16)
def filling_entries(canonical: Canonical) -> Floats:
    """Mask of the entries of the flattened decisions that fill a store, (n,)."""
    fills = np.zeros(sum(b.domain.size for b in canonical.blocks), dtype=bool)
    for s in stores(canonical):
        fills[s.entries[s.entries != NO_ENTRY]] = True
    return fills


def charged_at_decision(p: Problem, x: Point, slope: Point) -> Point:
    """Charge sum_n mu_n grad g_n of the constraints that tie stores to other decisions, for a function with this slope at x.

    Flows into stores are held fixed.
    """
    t, tied, still = p.tracer, tied_known(p.spec.canonical), filling_entries(p.spec.canonical)
    own, at = KnownMultipliers(p, tied, x, still), p.units.outward(x).flat()
    return apart(t, p.spec.canonical.blocks, own.charged(own.of_steps(t.reshape(at, (1, at.size)), slope, NEAR))[0])


class SharedFlows:
    """Charges on m flows into stores by the known constraints that they share with other decisions.

    known  these constraints
    rows   number of charges that are learned for each flow: one for each of `FLOWS`, or 0
    """

    def __init__(self, p: Problem, own: Sequence[StoreOfState]) -> None:
        self.t, canonical = p.tracer, p.spec.canonical
        self.known = tied_known(canonical) if own else ()
        self.rows = FLOWS if self.known and not has_curvature(canonical) else 0
        self.has_kinks = bool(self.rows) and has_kinks(canonical)
        self.entries, self.rate, self.least, self.most = (
            np.concatenate([getattr(s, n) for s in own]) if own else np.zeros(0)
            for n in ("entries", "rate", "least", "most")
        )
        filled = filled_by_flows(own)
        self.beside = (filled == filled.reshape(-1, 1)) & ~np.eye(filled.size, dtype=bool)

    def charged(
        self, p: Problem, x: Point, slope: Point, gradient: Callable[[Point], Point]
    ) -> tuple[Value, list[Value]]:
        """Charges mu a_u of a round, (m,), at the flow in the middle, or at the decision x where the loss is curved; and how far the
        charges at each of the `FLOWS` are above that, (m,) each. In units of the rule.

        slope     of the penalised loss at x
        gradient  slope of the loss at a decision
        """
        t, at = self.t, p.units.outward(x).flat()
        m, n = self.entries.size, at.size
        fills = np.arange(n) == self.entries.reshape(-1, 1)
        starts = t.reshape(at, (1, n))
        if self.rows:
            starts = t.reshape(at, (1, 1, n))
            if (beside := (self.beside @ fills > 0) & ~fills).any():  # a battery that charges does not discharge
                none = t.constant(np.clip(0.0, *self._ends(n)), "none", "no flow")
                starts = t.where(t.constant(beside, "beside", "other flows of the store"), none, starts)
            flows = t.constant(self._flows() / self.rate, "flows", "flows at which costs are learned")
            starts = t.where(t.constant(fills, "fills"), t.reshape(flows, (FLOWS, m, 1)), starts)
            starts = t.reshape(starts, (FLOWS * m, n))
        rest = slope - gradient(x) if self.has_kinks else None
        there = None if rest is None else lambda y: gradient(y) + rest
        own = KnownMultipliers(p, self.known, x, fills.any(axis=0))
        charged = own.charged(own.of_steps(starts, slope, FAR if self.rows else NEAR, there))
        if not self.rows:
            return charged[0][t.constant(np.maximum(self.entries, 0), "filling")], []
        by_flow = t.sum(t.reshape(charged, (FLOWS, m, n)) * t.constant(fills.astype(np.float64), "own"), axis=2)
        middle = by_flow[FLOWS // 2]
        return middle, [by_flow[k] - middle for k in range(FLOWS)]

    def above(self, learned: Value, flow: Floats) -> Value:
        """Charges at flows (m, P), above that at the flow in the middle, (m, P): linear between the learned ones, (rows, m), each of which
        counts as no less than those of smaller flows.
        """
        t, m = self.t, self.entries.size
        earlier = t.constant(np.tri(FLOWS) > 0, "earlier", "flows up to each")
        rising = t.where(earlier, t.reshape(t.transpose(learned), (m, 1, FLOWS)), -np.inf)
        rising = t.reshape(t.max(rising, axis=2), (m, 1, FLOWS))
        width = np.maximum(self.most - self.least, TINY).reshape(-1, 1)
        place = (flow - self.least.reshape(-1, 1)) / width * (FLOWS - 1)
        weights = np.maximum(1.0 - abs(place[:, :, None] - np.arange(FLOWS)), 0.0)
        return t.sum(rising * t.constant(weights, "shares", "flows between those that are learned"), axis=2)

    def _ends(self, n: int) -> tuple[Floats, Floats]:
        """Least and greatest values of the n entries of the decisions, (n,) each, that are flows; 0 for other entries."""
        ends, moving = np.zeros((2, n)), self.entries != NO_ENTRY
        flows = np.sort([self.least / self.rate, self.most / self.rate], axis=0)
        ends[:, self.entries[moving].astype(np.int64)] = flows[:, moving]
        return ends[0], ends[1]

    def _flows(self) -> Floats:
        """Flows at which charges are learned, (FLOWS, m)."""
        shares = ASIDE + (1.0 - 2.0 * ASIDE) * np.linspace(0.0, 1.0, FLOWS).reshape(-1, 1)
        return np.asarray(self.least + (self.most - self.least) * shares)
