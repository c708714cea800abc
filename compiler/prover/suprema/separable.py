"""Tight bounds of sums of functions of single entries: phi_1(x_1, s_1) + ... + phi_n(x_n, s_n).

Every phi_i is bounded over its own few variables (`entry_sup.py`). Where the domain couples the entries by one function of the same
kind, k(x) = sum kappa(x_i) <= c (or = c), it enters with a multiplier: the supremum over the domain is at most
v c + sum_i sup (phi_i - v kappa), least over v (>= 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.domains.properties import EntrySum
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.compiler.prover.ranges.refine import fixed_slopes, without_decisions
from oco.compiler.prover.suprema.entry_sup import MOST_NUMBERS, EntrySup, Supremum
from oco.compiler.prover.terms.leaves import Entrywise, entrywise
from oco.compiler.prover.terms.matching import options_of
from oco.compiler.prover.terms.summands import summands
from oco.dsl.algebra import broadcast
from oco.dsl.atoms import Curvature, form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Constant, Expr, Kind, Name
from oco.dsl.intervals import interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext


Floats = np.ndarray[Any, Any]
MOST_OTHERS = 4  # leaves beside the decision of which every corner is looked at
ROUGH = 2000  # cells times entries while the multiplier is sought


class Separable:
    """`upper(expr)` bounds an expression that is a sum over entries; None where it is not of that kind."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self.entries = EntrySup(setting)

    def upper(self, expr: Expr) -> Supremum:
        """An upper bound of the supremum. Raises NotCovered where there are too many cells."""
        groups = self.groups(expr)
        fixed = [g for g in groups if isinstance(g, Constant)]
        results = [self._group(g) for g in groups if not isinstance(g, Constant)]
        total = interval(0.0, 0.0)
        for g in fixed:
            total = total + self.setting.ranges(g).sum()
        for s in results:
            total = total + interval(s.value, s.value)
        return Supremum(total.greatest, len(results) == 1 and results[0].attained)

    def _split(self, body: Expr) -> Entrywise:
        return entrywise(self.setting.simplify(body), lambda n: isinstance(n, Name))

    def groups(self, expr: Expr) -> list[Expr]:
        """The array expressions whose entries add up to `expr`: one for each shape."""
        results: dict[tuple[int, ...], Expr] = {}
        slopes = fixed_slopes(self.setting, expr) if self.setting.composition(expr) is Curvature.AFFINE else None
        for term in self._terms(expr) if slopes is None else self._products(expr, slopes):
            shape = known(term.shape)
            results[shape] = term if shape not in results else call("add", results[shape], term)
        return list(results.values())

    def _products(self, expr: Expr, slopes: dict[str, Expr]) -> list[Expr]:
        """An affine function as its slopes times the decisions, plus its value at 0: each entry of a decision stands once."""
        products: list[Expr] = [call("mul", slope, self.setting.variables[n]) for n, slope in slopes.items()]
        return [*products, self.setting.simplify(without_decisions(expr))]

    def _terms(self, expr: Expr) -> list[Expr]:
        return [t if sign > 0 else call("minus", t) for sign, u in summands(expr) for t in self._term(u)]

    def _term(self, expr: Expr) -> list[Expr]:
        match form_of(expr), expr.children:
            case forms.TIMES, (left, right) if expr.shape == () and isinstance(left, Constant):
                return [call("mul", left, t) for t in self._terms(right)]
            case forms.Total(of, mean, root=False), (base,) if not options_of(expr):
                terms: list[Expr] = [call(of, base)] if of else self._array_terms(base)
                return [call("div", t, float(math.prod(known(base.shape)))) for t in terms] if mean else terms
            case forms.MATRIX_PRODUCT, (left, right) if left.shape == right.shape and len(left.shape) == 1:
                return [call("square", left) if left is right else call("mul", left, right)]
        return [expr]

    def _array_terms(self, base: Expr) -> list[Expr]:
        """A sum under a sum comes apart only where no term stretches."""
        return [t if sign > 0 else call("minus", t) for sign, t in summands(base)]

    # ---- one group

    def _group(self, body: Expr) -> Supremum:
        split = self._split(body)
        moving = [leaf for leaf in split.leaves.values() if self.setting.depends(leaf)]
        if len(moving) > 1 and not all(isinstance(leaf, Name) for leaf in moving):
            raise NotCovered  # two functions of the same decision would be taken for independent
        decisions = {
            n: leaf for n, leaf in split.leaves.items() if isinstance(leaf, Name) and leaf.kind is Kind.DECISION
        }
        ties = {n: self.setting.blocks[leaf.name].domain.entry_sum for n, leaf in decisions.items()}
        if len(decisions) == 1:
            ((name, leaf),) = decisions.items()
            tie = ties[name]
            if tie is not None and leaf.shape == split.shape:
                return Supremum(self._coupled(split, name, tie), False)
        result = self.entries.total(split)
        boxes = all(self.setting.blocks[leaf.name].domain.is_box for leaf in decisions.values())
        return Supremum(result.value, result.attained and boxes)

    def _coupled(self, split: Entrywise, name: str, tie: EntrySum) -> float:
        """Minimize over the multiplier: the bound is convex in it, so a golden-section search finds the least."""
        x = Name(name, Kind.DECISION, shape=split.shape)
        coarse: dict[float, float] = {}

        def bound(v: float, most: int) -> float:
            tied = call("sub", split.body, call("mul", v, broadcast(call(tie.of, x) if tie.of else x, split.shape)))
            least = self.entries.total(Entrywise(self.setting.simplify(tied), split.leaves), most).value
            return (interval(v, v) * interval(tie.level, tie.level) + interval(least, least)).greatest

        def roughly(v: float) -> float:
            if v not in coarse:
                coarse[v] = bound(v, ROUGH)
            return coarse[v]

        at_ends = self._at_ends(split, name) if not tie.of else None
        if at_ends is not None:
            return bound(_knapsack(*at_ends, tie.level, tie.equal), MOST_NUMBERS)
        steepest = self._steepness(split, name, tie)
        _golden(roughly, -steepest if tie.equal else 0.0, steepest * tie.search)
        roughly(0.0)
        best = min(coarse, key=lambda v: coarse[v])
        return min(coarse[best], bound(best, MOST_NUMBERS))

    def _at_ends(self, split: Entrywise, name: str) -> tuple[Floats, Floats, Floats, Floats] | None:
        """Ends of the entries of the decision, and about the suprema of phi_i there; None where phi is not convex in the decision.

        The values choose a multiplier and prove nothing.
        """
        others = [n for n in split.leaves if n != name]
        box = self.entries.box(split)
        shared = any(not split.leaves[n].shape for n in others)
        if shared or len(others) > MOST_OTHERS or not all(b.bounded for b in box.values()):
            return None
        if not self.entries.convex(split, name):
            return None
        values: list[Floats] = []
        for end in box[name].expanded():
            corners = product(*(box[n].expanded() for n in others))
            at = (evaluate(split.body, {**dict(zip(others, c)), name: end}, 1.0) for c in corners)
            values.append(np.broadcast_to(reduce(np.maximum, at), split.shape))
        low, high = (np.ravel(end) for end in box[name].expanded())
        below, above = map(np.ravel, values)
        return (low, high, below, above) if np.isfinite(below).all() and np.isfinite(above).all() else None

    def _steepness(self, split: Entrywise, name: str, tie: EntrySum) -> float:
        """Greatest slope of an entry's function, in units of that of kappa: 1, or about the entry's own size where kappa is curved."""
        box = self.entries.box(split)
        slope = split.slopes[name]
        result = over_cells(slope, {**self.setting.box, **box}, {}, 1)
        size = float(np.max(result.magnitude))
        width = float(np.max(np.maximum(np.abs(box[name].lo), np.abs(box[name].hi))))
        unit = 1.0 if tie.of in ("", "abs") or width == 0 else width
        return size / unit if math.isfinite(size) else 1.0 / unit


def _knapsack(low: Floats, high: Floats, below: Floats, above: Floats, level: float, equal: bool) -> float:
    """Multiplier v (at least 0, unless `equal`) at which v level + sum_i max(below_i - v low_i, above_i - v high_i) is least.

    The sum is convex and bends at the gains of the entries: as in a continuous knapsack, the entries of the greatest gains are
    raised to their upper end until the level is used up, and v is the gain of the entry at which it is.
    """
    widths = high - low
    moves = widths > 0
    gains = (above - below)[moves] / widths[moves]
    order = np.argsort(-gains, kind="stable")
    used = float(low.sum()) + np.cumsum(widths[moves][order])
    at = int(np.searchsorted(used, level))
    if not len(gains):
        return 0.0
    v = float(gains[order[min(at, len(gains) - 1)]])
    return v if equal else max(v, 0.0) if at < len(gains) else 0.0


def _golden(f: Callable[[float], float], low: float, high: float, steps: int = 14) -> None:
    """Golden-section search for the minimum of a convex function; `f` remembers what it was asked."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(steps):
        if f(a) <= f(b):
            high, b = b, a
            a = high - ratio * (high - low)
        else:
            low, a = a, b
            b = low + ratio * (high - low)
