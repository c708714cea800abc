"""Quadratics over balls: sup of x'Qx + q(s)'x + c(s) over |x| <= r by Lagrangian duality, which is exact for fixed q and c.

For every v >= 0 with v > lambda_max(Q): x'Qx + q'x <= v r^2 + sum_i b_i^2 / (4 (v - lambda_i)) with b = V'q in the eigenvectors V of Q
(the trust-region dual; Boyd & Vandenberghe 2004, appendix B.1). With q and c in ranges it bounds every member.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.curvature.curve import LARGEST
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.compiler.prover.ranges.refine import without_decisions
from oco.compiler.prover.suprema.corners import MOST_PROBLEMS, stream_corners
from oco.compiler.prover.terms.kinks import continuous
from oco.dsl.atoms import Curvature
from oco.dsl.expressions import Constant, Expr, Kind, names
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

SLACK = 2.0**-40


def ball_sup(setting: ProofContext, expr: Expr) -> float | None:
    """An upper bound of a quadratic with a fixed matrix over a ball; None where `expr` is no such thing."""
    used = names(expr, Kind.DECISION)
    if len(used) != 1 or not setting.blocks[used[0]].domain.is_ball or not continuous(expr):
        return None
    block = setting.blocks[used[0]]
    slope = setting.simplify(gradient(expr, used)[block.name])
    if block.domain.size > LARGEST or setting.composition(slope) not in (Curvature.AFFINE, Curvature.CONSTANT):
        return None
    second = setting.simplify(jacobian(slope, used)[block.name])
    if not isinstance(second, Constant):
        return None
    size = block.domain.size
    matrix = np.broadcast_to(second.value.array, (*block.shape, *block.shape)).reshape(size, size) / 2
    linear, rest = (setting.simplify(without_decisions(e)) for e in (slope, expr))
    if not setting.ranges(linear).bounded:
        return None
    radius = block.domain.radius
    best = _dual(matrix, setting.ranges(linear).broadcast(block.shape), radius) + setting.ranges(rest).greatest
    streams = stream_corners(setting, expr, MOST_PROBLEMS)
    if streams is None:
        return best
    cells, count = streams
    try:
        at_corners = over_cells(linear, setting.box, cells, count)
        levels = np.broadcast_to(over_cells(rest, setting.box, cells, count).hi, (count,))
    except NotCovered:
        return best
    lo, hi = (np.broadcast_to(end, (count, *block.shape)) for end in (at_corners.lo, at_corners.hi))
    return min(best, max(_dual(matrix, interval(a, b), radius) + float(c) for a, b, c in zip(lo, hi, levels)))


def _dual(matrix: np.ndarray, linear: Interval, radius: float) -> float:
    """The least of the dual bounds over v."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    lo, hi = (end.ravel() for end in linear.expanded())
    middle, spread = vectors.T @ (lo / 2 + hi / 2), np.abs(vectors.T) @ (hi / 2 - lo / 2)
    b = (np.abs(middle) + spread) * (1 + SLACK) + SLACK * float(np.abs(middle).max(initial=0.0))
    top = float(values[-1]) + SLACK * float(np.abs(values).max(initial=1.0))
    norm = float(np.linalg.norm(b))
    if norm == 0:
        return max(top, 0.0) * radius**2 * (1 + SLACK)

    def bound(v: float) -> float:
        return (v * radius**2 + float(np.sum(b**2 / (4 * (v - values - SLACK * abs(top)))))) * (1 + SLACK)

    low = max(0.0, top) + 1e-12 * max(1.0, abs(top))
    high = low + norm / radius
    best = math.inf
    for share in np.concatenate([np.logspace(-9, 0, 120), np.linspace(0.01, 1, 200)]):
        best = min(best, bound(low + float(share) * (high - low)))
    return interval(best, best).greatest
