"""Bounded polyhedra { x : A x <= b, E x = f }: the mathematics of `polytope`, of flows and of cut domains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.domains.active_set import nearest_point
from oco.compiler.domains.arguments import finite
from oco.compiler.domains.base import MAX_DENSE_ORDER, MAX_DENSE_ROWS, Domain, Halfspaces
from oco.compiler.domains.norms import Floats, exact_sum, vector_norm
from oco.compiler.domains.pivoting import cheapest_vertex
from oco.compiler.domains.programs import MOST_STEPS, LinearPrograms, cheapest_rows
from oco.compiler.domains.reduced import Reduced
from oco.compiler.domains.reduction import reduce_polyhedron
from oco.compiler.domains.sampling import hit_and_run, sampling_cost
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

PROGRAMMED = 16
"""Dimensions from which a linear program tells where pivots of a minimisation at compile time begin."""

ROUNDED = 1e-14
"""Rounding error of a corner, as a share of its size and of half the width of the set."""


@dataclass(frozen=True, eq=False)
class Polyhedron(Domain):
    """{ x : A x <= b, E x = f } for the flattened x, bounded and not empty."""

    A: Floats = field(default_factory=lambda: np.zeros((0, 1)))
    b: Floats = field(default_factory=lambda: np.zeros(0))
    E: Floats | None = None
    f: Floats | None = None
    known: Reduced | None = field(default=None, kw_only=True, repr=False)
    """The reduction, where it is known before."""
    steps: int = field(default=MOST_STEPS, kw_only=True, repr=False)
    """Limit on the steps of the linear programs that find the reduction."""

    projection_cost = (
        "O(d (d + m)) for each inequality that becomes tight, d the dimension, m inequalities (active-set method)"
    )
    lmo_cost = (
        "the smallest of all vertices where they are few, else pivots of O(d (d + m)), d the dimension, m inequalities"
    )

    def __post_init__(self) -> None:
        A = finite("A", self.A).reshape(-1, self.size)
        E = np.zeros((0, self.size)) if self.E is None else finite("E", self.E).reshape(-1, self.size)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", np.broadcast_to(finite("b", self.b), (len(A),)))
        object.__setattr__(self, "E", E)
        object.__setattr__(
            self, "f", np.zeros(0) if self.f is None else np.broadcast_to(finite("f", self.f), (len(E),))
        )
        self._reduced  # noqa: B018  finds out now whether the set is empty or unbounded

    @cached_property
    def _reduced(self) -> Reduced:
        assert self.E is not None and self.f is not None
        if self.known is not None:
            return self.known
        name = f"the {self.kind}"
        return reduce_polyhedron(self.A, self.b, self.E, self.f, name, self._known_hull, self._known_bounds, self.steps)

    @property
    def _known_hull(self) -> tuple[Floats, Floats] | None:
        """The smallest box around the set, flattened, where it is known without linear programs."""
        return None

    @property
    def _known_bounds(self) -> tuple[Floats, Floats] | None:
        """Bounds of the entries, flattened, that are known besides the rows."""
        return None

    def rescaled(self, origin: Floats, unit: float) -> Domain | None:
        if not self.lengths or np.any(origin):
            return super().rescaled(origin, unit)
        scaled: dict[str, Any] = {name: getattr(self, name) / unit for name in self.lengths}
        return replace(self, known=self._reduced.divided(unit), **scaled)

    @property
    def expensive(self) -> Mapping[str, str]:
        r = self._reduced
        if len(r.h) <= MAX_DENSE_ROWS and r.dimension <= MAX_DENSE_ORDER:
            return {}
        why = (
            f"each step of its active-set method solves systems for dimension {r.dimension} and {len(r.h)} inequalities"
        )
        return {"project": why, "project_jacobian": why, "bregman_step": why}

    @property
    def bounds_only(self) -> frozenset[str]:
        loose = {"inner_radius"} if self._reduced.loose else set()
        if self._corners is not None:
            return frozenset(loose)
        far = {"diameter.l1", "diameter.l2", "radius", "radius_about_centre"}
        return frozenset(loose | far | ({"hull"} if self._reduced.loose else set()))

    # Between x and the coordinates w of the reduction.

    def _down(self, x: Floats) -> Floats:
        r = self._reduced
        return np.asarray(((x.ravel() - r.origin) / r.scale) @ r.Z)

    def _up(self, w: Floats) -> Floats:
        r = self._reduced
        return np.asarray(r.origin + r.scale * (w @ r.Z.T)).reshape(*w.shape[:-1], *self.shape)

    def _origin(self, t: Tracer) -> Value:
        return t.constant(self._reduced.origin, "origin", f"the middle of the {self.kind}")

    def _basis(self, t: Tracer, Z: Floats) -> Value:
        return t.constant(Z, "Z", f"an orthonormal basis of the directions in the {self.kind}")

    def _coordinates(self, t: Tracer, x: Value, Z: Floats) -> Value:
        """Coordinates of vectors, or of the rows of a matrix."""
        return x if self._reduced.whole else x @ self._basis(t, Z)

    def _steps(self, t: Tracer, w: Value, Z: Floats) -> Value:
        """The vector with the coordinates w."""
        return w if self._reduced.whole else self._basis(t, Z) @ w

    def _units(self, t: Tracer) -> Value | float:
        r = self._reduced
        return r.size if r.same_costs else t.constant(r.scale, "units", "half the widths of the entries")

    def _within(self, t: Tracer, x: Value) -> Value:
        """x, without what rounding leaves of entries that are far narrower than others."""
        r = self._reduced
        if r.same_costs:
            return x
        low, high = (t.constant(end, name, f"of the {self.kind}") for end, name in zip(r.hull, ("lower", "upper")))
        return t.minimum(t.maximum(x, low), high)

    # Membership.

    @cached_property
    def _scale(self) -> float:
        """The larger of one and of the largest distance from 0, in units of the entries."""
        return max(1.0, float(np.max(np.abs(self._reduced.origin) / self._reduced.scale)))

    def violation(self, x: Floats) -> float:
        r = self._reduced
        w = self._down(x)
        off = float(np.max(np.abs((x.ravel() - r.origin) / r.scale - r.Z @ w)))
        inside = float(np.max(r.G @ w - r.h, initial=-math.inf)) if r.dimension else 0.0
        return max(off if off > 1e-14 else 0.0, inside) / self._scale

    def interior_margin(self, x: Floats) -> float:
        r = self._reduced
        if not r.dimension:
            return 0.0
        slack, units = r.h - r.G @ self._down(x), r.nearness.units
        return r.size * float(np.min(slack if units is None else slack * units))

    # Operations of a round.

    def project(self, t: Tracer, v: Value) -> Value:
        r = self._reduced
        if r.dimension == 0:
            return self.shaped(t, self._origin(t))
        near = r.nearness
        u = self._coordinates(t, (self.flat(t, v) - self._origin(t)) / r.size, near.Z)
        u = nearest_point(t, u, near.G, near.h, near.units)
        return self.shaped(t, self._within(t, self._origin(t) + r.size * self._steps(t, u, near.Z)))

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        # The projector on the directions that keep the tight rows tight: the null space of the sum of g g' over them.
        r = self._reduced
        if r.dimension == 0:
            return M * 0.0
        near = r.nearness
        G = t.constant(near.G, "G", "rows of the inequalities G w <= h, of norm one")
        u = self._coordinates(t, (self.flat(t, p) - self._origin(t)) / r.size, near.Z)
        slack = G @ u - near.h
        tight = t.to_float((slack if near.units is None else slack * near.units) > -1e-9)
        values, Q = t.eigh(G.T @ (G * t.reshape(tight, (len(near.h), 1))))
        keep = t.to_float(values < 1e-9)
        kept = ((self._coordinates(t, self.rows(t, M), near.Z) @ Q) * keep) @ Q.T
        return self.shaped_rows(t, kept if r.whole else kept @ self._basis(t, near.Z).T)

    def lmo(self, t: Tracer, c: Value) -> Value:
        r = self._reduced
        corners = self._corners
        if corners is not None:
            table = t.constant(corners.reshape(len(corners), -1), "V", f"vertices of the {self.kind}")
            return self.shaped(t, t.gather(table, t.argmin(table @ self.flat(t, c))))
        return self._cheapest(t, c, r.basis)

    def _cheapest(self, t: Tracer, c: Value, start: Floats) -> Value:
        """The minimiser that pivots find from the vertex of the rows `start`."""
        r = self._reduced
        costs = self.flat(t, c) if r.same_costs else self.flat(t, c) * (self._units(t) / r.size)
        w = cheapest_vertex(t, self._coordinates(t, costs, r.Z), r.G, r.h, start)
        return self.shaped(t, self._within(t, self._origin(t) + self._units(t) * self._steps(t, w, r.Z)))

    def lmo_array(self, c: Any) -> Floats:
        """Linear minimisation as by `lmo`, from the vertex that a linear program finds where pivots are many."""
        r, cost = self._reduced, self._read(c)
        few = self._corners is not None or r.dimension < PROGRAMMED
        start = None if few else cheapest_rows((cost.ravel() * (r.scale / r.size)) @ r.Z, r.G, r.h)
        if start is None:
            return super().lmo_array(c)

        def pivot(t: Tracer, v: Value) -> Value:
            return self._cheapest(t, v, start)

        return self._alone(pivot, 1)(cost)[0]

    # Geometry.

    @cached_property
    def _corners(self) -> Floats | None:
        corners = self._reduced.vertices
        return None if corners is None else self._up(corners)

    def halfspaces(self) -> Halfspaces:
        assert self.E is not None and self.f is not None
        return Halfspaces(self.A, self.b, self.E, self.f)

    def vertices(self) -> Floats | None:
        return self._corners

    def support(self, c: Floats) -> float:
        return exact_sum((c * self.lmo_array(-c)).ravel())

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        lower, upper = (end.reshape(self.shape) for end in self._reduced.hull)
        corners = self._corners
        if corners is None:
            return lower, upper
        # Corners are rounded: 1e-17 beside 0 would take the sign from a cost over a box from 0, or the corner 0 from the set.
        near = ROUNDED * np.maximum(np.abs(corners).max(axis=0), self._reduced.scale.reshape(self.shape))
        low, high = corners.min(axis=0), corners.max(axis=0)
        return np.where(low <= lower + near, lower, low), np.where(high >= upper - near, upper, high)

    @property
    def lower(self) -> Floats:
        return self._hull[0]

    @property
    def upper(self) -> Floats:
        return self._hull[1]

    def _widest(self, order: int) -> Floats:
        """A difference of two points that is longest in the norm l1 or l2; of the ends of the hull where vertices are many."""
        corners = self._corners
        if corners is None:
            return np.asarray(self.upper - self.lower)
        points = corners.reshape(len(corners), -1)
        points = (points - points[0]) / (float(np.max(np.abs(points - points[0]))) or 1.0)
        lengths = [np.linalg.norm(points[: k + 1] - x, order, axis=1) for k, x in enumerate(points)]
        first = int(np.argmax([np.max(row) for row in lengths]))
        return np.asarray(corners[first] - corners[int(np.argmax(lengths[first]))])

    def _diameter_l2(self) -> float:
        return vector_norm(self._widest(2))

    def _diameter_l1(self) -> float:
        return exact_sum(np.abs(self._widest(1)).ravel())

    def _farthest(self, centre: Floats) -> float:
        corners = self._corners
        if corners is None:
            return vector_norm(np.maximum(np.abs(self.lower - centre), np.abs(self.upper - centre)))
        return max(vector_norm(x - centre) for x in corners)

    @property
    def radius(self) -> float:
        return self._farthest(np.zeros(self.shape))

    @property
    def radius_about_centre(self) -> float:
        return self._farthest(self.centre())

    @property
    def inner_radius(self) -> float:
        return self.interior_margin(self.centre())

    def centre(self) -> Floats:
        """The centre of a largest ball within."""
        return self._reduced.origin.reshape(self.shape)

    @property
    def dimension(self) -> int:
        return self._reduced.dimension

    def affine_hull(self) -> tuple[Floats, Floats]:
        r = self._reduced
        return r.normal, r.normal @ r.origin

    @property
    def extreme_cost(self) -> int:
        r = self._reduced
        if self._corners is not None:
            return 0
        if r.dimension < PROGRAMMED:
            return 3 * r.dimension * (400 + r.G.size // 100)
        return 10_000 + LinearPrograms(r.G, r.h, r.G[:0], r.h[:0]).expected // 250

    @property
    def sampling_cost(self) -> int:
        d, rows = self._reduced.dimension, len(self._reduced.h)
        return sampling_cost(d, d * rows)

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        r = self._reduced
        if r.dimension == 0:
            return np.tile(self.centre(), (n, *(1 for _ in self.shape)))
        w = hit_and_run(rng, n, np.zeros(r.dimension), lambda u: u, lambda u: u @ r.G.T, lambda w: r.h - w @ r.G.T)
        return self._up(w)

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        assert self.E is not None and self.f is not None
        x = cp.vec(variable, order="C") if len(self.shape) != 1 else variable
        rows = [self.A @ x <= self.b] if len(self.A) else []
        return [*rows, self.E @ x == self.f] if len(self.E) else rows
