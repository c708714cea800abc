"""Known constraints beside those of a step, so that it minimises within both.

A minimizer over the domain alone, moved to the nearest point that the known constraints allow, is no minimizer within them: of plants that
have to serve a load together, each at a cost, none would run, and then all take the same part, whatever they cost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.structure import Structure, entries_alone
from oco.compiler.proximal.known_point import known_rows, order_of_penalties
from oco.dsl.magnitudes import TINY

FIRM = 1e3
"""Least penalty of a row of slope one, in slopes of the step's objective: no loss in the domain buys a violation."""


@lru_cache(maxsize=16)
def coupling(canonical: Canonical) -> tuple[Inequality, ...]:
    """Rows of the known constraints, where they are affine and couple entries; else none.

    Rows of single entries over a box need no place beside the others: what is best in each entry and then cut to the rows is best within.
    """
    if not canonical.known:
        return ()
    rows = known_rows(canonical)
    sizes = {b.name: b.domain.size for b in canonical.blocks}
    alone = all(entries_alone(c.expr, sizes) is not None for c in rows.inequalities)
    boxes = all(b.domain.is_box for b in canonical.blocks)
    return () if rows.structure[0] is not Structure.AFFINE or (alone and boxes) else rows.inequalities


def beside_known(
    own: Problem, rows: tuple[Inequality, ...], y: Point, slope: Point, alpha: Value
) -> tuple[Problem, Value]:
    """View of a round with these rows, last among its inequalities, and the penalties of their entries in a step
    <slope, x - y> + alpha |x - y|^2.
    """
    t, spec, count = own.tracer, own.spec, sum(c.size for c in rows)
    canonical = replace(spec.canonical, inequalities=(*spec.canonical.inequalities, *rows))
    scales = spec.scales
    if scales is not None:
        scales = replace(scales, inequalities=np.concatenate([scales.inequalities, np.ones(count)]))
    both = Problem(
        t, replace(spec, canonical=canonical, structure=canonical.structure[0], scales=scales), own.seen, own.round
    )
    slopes = t.sqrt(both.constraint_gradients(y).squared_norms())[-count:]
    size = t.name("size", t.sqrt(slope.squared_norm()) + 2.0 * alpha * _diameter(own))
    order = order_of_penalties(rows)
    return both, FIRM * order / order.min() * size / t.maximum(slopes, TINY)


def _diameter(p: Problem) -> float:
    return float(np.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains)))
