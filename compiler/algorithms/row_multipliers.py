"""Multipliers of the affine rows that cut domains, as a decision shows them: what a unit of what entries share is worth.

Known constraints that flows into several stores share are such rows, too: their multipliers are those of a step (`shared_flows`).

At a minimizer of a function with the slope g over the points of a box with <a, x> <= b, entries between their bounds have g_i + mu a_i = 0
with one mu (Karush-Kuhn-Tucker), at least 0, and 0 where the row is slack; <a, x> = b has a mu of either sign. At a decision that is near
to it, mu is the regression of -g on a over these entries, of all where none is between its bounds; those with no finite slope do not count.
Where an entry is at a kink every slope between those of its two sides is one of the function's there: the one in the middle counts.
"""

from __future__ import annotations

from collections.abc import Callable

from oco.compiler.algorithms.shared_flows import (
    AT_BOUND,
    charged_at_decision,
    charged_by_shared,
    shared_known,
    tied_known,
)
from oco.compiler.domains.base import Domain
from oco.compiler.domains.properties import AffineRow
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.dsl.magnitudes import TINY

FINITE = 1e100
"""Slopes beyond are those of values without a bound, 1e300 times the share of a cell in which they are, and no prices."""


def has_rows(p: Problem) -> bool:
    """True where an affine row cuts one of the domains, or flows into several stores share a known constraint."""
    return any(d.row is not None for d in p.domain.domains) or bool(shared_known(p.spec.canonical))


def charged_for_rows(p: Problem, x: Point, slope: Callable[[Point], Point]) -> Point:
    """mu a of the rows, at a decision, of a function with these slopes; of known constraints those that flows into stores share."""
    middle = 0.5 * (slope(_beside(p, x, -AT_BOUND)) + slope(_beside(p, x, AT_BOUND)))
    if tied_known(p.spec.canonical):
        middle = middle + charged_at_decision(p, x, middle)
    p.note("multipliers of the rows that cut the domain")
    parts = zip(p.domain.domains, x.blocks, middle.blocks, strict=True)
    charged = Point(tuple(g * 0.0 if d.row is None else _charged(p.tracer, d, d.row, v, g) for d, v, g in parts))
    return charged + charged_by_shared(p, x, middle) if shared_known(p.spec.canonical) else charged


def _beside(p: Problem, x: Point, share: float) -> Point:
    """Point x with entries in cut domains, or all where flows share a constraint, moved by this share of their widths, within bounds."""
    t, every, blocks = p.tracer, bool(shared_known(p.spec.canonical)), list[Value]()
    for d, v in zip(p.domain.domains, x.blocks, strict=True):
        if d.row is not None or every:
            lower, upper = t.constant(d.lower, "least"), t.constant(d.upper, "greatest")
            v = t.minimum(t.maximum(v + share * (upper - lower), lower), upper)
        blocks.append(v)
    return Point(tuple(blocks))


def _charged(t: Tracer, domain: Domain, row: AffineRow, x: Value, slope: Value) -> Value:
    lower, upper = t.constant(domain.lower, "least"), t.constant(domain.upper, "greatest")
    a, edge = t.constant(row.weights, "a"), AT_BOUND * (upper - lower)
    finite = abs(slope) < FINITE  # a unit below a lower end that constraints keep has any value
    between = t.to_float(t.and_(finite, t.and_(x > lower + edge, x < upper - edge)))
    counts = t.where(t.sum(between) > 0.0, between, t.to_float(finite))
    mu = -t.sum(counts * a * slope) / t.maximum(t.sum(counts * a * a), TINY)
    if not row.equal:
        slack = row.total - t.sum(a * x) > t.sum(abs(a) * edge)
        mu = t.where(slack, 0.0, t.maximum(mu, 0.0))
    return t.name("mu", mu) * a
