"""Products of domains: a decision for each block, one after another in one vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.base import MAX_VERTICES, Domain, Halfspaces
from oco.compiler.domains.norms import Floats, exact_sum, vector_norm
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class Product(Domain):
    """{ (x_1, ..., x_k) : x_i in blocks[i] }; the point is the vector of the flattened blocks."""

    kind: ClassVar[str] = "product"

    blocks: tuple[Domain, ...] = field(kw_only=True)

    @property
    def geometry(self) -> str:
        """Geometry of the blocks where they agree, else "mixed": each block has its own."""
        kinds = {d.geometry for d in self.blocks}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    @property
    def expensive(self) -> Mapping[str, str]:
        return {operation: f"{d}: {why}" for d in self.blocks for operation, why in d.expensive.items()}

    @property
    def bounds_only(self) -> frozenset[str]:
        return frozenset().union(*(d.bounds_only for d in self.blocks))

    @property
    def projection_cost(self) -> str:  # type: ignore[override]
        return "; ".join(dict.fromkeys(d.projection_cost for d in self.blocks))

    @property
    def lmo_cost(self) -> str:  # type: ignore[override]
        return "; ".join(dict.fromkeys(d.lmo_cost for d in self.blocks))

    def _ends(self) -> list[tuple[Domain, int, int]]:
        """Each block with the part of the vector that it takes."""
        stops = np.cumsum([d.size for d in self.blocks])
        return [(d, int(stop) - d.size, int(stop)) for d, stop in zip(self.blocks, stops)]

    def split(self, x: Floats) -> list[Floats]:
        """The blocks of a vector."""
        return [x[a:b].reshape(d.shape) for d, a, b in self._ends()]

    def _joined(self, parts: list[Floats]) -> Floats:
        return np.concatenate([np.ravel(p) for p in parts])

    def _traced(self, t: Tracer, f: Callable[..., Value], *values: Value) -> Value:
        """f(block, its part of each value) for every block, as one vector."""
        parts = []
        for d, a, b in self._ends():
            own = [t.reshape(v[a:b], d.shape) for v in values]
            parts.append(t.reshape(f(d, *own), (d.size,)))
        return t.concat(*parts)

    def violation(self, x: Floats) -> float:
        return max(d.violation(part) for d, part in zip(self.blocks, self.split(x)))

    def interior_margin(self, x: Floats) -> float:
        margins = [d.interior_margin(p) for d, p in zip(self.blocks, self.split(x)) if d.dimension]
        return min(margins, default=0.0)

    def project(self, t: Tracer, v: Value) -> Value:
        return self._traced(t, lambda d, part: d.project(t, part), v)

    def lmo(self, t: Tracer, c: Value) -> Value:
        return self._traced(t, lambda d, part: d.lmo(t, part), c)

    def bregman_step(self, t: Tracer, x: Value, p: Value) -> Value:
        return self._traced(t, lambda d, x, p: d.bregman_step(t, x, p), x, p)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        k = M.shape[0]
        parts = []
        for d, a, b in self._ends():
            rows = t.reshape(M[:, a:b], (k, *d.shape))
            moved = d.project_jacobian(t, t.reshape(v[a:b], d.shape), t.reshape(p[a:b], d.shape), rows)
            parts.append(t.reshape(moved, (k, d.size)))
        return t.concat(*parts, axis=1)

    @property
    def lower(self) -> Floats:
        return self._joined([d.lower for d in self.blocks])

    @property
    def upper(self) -> Floats:
        return self._joined([d.upper for d in self.blocks])

    def support(self, c: Floats) -> float:
        return exact_sum(d.support(part) for d, part in zip(self.blocks, self.split(c)))

    def _diameter_l2(self) -> float:
        return vector_norm(np.array([d.diameter("l2") for d in self.blocks]))

    def _diameter_l1(self) -> float:
        return exact_sum(d.diameter("l1") for d in self.blocks)

    @property
    def radius(self) -> float:
        return vector_norm(np.array([d.radius for d in self.blocks]))

    @property
    def radius_about_centre(self) -> float:
        return vector_norm(np.array([d.radius_about_centre for d in self.blocks]))

    @property
    def inner_radius(self) -> float:
        return min((d.inner_radius for d in self.blocks if d.dimension), default=0.0)

    @property
    def inner_centre(self) -> Floats:
        return self._joined([d.inner_centre for d in self.blocks])

    def centre(self) -> Floats:
        return self._joined([d.centre() for d in self.blocks])

    @property
    def bregman_diameter(self) -> float:
        return exact_sum(d.bregman_diameter for d in self.blocks)

    @property
    def bregman_radius(self) -> float:
        return exact_sum(d.bregman_radius for d in self.blocks)

    def affine_hull(self) -> tuple[Floats, Floats]:
        rows, sides = [np.zeros((0, self.size))], [np.zeros(0)]
        for d, a, b in self._ends():
            A, right = d.affine_hull()
            wide = np.zeros((len(right), self.size))
            wide[:, a:b] = A
            rows.append(wide)
            sides.append(right)
        return np.concatenate(rows), np.concatenate(sides)

    @property
    def hull_fits(self) -> bool:
        return all(d.hull_fits for d in self.blocks)

    @property
    def dimension(self) -> int:
        return sum(d.dimension for d in self.blocks)

    def tangent(self, c: Floats) -> Floats:
        return self._joined([d.tangent(part) for d, part in zip(self.blocks, self.split(c))])

    def halfspaces(self) -> Halfspaces | None:
        from scipy.linalg import block_diag

        parts = [h for h in (d.halfspaces() for d in self.blocks) if h is not None]
        if len(parts) < len(self.blocks):
            return None
        A, E = block_diag(*(h.A for h in parts)), block_diag(*(h.E for h in parts))
        return Halfspaces(A, np.concatenate([h.b for h in parts]), E, np.concatenate([h.f for h in parts]))

    def vertices(self) -> Floats | None:
        result = np.zeros((1, 0))
        for d in self.blocks:
            corners = d.vertices()
            if corners is None or len(corners) * len(result) > MAX_VERTICES:
                return None
            flat = corners.reshape(len(corners), -1)
            result = np.concatenate([np.repeat(result, len(flat), axis=0), np.tile(flat, (len(result), 1))], axis=1)
        return result

    @property
    def decomposes(self) -> bool:
        return any(d.decomposes for d in self.blocks)

    @property
    def sampling_cost(self) -> int:
        return sum(d.sampling_cost for d in self.blocks)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        return np.concatenate([d.sample(rng, n).reshape(n, -1) for d in self.blocks], axis=1)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [c for d, part in self._parts(cp, variable) for c in d.constraints(cp, part)]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        parts = self._parts(cp, variable)
        own = [d.interior_constraints(cp, p, margin) if d.dimension else d.constraints(cp, p) for d, p in parts]
        return [c for block in own for c in block]

    def _parts(self, cp: Any, variable: Any) -> list[tuple[Domain, Any]]:
        return [(d, cp.reshape(variable[a:b], d.shape, order="C")) for d, a, b in self._ends()]

    def __str__(self) -> str:
        return " x ".join(map(str, self.blocks))


def product(*blocks: Domain) -> Product:
    """The product of domains, over the vector of all their entries."""
    return Product((sum(d.size for d in blocks),), blocks=blocks)
