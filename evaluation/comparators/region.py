"""The set of decisions in the form of the solver: bounds, affine equalities, and smooth convex inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.compiler.canonical import Block, Canonical
from oco.evaluation.comparators.functions import Quadratic

Array = np.ndarray[Any, Any]

FLAT = frozenset({"box", "simplex", "budget", "birkhoff"})
"""Kinds that bounds and the equations of their affine hull describe completely."""

ROUND = frozenset({"ball", "nonneg_ball"})
"""Kinds that need |x|^2 <= r^2 besides."""


@dataclass(frozen=True, eq=False)
class Region:
    """lower <= x <= upper, matrix x = right, and `curved` <= 0; `start` is strictly inside."""

    blocks: tuple[Block, ...]
    lower: Array
    upper: Array
    matrix: Array
    right: Array
    curved: tuple[Quadratic, ...]
    start: Array

    @property
    def size(self) -> int:
        return len(self.lower)

    def least(self, slopes: Array) -> Array:
        """min <c, x> over the set for each row c of `slopes` (B, n): (B,)."""
        total = np.zeros(len(slopes))
        first = 0
        for block in self.blocks:
            part = slopes[:, first : first + block.domain.size]
            total += _least(block, part)
            first += block.domain.size
        return total


def _least(block: Block, slopes: Array) -> Array:
    if block.domain.kind == "box":
        low, high = block.domain.lower.ravel(), block.domain.upper.ravel()
        return np.asarray(np.minimum(slopes * low, slopes * high).sum(axis=1))
    return np.array([-block.domain.support(-c.reshape(block.shape)) for c in slopes])


def region(problem: Canonical) -> Region | None:
    """The decision set of a problem; None where some domain is of a kind that this form does not reach."""
    if not all(b.domain.kind in FLAT | ROUND for b in problem.blocks):
        return None
    lower = np.concatenate([b.domain.lower.ravel() for b in problem.blocks])
    upper = np.concatenate([b.domain.upper.ravel() for b in problem.blocks])
    hulls = [_free_hull(b) for b in problem.blocks]
    curved = tuple(_sphere(problem.blocks, k) for k, b in enumerate(problem.blocks) if b.domain.kind in ROUND)
    start = np.concatenate([b.domain.inner_centre.ravel() for b in problem.blocks])
    matrix = _block_diagonal([m for m, _ in hulls])
    return Region(problem.blocks, lower, upper, matrix, np.concatenate([r for _, r in hulls]), curved, start)


def _free_hull(block: Block) -> tuple[Array, Array]:
    """The equations of the affine hull, without those that equal bounds say already."""
    matrix, right = block.domain.affine_hull()
    free = block.domain.upper.ravel() > block.domain.lower.ravel()
    kept = np.abs(matrix[:, free]).max(axis=1, initial=0.0) > 0
    return matrix[kept], right[kept]


def _block_diagonal(parts: Sequence[Array]) -> Array:
    rows, columns = (sum(p.shape[k] for p in parts) for k in (0, 1))
    whole = np.zeros((rows, columns))
    row = column = 0
    for p in parts:
        whole[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return whole


def _sphere(blocks: tuple[Block, ...], which: int) -> Quadratic:
    """|x|^2 / r^2 - 1 of one block, as a function of the whole decision."""
    first = sum(b.domain.size for b in blocks[:which])
    size = sum(b.domain.size for b in blocks)
    radius = blocks[which].domain.radius
    square = np.zeros(size)
    square[first : first + blocks[which].domain.size] = 2.0 / radius**2
    return Quadratic(np.full((1, 1), -1.0), np.zeros((1, 1, size)), square[None, None], True)
