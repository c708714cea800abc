"""Context that all derivations about one model share: the box of all names, and ranges and curvatures over it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.compiler.prover.curvature.composition import Curvatures
from oco.compiler.prover.curvature.hessian import Hessians
from oco.compiler.prover.curvature.second_order import by_second_derivative
from oco.compiler.prover.ranges.enclosure import Box, Enclosure, entries
from oco.compiler.prover.ranges.refine import Refiner
from oco.compiler.prover.search_budget import USUAL, SearchBudget
from oco.compiler.prover.suprema.bounds import Bounds
from oco.compiler.prover.terms.rewriting import Simplifier
from oco.dsl.expressions import Expr, Kind, Name, walk
from oco.dsl.intervals import Interval, interval

SHARE, ATTAINED = 3 / 5, 1 / 15
"""Shares of the steps of a budget: for curvature and constants, and for values that show constants to be tight; the rest is
for feasibility."""


class ProofContext:
    """The names of a model with their ranges: decisions by the hull of their domain, streams by what they may reveal, the round.

    budget  what all searches about the model may take; those for curvature and constants take from `search`, those that
            show constants to be tight from `attaining`
    """

    def __init__(self, canonical: Canonical, budget: SearchBudget = USUAL) -> None:
        self.canonical, self.budget = canonical, budget
        self.search, self.attaining = budget.allowance(SHARE), budget.allowance(ATTAINED)
        self.blocks: dict[str, DecisionBlock] = {b.name: b for b in canonical.blocks}
        self.decisions = frozenset(self.blocks)
        self.streams = {s.name: s for s in canonical.streams}
        self._depends: dict[int, tuple[Expr, bool]] = {}
        self.variables = {b.name: Name(b.name, Kind.DECISION, shape=b.shape) for b in canonical.blocks}

    @cached_property
    def box(self) -> Box:
        """Range of each name, at its shape: decisions, streams, and the round `t`."""
        last = self.canonical.horizon or np.inf
        ranges = {b.name: entries(b.domain.lower, b.domain.upper, b.shape) for b in self.canonical.blocks}
        ranges |= {s.name: entries(s.lower, s.upper, s.shape) for s in self.canonical.streams}
        return ranges | {"t": interval(1.0, float(last), ())}

    @cached_property
    def ranges(self) -> Enclosure:
        """Enclosures of expressions over `box`."""
        return Enclosure(self.box, self.refiner)

    @cached_property
    def refiner(self) -> Refiner:
        """Search for tighter ranges."""
        return Refiner(self)

    @cached_property
    def composition(self) -> Curvatures:
        """Curvature in the decisions by composition alone."""
        return Curvatures(self.ranges, self.decisions)

    @cached_property
    def curvatures(self) -> Curvatures:
        """Curvature in the decisions, by second derivatives where composition says nothing: for what the user wrote."""
        return Curvatures(self.ranges, self.decisions, lambda node: by_second_derivative(self, node))

    @cached_property
    def joint(self) -> Curvatures:
        """Curvature in decisions and streams together."""
        return Curvatures(self.ranges, self.decisions | frozenset(self.streams) | {"t"})

    @cached_property
    def hessians(self) -> Hessians:
        """Enclosures of second derivatives."""
        return Hessians(self)

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of gradients and values in norms."""
        return Bounds(self)

    @cached_property
    def simplify(self) -> Simplifier:
        """Simplification of expressions that keeps their values on `box`."""
        return Simplifier(self.depends, self.plain_range)

    @cached_property
    def simplify_anywhere(self) -> Simplifier:
        """Simplification that also holds for decisions outside of the domain, and streams outside of their ranges."""
        return Simplifier(self.depends, lambda _: None)

    @cached_property
    def _plain(self) -> Enclosure:
        return Enclosure(self.box)

    def plain_range(self, expr: Expr) -> Interval | None:
        """Range by intervals alone; None where a name stands in it that has none, as streams of another round."""
        try:
            return self._plain(expr)
        except KeyError:
            return None

    def depends(self, expr: Expr) -> bool:
        """True if a decision occurs in the expression."""
        for node in walk(expr, self._depends):
            own = isinstance(node, Name) and node.kind is Kind.DECISION
            self._depends[id(node)] = (node, own or any(self._depends[id(c)][1] for c in node.children))
        return self._depends[id(expr)][1]
