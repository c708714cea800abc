"""Randomized rounding: decisions drawn among the extreme points of their set, with the rule's own decision as their mean."""

from __future__ import annotations

from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Draw, Problem
from oco.compiler.problem.canonical import Canonical


def rounding_draws(canonical: Canonical) -> tuple[Draw, ...]:
    """Random arrays of a round for the decisions that are rounded."""
    return tuple(
        Draw(_name(b.name), "uniform", f"draws of an extreme point for {b.name}", shape=(b.domain.vertex_draws,))
        for b in canonical.blocks
        if b.rounded
    )


def rounded(p: Problem, x: Point) -> Point:
    """Decision to play for the rule's own one, in the user's units: x itself where nothing is rounded."""
    blocks = zip(x.blocks, p.spec.canonical.blocks, strict=True)
    drawn = (b.domain.vertex(p.tracer, v, p.draw(_name(b.name))) if b.rounded else v for v, b in blocks)
    return Point(tuple(drawn))


def _name(decision: str) -> str:
    return f"draw_{decision}"
