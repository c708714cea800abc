"""Suprema of entrywise functions phi_i(u_i, v_i, ...) over the ranges of their leaves, all entries at once.

Each phi_i is looked at where its supremum must be: at one end of a leaf in which it is monotone, at both ends where it is convex, on a
grid of cells in the others, each cell bounded by its range and by the mean value form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.curvature.composition import CONVEX_KINDS, Curvatures
from oco.compiler.prover.ranges.cells import CELL, NotCovered, over_cells
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.terms.kinks import continuous, smooth
from oco.compiler.prover.terms.leaves import Entrywise
from oco.dsl.expressions import Constant, Expr, Name, names, walk
from oco.dsl.intervals import Interval
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

MOST_NUMBERS = 20_000  # cells times entries
FINEST, COARSEST = 256, 3  # parts of one leaf
SPLIT = 300  # steps that the slopes take for each part of the body


@dataclass(frozen=True)
class Supremum:
    """An upper bound. `attained`: it is reached where the leaves are independent, each at an end of its range."""

    value: float
    attained: bool


class EntrySup:
    """Suprema of sums of entrywise functions, entry by entry, over the ranges of their leaves."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting

    def box(self, split: Entrywise) -> dict[str, Interval]:
        """The ranges of the leaves, at the shape of the body."""
        return {n: self.setting.ranges(leaf).broadcast(split.shape) for n, leaf in split.leaves.items()}

    def total(self, split: Entrywise, most: int = MOST_NUMBERS) -> Supremum:
        """sum_i sup phi_i; leaves that are one number for all entries are common to all. `most` bounds cells times entries."""
        value, inner, attained = self._cells(split, most)
        best = value.reshape(-1, inner, *value.shape[1:]).max(axis=1)
        summed = Interval(best, best, (len(best), *split.shape))
        while len(summed.shape) > 1:
            summed = summed.sum(len(summed.shape) - 1)
        return Supremum(float(np.max(summed.hi)), attained)

    def largest(self, split: Entrywise, most: int = MOST_NUMBERS) -> Supremum:
        """max_i sup phi_i. `most` bounds cells times entries."""
        value, _, attained = self._cells(split, most)
        return Supremum(float(np.max(value)), attained)

    def entries(self, split: Entrywise, most: int = MOST_NUMBERS) -> np.ndarray:
        """sup phi_i for each entry, in an array that stretches to the body's shape."""
        value, _, _ = self._cells(split, most)
        return np.asarray(value.max(axis=0))

    def _cells(self, split: Entrywise, most: int) -> tuple[np.ndarray, int, bool]:
        """Upper bounds of phi on all cells, shared leaves varying slowest, how many cells of the others
        there are, and whether every cell is a point at the ends of names. Raises NotCovered where that is too much."""
        parts, search = size(split.body), self.setting.search
        if not search.take(SPLIT * parts):
            raise NotCovered
        box, used = self.box(split), names(split.body)
        leaves = [n for n in split.leaves if n in used]
        leaves.sort(key=lambda n: bool(split.leaves[n].shape) or not split.shape)
        ends = self._ends(split, box, leaves)
        entries = math.prod(np.broadcast_shapes(*(b.lo.shape for b in box.values()), *_kept(split.body)))
        free = [n for n in leaves if n not in ends]
        budget = most / max(1, entries) / math.prod(len(e) for e in ends.values())
        steps = min(FINEST, int(budget ** (1 / len(free)))) if free else 1
        if steps < (COARSEST if free else 1) or budget < 1:
            raise NotCovered
        attained = not free and all(_independent(split.leaves[n], split.shape) for n in leaves)
        options = {
            n: _at(box[n], ends[n], split.shape) if n in ends else _parts(box[n], steps, split.shape) for n in leaves
        }
        counts = [len(options[n][0]) for n in leaves]
        count = math.prod(counts)
        index = dict(zip(leaves, np.indices(counts).reshape(len(counts), -1))) if counts else {}
        cells = {n: Interval(lo[index[n]], hi[index[n]], (count, *split.shape)) for n, (lo, hi) in options.items()}
        if not search.take(CELL * count * entries * parts * (3 if free else 1)):
            raise NotCovered
        shared = math.prod(len(options[n][0]) for n in leaves if not split.leaves[n].shape and split.shape)
        value = self._over(split, cells, count)
        return np.broadcast_to(value.hi, (count, *value.hi.shape[1:])), count // shared, attained

    def _ends(self, split: Entrywise, box: Mapping[str, Interval], leaves: list[str]) -> dict[str, tuple[str, ...]]:
        """The ends to look at: one where phi is monotone in the leaf, both where it is convex; other leaves are not named."""
        whole = {**self.setting.box, **box}
        results: dict[str, tuple[str, ...]] = {}
        if not continuous(split.body):
            return results
        second_derivatives = split.second_derivatives if smooth(split.body) else {}
        for name, slope in split.slopes.items():
            if name not in leaves:
                continue
            rate = over_cells(slope, whole, {}, 1)
            if rate.nonnegative:
                results[name] = ("hi",)
            elif rate.nonpositive:
                results[name] = ("lo",)
            elif self._convex(split, name, whole, second_derivatives.get((name, name))):
                results[name] = ("lo", "hi")
        return results

    def convex(self, split: Entrywise, name: str) -> bool:
        """True if phi is smooth and convex in one leaf, whatever the others are."""
        if not smooth(split.body):
            return False
        return self._convex(
            split, name, {**self.setting.box, **self.box(split)}, split.second_derivatives.get((name, name))
        )

    def _convex(self, split: Entrywise, name: str, box: Mapping[str, Interval], second_derivative: Expr | None) -> bool:
        """True if phi is convex in one leaf, by its second derivative or by composition."""
        if second_derivative is not None and over_cells(second_derivative, box, {}, 1).nonnegative:
            return True
        return Curvatures(Enclosure(box), frozenset({name}))(split.body) in CONVEX_KINDS

    def _over(self, split: Entrywise, cells: Mapping[str, Interval], count: int) -> Interval:
        """phi on each cell: its range, or phi(m) + phi'(cell) (cell - m) where that is narrower."""
        value = over_cells(split.body, self.setting.box, cells, count)
        wide = [n for n, c in cells.items() if np.any(c.lo < c.hi)]
        if not wide or not continuous(split.body):
            return value
        middles = {n: _middle(c) for n, c in cells.items()}
        form = over_cells(split.body, self.setting.box, middles, count)
        slopes = split.slopes
        for name in wide:
            form = form + over_cells(slopes[name], self.setting.box, cells, count) * (cells[name] - middles[name])
        return Interval(value.lo, np.minimum(value.hi, form.hi), value.shape)


def _kept(body: Expr) -> list[tuple[int, ...]]:
    """The shapes of the numbers that the constants of a body keep: of one number for all entries, ()."""
    arrays = [n.value.array for n in walk(body) if isinstance(n, Constant)]
    return [a.shape if any(a.strides) else () for a in arrays]


def _independent(leaf: Expr, shape: tuple[int, ...]) -> bool:
    """True if each entry of the body has an entry of the leaf of its own, or all share one number."""
    return isinstance(leaf, Name) and leaf.shape in (shape, ())


def _ranked(end: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return end.reshape((1,) * (len(shape) - end.ndim) + end.shape)


def _at(box: Interval, ends: tuple[str, ...], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    points = np.stack([_ranked(np.broadcast_arrays(box.lo, box.hi)[0 if e == "lo" else 1], shape) for e in ends])
    return points, points


def _parts(box: Interval, steps: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Equal parts, which overlap by rounding rather than leave a gap."""
    lo, hi = (_ranked(end, shape) for end in np.broadcast_arrays(box.lo, box.hi))
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise NotCovered
    edges = np.stack([lo + (hi - lo) * (k / steps) for k in range(steps + 1)])
    edges[0], edges[-1] = lo, hi
    return np.minimum(edges[:-1], edges[1:]), np.maximum(edges[:-1], edges[1:])


def _middle(cell: Interval) -> Interval:
    middle = np.clip(cell.lo / 2 + cell.hi / 2, cell.lo, cell.hi)
    return Interval(middle, middle, cell.shape)
