"""l1 ball: sum |x_i| <= r."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import MAX_VERTICES, Domain, Halfspaces
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.properties import EntrySum
from oco.compiler.domains.simplex import simplex_threshold
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


def shrink_to_sum(t: Tracer, a: Value, s: float) -> Value:
    """The nearest point to a >= 0 (a vector) of { u >= 0 : sum u <= s }."""
    w = t.maximum(a - t.max(a), -s)

    def shrunk() -> Value:
        theta = t.name("theta", simplex_threshold(t, w, s))
        return t.maximum(w - theta, 0.0)

    return t.if_(t.sum(a) <= s, lambda: a, shrunk)[0]


@dataclass(frozen=True, eq=False)
class L1Ball(Domain):
    """{ x : sum |x| <= r }, over all entries of the array."""

    kind: ClassVar[str] = "l1_ball"
    tight_hull: ClassVar[bool] = True
    sign_symmetric: ClassVar[bool] = True
    lengths = ("r",)

    r: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r))

    @property
    def entry_sum(self) -> EntrySum:
        return EntrySum("abs", self.r)

    def violation(self, x: Floats) -> float:
        return math.fsum(np.abs(x / self.r).ravel()) - 1

    def interior_margin(self, x: Floats) -> float:
        return (self.r - math.fsum(np.abs(x).ravel())) / math.sqrt(self.size)

    def project(self, t: Tracer, v: Value) -> Value:
        # The signs of v, on the projection of |v| (Duchi et al., ICML 2008).
        return self.shaped(t, t.sign(self.flat(t, v)) * shrink_to_sum(t, t.abs(self.flat(t, v)), self.r))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # Outside: diag(|a|) - a a' / |a|_1 with a the signs of the projection.
        rows = self.rows(t, M)
        a = t.sign(self.flat(t, p))
        kept = t.abs(a)
        mean = (rows @ a) / t.maximum(t.sum(kept), 1.0)
        outside = rows * kept - t.outer(mean, a)
        return self.shaped_rows(t, t.where(t.sum(t.abs(v)) <= self.r, rows, outside))

    def lmo(self, t: Tracer, c: Value) -> Value:
        flat = self.flat(t, c)
        i = t.argmax(t.abs(flat))
        return self.shaped(t, t.put(t.zeros((self.size,)), t.where(flat[i] < 0.0, self.r, -self.r), i))

    @property
    def lower(self) -> Floats:
        return np.full(self.shape, -self.r)

    @property
    def upper(self) -> Floats:
        return np.full(self.shape, self.r)

    def support(self, c: Floats) -> float:
        return self.r * float(np.max(np.abs(c)))

    def _diameter_l2(self) -> float:
        return 2 * self.r

    def _diameter_l1(self) -> float:
        return 2 * self.r

    @property
    def radius(self) -> float:
        return self.r

    @property
    def radius_about_centre(self) -> float:
        return self.r

    @property
    def inner_radius(self) -> float:
        return self.r / math.sqrt(self.size)

    def centre(self) -> Floats:
        return np.zeros(self.shape)

    def halfspaces(self) -> Halfspaces | None:
        """A facet for each pattern of signs."""
        if 2**self.size > MAX_VERTICES:
            return None
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=self.size)))
        return Halfspaces(signs, np.full(len(signs), self.r), np.zeros((0, self.size)), np.zeros(0))

    def vertices(self) -> Floats | None:
        if 2 * self.size > MAX_VERTICES:
            return None
        return self.r * np.concatenate([np.eye(self.size), -np.eye(self.size)]).reshape(-1, *self.shape)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        gaps = rng.standard_exponential((n, self.size + 1))
        share = gaps[:, :-1] / gaps.sum(axis=1, keepdims=True)
        return np.asarray(self.r * share * rng.choice([-1.0, 1.0], share.shape)).reshape(n, *self.shape)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [cp.sum(cp.abs(variable)) <= self.r]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        return [cp.norm1(cp.vec(variable, order="C")) + math.sqrt(self.size) * margin <= self.r]

    def __str__(self) -> str:
        return f"l1_ball({written(self.r)})"
