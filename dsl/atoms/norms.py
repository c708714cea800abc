"""Norms of matrices for cones: their values, their duals, and the projections onto the dual balls.

Every function takes a stack of matrices (K, m, n); a vector is a matrix with one column or row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl.magnitudes import SMALLEST
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Norm:
    """Norm that is not a maximum of finitely many smooth pieces.

    value           (K, m, n) -> (K,)
    dual            the dual norm, (K, m, n) -> (K,)
    onto_dual_ball  (K, m, n), (K,) -> the nearest matrices (K, m, n) whose dual norms are at most these numbers
    cvxpy           (cp, matrix) -> the norm of one matrix as an expression of CVXPY
    second_order    it is the Euclidean norm of the entries, so that |u|^2 / s - s is smooth and convex; else a norm of
                    singular values
    """

    value: Callable[[Array], Array]
    dual: Callable[[Array], Array]
    onto_dual_ball: Callable[[Array, Array], Array]
    cvxpy: Callable[[Any, Any], Any]
    second_order: bool = False


def _lengths(w: Array) -> Array:
    return np.asarray(np.sqrt(np.square(w).sum(axis=(1, 2))))


def _largest(w: Array) -> Array:
    return np.asarray(np.linalg.norm(w, 2, axis=(1, 2)))


def _summed(w: Array) -> Array:
    return np.asarray(np.linalg.svd(w, compute_uv=False).sum(axis=1))


def _scaled(w: Array, most: Array) -> Array:
    return np.asarray(w * np.minimum(1.0, most / np.maximum(_lengths(w), SMALLEST))[:, None, None])


def _capped(values: Array, most: Array) -> Array:
    return np.asarray(np.minimum(values, most[:, None]))


def _onto_sum(values: Array, most: Array) -> Array:
    """Projection of nonnegative falling rows (K, r) onto those whose sum is at most `most` (Duchi et al. 2008)."""
    over = (np.cumsum(values, axis=1) - most[:, None]) / np.arange(1, values.shape[1] + 1)
    level = np.maximum(over.max(axis=1, keepdims=True), 0.0)
    return np.asarray(np.maximum(values - level, 0.0))


def _with_singular_values(onto: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Matrices with their singular values mapped by `onto`."""

    def moved(w: Array, most: Array) -> Array:
        left, values, right = np.linalg.svd(w, full_matrices=False)
        return np.asarray(left * onto(values, most)[:, None, :] @ right)

    return moved


EUCLIDEAN = Norm(_lengths, _lengths, _scaled, lambda cp, m: cp.norm(m, "fro"), second_order=True)
NUCLEAR = Norm(_summed, _largest, _with_singular_values(_capped), lambda cp, m: cp.normNuc(m))
SPECTRAL = Norm(_largest, _summed, _with_singular_values(_onto_sum), lambda cp, m: cp.sigma_max(m))
