"""Boundedness of the optimal multipliers of the mean problem: min E f(x) over X subject to E g(x) <= 0, E h(x) = 0.

They are bounded where some x in the relative interior of X has E h(x) = 0 and E g(x) < 0, after the rows of h that depend on the others
modulo the affine hull of X are dropped. Independence alone proves nothing (Wei, Yu & Neely 2020, Lemma A.5 omits the point): min -x1
subject to x1 + x2 = 0 on [0, 1]^2 has the multipliers [1, infinity).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Equality, Inequality, entry_labels
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility.scenario import Scenario, at_mean
from oco.compiler.prover.feasibility.solver import affords_program, decision_variables, into_domain, solve
from oco.compiler.prover.phrasing import coordinates, number
from oco.compiler.prover.types import ProofRule, Step, Witness
from oco.compiler.prover.vector import USUAL_SLOPES
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
DEPENDENT = 1e-9  # relative size of what is left of a row after the others are projected out
SHRINKS = (0.5, 0.1, 0.01, 1e-3, 1e-4)
TURNS = 100  # projections onto the equalities and the domain in turn, after which a solver is asked


@dataclass(frozen=True, eq=False)
class EqualityRows:
    """The mean equalities `matrix x = right`, x flattened over all decisions; `labels` name the rows."""

    matrix: Floats
    right: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Interior:
    """A relative-interior point of the mean problem: E h = 0 up to `residual`, E g <= -margin, a ball of `radius` in the domain."""

    x: Mapping[str, Floats]
    margin: float
    radius: float
    residual: float
    step: Step


def fits(setting: ProofContext) -> bool:
    """True if the matrix of the equalities, with those of the domains' affine hulls, is of a size to work with."""
    c = setting.canonical
    hulls = sum(b.domain.size - b.domain.dimension for b in c.blocks)
    return (sum(h.size for h in c.equalities) + hulls) * c.size <= USUAL_SLOPES


def equality_rows(scenario: Scenario) -> EqualityRows:
    """The mean of the equalities as a matrix: they are affine in the decisions."""
    return affine_rows(scenario, scenario.setting.canonical.equalities)


def affine_rows(scenario: Scenario, constraints: Sequence[Inequality | Equality]) -> EqualityRows:
    """Functions affine in the decisions as a matrix, with every stream in the middle of its range."""
    canonical = scenario.setting.canonical
    middle = {b.name: b.domain.inner_centre for b in canonical.blocks}
    flat = np.concatenate([np.ravel(v) for v in middle.values()])
    matrices, rights = [np.zeros((0, canonical.size))], [np.zeros(0)]
    labels: list[str] = []
    for c in constraints:
        slopes = jacobian(scenario.setting.simplify(c.expr), list(middle))
        blocks = [
            np.broadcast_to(at_mean(slopes[b.name], scenario, middle), (*c.shape, *b.shape)).reshape(c.size, -1)
            for b in canonical.blocks
        ]
        matrices.append(np.concatenate(blocks, axis=1))
        value = np.broadcast_to(at_mean(c.expr, scenario, middle), c.shape).reshape(c.size)
        rights.append(matrices[-1] @ flat - value)
        labels += entry_labels(c.label, c.shape)
    return EqualityRows(np.concatenate(matrices), np.concatenate(rights), tuple(labels))


def affine_hull(setting: ProofContext) -> tuple[Floats, Floats]:
    """Equalities of the product domain's affine hull."""
    blocks = setting.canonical.blocks
    hulls = [b.domain.affine_hull() for b in blocks]
    total = sum(len(right) for _, right in hulls)
    matrix, right = np.zeros((total, setting.canonical.size)), np.zeros(total)
    row = column = 0
    for b, (m, r) in zip(blocks, hulls):
        matrix[row : row + len(r), column : column + b.domain.size], right[row : row + len(r)] = m, r
        row, column = row + len(r), column + b.domain.size
    return matrix, right


@dataclass(frozen=True)
class Dependence:
    """A row that the others and the affine hull of the domain imply: `consistent` where its right side agrees too."""

    label: str
    index: int
    consistent: bool


def dependent_rows(rows: EqualityRows, hull: tuple[Floats, Floats]) -> list[Dependence]:
    """Rows that are, up to rounding, combinations of earlier rows and of the hull's equalities (Gram-Schmidt, twice for stability)."""
    basis: list[Floats] = []
    rights: list[float] = []
    results: list[Dependence] = []
    hull_size = len(hull[1])
    for i, (row, right) in enumerate(zip(np.vstack([hull[0], rows.matrix]), np.concatenate([hull[1], rows.right]))):
        size = float(np.linalg.norm(row))
        rest, value = row.astype(np.float64), float(right)
        for _ in range(2):
            for direction, level in zip(basis, rights):
                along = float(rest @ direction)
                rest, value = rest - along * direction, value - along * level
        left = float(np.linalg.norm(rest))
        if left > DEPENDENT * max(size, SMALLEST):
            basis.append(rest / left)
            rights.append(value / left)
        elif i >= hull_size:
            scale = max(size, abs(float(right)), SMALLEST)
            results.append(Dependence(rows.labels[i - hull_size], i - hull_size, abs(value) <= 1e-7 * scale))
    return results


def interior_point(scenario: Scenario, rows: EqualityRows, kept: list[int]) -> Interior | None:
    """A point of the shrunk domain (1 - s) X + s c with E h = 0: one that projections find, where it has a margin, else that of the
    greatest margin, for the largest shrink s that has one.
    """
    blocks, matrix, right = scenario.setting.canonical.blocks, rows.matrix[kept], rows.right[kept]
    if (point := _by_projections(scenario, matrix, right)) is not None and point.margin > 0:
        return point
    import cvxpy as cp

    inner, domain = decision_variables(blocks)
    scale = np.maximum(np.linalg.norm(matrix, axis=1), SMALLEST)
    best: Interior | None = None
    for shrink in SHRINKS:
        if not affords_program(blocks, scenario.search):
            return best
        outer = {b.name: (1 - shrink) * inner[b.name] + shrink * b.domain.inner_centre for b in blocks}
        flat = cp.hstack([cp.vec(outer[b.name], order="C") for b in blocks])
        results = [scenario.in_cvxpy(c.expr, outer) for c in scenario.setting.canonical.inequalities]
        if any(f is None for f in results):
            return None
        margin = cp.Variable()
        program = [*domain, margin <= 1e6, *(g + margin <= 0 for f in results if f is not None for g in f)]
        if kept:
            program.append((matrix / scale[:, None]) @ flat == right / scale)
        value = solve(cp.Maximize(margin), program)
        if value is None or not np.isfinite(value):
            continue
        x = {b.name: np.asarray(outer[b.name].value, dtype=np.float64) for b in blocks}
        point = _proved(scenario, matrix, right, into_domain(blocks, x))
        if point is not None and (best is None or point.margin > best.margin):
            best = point
        if best is not None and best.margin > 0:
            return best
    return best


def _by_projections(scenario: Scenario, matrix: Floats, right: Floats) -> Interior | None:
    """A point of the domain, shrunk by a little, near the equalities, by projections onto one and the other in turn from the centre
    (Bauschke & Borwein 1996, "On projection algorithms for solving convex feasibility problems"); None where none is proved.
    """
    blocks, shrink = scenario.setting.canonical.blocks, SHRINKS[1]
    if not all(b.domain.is_cheap("project") for b in blocks) or not scenario.search.take(TURNS * matrix.size):
        return None
    x = {b.name: np.asarray(b.domain.inner_centre, dtype=np.float64) for b in blocks}
    centre, ends = x, np.cumsum([b.domain.size for b in blocks])[:-1]
    inverse = np.linalg.pinv(matrix)
    for _ in range(TURNS if len(right) else 0):
        flat = np.concatenate([x[b.name].ravel() for b in blocks])
        onto = np.split(flat + inverse @ (right - matrix @ flat), ends)
        before = x
        x = {
            b.name: (1 - shrink) * b.domain.project_array((v.reshape(b.shape) - shrink * c) / (1 - shrink)) + shrink * c
            for b, v, c in zip(blocks, onto, (centre[b.name] for b in blocks))
        }
        if all(np.array_equal(x[b.name], before[b.name]) for b in blocks):
            break
    return _proved(scenario, matrix, right, x)


def _proved(scenario: Scenario, matrix: Floats, right: Floats, x: Mapping[str, Floats]) -> Interior | None:
    """Margins proved at `x`: the least slack, the ball around it in the domain, the distance to the equalities."""
    blocks = scenario.setting.canonical.blocks
    radius = min(b.domain.interior_margin(x[b.name]) for b in blocks)
    flat = np.concatenate([x[b.name].ravel() for b in blocks])
    residual = 0.0
    if len(right):
        correction = np.linalg.lstsq(matrix, right - matrix @ flat, rcond=None)[0]
        residual = float(np.linalg.norm(correction))
    worst = [(c.label, scenario.worst(c.expr, x).greatest) for c in scenario.setting.canonical.inequalities]
    margin = min((-most for _, most in worst), default=np.inf)
    if radius <= 0 or radius <= 2 * residual:
        return None
    where = ", ".join(f"{n} = {coordinates(v)}" for n, v in x.items())
    words = f"at {where} the equalities hold in the mean" if len(right) else f"at {where}"
    slack = ", ".join(f"{label} is at most {number(most)}" for label, most in worst)
    words += f", {slack} {scenario.words}" if slack else ""
    words += f", and a ball of radius {number(radius)} around it lies in the domain"
    return Interior(x, float(margin), radius, residual, Step(ProofRule.INTERIOR_POINT, words, margin, (), None, x))


def separating(scenario: Scenario, rows: EqualityRows) -> Witness | None:
    """A combination of the mean equalities that no point of the domain makes positive, and not all make zero: no interior point exists.

    Found by minimizing the largest value of v'(A x - b) over X with v of length one along each coordinate of a few directions.
    """
    blocks = scenario.setting.canonical.blocks
    offsets = np.cumsum([0, *(b.domain.size for b in blocks)])

    def most(direction: Floats) -> float:
        parts = [direction[a:z].reshape(b.shape) for b, a, z in zip(blocks, offsets, offsets[1:])]
        return sum(b.domain.support(p) for b, p in zip(blocks, parts))

    for label, row, right in zip(rows.labels, rows.matrix, rows.right):
        for sign in (1.0, -1.0):
            highest, lowest = most(sign * row) - sign * right, -most(-sign * row) - sign * right
            scale = max(float(np.abs(row).max()), abs(right), SMALLEST)
            if highest <= 1e-12 * scale and lowest < -1e-9 * scale:
                word = "at most" if sign > 0 else "at least"
                words = f"{label} is {word} its right side everywhere in the domain: it can hold on the boundary alone"
                return Witness({label: sign}, -lowest, words)
    return None
