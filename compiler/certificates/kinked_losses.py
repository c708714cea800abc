"""Losses that are kinked in single entries of the decisions, summed over the rounds by where their kinks are.

A loss f_t(u) = r_t(u) + sum_i w_it max(s_i u_i + b_it, 0), with weights w_it >= 0 and slopes s_i that are the same in all rounds, has kinks
at -b_it / s_i: those of an order are where demand is. Slopes that change with the round and keep their sign are made 1 or -1: their sizes
are factors of the weights. Of each entry and each of `BUCKETS` parts of its range the sums W of w_it and B of w_it b_it are kept, over the
rounds whose kinks are in that part. By Jensen's inequality, whatever part a round is counted in,

    sum_t w_it max(s_i u_i + b_it, 0) >= max(W s_i u_i + B, 0) >= lambda (W s_i u_i + B)    for lambda in [0, 1],

with equality in the first for all parts that u_i is not in. lambda is 1 where W s_i y_i + B > 0 and 0 where it is < 0, but within half a
part of the kink it rises evenly between them, so that the slope of the bound changes steadily with the point y of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.kinked_functions import kinks_named
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import is_affine
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS
from oco.dsl import algebra
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
BUCKETS = 32
"""Parts of the range of an entry: rounds whose kinks are in the part of the decision are summed as if they were one."""
PARTS = BUCKETS + 2
"""Parts within the range, and one on either side for kinks beyond it, which are exact."""
MOST_PARTS = 1024
"""Parts of all entries up to which kinks are summed: each is two numbers of the state."""


@dataclass(frozen=True, eq=False)
class KinkedTerm:
    """sum_i weight_i max(argument_i, 0) of one decision: `argument` has the slopes `slope` (d,) towards its own entries.

    columns  places of its entries among those of all decisions; lower, width: the range of each entry and of one of its parts, (d,)
    """

    argument: Expr
    weight: Expr
    slope: Floats
    columns: Floats
    lower: Floats
    width: Floats


def without_kinks(problem: Canonical) -> tuple[Canonical, tuple[KinkedTerm, ...]]:
    """Problem whose loss is without its kinks, and these; the problem as it is where it has none that can be summed."""
    functions = kinks_named([problem.objective], [b.name for b in problem.blocks])
    kinks = [] if functions is None else [k for own in functions.blocks for k in own]
    if functions is None or not kinks or PARTS * sum(_size(k.name) for k in kinks) > MOST_PARTS:
        return problem, ()
    setting, named, terms, start = ProofContext(problem), functions.affine[0], list[KinkedTerm](), 0
    for block, own in zip(problem.blocks, functions.blocks, strict=True):
        size = block.domain.size
        low, high = (np.broadcast_to(v, block.shape).ravel() for v in (block.domain.lower, block.domain.upper))
        for kink in own:
            weight = algebra.broadcast(gradient(named, [kink.name.name])[kink.name.name], block.shape)
            if names(weight, Kind.DECISION) or not setting.ranges(weight).nonnegative:
                return problem, ()
            unit = _unit_slopes(setting, kink.slope)
            if unit is None:
                return problem, ()
            factor, slope = unit[0], np.broadcast_to(unit[1], block.shape).ravel()
            argument = kink.argument if factor is None else algebra.div(kink.argument, factor)
            weight = weight if factor is None else algebra.mul(weight, factor)
            width = np.where(high > low, high - low, 1.0) / BUCKETS
            terms.append(KinkedTerm(argument, weight, slope, np.arange(start, start + size), low, width))
        start += size
    zeros = {k.name.name: algebra.broadcast(algebra.number(0), k.name.shape) for k in kinks}
    rest = rewrite(named, lambda n: zeros.get(n.name, n) if isinstance(n, Name) else n)
    if not is_affine(rest, tuple(b.name for b in problem.blocks)) and setting.composition(rest) not in CONVEX_KINDS:
        return problem, ()
    return replace(problem, objective=rest), tuple(terms)


def _unit_slopes(setting: ProofContext, slope: Expr) -> tuple[Expr | None, Floats] | None:
    """Slopes of kinks as they are where they are the same in all rounds; else their sizes, and signs that are. None where these change."""
    if not any(names(slope, k) for k in Kind):
        own = np.asarray(evaluate(slope, {}), dtype=np.float64)
        return (None, own) if own.all() else None
    lies = setting.ranges(slope)
    if names(slope, Kind.DECISION) or not ((lies.lo > 0) | (lies.hi < 0)).all():
        return None
    signs = np.where(lies.lo > 0, 1.0, -1.0)
    return algebra.mul(constant(signs), slope), signs


def _size(name: Name) -> int:
    return int(np.prod([n for n in name.shape if isinstance(n, int)], dtype=np.int64))


@dataclass(frozen=True, eq=False)
class KinkedSums:
    """Sums of the kinks of all terms, a row for each of their n entries and a column for each part of its range."""

    t: Tracer
    terms: Sequence[KinkedTerm]
    bounds: Value

    @cached_property
    def columns(self) -> Floats:
        """Place of the entry of each row among those of the decisions, (n,)."""
        return np.concatenate([k.columns for k in self.terms])

    def _rows(self, parts: Sequence[Floats], name: str, why: str) -> Value:
        return self.t.constant(np.concatenate(parts), name, why)

    @cached_property
    def slope(self) -> Value:
        """Slope of each row, (n,)."""
        return self._rows([k.slope for k in self.terms], "kink_slope", "slopes of the arguments of kinks")

    @cached_property
    def width(self) -> Value:
        """Length of a part of the range of each row, (n,)."""
        return self._rows([k.width for k in self.terms], "part_width", "lengths of the parts of ranges")

    def of_round(self, p: Problem, x: Point, v: Value) -> tuple[Value, Value]:
        """Weights, weighted offsets and places of the kinks of a round, (3, n), and the terms' magnitude."""
        t, slope = self.t, self.slope
        z, w = p.values([k.argument for k in self.terms], x), p.values([k.weight for k in self.terms], x)
        b = z - slope * v[self.columns]
        low = self._rows([k.lower for k in self.terms], "range_lower", "lower ends of ranges")
        place = t.minimum(t.maximum(t.floor((-b / slope - low) / self.width) + 1.0, 0.0), float(PARTS - 1))
        return t.stack(w, w * b, place), w @ (abs(b) + abs(slope) * self.bounds[self.columns])

    def added(self, table: Value, kinks: Value) -> Value:
        """Sums of weights and of weighted offsets, (2, n, PARTS), with those of a round."""
        t, row, part = self.t, self.t.iota(len(self.columns)), self.t.to_int(kinks[2])
        for k in range(2):
            table = t.put(table, t.gather(table, k, row, part) + kinks[k], k, row, part)
        return table

    def added_many(self, table: Value, kinks: Value, places: Value) -> Value:
        """Sums with those of R rounds, whose weights and weighted offsets are `kinks` (2, n, R), in the parts `places` (n, R)."""
        t, (count, rounds) = self.t, places.shape
        first = t.reshape(t.iota(count) * PARTS, (count, 1))
        cells = t.reshape(t.to_int(places) + first, (count * rounds,))
        own = [t.scatter_add(t.reshape(kinks[k], (count * rounds,)), cells, shape=(count * PARTS,)) for k in range(2)]
        return table + t.reshape(t.stack(*own), (2, count, PARTS))

    def at(self, W: Value, B: Value, y: Value) -> tuple[Value, Value]:
        """Lower bound at y of the sum of all kinks, and its slope (d,): of one affine function that is below the sum everywhere."""
        t, rows, slope = self.t, len(self.columns), self.slope
        z = W * t.reshape(slope * y[self.columns], (rows, 1)) + B
        zone = t.reshape(abs(slope) * self.width, (rows, 1))
        share = t.minimum(t.maximum(0.5 + z / t.maximum(W * zone, TINY), 0.0), 1.0)
        own = t.sum(share * W, axis=1) * slope
        return t.sum(share * z), t.scatter_add(own, t.lift(self.columns), shape=y.shape)

    def most(self, W: Value, B: Value) -> Value:
        """Upper bound of the sum of all kinks over the domain."""
        return self.t.sum(W, axis=1) @ (abs(self.slope) * self.bounds[self.columns]) + self.t.sum(abs(B))

    def curvature(self, W: Value) -> Value:
        """Upper bound of what the slope of an entry changes by along it: of two parts of each row at once."""
        rows = 2.0 * self.t.max(W[:, 1:-1], axis=1) * abs(self.slope) / self.width
        return self.t.max(self.t.scatter_add(rows, self.t.lift(self.columns), shape=self.bounds.shape))
