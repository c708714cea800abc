"""Decisions of which only values are seen: random perturbations, one-point gradients, and the shrunk domain that leaves room for them.

Flaxman, Kalai & McMahan 2005: for u uniform on the unit sphere, (d/delta) f(y + delta u) u is in expectation the gradient at y of f
averaged over the ball of radius delta. Where papers have a ball of radius r around the origin, here it lies around the domain's
inner centre, and spheres and balls are those of the domain's affine hull, so that a simplex has directions as well as a box.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Draw, Problem, TraceSpec
from oco.compiler.theory.theorems import Hypothesis, Objection, Situation
from oco.dsl.magnitudes import TINY


def draws(spec: TraceSpec) -> tuple[Draw, ...]:
    """The random arrays of a round, for `Algorithm.draws`."""
    return (Draw("u", "normal", "the direction of the perturbation, whatever its length"),)


def direction(p: Problem) -> Point:
    """u_t on the unit sphere of the affine hull of the domain."""
    t = p.tracer
    u = Point(tuple(_tangent(t, d, v) for d, v in zip(p.domain.domains, p.drawn_point("u").blocks)))
    return (u / t.maximum(t.sqrt(u.squared_norm()), TINY)).named(t, "direction")


def _tangent(t: Tracer, d: Domain, v: Value) -> Value:
    """The part of `v` parallel to the affine hull of `d`."""
    A, _ = d.affine_hull()
    if not len(A):
        return v
    normals = t.constant(np.linalg.qr(A.T)[0].T.copy(), "normals", "orthonormal rows that are constant over the domain")
    flat = d.flat(t, v)
    return d.shaped(t, flat - normals.T @ (normals @ flat))


def perturbed(p: Problem, y: Point) -> Point:
    """y + delta u_t."""
    return y + p.setting("delta") * direction(p)


def estimate(p: Problem, value: Value) -> Point:
    """(d / delta) value u_t, with d the dimension of the domain."""
    return (float(dimension(p.domain.domains)) / p.setting("delta") * value) * direction(p)


def inner_centre(p: Problem) -> Point | None:
    """The centre of a ball of radius r in the domain; None where it is the origin."""
    centres = [d.inner_centre for d in p.domain.domains]
    if not any(c.any() for c in centres):
        return None
    why = "centre of a ball within the domain"
    return Point(tuple(p.tracer.constant(np.array(c, order="C"), "centre", why) for c in centres))


def shrunk(p: Problem, v: Point) -> Point:
    """The image of v in (1 - delta/r) X, the domain shrunk towards its inner centre."""
    scale, centre = 1.0 - p.setting("delta") / p.setting("r"), inner_centre(p)
    return scale * v if centre is None else centre + scale * (v - centre)


def into_shrunk(p: Problem, start: Point) -> Point:
    """y_1: the start where it lies in the shrunk domain, else the nearest point there (without a projection: its image there)."""
    if any(not d.is_cheap("project") for d in p.domain.domains):
        return shrunk(p, start)
    scale, centre = 1.0 - p.setting("delta") / p.setting("r"), inner_centre(p)
    away = start if centre is None else start - centre
    grown = away / scale if centre is None else centre + away / scale
    blocks = p.tracer.if_(
        away.squared_norm() > 0.0, lambda: shrunk(p, p.domain.project(grown)).blocks, lambda: start.blocks
    )
    return Point(blocks)


def inner_radius(s: Situation) -> float:
    """r: the radius of a ball within the product of the domains, taken in its affine hull; 1 over a single point, where any is."""
    return min((d.inner_radius for d in s.domains if d.dimension), default=1.0)


def dimension(domains: Iterable[Domain]) -> int:
    """Dimension of the affine hull of a product of domains."""
    return sum(d.dimension for d in domains)


def _has_interior(s: Situation) -> Objection | None:
    if inner_radius(s) > 0:
        return None
    return Objection(
        "nothing is proved of a ball within the domain, and it tries decisions around one", "widen the domain"
    )


INTERIOR = Hypothesis("The domain contains a ball of radius r > 0 of its affine hull (Assumption 1).", _has_interior)
