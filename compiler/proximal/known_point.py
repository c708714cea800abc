"""Nearest point within the known constraints of a round, in the rule's units, from the multipliers of the round before.

X_t is the domain cut by the constraints of round t whose streams are contexts or previous decisions. Where all its rows are affine,
g_t(x) = C x - r with C and r traced values, it is found by Newton's method on the multipliers of the rows (`CutDual`), and where X_t is
empty it is a point of the domain with the least sum of squares of what the rows, of norm one, are broken by. Else it is a penalized step,

    argmin over the domain of |x - y|^2 / 2 + sum_n Q_n [g_n(x)]_+,

whose penalties Q are so large that it breaks the rows only where X_t is empty: then it has the least sum of violations, over rows of slope
one at y, up to |x - y|^2 / Q.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from oco.compiler.domains.affine import in_units
from oco.compiler.domains.base import Domain
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.domains.product import Product
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.structure import Structure
from oco.compiler.problem.sublevel import sublevel_rows
from oco.compiler.proximal.penalty import nearest_step
from oco.dsl.magnitudes import TINY

MET = Tolerance(1e-9)
"""Part of the domain's size by which a row may be missed before the constraints count as impossible."""
GIVE, MOST_REPEATS, AT_REST = 1e-4, 100, Tolerance(1e-11)
"""Weight, number and least length of the proximal steps towards the least violating point."""
LARGE = 1e6
"""Penalty of a row of slope one, in diameters of the domain."""
ABOVE = ".above"
"""Ending of the label of the first of the two inequalities that make an equality."""


def rows_known(canonical: Canonical) -> int:
    """Number of multipliers of the known constraints."""
    rows = known_rows(canonical)
    if _is_affine(rows):
        loose, tight = _parts(rows.inequalities)
        return sum(c.size for c in (*loose, *tight))
    return sum(c.size for c in rows.inequalities)


@lru_cache(maxsize=16)
def known_rows(canonical: Canonical) -> Canonical:
    """Problem whose inequalities are the rows of the known constraints."""
    rows = sublevel_rows(canonical.known, tuple(b.name for b in canonical.blocks))
    return replace(canonical, inequalities=rows, equalities=(), known=())


def _is_affine(rows: Canonical) -> bool:
    return rows.structure[0] is Structure.AFFINE


def nearest_known(p: Problem, y: Point, start: Value) -> tuple[Point, Value]:
    """Point of X_t nearest to y, in the rule's units, and its multipliers; the search begins with the multipliers `start`."""
    rows = known_rows(p.spec.canonical)
    return _nearest_affine(p, rows, y, start) if _is_affine(rows) else _nearest_convex(p, rows, y, start)


def _nearest_convex(p: Problem, rows: Canonical, y: Point, start: Value) -> tuple[Point, Value]:
    """Penalized step under the rows. Multipliers at their bounds are those of no such point: the next search begins without them."""
    t, scales, count = p.tracer, p.spec.scales, sum(c.size for c in rows.inequalities)
    scales = None if scales is None else replace(scales, inequalities=np.ones(count))
    spec = replace(
        p.spec,
        canonical=rows,
        structure=rows.structure[0],
        scales=scales,
        low_rank_layouts=(),
        dependent_rows=frozenset(),
    )
    own = Problem(t, spec, p.seen, p.round, constants=p.constants)
    diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains)) or 1.0
    slopes = t.sqrt(own.constraint_gradients(y).squared_norms())
    most = LARGE * diameter / t.maximum(t.maximum(slopes, abs(own.constraints(y)) / diameter), TINY)
    x, multipliers = nearest_step(own, y, t.name("most", most), start)
    return x, t.where(t.any(multipliers >= 0.5 * most), 0.0, multipliers)


def _nearest_affine(p: Problem, rows: Canonical, y: Point, start: Value) -> tuple[Point, Value]:
    """Point of X_t nearest to y where all rows are affine."""
    t, blocks = p.tracer, p.spec.canonical.blocks
    own = p.units.outward(y)
    domains = [b.domain for b in blocks]
    base: Domain = domains[0] if len(domains) == 1 else Product((sum(d.size for d in domains),), blocks=tuple(domains))
    size = float(base.radius) or 1.0
    C, r, inequalities = _rows(p, rows, y, own)
    v = _flat(t, p.units.outward_of_any(y)) / size
    x, multipliers = _within(t, in_units(base, np.zeros(()), size), C, r / size, inequalities, v, start)
    x = x * size
    parts, before = [], 0
    for d in domains:
        part = d.shaped(t, x[before : before + d.size]) if len(domains) > 1 else d.shaped(t, x)
        parts.append(d.project(t, part) if d.is_box else part)  # a box is met to the last bit
        before += d.size
    return p.units.inward(Point(tuple(parts))), multipliers


def _within(
    t: Tracer, base: Domain, C: Value, r: Value, inequalities: int, v: Value, start: Value
) -> tuple[Value, Value]:
    """Point of { x in base : C x <= r } nearest to v, or where there is none the least violating one, and its multipliers.

    Proximal steps on half the sum of squares of what is broken (Rockafellar, SIAM J. Control Optim. 14, 1976), each as a projection with
    rows that give way, end in a point that breaks the rows least.
    """
    exact, giving = CutDual(t, base, C, r, inequalities), CutDual(t, base, C, r, inequalities, GIVE)
    multipliers, x = exact.solve(v, start)
    over = C @ x - r
    missed = t.max(t.where(exact.free, t.abs(over), over)) > MET

    def on_the_way(x: Value, moved: Value, count: Value) -> Value:
        return t.and_(moved > AT_REST, count < MOST_REPEATS)

    def towards(x: Value, moved: Value, count: Value) -> tuple[Value, Value, Value]:
        nearer = giving.solve(x, giving.none)[1]
        return nearer, t.max(t.abs(nearer - x)), count + 1

    x, *_ = t.while_(on_the_way, towards, (t.where(missed, v, x), t.where(missed, 1.0, 0.0), t.lift(0)))
    return x, t.where(missed, 0.0, multipliers)


def _rows(p: Problem, rows: Canonical, y: Point, own: Point) -> tuple[Value, Value, int]:
    """C (m, n) with rows of norm one and r (m,) of the known constraints in the user's units, inequalities first, and their number."""
    t, (loose, tight) = p.tracer, _parts(rows.inequalities)
    exprs = [c.expr for c in (*loose, *tight)]
    blocks = p.slopes_of(exprs, y).blocks
    flat = [t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in blocks]
    C = flat[0] if len(flat) == 1 else t.concat(*flat, axis=1)
    r = C @ _flat(t, own) - p.values(exprs, y)
    norms = t.sqrt(t.sum(C * C, axis=1))
    norms = t.where(norms > 0.0, norms, 1.0)
    return C / t.reshape(norms, (C.shape[0], 1)), r / norms, sum(c.size for c in loose)


def _parts(known: tuple[Inequality, ...]) -> tuple[list[Inequality], list[Inequality]]:
    """Inequalities, and one of the two that make an equality."""
    above = [c for c in known if c.label == f"{c.origin}{ABOVE}"]
    return [c for c in known if c.label == c.origin], above


def _flat(t: Tracer, x: Point) -> Value:
    parts = [t.reshape(b, (b.size,)) for b in x.blocks]
    return parts[0] if len(parts) == 1 else t.concat(*parts)
