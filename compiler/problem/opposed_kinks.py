"""Kinks that meet in one place, of which one has a price below 0: what is missing is bought at one price, what is over sold at another,

    a [u]_+ - b [-u]_+ = (a - b) [u]_+ + b u,    a |u| - b [u]_+ = (2 a - b) [u]_+ - a u.

Composition sees a concave term on the left. On the right it sees a convex function where a is at least b for all data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.positive_parts import PositivePart, multiple, positive_part, slopes_of, without_entrywise_sums
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.enclose import enclose
from oco.dsl.expressions import Expr, Kind, Name, names, parts, rewrite
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass

PART = "_part"


@dataclass(frozen=True, eq=False)
class MeetingKinks:
    """Kinks of a function in one place: together they are `price` * [row]_+ and an affine function.

    parts  names that stand for the kinks in `Kinks.within`, each with the factor of its row in that of `row`
    """

    row: Expr
    price: Expr
    parts: Mapping[str, float]


class Kinks:
    """Largest and smallest of two affine functions in a scalar function of the decisions, and what each counts in it.

    within  the function with a name in the place of each; nodes, parts  these, by name; slopes  what one more of each counts
    """

    def __init__(self, function: Expr, decisions: tuple[str, ...]) -> None:
        self.decisions = decisions
        self.nodes: dict[str, Expr] = {}
        self.parts: dict[str, PositivePart] = {}
        self.within = rewrite(rewrite(function, without_entrywise_sums), self._apart)
        slopes = gradient(self.within, self.parts) if self.parts else {}
        self.slopes = {n: algebra.broadcast(slope, known(self.parts[n].row.shape)) for n, slope in slopes.items()}

    def _apart(self, node: Expr) -> Expr:
        part = positive_part(node, self.decisions)
        if part is None:
            return node
        name = Name(f"{PART}{len(self.parts)}", Kind.DECISION, shape=node.shape)
        self.nodes[name.name], self.parts[name.name] = node, part
        return name

    def meeting(self, ranges: Mapping[str, Interval]) -> list[MeetingKinks]:
        """Groups of kinks in one place of which one has a price that may be below 0 for data in these ranges."""
        linear = [n for n, slope in self.slopes.items() if not names(slope, Kind.DECISION)]
        prices = {n: self.slopes[n] if self.parts[n].adds else algebra.minus(self.slopes[n]) for n in linear}
        falling = {n for n in linear if not is_never_negative(prices[n], ranges)}
        if not falling or len(linear) < 2:
            return []
        slopes, groups = {n: slopes_of(self.parts[n].row) for n in linear}, list[dict[str, float]]()
        for name in linear:
            row = self.parts[name].row
            for group in groups:
                first = next(iter(group))
                factor = multiple(slopes[name], slopes[first]) if self.parts[first].row.shape == row.shape else 0.0
                if factor:
                    group[name] = factor
                    break
            else:
                groups.append({name: 1.0})
        meeting = [g for g in groups if len(g) > 1 and falling & g.keys()]
        shares = [[algebra.mul(algebra.number(abs(k)), prices[n]) for n, k in g.items()] for g in meeting]
        rows = [self.parts[next(iter(g))].row for g in meeting]
        return [MeetingKinks(*group) for group in zip(rows, (reduce(_sum, s) for s in shares), meeting, strict=True)]

    def together(self, group: MeetingKinks) -> Expr:
        """A group as one positive part and an affine function, a scalar."""
        terms = [_charged(group.price, call("pos", group.row))]
        for name, factor in group.parts.items():
            part = self.parts[name]
            value = part.rest if factor > 0 else (algebra.add if part.adds else algebra.sub)(part.rest, part.row)
            terms.append(_charged(self.slopes[name], algebra.broadcast(value, part.row.shape)))
        return reduce(_sum, terms)

    def joined(self, groups: Sequence[MeetingKinks]) -> Expr:
        """Function with each of these groups together, all other kinks as they were."""
        members = {n for g in groups for n in g.parts}

        def without(node: Expr) -> Expr:
            if not isinstance(node, Name) or node.name not in self.parts:
                return _without_zeros(node)
            return algebra.broadcast(algebra.number(0), node.shape) if node.name in members else self.nodes[node.name]

        return reduce(algebra.add, map(self.together, groups), rewrite(self.within, without))


def with_kinks_joined(function: Expr, decisions: tuple[str, ...], streams: Iterable[StreamRange]) -> Expr:
    """Scalar function with kinks of opposed signs in one place as one kink, where its price is never below 0 for data in their ranges; else
    the function itself.
    """
    if function.shape or _number_of_kinks(function) < 2:
        return function
    kinks, ranges = Kinks(function, decisions), ranges_of(streams)
    joined = [g for g in kinks.meeting(ranges) if is_never_negative(g.price, ranges)]
    return replace(kinks.joined(joined), span=function.span) if joined else function


def ranges_of(streams: Iterable[StreamRange]) -> Mapping[str, Interval]:
    """Ranges of values that come with the rounds, and of the round, by name."""
    return {"t": interval(1.0, np.inf), **{s.name: interval(s.lower, s.upper, s.shape) for s in streams}}


def is_never_negative(price: Expr, ranges: Mapping[str, Interval]) -> bool:
    """True where a price without decisions is at least 0 for all data in their ranges."""
    return set(names(price)) <= ranges.keys() and enclose(price, ranges).least >= 0.0


def if_data_allow(
    function: Expr, decisions: tuple[str, ...], streams: Iterable[StreamRange]
) -> tuple[Expr, Expr] | None:
    """Price of the first kinks of a scalar function that meet in one place and may be below 0 together, and the terms that are these kinks
    where it is not: with [price]_+ in its place. None where there are none.
    """
    kinks = Kinks(function, decisions)
    for group in kinks.meeting(ranges_of(streams)):
        return group.price, kinks.together(replace(group, price=call("pos", group.price)))
    return None


def _number_of_kinks(function: Expr) -> int:
    """Number of different nodes whose atom has a kink, or adds up one over entries."""
    forms_of = ((ATOMS[atom].form, count) for atom, count in parts(function).items() if atom)
    return sum(n for f, n in forms_of if isinstance(f, forms.Extreme) or (isinstance(f, forms.Total) and f.entrywise))


def _sum(a: Expr, b: Expr) -> Expr:
    """Sum, as a difference where the second begins with a number below 0."""
    lead = algebra.value_of(b.children[0]) if form_of(b) is forms.TIMES else None
    return algebra.add(a, b) if lead is None or lead >= 0 else algebra.sub(a, algebra.minus(b))


def _charged(price: Expr, amount: Expr) -> Expr:
    """Sum over the entries of price times amount."""
    charged = algebra.mul(price, amount)
    return call("sum", charged) if charged.shape else charged


def _without_zeros(node: Expr) -> Expr:
    """Sum or product without the arguments that are 0."""
    if not any(algebra.value_of(c) == 0 for c in node.children):
        return node
    match form_of(node), node.children:
        case forms.SUM, (a, b):
            return algebra.add(a, b)
        case forms.DIFFERENCE, (a, b):
            return algebra.sub(a, b)
        case ((forms.TIMES | forms.MATRIX_PRODUCT | forms.NEGATIVE | forms.TOTAL), _):
            return algebra.broadcast(algebra.number(0), node.shape)
    return node
