"""Models whose constraints are relaxed: by the least common amount, or by given amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.domains.make import domain
from oco.compiler.problem.canonical import Canonical, DecisionBlock, Equality, Inequality
from oco.dsl import algebra as e
from oco.dsl.enclose import enclose
from oco.dsl.expressions import Kind, Name, constant
from oco.dsl.intervals import Interval
from oco.dsl.statements import Timing

Array = np.ndarray[Any, Any]

VIOLATION = "_violation"


def elastic(problem: Canonical, scales: Sequence[Array], ranges: dict[str, Interval]) -> Canonical:
    """Problem: minimize v subject to g_m / scale_m <= v, |h_k| / scale_k <= v and v >= 0, for a scale of each
    constraint in its shape.
    """
    v = Name(VIOLATION, Kind.DECISION, shape=())
    softer, most = [], 1.0
    for c, scale in zip(_both_ways(problem), (*scales, *scales[len(problem.inequalities) :])):
        size = constant(scale)
        most = max(most, float(np.max(enclose(c.expr, ranges).hi / scale)))
        softer.append(replace(c, expr=e.sub(e.div(c.expr, size), v)))
    block = DecisionBlock(VIOLATION, (), domain("box", (), np.zeros(()), np.asarray(2.0 * most)))
    return replace(problem, objective=v, blocks=(*problem.blocks, block), inequalities=tuple(softer), equalities=())


def loosened(problem: Canonical, allowed: Sequence[Array]) -> Canonical:
    """Problem with g_m <= allowed_m and |h_k| <= allowed_k in place of the constraints."""
    every = (*allowed, *allowed[len(problem.inequalities) :])
    softer = (replace(c, expr=e.sub(c.expr, constant(by))) for c, by in zip(_both_ways(problem), every))
    return replace(problem, inequalities=tuple(softer), equalities=())


def _both_ways(problem: Canonical) -> list[Inequality]:
    """Inequalities, then h <= 0 for each equality, then -h <= 0."""
    pairs = [(c, c.expr) for c in problem.equalities] + [(c, e.minus(c.expr)) for c in problem.equalities]
    return [*problem.inequalities, *(_on_average(c, expr) for c, expr in pairs)]


def _on_average(c: Equality, expr: Any) -> Inequality:
    return Inequality(c.label, c.shape, expr, Timing.ON_AVERAGE, c.label)
