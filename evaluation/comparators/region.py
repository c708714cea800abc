"""Set of decisions in the form of the solvers: bounds, affine equalities, smooth convex inequalities; or a projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import QuadraticRounds

Array = np.ndarray[Any, Any]

MOST_ROWS = 5000  # facets beyond this are left to the projection


@dataclass(frozen=True, eq=False)
class Region:
    """Set lower <= x <= upper, matrix x = right, and `curved` <= 0; `start` is in the relative interior.

    Where `complete` is False all this only encloses the set, which is then given by its projection and its linear
    minimisation.
    """

    blocks: tuple[DecisionBlock, ...]
    lower: Array
    upper: Array
    matrix: Array
    right: Array
    curved: tuple[QuadraticRounds, ...]
    start: Array
    complete: bool

    @property
    def size(self) -> int:
        """Number of variables n."""
        return len(self.lower)

    @property
    def diagonal(self) -> float:
        """Length of the diagonal between the bounds; 1 where they meet."""
        return float(np.linalg.norm(self.upper - self.lower)) or 1.0

    def least(self, slopes: Array) -> Array:
        """Minimum of <c, x> over the set for each row c of `slopes` (B, n): (B,)."""
        parts = [_least(b, slopes[:, place]) for b, place in self.parts()]
        return np.asarray(np.sum(parts, axis=0))

    def project(self, x: Array) -> Array:
        """Euclidean projection of x (n,) onto the set."""
        return np.concatenate([b.domain.project_array(x[place].reshape(b.shape)).ravel() for b, place in self.parts()])

    def parts(self) -> list[tuple[DecisionBlock, slice]]:
        """Blocks with their slices of x."""
        ends = np.cumsum([b.domain.size for b in self.blocks])
        return [(b, slice(int(end) - b.domain.size, int(end))) for b, end in zip(self.blocks, ends)]


def _padded(square: Array | None, pad: tuple[int, int]) -> Array | None:
    return None if square is None else np.pad(square, [(0, 0), (0, 0), *[pad] * (square.ndim - 2)])


def _least(block: DecisionBlock, slopes: Array) -> Array:
    if block.domain.is_box:
        low, high = block.domain.lower.ravel(), block.domain.upper.ravel()
        return np.asarray(np.minimum(slopes * low, slopes * high).sum(axis=1))
    return np.array([-block.domain.support(-c.reshape(block.shape)) for c in slopes])


def region(problem: Canonical) -> Region:
    """Decision set of a problem."""
    lower = np.concatenate([b.domain.lower.ravel() for b in problem.blocks])
    upper = np.concatenate([b.domain.upper.ravel() for b in problem.blocks])
    start = np.concatenate([b.domain.inner_centre.ravel() for b in problem.blocks])
    hulls = [_free_hull(b) for b in problem.blocks]
    curved: list[QuadraticRounds] = []
    complete = True
    for which, block in enumerate(problem.blocks):
        result = _inequalities(block)
        complete = complete and result is not None
        curved += [_widened(f, problem.blocks, which) for f in result or ()]
    matrix, right = _block_diagonal([m for m, _ in hulls]), np.concatenate([r for _, r in hulls])
    return Region(problem.blocks, lower, upper, matrix, right, tuple(curved), start, complete)


def _free_hull(block: DecisionBlock) -> tuple[Array, Array]:
    """Equations of the affine hull, without those that equal bounds imply."""
    matrix, right = block.domain.affine_hull()
    free = block.domain.upper.ravel() > block.domain.lower.ravel()
    kept = np.abs(matrix[:, free]).max(axis=1, initial=0.0) > 0
    return matrix[kept], right[kept]


def _inequalities(block: DecisionBlock) -> list[QuadraticRounds] | None:
    """Inequalities of a set besides its bounds and its affine hull; None where it is not of this form."""
    domain = block.domain
    if (q := domain.quadratic) is not None:
        return [
            QuadraticRounds(np.full((1, 1), q.constant), q.linear[None, None], q.square[None, None], q.square.ndim == 1)
        ]
    if domain.is_box:
        return []
    facets = domain.halfspaces() if domain.size <= MOST_ROWS else None
    if facets is None or len(facets.A) > MOST_ROWS:
        return None
    rows = np.count_nonzero(facets.A, axis=1) > 1
    A, b = facets.A[rows], facets.b[rows]
    return [QuadraticRounds(-b[None], A[None], None, True)] if len(A) else []


def _widened(function: QuadraticRounds, blocks: Sequence[DecisionBlock], which: int) -> QuadraticRounds:
    """Function of one block as a function of the whole decision."""
    before = sum(b.domain.size for b in blocks[:which])
    after = sum(b.domain.size for b in blocks[which + 1 :])
    pad = (before, after)
    linear = np.pad(function.linear, [(0, 0), (0, 0), pad])
    return QuadraticRounds(function.constant, linear, _padded(function.square, pad), function.diagonal)


def _block_diagonal(parts: Sequence[Array]) -> Array:
    rows, columns = (sum(p.shape[k] for p in parts) for k in (0, 1))
    whole = np.zeros((rows, columns))
    row = column = 0
    for p in parts:
        whole[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return whole
