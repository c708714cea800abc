"""Tight bounds of sums of functions of single entries: phi_1(x_1, s_1) + ... + phi_n(x_n, s_n).

Every phi_i is bounded over its own few variables: at the ends of those in which it is monotone or convex, over a grid of the others, on
each cell by its range and by the mean value form. Where the domain couples the entries by one function of the same kind, k(x) = sum
kappa(x_i) <= c (or = c), it enters with a multiplier: sup over the domain <= v c + sum_i sup (phi_i - v kappa), least over v (>= 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.facts.cells import NotCovered, over_cells
from oco.compiler.facts.curvature import CONVEX_KINDS, Curvatures
from oco.compiler.facts.enclosure import Enclosure
from oco.compiler.facts.hessian import smooth_body
from oco.compiler.facts.leaves import Entrywise, entrywise
from oco.dsl.algebra import broadcast
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.facts.setting import Setting

GRID = {1: 256, 2: 40, 3: 12, 4: 6}
MOST_NUMBERS = 1_000_000
Ends = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Coupling:
    """sum kappa(x_i) <= level, or == level."""

    kappa: Callable[[Expr], Expr]
    level: float
    equal: bool
    words: str


def coupling(domain: Domain) -> Coupling | None:
    """What ties the entries of a decision together, where it is one sum; None for other sets."""
    match domain.kind:
        case "simplex":
            return Coupling(lambda x: x, float(np.max(domain.upper)), True, "their sum")
        case "ball" | "nonneg_ball":
            return Coupling(lambda x: call("square", x), domain.radius**2 * (1 + 2**-50), False, "their squares")
        case "l1_ball":
            return Coupling(lambda x: call("abs", x), float(np.max(domain.upper)), False, "their absolute values")
        case "budget":
            return Coupling(lambda x: x, float(domain.support(np.ones(domain.shape))), False, "their sum")
    return None


class Separable:
    """`upper(expr)` bounds an expression that is a sum over entries; None where it is not of that kind."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def upper(self, expr: Expr) -> float | None:
        groups = self._groups(expr)
        if groups is None:
            return None
        total = interval(0.0, 0.0)
        try:
            for body in groups:
                most = self._group(body)
                total = total + interval(most, most)
        except NotCovered:
            return None
        return total.greatest if math.isfinite(total.greatest) else None

    def greatest_entry(self, body: Expr) -> float | None:
        """The supremum of the largest entry of an array expression."""
        try:
            return self._sup(entrywise(self.setting.simplify(body), lambda n: isinstance(n, Name)), total=False)
        except NotCovered:
            return None

    def _groups(self, expr: Expr) -> list[Expr] | None:
        """The array expressions whose entries add up to `expr`: one for each shape."""
        found: dict[tuple[int, ...], Expr] = {}
        for term in self._terms(expr):
            shape = known(term.shape)
            found[shape] = term if shape not in found else call("add", found[shape], term)
        return list(found.values())

    def _terms(self, expr: Expr) -> list[Expr]:
        match expr:
            case Call(atom="add", args=(left, right)) if left.shape == right.shape:
                return [*self._terms(left), *self._terms(right)]
            case Call(atom="sub", args=(left, right)) if left.shape == right.shape:
                return [*self._terms(left), *(call("minus", t) for t in self._terms(right))]
            case Call(atom="minus", args=(base,)):
                return [call("minus", t) for t in self._terms(base)]
            case Call(atom="mul", args=(left, right)) if expr.shape == () and isinstance(left, Constant):
                return [call("mul", left, t) for t in self._terms(right)]
            case Call(atom="sum", args=(base,)) if not expr.options:
                return self._array_terms(base)
            case Call(atom="mean", args=(base,)) if not expr.options:
                return [call("div", t, float(math.prod(known(base.shape)))) for t in self._array_terms(base)]
            case Call(atom="sum_squares", args=(base,)):
                return [call("square", base)]
            case Call(atom="norm1", args=(base,)) if not expr.options:
                return [call("abs", base)]
            case Call(atom="dot" | "matmul", args=(left, right)) if left.shape == right.shape and len(left.shape) == 1:
                return [call("square", left) if left is right else call("mul", left, right)]
        return [expr]

    def _array_terms(self, base: Expr) -> list[Expr]:
        """A sum under a sum comes apart only where no term stretches."""
        match base:
            case Call(atom="add" | "sub", args=(left, right)) if left.shape == right.shape == base.shape:
                signed = self._array_terms(right)
                return [
                    *self._array_terms(left),
                    *(signed if base.atom == "add" else [call("minus", t) for t in signed]),
                ]
        return [base]

    # ---- one group

    def _group(self, body: Expr) -> float:
        split = entrywise(self.setting.simplify(body), lambda n: isinstance(n, Name))
        decisions = [
            (n, leaf) for n, leaf in split.leaves.items() if isinstance(leaf, Name) and leaf.kind is Kind.DECISION
        ]
        if len(decisions) == 1 and decisions[0][1].shape == split.shape:
            name, leaf = decisions[0]
            tie = coupling(self.setting.blocks[leaf.name].domain)
            if tie is not None:
                return self._coupled(split, name, tie)
        return self._sup(split)

    def _coupled(self, split: Entrywise, name: str, tie: Coupling) -> float:
        """Minimize over the multiplier: the bound is convex in it, so a golden-section search finds the least."""
        x = Name(name, Kind.DECISION, shape=split.shape)
        known_values: dict[float, float] = {}

        def bound(v: float) -> float:
            if v not in known_values:
                tied = call("sub", split.body, call("mul", v, broadcast(tie.kappa(x), split.shape)))
                least = self._sup(Entrywise(self.setting.simplify(tied), split.leaves))
                known_values[v] = (interval(v, v) * interval(tie.level, tie.level) + interval(least, least)).greatest
            return known_values[v]

        reach = self._steepness(split, name) + 1e-12
        low, high = (-reach if tie.equal else 0.0), reach * (1.0 if tie.words != "their squares" else 4.0)
        _golden(bound, low, high)
        bound(0.0)
        return min(known_values.values())

    def _steepness(self, split: Entrywise, name: str) -> float:
        box = self._box(split)
        slope = split.slopes()[name]
        found = over_cells(slope, {**self.setting.box, **box}, {}, 1)
        size = float(np.max(found.magnitude))
        width = float(np.max(np.maximum(np.abs(box[name].lo), np.abs(box[name].hi))))
        return size / max(min(width, 1.0), 1e-9) if math.isfinite(size) else 1.0

    def _box(self, split: Entrywise) -> dict[str, Interval]:
        return {n: self.setting.ranges(leaf).broadcast(split.shape) for n, leaf in split.leaves.items()}

    def _sup(self, split: Entrywise, total: bool = True) -> float:
        """sum_i sup phi_i, or the largest of them, with the leaves that are one number for all entries common to all."""
        box = self._box(split)
        used = names(split.body)
        leaves = [n for n in split.leaves if n in used]
        fixed = self._ends(split, box, leaves)
        shared = [n for n in leaves if not split.leaves[n].shape and split.shape]
        private = [n for n in leaves if n not in shared]
        outer, inner = self._cells(box, shared, fixed, ()), self._cells(box, private, fixed, split.shape)
        count = len(outer) * len(inner)
        entries = math.prod(np.broadcast_shapes(*(b.lo.shape for b in box.values()), ()))
        if count * max(1, entries) > MOST_NUMBERS:
            raise NotCovered
        cells = {n: _spread([o[n] for o in outer for _ in inner], split.shape) for n in shared}
        cells |= {n: _spread([i[n] for _ in outer for i in inner], split.shape) for n in private}
        value = self._over(split, cells, count)
        hi = np.broadcast_arrays(value.lo, value.hi)[1]
        if not total:
            return float(np.max(hi))
        best = hi.reshape(len(outer), len(inner), *hi.shape[1:]).max(axis=1)
        summed = Interval(best, best, (len(outer), *split.shape))
        while len(summed.shape) > 1:
            summed = summed.sum(len(summed.shape) - 1)
        return float(np.max(summed.hi))

    def _ends(self, split: Entrywise, box: Mapping[str, Interval], leaves: list[str]) -> dict[str, list[str]]:
        """For each leaf the ends that need to be looked at: one where phi is monotone in it, both where it is convex, else none named."""
        whole = {**self.setting.box, **box}
        fixed: dict[str, list[str]] = {}
        bends = split.bends() if smooth_body(split) else {}
        for name, slope in split.slopes().items():
            if name not in leaves:
                continue
            found = over_cells(slope, whole, {}, 1)
            if found.nonnegative:
                fixed[name] = ["hi"]
            elif found.nonpositive:
                fixed[name] = ["lo"]
            elif self._convex(split, name, whole, bends.get((name, name))):
                fixed[name] = ["lo", "hi"]
        return fixed

    def _convex(self, split: Entrywise, name: str, box: Mapping[str, Interval], bend: Expr | None) -> bool:
        """Whether phi is convex in one leaf, by composition or by its second derivative."""
        if bend is not None and over_cells(bend, box, {}, 1).nonnegative:
            return True
        return Curvatures(Enclosure(box), frozenset({name}))(split.body) in CONVEX_KINDS

    def _cells(
        self, box: Mapping[str, Interval], leaves: list[str], fixed: Mapping[str, list[str]], shape: tuple[int, ...]
    ) -> list[dict[str, Ends]]:
        """All combinations of ends and grid cells of these leaves."""
        free = [n for n in leaves if n not in fixed]
        if len(free) > max(GRID):
            raise NotCovered
        steps = GRID.get(len(free), 1)
        found: list[dict[str, Ends]] = [{}]
        for name in leaves:
            if name in fixed:
                options = [(getattr(box[name], e), getattr(box[name], e)) for e in fixed[name]]
            else:
                options = _slices(box[name], steps)
            found = [{**f, name: o} for f in found for o in options]
            if len(found) > MOST_NUMBERS:
                raise NotCovered
        return found

    def _over(self, split: Entrywise, cells: Mapping[str, Interval], count: int) -> Interval:
        """phi on each cell: its range, or phi(m) + phi'(cell) (cell - m) where that is narrower."""
        value = over_cells(split.body, self.setting.box, cells, count)
        wide = [n for n, c in cells.items() if np.any(c.lo < c.hi)]
        if not wide:
            return value
        middles = {n: _middle(c) for n, c in cells.items()}
        form = over_cells(split.body, self.setting.box, middles, count)
        slopes = split.slopes()
        for name in wide:
            form = form + over_cells(slopes[name], self.setting.box, cells, count) * (cells[name] - middles[name])
        return (
            value.meet(form)
            if form.shape == value.shape
            else Interval(value.lo, np.minimum(value.hi, form.hi), value.shape)
        )


def _slices(box: Interval, steps: int) -> list[Ends]:
    """Equal parts, which overlap by rounding rather than leave a gap."""
    lo, hi = np.broadcast_arrays(box.lo, box.hi)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise NotCovered
    edges = [lo + (hi - lo) * (k / steps) for k in range(steps + 1)]
    edges[0], edges[-1] = lo, hi
    return [(np.minimum(a, b), np.maximum(a, b)) for a, b in pairwise(edges)]


def _spread(ends: list[Ends], shape: tuple[int, ...]) -> Interval:
    """The cells stacked along a first axis."""
    rank = len(shape)
    lo, hi = (
        np.stack([e[side].reshape((1,) * (rank - e[side].ndim) + e[side].shape) for e in ends]) for side in (0, 1)
    )
    return Interval(lo, hi, (len(ends), *shape))


def _middle(cell: Interval) -> Interval:
    middle = np.clip(cell.lo / 2 + cell.hi / 2, cell.lo, cell.hi)
    return Interval(middle, middle, cell.shape)


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
