"""What is left of domains that are cut by affine rows: polyhedra, and curved sets of which the projection is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.base import Domain, Halfspaces
from oco.compiler.domains.dual_newton import project_on_cut
from oco.compiler.domains.norms import Floats, vector_norm
from oco.compiler.domains.polyhedron import Polyhedron
from oco.dsl.diagnostics import fail

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

HALVINGS = 10
LONG = 1e3
"""Length of a proximal step of a linear minimisation, in diameters."""

CERTIFIED = 1e-10
"""What a linear minimisation may leave, relative to the diameter and the length of the cost."""

MAX_PROXIMAL_STEPS = 200
FEW = 16
"""Entries up to which the hull is computed; beyond, it is that of the base."""


def _written(base: Domain, count: int) -> str:
    return f"{base} cut by {count} affine row{'s' if count > 1 else ''}"


@dataclass(frozen=True, eq=False)
class CutPolyhedron(Polyhedron):
    """A polyhedral domain cut by `added` further rows."""

    kind: ClassVar[str] = "cut domain"

    base: Domain = field(kw_only=True)
    added: int = field(kw_only=True)

    def __str__(self) -> str:
        return _written(self.base, self.added)


@dataclass(frozen=True, eq=False)
class Cut(Domain):
    """{ x in base : A x <= b, E x = f } for a base that is not a polyhedron; diameters and radii are those of the base."""

    kind: ClassVar[str] = "cut domain"

    base: Domain = field(kw_only=True)
    rows_added: Halfspaces = field(kw_only=True)

    def __post_init__(self) -> None:
        self._inner  # noqa: B018  finds out now whether the cut leaves anything

    @property
    def projection_cost(self) -> str:  # type: ignore[override]
        return f"several projections on the base ({self.base.projection_cost}), one for each Newton step on {len(self._sides)} multipliers"

    @property
    def lmo_cost(self) -> str:  # type: ignore[override]
        return f"a few projections (proximal point method), each {self.projection_cost}"

    @property
    def refusals(self) -> Mapping[str, str]:
        said = {"project_jacobian": "the multipliers of the cut would have to be differentiated too"}
        why = self.base.refusals.get("project")
        return said if why is None else {**said, "project": why, "lmo": why, "bregman_step": why}

    @property
    def dear(self) -> Mapping[str, str]:
        return self.base.dear

    @property
    def bounds_only(self) -> frozenset[str]:
        wide = {"hull"} if self.size > FEW else set()
        return frozenset(
            wide
            | {
                "diameter.l1",
                "diameter.l2",
                "radius",
                "radius_about_centre",
                "inner_radius",
                "bregman_radius",
            }
        )

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

    def excess(self, x: Floats) -> float:
        over = self._matrix @ x.ravel() - self._sides
        over[self._inequalities :] = np.abs(over[self._inequalities :])
        return max(self.base.excess(x), float(np.max(over)) / self._scale)

    def interior_margin(self, x: Floats) -> float:
        m = self._inequalities
        slack = self._sides[:m] - self._matrix[:m] @ x.ravel()
        return float(min(self.base.interior_margin(x), np.min(slack, initial=math.inf)))

    def project(self, t: Tracer, v: Value) -> Value:
        return project_on_cut(t, self.base, self._matrix, self._sides, self._inequalities, v, self._scale)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        raise fail("OCO416", f"{self} has no project_jacobian: {self.refusals['project_jacobian']}")

    def lmo(self, t: Tracer, c: Value) -> Value:
        """The limit of x = P(x - s c) from the centre: among several minimisers one near the centre.

        Proximal point method (Rockafellar, SIAM J. Control Optim. 14, 1976): <c, x> - min <= |x - before| diameter / s for a step of length
        s, which certifies the answer. A step is a thousand times as long as the set is wide. Costs that are normal to a cut but for a
        millionth end at the limit of steps, with a millionth of the diameter left.
        """
        diameter, centre = self.base.diameter("l2"), t.constant(self.centre(), "centre", "where the search begins")
        largest = t.max(t.abs(c))
        direction = c / t.where(largest > 0.0, largest, 1.0)
        length = t.sqrt(t.sum(direction * direction))
        step = direction * (LONG * diameter / t.where(length > 0.0, length, 1.0))

        def moving(x: Value, moved: Value, steps: Value) -> Value:
            return t.and_(moved > CERTIFIED * LONG * diameter, steps < MAX_PROXIMAL_STEPS)

        def proximal(x: Value, moved: Value, steps: Value) -> tuple[Value, Value, Value]:
            following = self.project(t, x - step)
            d = (following - x) / diameter
            return following, diameter * t.sqrt(t.sum(d * d)), steps + 1

        return t.while_(moving, proximal, (centre, t.lift(np.inf), t.lift(0)))[0]

    @cached_property
    def _inner(self) -> tuple[Floats, float]:
        """A point and the radius of a ball around it: the deepest one found by shrinking the base towards its inner centre.

        The points c + (1 - s)(u - c), u in the base, keep s times its inner radius; the greatest such s is found by halving.
        """
        best = self._at_depth(0.0)
        if best is None:
            raise fail("OCO410", f"{self} is empty")
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            found = self._at_depth(middle)
            low, high = (middle, high) if found is not None else (low, middle)
            best = found if found is not None else best
        margin = self.interior_margin(best)
        if margin <= 1e-9 * self._scale:
            raise fail(
                "OCO410", f"{self} holds no interior point of {self.base}", hint="cut less, or write the set itself"
            )
        return best, margin

    def _at_depth(self, s: float) -> Floats | None:
        """A point of the cut in the base shrunk by s, its inequalities kept at that distance; None where there is none."""
        import cvxpy as cp

        centre = self.base.inner_centre
        m, depth = self._inequalities, s * self.base.inner_radius
        u = cp.Variable(self.shape)
        x = cp.vec(s * centre + (1 - s) * u, order="C")
        rows = [self._matrix[:m] @ x + depth <= self._sides[:m]] if m else []
        rows += [self._matrix[m:] @ x == self._sides[m:]] if m < len(self._sides) else []
        problem = cp.Problem(cp.Minimize(cp.sum_squares(u - centre)), [*rows, *self.base.constraints(cp, u)])
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return None
        if problem.status not in ("optimal", "optimal_inaccurate"):
            return None
        return self.project_array(s * centre + (1 - s) * np.asarray(u.value))

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        if self.size > FEW or "lmo" in self.refusals:
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
        """An upper bound: <c, y> and what one more proximal step, from x to y, leaves at most (see `lmo`)."""
        size = vector_norm(c)
        if "lmo" in self.refusals or not size:
            return self.base.support(c)
        diameter, x = self.base.diameter("l2"), self.lmo_array(-c)
        y = self.project_array(x + c * (LONG * diameter / size))
        left = size * (vector_norm(y - x) / LONG + CERTIFIED * diameter)
        return min(math.fsum((c * y).ravel()) + left, self.base.support(c))

    def _diameter_l2(self) -> float:
        return self.base.diameter("l2")

    def _diameter_l1(self) -> float:
        return self.base.diameter("l1")

    @property
    def radius(self) -> float:
        return self.base.radius

    @property
    def radius_about_centre(self) -> float:
        return self.base.diameter("l2")

    @property
    def inner_radius(self) -> float:
        return self._inner[1]

    def centre(self) -> Floats:
        return self._inner[0]

    def affine_hull(self) -> tuple[Floats, Floats]:
        A, b = self.base.affine_hull()
        m = self._inequalities
        C, r = np.concatenate([A, self._matrix[m:]]), np.concatenate([b, self._sides[m:]])
        if not len(r):
            return C, r
        u, s, vt = np.linalg.svd(C)
        rank = int(np.sum(s > 1e-9 * s[0]))
        return vt[:rank], (u[:, :rank].T @ r) / s[:rank]

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
