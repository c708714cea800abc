"""Nearest point within the known constraints of a round, in the rule's units, from the multipliers of the round before.

X_t is the domain cut by the constraints of round t whose streams are contexts or previous decisions. Where all its rows are affine,
g_t(x) = C x - r with C and r traced values, it is found by Newton's method on the multipliers of the rows (`CutDual`), and where X_t is
empty it is a point of the domain with the least sum of squares of what the rows, of norm one, are broken by. Else it is a penalized step,

    argmin over the domain of |x - y|^2 / 2 + sum_n Q_n [g_n(x)]_+,

whose penalties Q are so large that it breaks the rows only where X_t is empty: then it has the least sum of violations, over rows of slope
one at y, up to |x - y|^2 / Q.

The domain comes first, then the rows that hold in each round, then those of shares of the rounds with their margins (`yields`): among
the points that break the rows before them least, those that break these least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from oco.compiler.domains.affine import in_units
from oco.compiler.domains.base import Domain
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.product import Product
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, DecisionBlock, Inequality
from oco.compiler.problem.structure import Structure
from oco.compiler.problem.sublevel import sublevel_rows
from oco.compiler.proximal.penalty import nearest_step
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

MET = Tolerance(1e-9)
"""Part of the domain's size by which a row may be missed before the constraints count as impossible."""
GIVE, MOST_REPEATS, AT_REST = 1e-4, 100, Tolerance(1e-11)
"""Weight, number and least length of the proximal steps towards the least violating point."""
LARGE = 1e6
"""Penalty of a row of slope one, in diameters of the domain."""
YIELDING = 1e-3
"""Part of the penalty of other rows that a row which yields to them has; no row gives way to it at an angle of more than this."""
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


def yields(c: Inequality) -> bool:
    """True for a constraint that gives way where no decision satisfies it and the others: one in a share of the rounds."""
    return c.margin is not None


def _is_affine(rows: Canonical) -> bool:
    return rows.structure[0] is Structure.AFFINE


def order_of_penalties(rows: Sequence[Inequality]) -> Floats:
    """Factors of the penalties of the entries of rows, so that those that yield give way to the others."""
    return np.concatenate([np.full(c.size, YIELDING if yields(c) else 1.0) for c in rows])


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
    order = order_of_penalties(rows.inequalities)
    most = LARGE * diameter * order / t.maximum(t.maximum(slopes, abs(own.constraints(y)) / diameter), TINY)
    x, multipliers = nearest_step(own, y, t.name("most", most), start)
    return x, t.where(t.any(multipliers >= 0.5 * most), 0.0, multipliers)


def _nearest_affine(p: Problem, rows: Canonical, y: Point, start: Value) -> tuple[Point, Value]:
    """Point of X_t nearest to y where all rows are affine."""
    t, (base, size), blocks = p.tracer, flat_domain(p.spec.canonical), p.spec.canonical.blocks
    cut = rows_at(p, rows, y, p.units.outward(y)).over(size)
    x, multipliers = _within(t, base, cut, p.units.outward_of_any(y).flat() / size, start)
    parts = zip((b.domain for b in blocks), apart(t, blocks, x * size).blocks, strict=True)
    met = Point(tuple(d.project(t, x) if d.is_box else x for d, x in parts))  # a box is met to the last bit
    return p.units.inward(met), multipliers


def flat_domain(canonical: Canonical) -> tuple[Domain, float]:
    """Domain of the flattened decisions in units of its size, and the size."""
    domains = tuple(b.domain for b in canonical.blocks)
    base: Domain = domains[0] if len(domains) == 1 else Product((sum(d.size for d in domains),), blocks=domains)
    size = float(base.radius) or 1.0
    return in_units(base, np.zeros(()), size), size


def apart(t: Tracer, blocks: Sequence[DecisionBlock], x: Value) -> Point:
    """Flattened decisions block by block."""
    ends = np.cumsum([0, *(b.domain.size for b in blocks)])
    parts = [x[int(a) : int(e)] for a, e in pairwise(ends)] if len(blocks) > 1 else [x]
    return Point(tuple(b.domain.shaped(t, part) for b, part in zip(blocks, parts, strict=True)))


@dataclass(frozen=True)
class _Rows:
    """Rows C x <= r, C (m, n) of norm one and r (m,): first those that yield, then other inequalities, then equalities."""

    C: Value
    r: Value
    yielding: int
    inequalities: int

    def over(self, size: float) -> _Rows:
        """Rows on x / size."""
        return replace(self, r=self.r / size)

    @property
    def firm(self) -> _Rows:
        """Rows that do not yield."""
        k = self.yielding
        return _Rows(self.C[k:], self.r[k:], 0, self.inequalities - k)

    def met_at(self, t: Tracer, x: Value) -> _Rows:
        """Rows, those that do not yield as far as x meets them."""
        k = self.yielding
        reached = self.C[k:] @ x
        equal = t.lift(np.arange(self.r.size - k) >= self.inequalities - k)
        r = t.where(equal, reached, t.maximum(self.r[k:], reached))
        return replace(self, r=t.concat(self.r[:k], r))

    def dual(self, t: Tracer, base: Domain, give: float | Floats = 0.0) -> CutDual:
        """Projection on the domain cut by the rows, of which those that `give` may be broken."""
        return CutDual(t, base, self.C, self.r, self.inequalities, give)


def _within(t: Tracer, base: Domain, rows: _Rows, v: Value, start: Value) -> tuple[Value, Value]:
    """Point of the domain cut by the rows nearest to v, or where there is none the least violating one, and its multipliers.

    Where some rows yield, the point that violates the others least says how far these can be met, and they are met as far.
    """
    exact = rows.dual(t, base)
    multipliers, x = exact.solve(v, start)
    over = rows.C @ x - rows.r
    missed = t.max(t.where(exact.free, t.abs(over), over)) > MET
    first, give = t.where(missed, v, x), np.full(rows.r.size, GIVE)
    left = t.where(missed, 0.0, multipliers)
    if not 0 < rows.yielding < rows.r.size:
        return _least_violating(t, rows.dual(t, base, give), first, missed), left
    rows = rows.met_at(t, _least_violating(t, rows.firm.dual(t, base, GIVE), first, missed))
    give[rows.yielding :] = 0.0
    nearest, firm = _least_violating(t, rows.dual(t, base, give), first, missed), rows.firm.dual(t, base)
    return t.where(missed, firm.solve(nearest, firm.none)[1], nearest), left


def _least_violating(t: Tracer, giving: CutDual, v: Value, missed: Value) -> Value:
    """Point that breaks the rows that give way least, reached from v; v itself where none was missed.

    Proximal steps on half the sum of squares of what is broken (Rockafellar, SIAM J. Control Optim. 14, 1976), each as a projection with
    rows that give way, end in such a point.
    """

    def on_the_way(x: Value, moved: Value, count: Value) -> Value:
        return t.and_(moved > AT_REST, count < MOST_REPEATS)

    def towards(x: Value, moved: Value, count: Value) -> tuple[Value, Value, Value]:
        nearer = giving.solve(x, giving.none)[1]
        return nearer, t.max(t.abs(nearer - x)), count + 1

    return t.while_(on_the_way, towards, (v, t.where(missed, 1.0, 0.0), t.lift(0)))[0]


def rows_at(p: Problem, rows: Canonical, y: Point, own: Point) -> _Rows:
    """Rows of the known constraints in the user's units."""
    t, (loose, tight) = p.tracer, _parts(rows.inequalities)
    exprs = [c.expr for c in (*loose, *tight)]
    blocks = p.slopes_of(exprs, y).blocks
    flat = [t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in blocks]
    C = flat[0] if len(flat) == 1 else t.concat(*flat, axis=1)
    r = C @ own.flat() - p.values(exprs, y)
    norms = t.sqrt(t.sum(C * C, axis=1))
    norms = t.where(norms > 0.0, norms, 1.0)
    sizes = (sum(c.size for c in part) for part in (filter(yields, loose), loose))
    return _Rows(C / t.reshape(norms, (C.shape[0], 1)), r / norms, *sizes)


def origins_of(rows: Canonical) -> tuple[str, ...]:
    """Label of the constraint that each of the rows of `rows_at` comes from, in their order."""
    loose, tight = _parts(rows.inequalities)
    return tuple(c.origin for c in (*loose, *tight) for _ in range(c.size))


def _parts(known: tuple[Inequality, ...]) -> tuple[list[Inequality], list[Inequality]]:
    """Inequalities, those that yield first, and one of the two that make an equality."""
    above = [c for c in known if c.label == f"{c.origin}{ABOVE}"]
    return sorted((c for c in known if c.label == c.origin), key=lambda c: not yields(c)), above
