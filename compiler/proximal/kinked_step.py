"""The penalized step under constraints with kinks, by proximal points of their epigraph (see `epigraph`).

The lifted problem over (x, levels) has smooth constraints, and with alpha |levels|^2 added its step is the one of `penalty`. Since a node's
value at the last decision is where its levels count from, that is a proximal point method (Rockafellar, SIAM J. Control Optim. 14, 1976):

    (x, r) = argmin <c, x - y> + alpha |x - y|^2 + alpha |r|^2 + penalties,    z = node(last x) + steepness r.

It is optimal for the model without |r|^2 where r = 0. With kappa = sqrt(K) / STEEP, by the 2 alpha-strong convexity in x,

    |x - x*| <= kappa |r| + sqrt(sum_k |r_k| |r_k - r_k(x)|),    r(x) the levels at which z is the value of the nodes at x,

which ends the search below TOLERANCE of the domain's diameter. As levels are so steep that a move of x changes them by no more than
1 / STEEP of it, kappa is small, and the error falls by kappa^2 a step or faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem, TraceSpec
from oco.compiler.prover.epigraph import BASES, STEEPNESS, Epigraph, Floats

TOLERANCE = Tolerance(1e-12)
"""Error of the decision, as a share of the domain's diameter, at which the search ends."""
ROUNDING = Tolerance(1e-9)
"""Below this share an error that is not halved is one of rounding."""
MAX_STEPS = 60  # steps after which it ends with the point that it has

Solve = Callable[[Problem, Point, Point, Value, Value, Value], tuple[Value, Point]]
"""The multipliers and the minimizer of a smooth step: from the lifted problem, y, c, alpha, the penalties, first multipliers."""


def steep(levels: int) -> float:
    """By how much a level is steeper than its node: kappa = sqrt(K) / STEEP is at most 1/8."""
    return max(4.0, 3.0 * math.sqrt(levels))


class KinkedStep:
    """One step: y, c, alpha as in `penalty`; `weights` of the constraints are upper bounds of their multipliers, or the multipliers."""

    def __init__(self, p: Problem, epigraph: Epigraph, y: Point, c: Point, alpha: Value, solve: Solve) -> None:
        self.p, self.t, self.y, self.c, self.alpha, self.solve = p, p.tracer, y, c, alpha, solve
        self.epigraph = epigraph
        self.spec, units = _lifted(p.spec, self.epigraph)
        self.count = p.constraint_count
        self.diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains))
        K, owner = self.epigraph.levels, self.epigraph.owner
        radius = p.units.radius
        self.above = np.asarray(owner[:, None] == np.arange(K))
        """Incidence of levels and rows: 1 where a level stands above a row, shape (P, K)."""
        self.own = radius / units
        """The slope of each row towards its own level of steepness 1, without its sign, shape (P,)."""
        self.second_derivatives = self.epigraph.second_derivatives * radius * radius * self.diameter / units

    def run(self, weights: Value, first: Value) -> Point:
        """Point of the step, from weights (N,) and first multipliers."""
        t, K, n = self.t, self.epigraph.levels, len(self.y.blocks)
        x = self.p.domain.project(self.y - self.c / (2.0 * self.alpha))
        bases = t.name("bases", self.p.values(self.epigraph.nodes, x))
        rows = self.lifted(bases, t.ones((K,))).constraint_gradients(_with(x, t.zeros((K,))))
        towards = rows.blocks[-1]
        inner = t.name("inner", towards[self.count :] + self._constant(self.above * self.own[:, None], "above"))
        steepness = t.name("steepness", self.slopes(rows, inner) * steep(K))
        caps = t.concat(weights, t.name("caps", self.caps(weights, towards[: self.count], inner)))

        def not_converged(*state: Value) -> Value:
            error, last, count = state[-3:]
            falls = t.or_(error <= 0.5 * last, last > ROUNDING * self.diameter)
            return t.and_(t.and_(error > TOLERANCE * self.diameter, falls), count < MAX_STEPS)

        def nearer(*state: Value) -> tuple[Value, ...]:
            bases, multipliers, error, count = state[n], state[n + 1], state[-3], state[-1]
            y, c = _with(self.y, t.zeros((K,))), _with(self.c, t.zeros((K,)))
            result = self.solve(self.lifted(bases, steepness), y, c, self.alpha, caps, multipliers)
            x, r = Point(result[1].blocks[:-1]), result[1].blocks[-1]
            values = t.name("bases", self.p.values(self.epigraph.nodes, x))
            return (*x.blocks, values, result[0], self.error(r, values - bases, steepness), error, count + 1)

        begin = (*x.blocks, bases, first, t.lift(math.inf), t.lift(math.inf), t.lift(0))
        return Point(t.while_(not_converged, nearer, begin)[:n])

    def lifted(self, bases: Value, steepness: Value) -> Problem:
        """Problem of the round over the decisions and the levels, about these bases."""
        return Problem(self.t, self.spec, {**self.p.seen, BASES: bases, STEEPNESS: steepness}, self.p.round)

    def slopes(self, rows: Rows, inner: Value) -> Value:
        """Bounds on the change of each node with the decision, from the inside out."""
        t = self.t
        norms = t.sqrt(Rows(tuple(b[self.count :] for b in rows.blocks[:-1])).squared_norms())
        if self.epigraph.second_derivatives.any():
            norms = norms + self._constant(self.second_derivatives, "bends")
        own, above = self._constant(self.own, "own"), self._constant(self.above, "above")
        result = t.zeros((self.epigraph.levels,))
        for _ in range(self.epigraph.depth):
            each = (norms + inner @ result) / own
            result = t.max(t.where(above, t.reshape(each, (each.size, 1)), 0.0), axis=0)
        return result

    def caps(self, weights: Value, outer: Value, inner: Value) -> Value:
        """Twice what the multiplier of each row is at most: what its node weighs; from the outside in."""
        own, owner = self._constant(self.own, "own"), self._constant(self.epigraph.owner, "owner")
        given = weights @ outer
        result = given
        for _ in range(self.epigraph.depth - 1):
            result = given + (self.t.gather(result, owner) / own) @ inner
        return 2.0 * self.t.gather(result, owner) / own

    def error(self, r: Value, changes: Value, steepness: Value) -> Value:
        """The bound of |x - x*|, from the levels and from how far the nodes' values are from their bases."""
        t, K = self.t, self.epigraph.levels
        moves = t.where(steepness > 0.0, changes / (t.where(steepness > 0.0, steepness, 1.0) * self.p.units.radius), r)
        kappa = math.sqrt(K) / steep(K)
        return t.name("error", kappa * t.sqrt(t.sum(r * r)) + t.sqrt(t.sum(abs(r) * abs(r - moves))))

    def _constant(self, array: Floats, name: str) -> Value:
        return self.t.constant(array, name, "of the kinks")


def _with(x: Point, levels: Value) -> Point:
    return Point((*x.blocks, levels))


def _lifted(spec: TraceSpec, result: Epigraph) -> tuple[TraceSpec, Floats]:
    """Specification of the lifted problem, and the units of its rows: each has that of the constraint that it comes from."""
    count = sum(c.size for c in spec.canonical.inequalities)
    units, scales = np.ones(len(result.owner)), spec.scales
    if scales is not None:
        own = {c.origin: scales.inequalities[k] for k, c in zip(_starts(spec), spec.canonical.inequalities)}
        rows = result.canonical.inequalities[len(spec.canonical.inequalities) :]
        units = np.concatenate([np.full(c.size, own[c.origin]) for c in rows])
        scales = replace(
            scales,
            origins=(*scales.origins, np.zeros(())),
            inequalities=np.concatenate([scales.inequalities[:count], units]),
        )
    structure, _ = result.canonical.structure
    return replace(spec, canonical=result.canonical, structure=structure, scales=scales, low_rank_layouts=()), units


def _starts(spec: TraceSpec) -> list[int]:
    """Index where the entries of each constraint begin."""
    return [int(k) for k in np.cumsum([0, *(c.size for c in spec.canonical.inequalities)])[:-1]]
