"""Domains cut by affine rows that have no form of their own: polyhedra, and curved sets that keep their projection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.affine import in_units
from oco.compiler.domains.base import ArrayFunction, Domain, Halfspaces
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.domains.inside import BALL
from oco.compiler.domains.norms import Floats, exact_sum, vector_norm
from oco.compiler.domains.polyhedron import Polyhedron
from oco.compiler.domains.polyhedron_feasibility import nearest
from oco.compiler.domains.programs import Steps
from oco.compiler.domains.rows import UnitRows
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

FEW = 16
"""Entries up to which the hull is computed; beyond, it is that of the base."""

MANY = 16
"""Rows up to which sizes are those of the cut; beyond, they are bounded by those of the base."""

UNITS, SMALL = 20_000, 500
"""Microseconds for each row that a linear minimisation is taken to need, where rows are many or have more numbers than that."""

SLIGHT = 1e-9
"""A share that counts as none: of a row within the affine hull, of an inner radius."""

SOLVED = 1e-7
"""Tolerance of the conic solver for an inner radius, in sizes of the base."""

MOST_KEPT = 200
"""Values of a support function that are kept."""

ROUNDING = 1e-14
"""Allowance for rounding that is added to a support, in sizes of the base."""


def _written(base: Domain, count: int) -> str:
    return f"{base} cut by {count} affine row{'s' if count > 1 else ''}"


@dataclass(frozen=True, eq=False)
class CutPolyhedron(Polyhedron):
    """A polyhedral domain cut by `added` further rows."""

    kind: ClassVar[str] = "cut domain"

    base: Domain = field(kw_only=True)
    added: int = field(kw_only=True)

    @property
    def _known_bounds(self) -> tuple[Floats, Floats]:
        return self.base.lower.ravel(), self.base.upper.ravel()

    def __str__(self) -> str:
        return _written(self.base, self.added)


@dataclass(frozen=True, eq=False)
class CutSet(Domain):
    """{ x in base : A x <= b, E x = f } for a base that is not a polyhedron; diameters and radii are those of the base."""

    kind: ClassVar[str] = "cut domain"

    base: Domain = field(kw_only=True)
    rows_added: Halfspaces = field(kw_only=True)

    def __post_init__(self) -> None:
        self._agree()
        self._inner  # noqa: B018  finds out now whether the cut leaves anything

    def _agree(self) -> None:
        """An error where the rows that do not change along the set contradict each other, or the base's affine hull.

        The conic solver's tolerances hide such contradictions, and `interior_margin` leaves those rows out. Other rows need no
        certificate: there the centre has room.
        """
        g, level = self.rows_added, self._lengths == 0
        if self._held.shape[1] == len(g.f) and not np.any(level):
            return
        A, b = self.base.affine_hull()
        E, f = np.concatenate([A.reshape(-1, self.size), g.E]), np.append(b, g.f)
        ends = self.base.lower.ravel(), self.base.upper.ravel()
        nearest(UnitRows.of(g.A[level], g.b[level], E, f, str(self), ends), Steps(BALL))

    @property
    def projection_cost(self) -> str:  # type: ignore[override]
        return f"several projections on the base ({self.base.projection_cost}), one for each Newton step on {len(self._sides)} multipliers"

    @property
    def lmo_cost(self) -> str:  # type: ignore[override]
        return f"a few projections (proximal point method), each {self.projection_cost}"

    @property
    def expensive(self) -> Mapping[str, str]:
        why = self.base.expensive.get("project")
        return self.base.expensive if why is None else {**self.base.expensive, "lmo": why}

    @property
    def bounds_only(self) -> frozenset[str]:
        """A cut ball has points as far apart as the bound says, and as far out, along what is orthogonal to all rows."""
        loose = {"diameter.l1", "diameter.l2", "radius", "radius_about_centre", "bregman_radius"}
        if self.base.is_ball and np.linalg.matrix_rank(self._matrix) < self.size:
            loose -= {"diameter.l2", "radius"}
        if self._inequalities < len(self._sides) or self.base.kind in ("ellipsoid", "affine", "product"):
            loose |= {"inner_radius"}
        return frozenset(loose | ({"hull"} if self.size > FEW or self._only_base else set()))

    @cached_property
    def _matrix(self) -> Floats:
        """All rows, inequalities first, of norm one."""
        C = np.concatenate([self.rows_added.A, self.rows_added.E])
        return np.asarray(C / np.linalg.norm(C, axis=1, keepdims=True))

    @cached_property
    def _sides(self) -> Floats:
        C = np.concatenate([self.rows_added.A, self.rows_added.E])
        return np.asarray(np.concatenate([self.rows_added.b, self.rows_added.f]) / np.linalg.norm(C, axis=1))

    @property
    def _inequalities(self) -> int:
        return len(self.rows_added.b)

    @property
    def _scale(self) -> float:
        return max(self.base.radius, float(np.max(np.abs(self._sides))))

    def violation(self, x: Floats) -> float:
        over = self._matrix @ x.ravel() - self._sides
        over[self._inequalities :] = np.abs(over[self._inequalities :])
        return max(self.base.violation(x), float(np.max(over)) / self._scale)

    def interior_margin(self, x: Floats) -> float:
        m, moving = self._inequalities, self._lengths > 0
        slack = (self._sides[:m] - self._matrix[:m] @ x.ravel())[moving] / self._lengths[moving]
        return float(min(self.base.interior_margin(x), np.min(slack, initial=math.inf)))

    @cached_property
    def _units(self) -> tuple[float, Domain]:
        """The size of the base, and the base in units of it: multipliers and their products stay numbers at every scale."""
        size = self.base.radius
        return size, in_units(self.base, np.zeros(()), size)

    def _dual(self, t: Tracer) -> CutDual:
        size, base = self._units
        return CutDual(t, base, self._matrix, self._sides / size, self._inequalities)

    def project(self, t: Tracer, v: Value) -> Value:
        size = self._units[0]
        return self.shaped(t, self._dual(t).project(self.flat(t, v) / size) * size)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        return self.shaped_rows(t, self._dual(t).project_jacobian(self.flat(t, v) / self._units[0], self.rows(t, M)))

    def lmo(self, t: Tracer, c: Value) -> Value:
        return self.shaped(t, self._minimised(t, c)[0])

    def _minimised(self, t: Tracer, c: Value) -> tuple[Value, Value]:
        """A minimiser, flattened, and the multipliers of the rows that prove it, for a cost of length one."""
        size = self._units[0]
        centre = t.constant(self.centre().ravel() / size, "centre", "where the search begins")
        x, lam = self._dual(t).minimise(self.flat(t, c), centre)
        return x * size, lam

    @cached_property
    def _proved_minimisation(self) -> ArrayFunction:
        return self._alone(self._minimised, 1)

    @cached_property
    def _inner(self) -> tuple[Floats, float]:
        """The centre and the radius of a ball within, a largest one as far as `interior_margin` tells: a conic program."""
        import cvxpy as cp

        size, base = self._units
        u, margin = cp.Variable(self.shape), cp.Variable()
        problem = cp.Problem(cp.Maximize(margin), self._rows_with_room(cp, base, u, margin, size))
        for solver in (cp.CLARABEL, cp.SCS):
            try:
                problem.solve(solver=solver)
            except cp.SolverError:
                continue
            if problem.status in ("optimal", "optimal_inaccurate"):
                break
        if problem.status in ("user_limit", "solver_error"):
            raise fail("OCO133", f"no solver tells whether {self} of {self.size:,} entries holds a point")
        if margin.value is None or float(margin.value) < -SOLVED:
            raise fail("OCO410", f"{self} is empty")
        result = size * np.asarray(u.value)
        at_once = len(self._sides) > MANY and self._inequalities == len(self._sides)
        centre = result if at_once or not self.is_cheap("project") else self.project_array(result)
        room = self.interior_margin(centre)
        if room <= SLIGHT * self._scale:
            raise fail(
                "OCO410", f"{self} holds no interior point of {self.base}", hint="cut less, or write the set itself"
            )
        return centre, room

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        return self._rows_with_room(cp, self.base, variable, margin, 1.0)

    def _rows_with_room(self, cp: Any, base: Domain, variable: Any, margin: Any, size: float) -> list[Any]:
        """Constraints of the base and of the rows, with a margin, in units of `size`."""
        x, m, sides = cp.vec(variable, order="C"), self._inequalities, self._sides / size
        rows = [self._matrix[:m] @ x + cp.multiply(self._lengths, margin) <= sides[:m]] if m else []
        rows += [self._matrix[m:] @ x == sides[m:]] if m < len(sides) else []
        return [*base.interior_constraints(cp, variable, margin), *rows]

    @cached_property
    def _lengths(self) -> Floats:
        """The lengths of the inequalities' rows along the affine hull, zero where only rounding is left."""
        results = [vector_norm(self.tangent(row.reshape(self.shape))) for row in self._matrix[: self._inequalities]]
        return np.array([length if length > SLIGHT else 0.0 for length in results])

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        if self.size > FEW or self._only_base:
            return self.base.lower, self.base.upper
        axes = np.eye(self.size).reshape(-1, *self.shape)
        low, high = (np.array([sign * self.support(sign * a) for a in axes]).reshape(self.shape) for sign in (-1, 1))
        return np.maximum(low, self.base.lower), np.minimum(high, self.base.upper)

    @property
    def lower(self) -> Floats:
        return self._hull[0]

    @property
    def upper(self) -> Floats:
        return self._hull[1]

    def support(self, c: Floats) -> float:
        """An upper bound, by the dual: <lam, r> and the support of the base along c - C' lam, for the multipliers lam of a maximiser."""
        key, known = np.asarray(c).tobytes(), self._supports
        if key not in known:
            if len(known) >= MOST_KEPT:
                known.clear()
            known[key] = self._support(c)
        return known[key]

    @cached_property
    def _supports(self) -> dict[bytes, float]:
        """Bounds found: sums of many decisions in one set ask for the same ones again and again."""
        return {}

    def _support(self, c: Floats) -> float:
        largest = float(np.max(np.abs(c)))
        if self._only_base or not largest:
            return self.base.support(c)
        u = c / largest
        length = vector_norm(u)
        lam = self._proved_minimisation(np.asarray(-u))[1] * length
        rest = self.base.support(u - (lam @ self._matrix).reshape(self.shape))
        bound = min(exact_sum(lam * self._sides) + rest, self.base.support(u))
        return largest * (bound + ROUNDING * length * self.base.radius)

    def _farthest(self, z: Floats) -> float:
        """A bound of max |x - z|_2: with |x - c| <= R on the base, |x - z|^2 <= R^2 + |w|^2 + 2 max <-w, x - c> for w = z - c."""
        size, result = self.base.radius, math.inf
        for c, R in ((self.base.centre(), self.base.radius_about_centre), (np.zeros(self.shape), size)):
            w = np.asarray(z - c) / size
            most = (self.support(-w) + exact_sum((w * c).ravel())) / size
            result = min(result, (R / size) ** 2 + vector_norm(w) ** 2 + 2 * most)
        return size * math.sqrt(max(result, 0.0))

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        """In l2: twice a radius about the point nearest to the middle of the base, which makes the bound of `_farthest` least."""
        if self._only_base:
            return self.base.diameter("l2"), self.base.diameter("l1")
        spread = np.ravel(self.upper - self.lower)
        l2 = min(
            self.base.diameter("l2"), 2 * self._farthest(self.project_array(self.base.centre())), vector_norm(spread)
        )
        return l2, min(self.base.diameter("l1"), math.sqrt(self.size) * l2, exact_sum(np.abs(spread)))

    def _diameter_l2(self) -> float:
        return self._diameters[0]

    def _diameter_l1(self) -> float:
        return self._diameters[1]

    @cached_property
    def radius(self) -> float:
        return self.base.radius if self._only_base else min(self.base.radius, self._farthest(np.zeros(self.shape)))

    @cached_property
    def radius_about_centre(self) -> float:
        return self.diameter("l2") if self._only_base else min(self.diameter("l2"), self._farthest(self.centre()))

    @property
    def _only_base(self) -> bool:
        """True if the base's numbers bound those of the cut, since a projection takes too long or is refused."""
        return not self.is_cheap("project") or len(self._sides) > MANY

    @property
    def inner_radius(self) -> float:
        return self._inner[1]

    def centre(self) -> Floats:
        return self._inner[0]

    @cached_property
    def _held(self) -> Floats:
        """An orthonormal basis, as columns, of the directions of the base that the equalities forbid."""
        rows = [self.base.tangent(row.reshape(self.shape)).ravel() for row in self._matrix[self._inequalities :]]
        u, s, _ = np.linalg.svd(np.transpose(np.reshape(rows, (-1, self.size))), full_matrices=False)
        return np.asarray(u[:, s > SLIGHT * np.max(s, initial=1.0)])

    def affine_hull(self) -> tuple[Floats, Floats]:
        A, b = self.base.affine_hull()
        return np.concatenate([A, self._held.T]), np.append(b, self._held.T @ self.centre().ravel())

    @property
    def dimension(self) -> int:
        return self.base.dimension - int(self._held.shape[1])

    def tangent(self, c: Floats) -> Floats:
        flat = self.base.tangent(c).ravel()
        return np.asarray(flat - self._held @ (self._held.T @ flat)).reshape(self.shape)

    @property
    def extreme_cost(self) -> int:
        rows = len(self._sides)
        return rows * UNITS if rows > MANY or rows * self.size > SMALL else 0

    @property
    def decomposes(self) -> bool:
        return self.base.decomposes

    @property
    def sampling_cost(self) -> int:
        return self.base.sampling_cost + self.extreme_cost

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        """Projections of points of the base, drawn towards the centre."""
        share = rng.random((n, *(1 for _ in self.shape)))
        inside = np.stack([self.project_array(x) for x in self.base.sample(rng, n)])
        return np.asarray(share * inside + (1 - share) * self.centre())

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        x = cp.vec(variable, order="C")
        m = self._inequalities
        rows = [self._matrix[:m] @ x <= self._sides[:m]] if m else []
        rows += [self._matrix[m:] @ x == self._sides[m:]] if m < len(self._sides) else []
        return [*self.base.constraints(cp, variable), *rows]

    def __str__(self) -> str:
        return _written(self.base, len(self._sides))
