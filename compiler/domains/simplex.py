"""Simplex: x >= 0, sum x = s."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import MAX_VERTICES, Domain, Halfspaces
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.properties import AffineRow, EntrySum, LinearBound
from oco.compiler.domains.vertices import not_whole, systematic
from oco.dsl.intervals import Interval, point
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

WEIGHT_FLOOR = 1e-300
"""Weights are read as at least this share of the whole, so that one that underflowed can grow again."""

SORTED = 256
"""Up to this many entries are sorted to find the threshold; more are passed over several times."""


def simplex_threshold(t: Tracer, w: Value, s: Value | float) -> Value:
    """theta with sum max(w - theta, 0) = s, for w with max w = 0 and w >= -s (shape (n,)).

    Any k entries bound the root from below by their sum - s over k, and the k largest ones for some k attain it (Held, Wolfe & Crowder,
    Math. Program. 6, 1974): few entries are sorted.
    """
    n = w.size
    if n <= SORTED:
        totals = t.cumsum(-t.sort(-w))
        return t.max((totals - s) / t.constant(np.arange(1.0, n + 1), "k", "1, 2, ..., n"))
    return _threshold_by_passes(t, w, s)


def _threshold_by_passes(t: Tracer, w: Value, s: Value | float) -> Value:
    """Threshold by Newton's method from the left (Michelot, J. Optim. Theory Appl. 50, 1986), in O(n) for each pass.

    Every pass averages over the entries still above theta. At each the residual or the count of entries halves, so that a few passes
    suffice and nothing is sorted.
    """

    def not_converged(theta: Value, count: Value, before: Value) -> Value:
        return count < before

    def average(theta: Value, count: Value, before: Value) -> tuple[Value, Value, Value]:
        above = t.to_float(w > theta)
        kept = t.sum(above)
        return (t.sum(w * above) - s) / kept, kept, count

    n = float(w.size)
    return t.while_(not_converged, average, ((t.sum(w) - s) / n, n, n + 1.0))[0]


@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """{ x >= 0 : sum x = s }, over all entries of the array."""

    kind: ClassVar[str] = "simplex"
    is_simplex: ClassVar[bool] = True
    tight_hull: ClassVar[bool] = True
    lengths = ("s",)

    s: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "s", number("s", self.s))

    @property
    def geometry(self) -> str:
        return "entropy"

    @property
    def fractional(self) -> str:
        return not_whole(self, self.lower * 0.0, self.upper * 0.0 + 1.0, self.s)

    def vertex(self, t: Tracer, x: Value, u: Value) -> Value:
        return systematic(t, self, x, u, self.s)

    def violation(self, x: Floats) -> float:
        share = x / self.s
        return max(float(-share.min()), abs(math.fsum(share.ravel()) - 1))

    def interior_margin(self, x: Floats) -> float:
        # The facet x_i = 0 lies at distance x_i sqrt(n / (n - 1)) within the hyperplane.
        n = self.size
        return float(x.min()) * math.sqrt(n / (n - 1)) if n > 1 else 0.0

    def project(self, t: Tracer, v: Value) -> Value:
        # Entries s or more below the largest end at zero: taking the largest out and cutting there keeps full precision.
        flat = self.flat(t, v)
        w = t.maximum(flat - t.max(flat), -self.s)
        theta = t.name("theta", simplex_threshold(t, w, self.s))
        p = t.maximum(w - theta, 0.0)
        return self.shaped(t, p)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # diag(a) - a a' / |a|_1 with a the indicator of the positive entries.
        rows = self.rows(t, M)
        active = t.to_float(self.flat(t, p) > 0.0)
        kept = rows * active
        mean = t.sum(kept, axis=1) / t.sum(active)
        return self.shaped_rows(t, kept - t.outer(mean, active))

    def lmo(self, t: Tracer, c: Value) -> Value:
        return self.shaped(t, t.put(t.zeros((self.size,)), self.s, t.argmin(self.flat(t, c))))

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        # u = s x exp(-p) / sum(x exp(-p)): with exponents of at most 0, the sum is at least the floor of the entry whose exponent is 0.
        weight = t.name("weight", t.maximum(x / self.s, WEIGHT_FLOOR) * t.exp(t.min(p) - p))
        return weight * (self.s / t.sum(weight))

    @property
    def lower(self) -> Floats:
        return np.full(self.shape, self.s if self.size == 1 else 0.0)

    @property
    def upper(self) -> Floats:
        return np.full(self.shape, self.s)

    def support_over(self, a: Interval) -> LinearBound:
        return LinearBound((point(self.s) * point(a.greatest)).greatest, True)

    @property
    def entry_sum(self) -> EntrySum:
        return EntrySum("", self.s, equal=True)

    @property
    def row(self) -> AffineRow:
        return AffineRow(np.ones(self.shape), self.s, equal=True)

    def support(self, c: Floats) -> float:
        return self.s * float(np.max(c))

    def _diameter_l2(self) -> float:
        return math.sqrt(2) * self.s if self.size > 1 else 0.0

    def _diameter_l1(self) -> float:
        return 2 * self.s if self.size > 1 else 0.0

    @property
    def radius(self) -> float:
        return self.s

    @property
    def radius_about_centre(self) -> float:
        return self.s * math.sqrt(1 - 1 / self.size)

    @property
    def inner_radius(self) -> float:
        n = self.size
        return self.s / math.sqrt(n * (n - 1)) if n > 1 else 0.0

    def centre(self) -> Floats:
        return np.full(self.shape, self.s / self.size)

    @property
    def bregman_diameter(self) -> float:
        return math.inf if self.size > 1 else 0.0

    @property
    def bregman_radius(self) -> float:
        """KL from a vertex to the uniform point: s log n."""
        return self.s * math.log(self.size)

    def affine_hull(self) -> tuple[Floats, Floats]:
        return np.ones((1, self.size)), np.array([self.s])

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(-np.eye(self.size), np.zeros(self.size), *self.affine_hull())

    def vertices(self) -> Floats | None:
        return (self.s * np.eye(self.size)).reshape(-1, *self.shape) if self.size <= MAX_VERTICES else None

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        gaps = rng.standard_exponential((n, self.size))
        return np.asarray(self.s * gaps / gaps.sum(axis=1, keepdims=True)).reshape(n, *self.shape)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable >= 0, cp.sum(variable) == self.s]

    def __str__(self) -> str:
        return "simplex" if self.s == 1 else f"simplex({written(self.s)})"
