"""Costs of filling a store through constraints that it shares with other decisions: under `buy - charge >= load` what is charged is bought.

A round costs J(u) = min_y { f(u, y) : the known constraints hold } at a flow u into a store, where y are all other entries of the
decisions; flows into other stores stay as they were. J is convex with the slope f_u + mu a_u, where mu are the multipliers of the
constraints' rows and a_u the factors of u in them (Rockafellar, Convex Analysis, 1970, Theorem 29.1). In the example mu a_u is 0 while the
flow out of the store serves the load, and the price of what is bought beyond. Where f is piecewise linear, mu is that of the best y at
each of `FLOWS` flows: the charge at the flow in the middle is learned, and for each flow how far its charge is above that. Where f is
curved, mu is that at the decision, near which f is as good as linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import filled_by_flows, has_curvature, has_kinks, stores
from oco.compiler.proximal.known_multipliers import KnownMultipliers
from oco.compiler.proximal.known_point import apart
from oco.dsl.expressions import Kind, names
from oco.dsl.magnitudes import TINY

FLOWS = 11
"""Flows at which marginal costs are taken where they are curved or shared; elsewhere the least and the greatest flow are enough."""
ASIDE = 0.0137
"""Share of the range by which the first and the last of them are inside of it: off round numbers, at which other entries are often at a
bound, so that mu is not unique."""
NEAR, FAR = 0.1, 100.0
"""Lengths, in sizes of the domain, of the steps whose multipliers are taken: from a decision, longer than the distance that means of
decisions keep from a row; and from a point that may be far from the best one.
"""


@lru_cache(maxsize=16)
def tied_known(canonical: Canonical) -> tuple[Inequality, ...]:
    """Known constraints on more than flows into stores (ranges of stores are such); none unless one ties a store to other decisions."""
    fills, ends = filling_entries(canonical), np.cumsum([0, *(b.domain.size for b in canonical.blocks)])
    own = {b.name: fills[i:k] for b, (i, k) in zip(canonical.blocks, pairwise(ends))}
    decided = [(c, names(c.expr, Kind.DECISION)) for c in canonical.known]
    others = [(c, n) for c, n in decided if not all(own[name].all() for name in n)]
    return tuple(c for c, _ in others) if any(own[name].any() for _, n in others for name in n) else ()


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
