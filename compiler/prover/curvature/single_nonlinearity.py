"""Ranges of second derivatives of entrywise functions of leaves, entry by entry, each body with its names as few times as possible."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.ranges.cells import CELL, NotCovered
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.ranges.occurs_once import is_one_entry
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.entry_sup import FINEST, MOST_NUMBERS, EntrySup
from oco.compiler.prover.terms.kinks import continuous
from oco.compiler.prover.terms.leaves import Entrywise, entrywise
from oco.compiler.prover.terms.rewriting import Simplifier
from oco.dsl.build import call
from oco.dsl.expressions import Constant, Expr, Kind, Name, walk
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

# Steps that second derivatives take for each part and each leaf: they are written for each pair of leaves.
DERIVATIVE_STEPS = 200
FEWEST = 2_000  # cells times entries where there are no steps for more
TIMES = 3  # ranges of all cells are evaluated for one end
TINY = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class NonlinearEntries:
    """The entries of an array as functions of `moving` leaves, with their second derivatives."""

    setting: ProofContext
    split: Entrywise
    moving: Mapping[str, Expr]

    @cached_property
    def box(self) -> dict[str, Interval]:
        """The ranges of the leaves, at the shape of the body.

        Where a moving leaf ends at 0, 0 is left out: on a segment a derivative counts almost everywhere, and a leaf that is 0 all along
        does not move. So `1 / x` over [0, 1] is at least 1.
        """
        results = {}
        for name, leaf in self.split.leaves.items():
            own = self.setting.ranges(leaf).broadcast(self.split.shape)
            if name in self.moving and own.least == 0:
                own = interval(np.where((own.lo == 0) & (own.hi > 0), TINY, own.lo), own.hi, own.shape)
            results[name] = own
        return results

    @cached_property
    def _ranges(self) -> Enclosure:
        return Enclosure({**self.setting.box, **self.box})

    @cached_property
    def _simplify(self) -> Simplifier:
        return Simplifier(lambda e: any(isinstance(n, Name) and n.name in self.moving for n in walk(e)), self._ranges)

    @cached_property
    def slopes(self) -> Mapping[str, Expr]:
        """First derivatives by moving leaf."""
        return {n: self._simplify(d) for n, d in self.split.slopes.items() if n in self.moving}

    @property
    def continuous(self) -> bool:
        """True if the slopes have no jumps, so that their derivatives bound their change."""
        return all(map(continuous, self.slopes.values()))

    def slope_ranges(self) -> dict[str, Interval]:
        """Ranges of the first derivatives by moving leaf."""
        return {n: self._ranges(d) for n, d in self.slopes.items()}

    @property
    def exact(self) -> bool:
        """True if each entry's second derivative takes both ends of its range:
        it depends on numbers that take all values of theirs."""
        ((name, leaf),) = self.moving.items()
        second, fixed = self._seconds[name, name], [u for n, u in self.split.leaves.items() if n not in self.moving]
        if isinstance(leaf, Name):
            alone = leaf.shape == self.split.shape and self.setting.blocks[leaf.name].domain.tight_hull
        else:
            alone = is_one_entry(self.setting, leaf)
        names_only = all(isinstance(u, Name) and u.shape == self.split.shape for u in fixed)
        return alone and names_only and continuous(second) and _occur_once(second)

    @cached_property
    def _seconds(self) -> dict[tuple[str, str], Expr]:
        """The second derivatives, once for each pair of moving leaves."""
        order = list(self.moving)
        results = {}
        for i, a in enumerate(order):
            towards = self.split.derivatives(self.slopes[a])
            results.update({(a, b): self._simplify(towards[b]) for b in order[i:]})
        return results

    def ranges(self) -> dict[tuple[str, str], Interval]:
        """The range of each second derivative, once for each pair of moving leaves."""
        return {pair: self._range(second) for pair, second in self._seconds.items()}

    def _range(self, second: Expr) -> Interval:
        """By intervals where each leaf stands once, else over cells of the leaves as well."""
        whole = self._ranges(second).broadcast(self.split.shape)
        if not whole.bounded or whole.is_point or _occur_once(second):
            return whole
        high, low = self._over_cells(second), self._over_cells(self._simplify(call("minus", second)))
        hi = whole.hi if high is None else np.minimum(whole.hi, high)
        return interval(whole.lo if low is None else np.maximum(whole.lo, 0.0 - low), hi, self.split.shape)

    def _over_cells(self, second: Expr) -> np.ndarray | None:
        """Upper bounds for each entry."""
        split = Entrywise(second, self.split.leaves)
        wanted = min(MOST_NUMBERS, FINEST * math.prod(split.shape))
        for numbers in (wanted, min(FEWEST, wanted)):
            if self.setting.search.affords(TIMES * CELL * numbers * size(second)):
                try:
                    return EntrySup(self.setting).entries(split, max(numbers, FEWEST))
                except NotCovered:
                    return None
        return None

    def share(self) -> Interval:
        """Numbers c with second derivative between c_lo / u and c_hi / u for u > 0, u the one moving leaf."""
        (name,) = self.moving
        if not self.box[name].positive:
            return interval(-np.inf, np.inf)
        variable = Name(name, Kind.DECISION, shape=self.split.shape)
        result = self._ranges(self._simplify(call("mul", variable, self._seconds[name, name])))
        return interval(result.least, result.greatest)


def _occur_once(second: Expr) -> bool:
    """True if the range by intervals is the range over the box of the leaves: each part occurs once (Moore 1966)."""
    uses = Counter(id(c) for n in walk(second) for c in n.children)
    names = Counter(n.name for n in walk(second) if isinstance(n, Name))
    return all(k <= 1 for k in names.values()) and all(
        uses[id(n)] <= 1 for n in walk(second) if not isinstance(n, Constant)
    )


def of_entries(setting: ProofContext, body: Expr) -> NonlinearEntries | None:
    """The entries of `body` over leaves that mix entries; None where there is no steps left for their second derivatives."""
    split = entrywise(body, lambda n: not setting.depends(n) or isinstance(n, Name))
    if not setting.search.take(DERIVATIVE_STEPS * max(1, len(split.leaves)) * size(body)):
        return None
    return NonlinearEntries(setting, split, {n: leaf for n, leaf in split.leaves.items() if setting.depends(leaf)})
