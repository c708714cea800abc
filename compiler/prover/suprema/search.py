"""Searches for places where a quantity is large: many at once, in interval arithmetic, so that the result is attained.

Places are ends, middles and smallest sizes of streams with the middle of the domain, its extreme points and what is near 0, then places
around the best of these. A bound near the result is tight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.canonical import DecisionBlock
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.terms.kinks import distance, jumps
from oco.dsl.dims import known
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Call, Expr, names, walk
from oco.dsl.intervals import Interval
from oco.dsl.magnitudes import HUGE

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
Places = Mapping[str, Floats]
PLACES, BEST = 48, 6  # in a sweep at most, and from which the next sweep starts
SEARCH = 300  # steps that a sweep takes for each part of what is evaluated
NUMBERS = 2_000  # that take as long as a part of an expression does at least
LARGEST = 10_000  # entries of the decisions
FEW = 4  # values of the entries of a box or a stream that are tried alone
KINDS = 5  # of values of a stream: its larger end, both ends, the smallest size, the middle
INSIDE = 1e-3  # of the way to the middle of the domain, where a derivative has jumps
SHARES = (1.0, 1.0, 0.5, 0.2, 0.05)


class Search:
    """Places for expressions in decisions and streams; `apart` are the expressions that are 0 where a derivative jumps."""

    def __init__(self, setting: ProofContext, exprs: Mapping[str, Expr]) -> None:
        self.setting, self.exprs = setting, exprs
        self.blocks = setting.canonical.blocks
        self.size = setting.canonical.size
        self.rng = np.random.default_rng(0)
        self.count = PLACES
        self.widest = max((self.size, *(_entries(n) for e in exprs.values() for n in walk(e))))  # array at one place
        self.numbers = PLACES * self.widest  # in one array of a sweep
        self._known: dict[str, list[Floats]] = {}

    @cached_property
    def names(self) -> list[str]:
        """The names with ranges on which the expressions depend."""
        used = {n for e in self.exprs.values() for n in names(e)}
        return [n for n in self.setting.box if n in used]

    @cached_property
    def coupled(self) -> frozenset[str]:
        """Decisions whose entries do not move alone."""
        return frozenset(b.name for b in self.blocks if not b.domain.is_box)

    @cached_property
    def jumps(self) -> list[Call]:
        """Parts with jumps, each once."""
        results = {id(n): n for e in self.exprs.values() for n in walk(e) if isinstance(n, Call) and jumps(n)}
        return list(results.values())

    def allowed(self) -> bool:
        """Take the steps of one sweep; there is none for decisions that are vast."""
        steps = SEARCH * sum(map(size, self.exprs.values())) * (1 + self.numbers // NUMBERS)
        return self.size <= LARGEST and self.setting.attaining.take(steps)

    def over(self, expr: Expr, cells: Places, count: int) -> Interval:
        """The value at each place; one after the other where it is not evaluated at all at once."""
        points = {n: Interval(v, v, v.shape) for n, v in cells.items()}
        try:
            result = over_cells(expr, self.setting.box, points, count)
        except NotCovered:
            if count > PLACES:
                raise
            whole = Evaluation(expr)
            values = np.stack(
                [
                    whole({n: v[k] for n, v in cells.items()}, float(cells["t"][k]) if "t" in cells else 1.0)
                    for k in range(count)
                ]
            )
            return Interval(values, values, values.shape)
        return Interval(*result.expanded(), result.shape)

    def apart(self, places: Places, count: int) -> Floats:
        """At which places no jump is met."""
        fine = np.ones(count, dtype=bool)
        for node in self.jumps:
            apart = distance(node)
            value = self.over(apart or node, places, count)
            lo, hi = (end.reshape(len(end), -1) for end in value.expanded())
            fine = fine & (lo == hi if apart is None else (lo > 0) | (hi < 0)).all(axis=1)
        return fine

    # ---- places

    def first(self) -> Places:
        """The first values of all decisions with each kind of end of all streams, then any value with any other."""
        options = {n: self._options(n) for n in self.names}
        count = min(self.count, math.prod(len(o) for o in options.values()))
        chosen: dict[str, list[Floats]] = {n: [] for n in self.names}
        for k in range(count if options else 0):
            for n, o in options.items():
                turn = k % FEW if n in self.setting.blocks else k // FEW
                mixed = k >= FEW * KINDS or turn >= len(o)
                chosen[n].append(o[int(self.rng.integers(len(o)))] if mixed else o[turn])
        return {n: np.stack(v) for n, v in chosen.items()} or {"t": np.ones(1)}

    def _options(self, name: str) -> list[Floats]:
        """Values of one name, those first that its entries may take alone."""
        if name not in self._known:
            self._known[name] = self._values(name)
        return self._known[name]

    def _values(self, name: str) -> list[Floats]:
        if name in self.setting.blocks:
            return list(self._points(self.setting.blocks[name]))
        lo, hi = (np.clip(end, -HUGE, HUGE) for end in self.setting.box[name].expanded())
        small, large = np.clip(0.0, lo, hi), np.where(np.abs(hi) >= np.abs(lo), hi, lo)
        results = [large, hi, lo, small, lo / 2 + hi / 2]
        whole = name == "t" or (name in self.setting.streams and self.setting.streams[name].integer)
        return [np.floor(v) if whole else v for v in results]

    def _points(self, b: DecisionBlock) -> Iterator[Floats]:
        """The point near 0, the middle, and extreme points, along all coordinates and along single ones."""
        d, pull = b.domain, INSIDE if self.jumps else 0.0
        middle = np.asarray(d.centre(), dtype=np.float64)
        if d.is_box:
            yield np.clip(0.0, d.lower, d.upper) * (1 - pull) + middle * pull
        yield middle
        directions = [np.ones(b.shape), -np.ones(b.shape)]
        few = range(min(d.size, 3))
        directions += (
            [s * np.eye(1, d.size, k).reshape(b.shape) for k in few for s in (1.0, -1.0)] if d.size > 1 else []
        )
        ends = [end for c in directions if (end := self._extreme(b, c)) is not None]
        yield from (end * (1 - pull) + middle * pull for end in ends)
        yield from ((end + other) / 2 for end, other in zip(ends, [*ends[2:], *ends[:2]]) if np.any(end != other))
        yield from ((end + middle) / 2 for end in ends[2:])

    def _extreme(self, b: DecisionBlock, direction: Floats) -> Floats | None:
        """The point that is extreme in a direction, where the set tells cheaply."""
        if b.domain.is_box:
            ahead = np.where(direction > 0, b.domain.upper, b.domain.lower)
            return np.where(direction == 0, np.asarray(b.domain.centre()), ahead)
        if not b.domain.is_cheap("lmo") or not self.setting.attaining.take(b.domain.extreme_cost):
            return None
        return np.asarray(b.domain.lmo_array(-direction), dtype=np.float64)

    def around(self, places: Places, score: Floats) -> Places:
        """Places between those of the least scores and others, one name moved at a time or some of its entries."""
        order = np.unique(np.round(score, 12), return_index=True)[1][:BEST]
        best = {n: v[order] for n, v in places.items()}
        kept = len(order)
        moved: dict[str, list[Floats]] = {n: list(v) for n, v in best.items()}
        while len(moved[self.names[0]]) < self.count:
            k = int(self.rng.integers(kept))
            name = self.names[int(self.rng.integers(len(self.names)))]
            options = self._options(name)[: FEW if name not in self.coupled else None]
            other = options[int(self.rng.integers(len(options)))]
            for n in self.names:
                own = best[n][k]
                moved[n].append(own if n != name else self._between(n, own, other))
        return {n: np.stack(v) for n, v in moved.items()}

    def _between(self, name: str, own: Floats, other: Floats) -> Floats:
        decision = name in self.setting.blocks
        if decision:
            other = own + float(self.rng.choice(SHARES)) * (other - own)
        if name in self.coupled:
            return other
        return np.where(self.rng.random(np.shape(own)) < float(self.rng.choice((0.2, 0.5, 1.0))), other, own)


def _entries(node: Expr) -> int:
    return math.prod(known(node.shape))
