"""Group ball: the l2 norms of groups of entries sum to at most r."""

from __future__ import annotations

import math
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import number, written
from oco.compiler.domains.base import Domain
from oco.compiler.domains.l1_ball import shrink_to_sum
from oco.compiler.domains.norms import Floats
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class GroupBall(Domain):
    """{ x : sum_g |x_g|_2 <= r }; `groups` numbers the group of each entry of the vector x from 0 on."""

    kind: ClassVar[str] = "group_ball"
    lengths = ("r",)

    r: float = 1.0
    groups: Floats = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", number("r", self.r))
        _, dense = np.unique(np.asarray(self.groups), return_inverse=True)
        object.__setattr__(self, "groups", dense.reshape(self.shape).astype(np.int64))

    @cached_property
    def sizes(self) -> Floats:
        """Number of entries of each group."""
        return np.bincount(self.groups)

    @property
    def _count(self) -> int:
        return len(self.sizes)

    def norms(self, x: Floats) -> Floats:
        """The l2 norm of each group."""
        largest = float(np.max(np.abs(x), initial=0.0))
        if largest == 0:
            return np.zeros(self._count)
        return largest * np.sqrt(np.bincount(self.groups, (x / largest) ** 2, self._count))

    def violation(self, x: Floats) -> float:
        return math.fsum(self.norms(x / self.r)) - 1

    def interior_margin(self, x: Floats) -> float:
        # Moving by d adds at most sqrt(number of groups) |d| to the sum of norms, and can add as much.
        return (self.r - math.fsum(self.norms(x))) / math.sqrt(self._count)

    def _polar(self, t: Tracer, v: Value) -> tuple[Value, Value, Value]:
        """The norm of each group (count,), the unit vector of v within each group (n,), and the groups as a constant."""
        groups = t.constant(self.groups, "groups", "the group of each entry")
        largest = t.max(t.abs(v))
        scale = t.where(largest > 0, largest, 1.0)
        u = v / scale
        length = t.sqrt(t.scatter_add(u * u, groups, shape=(self._count,)))
        unit = u / t.gather(t.where(length > 0, length, 1.0), groups)
        return scale * length, unit, groups

    def project(self, t: Tracer, v: Value) -> Value:
        norms, unit, groups = self._polar(t, v)
        return t.where(t.sum(norms) <= self.r, v, unit * t.gather(shrink_to_sum(t, norms, self.r), groups))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # x_g = rho_g(norms) unit_g: the l1 rule across norms along the unit vectors, the ratio rho_g / |v_g| across them.
        norms, unit, _ = self._polar(t, v)
        shrunk, _, _ = self._polar(t, p)
        k = M.shape[0]
        member = t.constant(np.eye(self._count)[self.groups], "member", "1 where an entry is in a group")
        along = (M * unit) @ member
        active = t.to_float(shrunk > 0.0)
        change = along * active - t.outer((along @ active) / t.maximum(t.sum(active), 1.0), active)
        ratio = shrunk / t.where(norms > 0, norms, 1.0)
        across = M - (along @ member.T) * unit
        moved = (change @ member.T) * unit + across * (member @ ratio)
        return t.where(t.broadcast(t.sum(norms), (k, self.size)) <= self.r, M, moved)

    def lmo(self, t: Tracer, c: Value) -> Value:
        norms, unit, groups = self._polar(t, c)
        best = t.argmax(norms)
        first = t.constant(self._first_of_group, "first", "1 at the first entry of each group")
        return -self.r * t.where(groups == best, t.where(norms[best] > 0, unit, first), 0.0)

    @property
    def _first_of_group(self) -> Floats:
        first = np.zeros(self.shape)
        first[np.unique(self.groups, return_index=True)[1]] = 1.0
        return first

    @property
    def lower(self) -> Floats:
        return np.full(self.shape, -self.r)

    @property
    def upper(self) -> Floats:
        return np.full(self.shape, self.r)

    def support(self, c: Floats) -> float:
        return self.r * float(self.norms(c).max())

    def _diameter_l2(self) -> float:
        return 2 * self.r

    def _diameter_l1(self) -> float:
        return 2 * self.r * math.sqrt(float(self.sizes.max()))

    @property
    def radius(self) -> float:
        return self.r

    @property
    def radius_about_centre(self) -> float:
        return self.r

    @property
    def inner_radius(self) -> float:
        return self.r / math.sqrt(self._count)

    def centre(self) -> Floats:
        return np.zeros(self.shape)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        direction = rng.standard_normal((n, self.size))
        total = np.array([math.fsum(self.norms(d)) for d in direction])[:, None]
        return np.asarray(self.r * direction / total * rng.random((n, 1)) ** (1 / self.size))

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return self.interior_constraints(cp, variable, 0.0)

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        order, sizes = np.argsort(self.groups, kind="stable"), np.bincount(self.groups)
        parts = []
        for size in np.unique(sizes):  # groups of one size together: a norm each is slow to read
            rows = variable[order[np.repeat(sizes == size, sizes)]]
            parts.append(cp.norm(cp.reshape(rows, (rows.size // size, size), order="C"), 2, axis=1))
        return [cp.sum(cp.hstack(parts)) + math.sqrt(self._count) * margin <= self.r]

    def __str__(self) -> str:
        return f"group_ball({written(self.r)}, {written(self.groups)})"
