"""Values that a function does reach: a lower bound of its supremum, found by climbing and evaluated with rounding downwards.

Each step goes to the point that maximizes the linearisation at the current one: a vertex of the domain and a corner of the streams.
For convex functions that never goes down (Frank & Wolfe 1956, read upwards).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import Allowance
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite
from oco.dsl.intervals import point
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
Place = Mapping[str, Floats]
SHARES = (0.5, 0.25, 0.1, 0.03)  # of the way to the best vertex, tried in turn
LARGEST_ENTRIES = 10**6  # of the arrays on the way, all together
SHARE = 0.125  # of the steps that there are, those that one climb may take
OVERHEAD, PART = 10, 2  # steps of an evaluation, and more for each part


@dataclass(frozen=True, eq=False)
class Attained:
    """`value` is reached at `place`, in the round `place["t"]`: evaluated there in interval arithmetic, this is the lower end.

    The decisions of `place` lie in their domains up to rounding; `sensitivity` is the change of the value where every entry moves
    by the size of its decision: what rounding is a share of. It does not vanish with the value.
    """

    value: float
    place: Place
    sensitivity: float = 0.0


class Climber:
    """Looks for large values of one expression."""

    def __init__(self, setting: ProofContext, expr: Expr, seed: int = 0) -> None:
        self.setting = setting
        self.search = setting.search.part(SHARE)
        self.expr = expr
        self.decisions = [n for n in names(expr) if n in setting.decisions]
        self.streams = [n for n in names(expr) if n in setting.streams]
        self.seed = seed
        self.moving = [*self.decisions, *(n for n in self.streams if not setting.streams[n].integer)]
        self.slopes = slopes_of(expr, self.moving)
        self._whole = Evaluation(expr)
        self._slopes = {name: Evaluation(slope) for name, slope in self.slopes.items()}

    @cached_property
    def rng(self) -> np.random.Generator:
        """Made when a start is drawn: many climbs need none."""
        return np.random.default_rng(self.seed)

    def climb(self, enough: float, starts: int = 6, steps: int = 12) -> Attained | None:
        """The best of several climbs; stops early once a value of `enough` is reached."""
        best: tuple[float, Place] | None = None
        for start in self._starts(starts):
            value, place = self._ascend(start, steps)
            if np.isfinite(value) and (best is None or value > best[0]):
                best = value, place
            if best is not None and best[0] >= enough:
                break
        return None if best is None else self._certified(best[1])

    def _ascend(self, place: Place, steps: int) -> tuple[float, Place]:
        value = self._value(place)
        for _ in range(steps):
            for trial in self._trials(place):
                reached = self._value(trial)
                if reached > value:
                    break
            else:
                break
            place, value = trial, reached
        return value, place

    def _trials(self, place: Place) -> Iterator[Place]:
        """The best vertex of the linearisation; one name alone moved there; and points on the way."""
        towards = self._linear_best(place)
        yield towards
        if len(self.moving) > 1:
            yield from ({**place, name: towards[name]} for name in self.moving)
        for share in SHARES:
            yield {n: v + share * (towards[n] - v) if n in self.moving else v for n, v in place.items()}

    def _value(self, place: Place) -> float:
        return float(self._at(self._whole, place))

    def _at(self, evaluation: Evaluation, place: Place) -> Floats:
        """The value at a place; nan where no steps are left."""
        if not self.search.take(OVERHEAD + PART * evaluation.steps):
            return np.asarray(np.nan)
        return evaluation(place, float(place["t"]))

    def _linear_best(self, place: Place) -> Place:
        """The maximizer of the linearisation over domain and streams; entries with slope zero stay."""
        results = dict(place)
        for name in self.moving:
            slope = np.broadcast_to(self._at(self._slopes[name], place), np.shape(place[name]))
            if not np.isfinite(slope).all():
                continue
            if name in self.setting.streams:
                lo, hi = self._ends(name)
                results[name] = np.where(slope > 0, hi, np.where(slope < 0, lo, place[name]))
            elif np.any(slope):
                results[name] = vertex(self.setting.blocks[name].domain, slope, self.search)
        return results

    def _ends(self, name: str) -> tuple[Floats, Floats]:
        lo, hi = self.setting.box[name].expanded()
        return np.maximum(lo, -HUGE), np.minimum(hi, HUGE)

    def _starts(self, count: int) -> Iterator[Place]:
        """All upper ends, all lower ends, those farther from 0, and random corners, in the first and the last round by turns."""
        blocks = self.setting.blocks
        for k in range(count):
            results: dict[str, Floats] = {"t": np.asarray(float(self.setting.canonical.horizon or 1) if k % 2 else 1.0)}
            for name in self.decisions:
                domain = blocks[name].domain
                random = self.rng.normal(size=domain.shape) if k > 2 else None
                upwards = random if random is not None else np.where(_upper(k, domain.lower, domain.upper), 1.0, -1.0)
                results[name] = vertex(domain, upwards, self.search)
            for name in self.streams:
                lo, hi = self._ends(name)
                results[name] = np.where(self.rng.integers(0, 2, lo.shape) if k > 2 else _upper(k, lo, hi), hi, lo)
            yield results

    def _certified(self, place: Place) -> Attained | None:
        """The value again, in interval arithmetic."""
        box = {**self.setting.box, **{n: point(v) for n, v in place.items()}}
        try:
            value = Enclosure(box)(self.expr).least
        except OcoError:
            return None
        return Attained(value, place, self._sensitivity(place))

    def _sensitivity(self, place: Place) -> float:
        """The sum over the decisions of the l1 norm of the gradient times the largest entry in size."""
        total = 0.0
        for name in self.decisions:
            slope = np.broadcast_to(self._slopes[name](place, float(place["t"])), np.shape(place[name]))
            with np.errstate(over="ignore", invalid="ignore"):
                total += float(np.abs(slope).sum() * np.abs(place[name]).max())
        return total


def vertex(domain: Domain, slope: Floats, search: Allowance) -> Floats:
    """The decision of the domain that is farthest along a direction; the centre where no steps are left for it."""
    if domain.is_box:
        return np.where(slope >= 0, domain.upper, domain.lower)
    if not domain.is_cheap("lmo") or domain.decomposes:
        return np.asarray(domain.centre())
    if not search.take(domain.extreme_cost):
        return np.asarray(domain.centre())
    return domain.lmo_array(-slope)


def _upper(k: int, lower: Floats, upper: Floats) -> Floats:
    """At which entries the k-th start is at the upper end."""
    return np.broadcast_to(k == 0, upper.shape) if k < 2 else np.abs(upper) >= np.abs(lower)


def slopes_of(expr: Expr, moving: list[str]) -> dict[str, Expr]:
    """The gradient of a scalar towards decisions and streams alike."""
    turned = rewrite(expr, lambda n: _as_decision(n, moving))
    return gradient(turned, moving) if moving else {}


def _as_decision(node: Expr, moving: list[str]) -> Expr:
    if isinstance(node, Name) and node.name in moving:
        return Name(node.name, Kind.DECISION, shape=node.shape)
    return node
