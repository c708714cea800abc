"""Linear systems of the interior-point method, one for each member of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from oco.dsl.records import dataclass
from oco.evaluation.comparators.products import applied, pulled

Array = np.ndarray[Any, Any]

REFINEMENTS = 2
EXACT = 1e-14  # of the right-hand sides: what a solution may leave over unrefined
WIDE = 64  # from this size on a factorization for each matrix takes less than inverses of all in one call
REGULARIZATION = 1e-12  # keeps the system regular when rows of the equalities depend on each other


class Newton:
    """System

    (H + diag) dx + J' dlam + A' dnu = a
            J dx  - ratio dlam       = b
            A dx                     = c

    with H (B, n, n) or diagonal (B, n), diag (B, n) > 0, ratio (B, M) > 0. With a diagonal H, or few constraints, it is
    reduced to the multipliers; with many constraints these are folded into H first.
    """

    def __init__(self, hessian: Array, diagonal: Array, jacobian: Array, ratio: Array, matrix: Array) -> None:
        self.hessian, self.diagonal = hessian, diagonal
        self.jacobian, self.ratio, self.matrix = jacobian, ratio, matrix
        size, constraints = jacobian.shape[2], jacobian.shape[1]
        self.folded = constraints > size
        self.is_diagonal = hessian.ndim == 2 and not self.folded
        self.factors: _Factors | None = None
        if self.is_diagonal:
            self.inverse = 1.0 / (hessian + diagonal)
        else:
            full = added(hessian, diagonal)
            if self.folded:
                full = added(full, (jacobian / ratio[:, :, None]).transpose(0, 2, 1) @ jacobian)
            self.factors = _factors(full) if size >= WIDE else None
            if self.factors is None:
                self.inverse = _inverse(full)
        self.rows = matrix if self.folded else np.concatenate([jacobian, matrix], axis=1)
        self.spread = self._apply(self.rows)
        schur = self.rows @ self.spread.transpose(0, 2, 1)
        scale = np.maximum(np.einsum("bii->bi", schur), 1e-300)
        loading = (
            REGULARIZATION * scale
            if self.folded
            else np.concatenate([ratio, REGULARIZATION * scale[:, constraints:]], axis=1)
        )
        self.schur = _inverse(added(schur, loading))

    def _apply(self, rows: Array) -> Array:
        """Product of (H + diag)^-1 with each row: (B, m, n)."""
        if self.is_diagonal:
            return rows * self.inverse[:, None, :]
        return rows @ self.inverse if self.factors is None else self.factors.apply(rows)

    def solve(self, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        """Solutions dx, dlam, dnu for right-hand sides a (B, n), b (B, M), c (B, k), with one step of refinement."""
        dx, dlam, dnu = self._once(a, b, c)
        size = max(np.abs(part).max(initial=0.0) for part in (a, b, c))
        for _ in range(REFINEMENTS):
            left = [part - product for part, product in zip((a, b, c), self._product(dx, dlam, dnu))]
            if max(np.abs(part).max(initial=0.0) for part in left) <= EXACT * size:
                break
            more = self._once(*left)
            dx, dlam, dnu = dx + more[0], dlam + more[1], dnu + more[2]
        return dx, dlam, dnu

    def _product(self, dx: Array, dlam: Array, dnu: Array) -> tuple[Array, Array, Array]:
        """Left-hand sides of the system."""
        curved = self.hessian * dx if self.hessian.ndim == 2 else applied(self.hessian, dx)
        pull = pulled(self.jacobian, dlam) + pulled(self.matrix, dnu)
        slide = applied(self.jacobian, dx) - self.ratio * dlam
        return curved + self.diagonal * dx + pull, slide, applied(self.matrix, dx)

    def _once(self, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        if self.folded:
            dx, dnu = self._reduced(a + pulled(self.jacobian, b / self.ratio), c)
            return dx, (applied(self.jacobian, dx) - b) / self.ratio, dnu
        dx, dual = self._reduced(a, np.concatenate([b, c], axis=1))
        constraints = self.jacobian.shape[1]
        return dx, dual[:, :constraints], dual[:, constraints:]

    def _reduced(self, a: Array, b: Array) -> tuple[Array, Array]:
        dual = applied(self.schur, applied(self.spread, a) - b)
        rest = a - pulled(self.rows, dual)
        return self._apply(rest[:, None, :])[:, 0], dual


def added(first: Array, second: Array) -> Array:
    """Sum of batches of matrices (B, n, n) or diagonals (B, n), as matrices unless both are diagonals."""
    if first.ndim == second.ndim:
        return np.asarray(first + second)
    matrices, diagonals = (first, second) if first.ndim == 3 else (second, first)
    total = matrices.copy()
    np.einsum("bii->bi", total)[...] += diagonals
    return total


@dataclass(frozen=True, eq=False)
class _Factors:
    """Cholesky factors of S M S for each matrix M of a batch, S = diag(scale) with scale (B, n)."""

    lower: list[Array]
    scale: Array

    def apply(self, rows: Array) -> Array:
        """Product of M^-1 with each row: (B, m, n)."""
        right = rows * self.scale[:, None, :]
        solved = [dpotrs(factor, own.T, lower=1)[0].T for factor, own in zip(self.lower, right)]
        return np.asarray(np.stack(solved) * self.scale[:, None, :])


def _factors(matrices: Array) -> _Factors | None:
    """Factors of symmetric positive definite matrices; None where one is not definite to the last digit."""
    scale = _unit_scale(matrices)
    results = []
    for matrix, own in zip(matrices, scale):
        unit = np.multiply.outer(own, own)
        unit *= matrix
        factor, failed = dpotrf(unit.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return None
        results.append(factor)
    return _Factors(results, scale)


def _unit_scale(matrices: Array) -> Array:
    """Scale that makes the diagonals ones, for accuracy: (B, n)."""
    diagonal = np.einsum("bii->bi", matrices)
    return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))


def _inverse(matrices: Array) -> Array:
    """Inverses of symmetric positive definite matrices."""
    if matrices.shape[1] == 0:
        return matrices
    scale = _unit_scale(matrices)
    both = scale[:, :, None] * scale[:, None, :]
    try:
        inverse = np.linalg.inv(matrices * both)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(matrices * both, hermitian=True)
    return np.asarray(inverse * both)
