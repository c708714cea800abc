"""Boxes cut by a total: lo <= x <= hi, sum x = total. The mathematics of `budget` and `capped_simplex`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.domains.arguments import filled_to, number
from oco.compiler.domains.base import Domain, Halfspaces
from oco.compiler.domains.box_sum_vertices import extreme_points, largest_transfer, spread_of_transfer
from oco.compiler.domains.budget_multiplier import Bound, Scalings, Shifts
from oco.compiler.domains.greedy_allocation import filled
from oco.compiler.domains.norms import Floats, exact_sum, unit_rows, vector_norm
from oco.compiler.domains.properties import AffineRow
from oco.compiler.domains.sampling import hit_and_run, sampling_cost
from oco.compiler.domains.simplex import WEIGHT_FLOOR
from oco.compiler.domains.vertices import not_whole, systematic
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class BoxSum(Domain):
    """{ lo <= x <= hi : sum x = total }, over all entries of the array."""

    lo: Floats = field(default_factory=lambda: np.zeros(()))
    hi: Floats = field(default_factory=lambda: np.ones(()))
    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lo", filled_to("lo", self.lo, self.shape))
        object.__setattr__(self, "hi", filled_to("hi", self.hi, self.shape))
        object.__setattr__(self, "total", number("total", self.total))

    @property
    def geometry(self) -> str:
        return "entropy" if self.total > 0 and float(np.min(self.lo)) >= 0 else "euclidean"

    # The set in numbers: hull, free entries, uniformity.

    @cached_property
    def _scale(self) -> float:
        """Largest size of an entry; bounds may lie out of reach."""
        return _largest_size(*self._hull)

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        """Least and greatest values of the entries, as vectors; entries that the total leaves no room are fixed exactly."""
        lo = np.broadcast_to(self.lo, self.shape).ravel()
        hi = np.broadcast_to(self.hi, self.shape).ravel()
        low = np.maximum(lo, self.total - _sums_of_others(hi))
        high = np.maximum(low, np.minimum(hi, self.total - _sums_of_others(lo)))
        narrow = high - low <= 8 * np.finfo(float).eps * self.size * _largest_size(low, high)
        return np.where(narrow, np.clip(low, lo, hi), low), np.where(narrow, np.clip(low, lo, hi), high)

    @cached_property
    def _free(self) -> Floats:
        low, high = self._hull
        return np.flatnonzero(low < high)

    @cached_property
    def _extreme_points(self) -> Floats | None:
        low, high = self._hull
        return extreme_points(low, high, self.total)

    @property
    def _uniform(self) -> bool:
        """True if every entry has the same bounds, so that all extreme points are permutations of one."""
        return bool(np.all(self.lo == np.min(self.lo)) and np.all(self.hi == np.min(self.hi)))

    @property
    def bounds_only(self) -> frozenset[str]:
        if self._extreme_points is not None:
            return frozenset()
        loose = set() if self._transfer[1] else {"diameter.l1"}
        if not self._uniform:
            loose |= {"diameter.l2", "radius", "radius_about_centre", "bregman_radius"}
        return frozenset(loose)

    @property
    def row(self) -> AffineRow:
        return AffineRow(np.ones(self.shape), self.total, equal=True)

    # Membership.

    @property
    def fractional(self) -> str:
        return not_whole(self, np.asarray(self.lo), np.asarray(self.hi), self.total)

    def vertex(self, t: Tracer, x: Value, u: Value) -> Value:
        return systematic(t, self, x, u, self.total)

    def violation(self, x: Floats) -> float:
        outside = np.maximum(self.lo - x, x - self.hi)
        return max(float(np.max(outside)), abs(exact_sum(x.ravel()) - self.total)) / self._scale

    def interior_margin(self, x: Floats) -> float:
        low, high = self._hull
        free = self._free
        if not len(free):
            return 0.0
        room = np.minimum(x.ravel() - low, high - x.ravel())[free].min()
        return float(room) / math.sqrt(1 - 1 / len(free))

    # Operations of a round.

    def _bounds(self, t: Tracer) -> tuple[Bound, Bound]:
        """Bounds within reach, as numbers where all entries share them, else as vectors."""
        low, high = self._hull
        if not self.lo.ndim and not self.hi.ndim:
            return float(low[0]), float(high[0])
        why = f"bounds of {self.kind}"
        return t.constant(low, "lo", why), t.constant(high, "hi", why)

    def project(self, t: Tracer, v: Value) -> Value:
        # x = clip(v - theta), from the theta for which the entries would do without their bounds.
        w = self.flat(t, v)
        path = Shifts(
            t, *self._bounds(t), self.total, self._scale, way=float(np.max(np.subtract(*reversed(self._hull))))
        )
        return self.shaped(t, path.met(w, (t.sum(w) - self.total) / self.size))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        lo, hi = self._bounds(t)
        x, rows = self.flat(t, p), self.rows(t, M)
        free = t.to_float(t.and_(x > lo, x < hi))
        kept = rows * free
        mean = t.sum(kept, axis=1) / t.maximum(t.sum(free), 1.0)
        return self.shaped_rows(t, kept - t.outer(mean, free))

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        if self.geometry == "euclidean":
            return self.project(t, x - p)
        # x exp(-p) scaled and clipped, in log space: the largest weight is one.
        z = t.log(t.maximum(self.flat(t, x) / self.total, WEIGHT_FLOOR)) - self.flat(t, p)
        z = z - t.max(z)
        lo, hi = (bound / self.total for bound in self._bounds(t))
        shares = Scalings(t, lo, hi, 1.0, self._scale / self.total).met(z, t.lift(0.0))
        return self.shaped(t, self.total * shares)

    def lmo(self, t: Tracer, c: Value) -> Value:
        low, high = self._hull
        room = t.constant(high - low, "room", f"hi - lo of {self.kind}")
        amount = filled(t, self.flat(t, c), room, max(self.total - exact_sum(low), 0.0))
        return self.shaped(t, t.constant(low, "low", f"least values of {self.kind}") + amount)

    # Geometry.

    @property
    def lower(self) -> Floats:
        return self._hull[0].reshape(self.shape)

    @property
    def upper(self) -> Floats:
        return self._hull[1].reshape(self.shape)

    def _fill_from(self, c: Floats) -> Floats:
        """The vertex that maximizes <c, x>."""
        low, high = self._hull
        order = np.argsort(-c, kind="stable")
        room = (high - low)[order]
        x = low.copy()
        x[order] += np.clip(max(self.total - exact_sum(low), 0.0) - (np.cumsum(room) - room), 0, room)
        return x

    def support(self, c: Floats) -> float:
        return exact_sum(c.ravel() * self._fill_from(c.ravel()))

    def _largest(self, phi: Callable[[Floats], Floats]) -> float:
        """max sum phi_i(x_i), phi convex: over the vertices, or a bound by the chords of phi."""
        if self._extreme_points is not None:
            return max(exact_sum(phi(x)) for x in self._extreme_points)
        low, high = self._hull
        if self._uniform:
            return exact_sum(phi(self._fill_from(np.zeros(self.size))))
        width = np.where(high > low, high - low, 1.0)
        slope = (phi(high) - phi(low)) / width
        return exact_sum(phi(low) - slope * low) + self.support(slope)

    @cached_property
    def _transfer(self) -> tuple[float, bool]:
        low, high = self._hull
        return largest_transfer(low, high, self.total)

    def _diameter_l1(self) -> float:
        return 2 * self._transfer[0]

    def _diameter_l2(self) -> float:
        if self._extreme_points is not None:
            return max(vector_norm(x - y) for x in self._extreme_points for y in self._extreme_points)
        low, high = self._hull
        return spread_of_transfer(high - low, self._transfer[0])

    def _farthest(self, centre: Floats) -> float:
        s = self._scale
        return s * math.sqrt(self._largest(lambda x: ((x - centre) / s) ** 2))

    @property
    def radius(self) -> float:
        return self._farthest(np.zeros(self.size))

    @property
    def radius_about_centre(self) -> float:
        return self._farthest(self.centre().ravel())

    @cached_property
    def _inset(self) -> float:
        """The largest rho for which lo + rho <= x <= hi - rho leaves room for the total, over the free entries."""
        low, high = self._hull
        free = self._free
        if not len(free):
            return 0.0
        above, below = self.total - exact_sum(low), exact_sum(high) - self.total
        return min(float((high - low)[free].min()) / 2, above / len(free), below / len(free))

    @property
    def inner_radius(self) -> float:
        return self._inset / math.sqrt(1 - 1 / len(self._free)) if len(self._free) else 0.0

    def centre(self) -> Floats:
        """The point lo + rho + share (hi - lo - 2 rho), the centre of a largest ball within."""
        low, high = self._hull
        x = low.copy()
        free = self._free
        if len(free):
            room = (high - low)[free] - 2 * self._inset
            lack = self.total - exact_sum(low) - len(free) * self._inset
            share = lack / room.sum() if room.sum() > 0 else 0.0
            x[free] += self._inset + share * room
        return x.reshape(self.shape)

    @property
    def bregman_diameter(self) -> float:
        if self.geometry == "euclidean":
            return self.diameter("l2") ** 2 / 2
        low, high = self._hull
        free = self._free
        if not len(free):
            return 0.0
        if low[free].min() <= 0:
            return math.inf
        return exact_sum(np.maximum(_kl(high, low), _kl(low, high))[free])

    @property
    def bregman_radius(self) -> float:
        centre = self.centre().ravel()
        if self.geometry == "euclidean":
            return self.radius_about_centre**2 / 2
        return max(self._largest(lambda x: _kl(x, centre)), 0.0)

    def affine_hull(self) -> tuple[Floats, Floats]:
        free = self._free
        fixed = np.delete(np.arange(self.size), free)
        A, b = unit_rows(fixed, self.size), self._hull[0][fixed]
        if not len(free):
            return A, b
        row = np.zeros((1, self.size))
        row[0, free] = 1.0
        return np.concatenate([A, row]), np.append(b, self.total - exact_sum(b))

    @property
    def dimension(self) -> int:
        return max(len(self._free) - 1, 0)

    def tangent(self, c: Floats) -> Floats:
        flat, free = np.zeros(self.size), self._free
        if len(free):
            flat[free] = c.ravel()[free] - c.ravel()[free].mean()
        return flat.reshape(self.shape)

    def halfspaces(self) -> Halfspaces:
        identity = np.eye(self.size)
        low, high = (np.broadcast_to(b, self.shape).ravel() for b in (self.lo, self.hi))
        total = np.array([self.total])
        return Halfspaces(
            np.concatenate([identity, -identity]), np.concatenate([high, -low]), np.ones((1, self.size)), total
        )

    def vertices(self) -> Floats | None:
        return None if self._extreme_points is None else self._extreme_points.reshape(-1, *self.shape)

    @property
    def sampling_cost(self) -> int:
        return sampling_cost(self.size, self.size)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        low, high = (bound[self._free] for bound in self._hull)
        points = np.tile(self.centre().ravel(), (n, 1))
        if len(self._free):
            points[:, self._free] = hit_and_run(
                rng,
                n,
                points[0, self._free],
                lambda u: u - u.mean(axis=1, keepdims=True),
                lambda u: np.concatenate([u, -u], axis=1),
                lambda x: np.concatenate([high - x, x - low], axis=1),
            )
        return points.reshape(n, *self.shape)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        low, high = (np.broadcast_to(b, self.shape) for b in (self.lo, self.hi))
        return [variable >= low, variable <= high, cp.sum(variable) == self.total]


def _kl(x: Floats, y: Floats) -> Floats:
    """x log(x / y) - x + y, entry by entry; 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / y), 0.0) - x + y


def _largest_size(low: Floats, high: Floats) -> float:
    return max(float(np.max(np.abs(low))), float(np.max(np.abs(high))), float(np.finfo(float).tiny))


def _sums_of_others(x: Floats) -> Floats:
    """Sums of all entries but one, each to the rounding of its own size: the errors of differences are added back (Knuth's two-sum)."""
    whole = exact_sum(x)
    if not math.isfinite(whole):
        return whole - x
    rest = exact_sum(np.append(x, -whole))
    others = whole - x
    back = others - whole
    error = (whole - (others - back)) - (x + back)
    return others + (error + rest)
