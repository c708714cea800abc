"""Narrower ranges where interval arithmetic forgets the domain: linear functions by its support function, norms by its radius.

Over `simplex`, `relative @ w` with relative in [0.5, 2] lies in [0.5, 2], while the box around the simplex would give [0, 60].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.phrasing import number, say, span_of_values
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.ranges.norm_bounds import Norms, squared
from oco.compiler.prover.ranges.occurs_once import occurs_once
from oco.compiler.prover.ranges.support import support
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import Curvature, form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, Kind, Name, names, rewrite, uniform
from oco.dsl.expressions import entries as entries_within
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

SUPPORT = 500  # steps that a support function takes at least
PART = 10  # more for each part of the expression
NUMBER, WRITTEN = 0.3, 0.02  # more for each entry of its decisions, and of arrays on the way
VAST = 30_000  # entries of a decision that count at most: of vast ones the ranges are kept as few numbers


class Refiner:
    """Narrows the ranges of affine nodes that mix entries of a decision whose domain is not a box, and of norms of decisions."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self._tables: dict[int, Norms] = {}
        self.coupled = frozenset(b.name for b in setting.canonical.blocks if not b.domain.is_box)

    def __call__(self, node: Expr, value: Interval, ranges: Enclosure) -> tuple[Interval, Step | None]:
        if not isinstance(node, Call):
            return value, None
        if form_of(node) in (forms.LENGTH, forms.SUM_OF_SQUARES) and not node.options:
            return self._norm(node, value, ranges)
        if not self.coupled:
            return value, None
        if _mixes(node):
            return self._linear(node, value, ranges)
        return value, None

    def _linear(self, node: Call, value: Interval, ranges: Enclosure) -> tuple[Interval, Step | None]:
        if not self.setting.depends(node) or self.setting.composition(node) is not Curvature.AFFINE:
            return value, None
        entries = math.prod(known(node.shape))
        if not self.coupled.intersection(names(node, Kind.DECISION)):
            return value, None
        steps = SUPPORT + PART * size(node) + NUMBER * self._numbers(node) + WRITTEN * entries_within(node)
        vertices = sum(self.setting.blocks[n].domain.extreme_cost for n in names(node, Kind.DECISION))
        if not self.setting.search.take(entries * (steps + vertices)):
            return value, self.setting.search.ended(f"the range of {say(node)}", None)
        lo, hi = (np.array(end) for end in value.expanded())
        for at in np.ndindex(*lo.shape):
            result = self._range(entry(node, at), ranges)
            if result is None:
                return value, None
            lo[at], hi[at] = max(lo[at], result.least), min(hi[at], result.greatest)
        narrowed = interval(lo, hi, value.shape)
        if narrowed.least <= value.least and narrowed.greatest >= value.greatest:
            return value, None

        def claim() -> str:
            sets = " and ".join(str(self.setting.blocks[n].domain) for n in names(node, Kind.DECISION))
            where = f"{say(node)} lies in {span_of_values(narrowed)}"
            return f"{where}: it is affine in the decision, by the support function of {sets}"

        premises = tuple(ranges.step(c) for c in node.children if not self.setting.depends(c))
        return narrowed, Step(ProofRule.SUPPORT, claim, narrowed, premises, node.span, node)

    def _numbers(self, node: Expr) -> int:
        """Entries of the decisions in it that count."""
        return sum(min(self.setting.blocks[n].domain.size, VAST) for n in names(node, Kind.DECISION))

    def _range(self, node: Expr, ranges: Enclosure) -> Interval | None:
        """The range of a scalar <a, x> + c with a and c over the streams; None where it is affine on its range alone."""
        slopes = fixed_slopes(self.setting, node)
        if slopes is None:
            return None
        total = ranges(self.setting.simplify(without_decisions(node)))
        for name, slope in slopes.items():
            domain = self.setting.blocks[name].domain
            a = ranges(slope).broadcast(domain.shape)
            hull = self.setting.box[name]
            total = total + interval(-support(domain, hull, -a), support(domain, hull, a), ())
        return total

    def _norms(self, ranges: Enclosure) -> Norms:
        """One table of norms for each enclosure."""
        if id(ranges) not in self._tables:
            self._tables[id(ranges)] = Norms(self.setting, ranges)
        return self._tables[id(ranges)]

    def _norm(self, node: Call, value: Interval, ranges: Enclosure) -> tuple[Interval, Step | None]:
        (base,) = node.args
        norm = self._norms(ranges)(base)
        bound = interval(0.0, norm) if form_of(node) == forms.LENGTH else squared(norm)
        if not bound.greatest < value.greatest:
            return value, None
        narrowed = value.meet(bound)
        claim = f"{say(node)} lies in {span_of_values(narrowed)}: {say(base)} has a Euclidean norm of at most {number(norm)}"
        return narrowed, Step(ProofRule.NORM, claim, narrowed, (ranges.step(base),), node.span, node)


def fixed_slopes(setting: ProofContext, expr: Expr) -> dict[str, Expr] | None:
    """The slopes of a scalar towards its decisions where no decision stands in them, so that it is <slopes, x> plus its value at 0.

    `abs(x)` for positive x is affine on its range, but not of this form: its slope is written sign(x). That ranges decide the sign does not
    count, as 0 may lie outside of them.
    """
    result = gradient(expr, names(expr, Kind.DECISION))
    slopes = {name: setting.simplify_anywhere(g) for name, g in result.items()}
    if any(setting.depends(g) for g in slopes.values()):
        return None
    return {name: setting.simplify(g) for name, g in slopes.items()}


def bilinear_supremum(setting: ProofContext, expr: Expr) -> float | None:
    """max <a, x> + c over x, a and c where the numbers in a and c are independent and the support function is exact; None elsewhere."""
    if expr.shape != () or setting.composition(expr) is not Curvature.AFFINE:
        return None
    slopes = fixed_slopes(setting, expr)
    if slopes is None:
        return None
    rest = setting.simplify(without_decisions(expr))
    streams = [n for e in (*slopes.values(), rest) for n in names(e)]
    if len(streams) != len(set(streams)) or not all(occurs_once(setting, e) for e in (*slopes.values(), rest)):
        return None
    total = setting.ranges(rest)
    for name, slope in slopes.items():
        domain, hull = setting.blocks[name].domain, setting.box[name]
        a = setting.ranges(slope).broadcast(domain.shape)
        over_ranges = domain.support_over(a)
        if not (domain.is_box or (over_ranges is not None and over_ranges.attained)):
            return None
        most = support(domain, hull, a)
        total = total + interval(most, most)
    return total.greatest


def without_decisions(expr: Expr) -> Expr:
    """The expression at the decision 0."""

    def zero(node: Expr) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.DECISION:
            return uniform(0.0, known(node.shape))
        return node

    return rewrite(expr, zero)


def _mixes(node: Call) -> bool:
    """True if an entry of the node may be an affine function
    of several entries of its arguments, or of several arguments."""
    match form_of(node):
        case forms.Signed(signs):
            return len(signs) > 1 and not node.shape
        case forms.Diagonal():
            return not node.shape
        case forms.TOTAL | forms.MEAN | forms.MATRIX_PRODUCT | forms.LARGEST_ENTRY | forms.SMALLEST_ENTRY:
            return True
    return False
