"""Slopes and second derivatives that a function does attain: lower bounds of Lipschitz constants, upper bounds of moduli of convexity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.ranges.cells import NotCovered
from oco.compiler.prover.suprema.search import FEW, PLACES, Places, Search
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.intervals import Interval
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
MOST_DENSE = 12  # entries of the decisions up to which whole Hessians are taken
MOST_NUMBERS = 10_000  # in the Hessians of one sweep
STEPS, IDLE = 2, 2  # of each power iteration; sweeps without a gain after which a search ends
TIGHT, ROUNDING = 1.05, 1e-9


@dataclass(frozen=True)
class Extremes:
    """Values of |H v| and of v' H v that are attained for unit vectors v along the domain: -inf and inf where none were found."""

    steepest: float = -math.inf
    least: float = math.inf

    def show(self, steepest: float, modulus: float) -> tuple[bool, bool]:
        """Return if a Lipschitz constant of the gradient and a modulus of strong convexity are shown to be within 5%."""
        slack = ROUNDING * max(self.steepest, 0.0)
        return steepest <= TIGHT * self.steepest or steepest == 0, self.least <= TIGHT * modulus + slack

    def improves(self, other: Extremes, shown: tuple[bool, bool]) -> bool:
        """True if it improves by a hundredth on `other` in a number that is not yet shown to be tight."""
        steeper = not shown[0] and self.steepest > 1.01 * other.steepest
        return steeper or (not shown[1] and self.least < other.least - 0.01 * abs(other.least))

    def joined(self, other: Extremes) -> Extremes:
        """Extremes over the union of two searches."""
        return Extremes(max(self.steepest, other.steepest), min(self.least, other.least))


class Slopes(Search):
    """Gradients without jumps: their l2 norms and largest entries."""

    def largest(self, l2: float, l1: float) -> tuple[float, float]:
        """The largest norms that are attained, sought until both are within 5% of `l2` and `l1`."""
        best, places, idle = (0.0, 0.0), None, 0
        while idle < IDLE and self.allowed():
            places = places or self.first()
            try:
                sizes = self._measured(places, len(next(iter(places.values()))))
            except (NotCovered, OcoError):
                return best
            result = max(best[0], float(sizes[0].max())), max(best[1], float(sizes[1].max()))
            short = [TIGHT * value < claimed for value, claimed in zip(result, (l2, l1))]
            if not any(short) or not self.names:
                return result
            gained = any(s and new > 1.01 * old for s, new, old in zip(short, result, best))
            best, idle = result, 0 if gained else idle + 1
            places = self.around(places, -sizes[0 if short[0] else 1])
        return best

    def _measured(self, places: Places, count: int) -> tuple[Floats, Floats]:
        squares, largest, fine = np.zeros(count), np.zeros(count), self.apart(places, count)
        for b in self.blocks:
            value = self.over(self.exprs[b.name], places, count).broadcast((count, *b.shape)).abs()
            low = np.broadcast_to(value.lo, value.shape).reshape(count, -1)
            squares, largest = squares + np.sum(low**2, axis=1), np.maximum(largest, low.max(axis=1, initial=0.0))
        fine = fine & np.isfinite(squares)
        return np.where(fine, np.sqrt(squares), 0.0), np.where(fine, largest, 0.0)


class SecondDerivatives(Search):
    """Hessians along the domain, as their products with directions."""

    def __init__(self, setting: ProofContext, expr: Expr, along: Floats | None) -> None:
        blocks = setting.canonical.blocks
        self.directions = {b.name: Name(f"direction of {b.name}", Kind.STREAM, shape=b.shape) for b in blocks}
        super().__init__(setting, _products(setting, expr, self.directions))
        self.along = along
        self._top: int | None = None
        numbers = self.size**2 if self.size <= MOST_DENSE else STEPS * self.size
        self.count = max(4, min(PLACES if self.size <= MOST_DENSE else 3 * FEW, MOST_NUMBERS // numbers))
        self.numbers = self.count * max(numbers, STEPS * self.widest)

    def extremes(self, steepest: float, modulus: float) -> Extremes:
        """Attained extremes, sought until both numbers are shown to be within 5%, or until sweeps find no more."""
        best, places, idle = Extremes(), None, 0
        while idle < IDLE and self.allowed():
            places = places or self.first()
            try:
                size, least = self._measured(places, len(next(iter(places.values()))), best.show(steepest, modulus))
            except (NotCovered, OcoError):
                return best
            result = best.joined(Extremes(float(size.max()), float(least.min())))
            shown = result.show(steepest, modulus)
            if all(shown) or not self.names:
                return result
            idle = 0 if result.improves(best, shown) else idle + 1
            best, places = result, self.around(places, least if shown[0] else -size)
        return best

    def _measured(self, places: Places, count: int, shown: tuple[bool, bool]) -> tuple[Floats, Floats]:
        """The largest |H v| and the least v' H v that are found at each place; one that is shown already is not sought with care."""
        if self.size > MOST_DENSE:
            return self._by_iteration(places, count, shown)
        directions = np.tile(np.eye(self.size), (count, 1))
        repeated = {n: np.repeat(v, self.size, axis=0) for n, v in places.items()}
        shape = (count, self.size, self.size)
        with np.errstate(all="ignore"):
            value = self._times(repeated, directions)
            middle, off = (value.lo / 2 + value.hi / 2).reshape(shape), (value.hi / 2 - value.lo / 2).reshape(shape)
        fine = np.isfinite(middle).all(axis=(1, 2)) & np.isfinite(off).all(axis=(1, 2)) & self.apart(places, count)
        middle, off = np.where(fine[:, None, None], middle, 0.0), np.where(fine[:, None, None], off, 0.0)
        slack = np.linalg.norm(off, axis=(1, 2))
        onto = np.eye(self.size) if self.along is None else self.along
        size = np.where(fine, np.linalg.norm(middle @ onto, 2, axis=(1, 2)) - slack, -np.inf)
        inner = onto.T @ ((middle + middle.transpose(0, 2, 1)) / 2) @ onto
        least = np.where(fine, np.linalg.eigvalsh(inner)[:, 0] + slack, np.inf)
        return size, least

    def _by_iteration(self, places: Places, count: int, shown: tuple[bool, bool]) -> tuple[Floats, Floats]:
        """Power iterations at all places: with H towards the largest |H v|, with c I - H towards the least v' H v."""
        fine = self.apart(places, count)
        if self._top is None:
            self._top = int(
                np.argmax(self._times({n: v[:1] for n, v in places.items()}, np.ones((1, self.size))).magnitude)
            )
        start = np.zeros(self.size)
        start[self._top] = 1.0
        size, least = np.full(count, -np.inf), np.full(count, np.inf)
        for first, shift in ((start, False), (self.rng.normal(size=self.size), True)):
            if shown[shift]:
                continue
            v = np.tile(self._onto(first[None]), (count, 1))
            for _ in range(STEPS):
                v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), SMALLEST)
                value = self._times(places, v)
                with np.errstate(all="ignore"):
                    image, off = value.lo / 2 + value.hi / 2, np.linalg.norm(value.hi / 2 - value.lo / 2, axis=1)
                good = fine & np.isfinite(image).all(axis=1) & np.isfinite(off)
                image = np.where(good[:, None], image, 0.0)
                size = np.where(good, np.maximum(size, np.linalg.norm(image, axis=1) - off), size)
                least = np.where(good, np.minimum(least, np.sum(image * v, axis=1) + off), least)
                top = np.maximum(size, 0.0)[:, None]
                v = self._onto(image if not shift else top * v - image)
        return size, least

    def _onto(self, v: Floats) -> Floats:
        return v if self.along is None else np.asarray(v @ self.along @ self.along.T)

    def _times(self, places: Places, directions: Floats) -> Interval:
        """H v at each place, shape (places, entries of all decisions)."""
        cells, start, count = dict(places), 0, len(directions)
        for b in self.blocks:
            part = directions[:, start : start + b.domain.size]
            cells[self.directions[b.name].name] = part.reshape(count, *b.shape)
            start += b.domain.size
        parts = []
        for b in self.blocks:
            value = self.over(self.exprs[b.name], cells, count)
            lo, hi = value.broadcast((count, *b.shape)).expanded()
            parts.append((lo.reshape(count, -1), hi.reshape(count, -1)))
        lo, hi = (np.concatenate([p[k] for p in parts], axis=1) for k in (0, 1))
        return Interval(lo, hi, lo.shape)


def _products(setting: ProofContext, expr: Expr, directions: Mapping[str, Name]) -> dict[str, Expr]:
    """The Hessian times a direction, for each decision."""
    order = list(setting.blocks)
    total: Expr | None = None
    for name, slope in gradient(expr, order).items():
        along = call("mul", setting.simplify(slope), directions[name])
        term = call("sum", along) if along.shape else along
        total = term if total is None else call("add", total, term)
    assert total is not None
    return {name: setting.simplify(g) for name, g in gradient(setting.simplify(total), order).items()}
