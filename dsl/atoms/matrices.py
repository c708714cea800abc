"""Functions of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import forms, norms, replay, shapes
from oco.dsl.atoms.base import Atom, Curvature, Monotone, Regularity
from oco.dsl.atoms.rules import (
    AFFINE,
    CONCAVE,
    CONVEX,
    DOWN,
    NEITHER,
    UNKNOWN,
    UP,
    Intervals,
    Varies,
    always,
    bilinear,
    bilinear_monotone,
    by_sign,
    neither,
    same,
    up,
)
from oco.dsl.atoms.whole import whole
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, constant
from oco.dsl.intervals import Interval, point

PSD_TOLERANCE = 1e-10  # of the largest eigenvalue; CVXPY's


def semidefinite(matrix: Interval) -> int:
    """Sign of x' P x for every P in the interval and every x: 1 for >= 0, -1 for <= 0, 0 where neither is certain.

    Every symmetric part is the middle one plus an error E with |E| <= R entrywise, so its eigenvalues move by at most
    the norm of R.
    """
    if not matrix.bounded:
        return 0
    lo, hi = matrix.expanded()
    middle, radius = (lo + hi) / 2, (hi - lo) / 2
    middle = (middle + middle.T) / 2
    if matrix.is_point and (sign := _by_factor(middle)):
        return sign
    values = np.linalg.eigvalsh(middle)
    slack = 0.0 if matrix.is_point else float(np.linalg.norm((radius + radius.T) / 2, 2))
    tolerance = PSD_TOLERANCE * float(np.max(np.abs(values), initial=0.0))
    if values[0] - slack >= -tolerance:
        return 1
    return -1 if values[-1] + slack <= tolerance else 0


def _by_factor(matrix: Any) -> int:
    """Sign 1 or -1 of a symmetric matrix where a Cholesky factor shows it, in a tenth of the time of its eigenvalues."""
    diagonal = np.diag(matrix)
    sign = 1 if np.sum(diagonal) >= 0 else -1
    raised = sign * matrix + np.diag(np.full(len(matrix), PSD_TOLERANCE * float(np.max(np.abs(diagonal), initial=0.0))))
    try:
        np.linalg.cholesky(raised)
    except np.linalg.LinAlgError:
        return 0
    return sign


def _quadratic_curvature(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    if not varies[0]:
        return AFFINE
    return UNKNOWN if varies[1] else {1: CONVEX, -1: CONCAVE, 0: UNKNOWN}[semidefinite(intervals[1])]


def _quadratic_monotone(call: Call, x: Interval, matrix: Interval) -> tuple[Monotone, Monotone]:
    """Monotonicity: the gradient 2 P x is nonnegative where x and P are; x_i x_j is where x has one sign."""
    towards = {(UP, UP): UP, (UP, DOWN): DOWN, (DOWN, UP): DOWN, (DOWN, DOWN): UP}
    return towards.get((by_sign(x), by_sign(matrix)), NEITHER), NEITHER if by_sign(x) is NEITHER else UP


def _quadratic_bounds(call: Call, x: Interval, matrix: Interval) -> Interval:
    """Range of sum_i P_ii x_i**2 + sum_{i != j} P_ij x_i x_j, and the sign of P when it has one."""
    n = x.shape[0]
    pairs = x.reshape((n, 1)) * x.reshape((1, n))
    lo, hi = (np.array(end) for end in pairs.expanded())
    squares = x.square()
    np.fill_diagonal(lo, squares.expanded()[0])
    np.fill_diagonal(hi, squares.expanded()[1])
    total = (matrix * Interval(lo, hi, (n, n))).sum()
    if matrix.is_point and (sign := semidefinite(matrix)):
        return total.meet(Interval(*_half_line(sign, matrix, squares), ()))
    return total


def _half_line(sign: int, matrix: Interval, squares: Interval) -> tuple[Any, Any]:
    """Half-line of x' P x by the sign of P, up to the tolerance with which P was judged."""
    largest = float(np.linalg.norm(matrix.expanded()[0]))
    slack = np.asarray(2 * PSD_TOLERANCE * largest * squares.sum().hi)
    return (-slack, np.asarray(np.inf)) if sign > 0 else (np.asarray(-np.inf), slack)


def _quadratic_in_cvxpy(cp: Any, c: Call, x: Any, matrix: Any) -> Any:
    """CVXPY expression, which needs the symmetric part of a numeric matrix, or a numeric vector."""
    return x @ matrix @ x if x.is_constant() else cp.quad_form(x, (matrix.value + matrix.value.T) / 2)


def _quadratic_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    x, matrix = c.args
    if isinstance(matrix, Constant):
        twice = e.matmul(constant(matrix.value.array + matrix.value.array.T), x)
    else:
        twice = e.add(e.matmul(matrix, x), e.matmul(e.transpose(matrix), x))
    return e.mul(g, twice), e.mul(g, e.call("outer", x, x))


def _dot_bounds(call: Call, left: Interval, right: Interval) -> Interval:
    return left.square().sum() if same(call) else (left * right).sum()


def _outer_bounds(call: Call, left: Interval, right: Interval) -> Interval:
    return left.reshape((left.shape[0], 1)) * right.reshape((1, right.shape[0]))


def _outer_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    left, right = c.args
    whole_g = e.broadcast(g, c.shape)
    return e.matmul(whole_g, right), e.matmul(e.transpose(whole_g), left)


def _diagonal_bounds(call: Call, x: Interval) -> Interval:
    lo, hi = x.expanded()
    return Interval(np.diag(lo), np.diag(hi), np.diag(lo).shape)


def _diagonal_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    """Cotangent: extracting the diagonal and making a diagonal matrix are transposes of each other."""
    return (e.call("diag", e.broadcast(g, c.shape)),)


def _trace_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    return (e.mul(g, e.call("eye", known(c.args[0].shape)[0])),)


def _frobenius(x: Interval) -> Interval:
    return x.square().sum().sqrt()


def _nuclear_bounds(call: Call, x: Interval) -> Interval:
    """Range by Frobenius norm <= nuclear norm <= sqrt(min(m, n)) times the Frobenius norm."""
    size = _frobenius(x)
    return Interval(size.lo, (size * point(float(min(x.shape))).sqrt()).hi, ())


def _spectral_bounds(call: Call, x: Interval) -> Interval:
    """Range by largest entry and Frobenius / sqrt(min(m, n)) <= norm <= Frobenius and sqrt(largest row sum * largest
    column sum).
    """
    size, entries = _frobenius(x), x.abs()
    below = np.maximum(entries.max().lo, (size / point(float(min(x.shape))).sqrt()).lo)
    schur = (entries.sum(0).max() * entries.sum(1).max()).sqrt()
    return Interval(below, np.minimum(size.hi, schur.hi), ())


MATRICES: tuple[Atom, ...] = (
    Atom(
        "quad_form",
        "x.T @ P @ x",
        (2, 2),
        shapes.quadratic,
        parameters=("x", "P"),
        lower=lambda o, c, x, p: x @ (p @ x),
        bounds=_quadratic_bounds,
        curvature=_quadratic_curvature,
        monotone=_quadratic_monotone,
        vjp=_quadratic_vjp,
        cvxpy=_quadratic_in_cvxpy,
        integer=whole,
        form=forms.Quadratic(),
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "dot",
        "the inner product of two vectors",
        (2, 2),
        shapes.dot,
        lower=lambda o, c, a, b: a @ b,
        bounds=_dot_bounds,
        curvature=bilinear,
        monotone=bilinear_monotone,
        vjp=lambda e, c, g: (e.mul(g, c.args[1]), e.mul(g, c.args[0])),
        cvxpy=lambda cp, c, a, b: cp.scalar_product(a, b),
        integer=whole,
        form=forms.MATRIX_PRODUCT,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.product,
    ),
    Atom(
        "outer",
        "the matrix of products of the entries of two vectors",
        (2, 2),
        shapes.vectors,
        lower=lambda o, c, a, b: o.outer(a, b),
        bounds=_outer_bounds,
        curvature=bilinear,
        monotone=bilinear_monotone,
        vjp=_outer_vjp,
        cvxpy=lambda cp, c, a, b: cp.outer(a, b),
        integer=whole,
        form=forms.OUTER_PRODUCT,
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "trace",
        "the sum of the diagonal",
        (1, 1),
        shapes.trace,
        lower=lambda o, c, x: o.sum(o.diag(x), axis=None),
        bounds=lambda c, x: _diagonal_bounds(c, x).sum(),
        curvature=always(AFFINE),
        monotone=up,
        vjp=_trace_vjp,
        cvxpy=lambda cp, c, x: cp.trace(x),
        integer=whole,
        form=forms.Diagonal(),
        regularity=Regularity.SMOOTH,
        latex=r"\operatorname{tr}\left(#1\right)",
    ),
    Atom(
        "diag",
        "the matrix with a vector on its diagonal, or the diagonal of a matrix",
        (1, 1),
        shapes.diagonal,
        lower=lambda o, c, x: o.diag(x),
        bounds=_diagonal_bounds,
        curvature=always(AFFINE),
        monotone=up,
        vjp=_diagonal_vjp,
        cvxpy=lambda cp, c, x: cp.diag(x),
        integer=whole,
        form=forms.Diagonal(),
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "nuclear_norm",
        "the sum of the singular values",
        (1, 1),
        shapes.of_rank(2),
        lower=lambda o, c, x: o.sum(o.svd(x)[1], axis=None),
        bounds=_nuclear_bounds,
        curvature=always(CONVEX),
        monotone=neither,
        vjp=lambda e, c, g: (e.mul(g, e.call("_polar", c.args[0])),),
        cvxpy=lambda cp, c, x: cp.normNuc(x),
        regularity=Regularity.CONTINUOUS,
        norm=norms.NUCLEAR,
        decomposes=True,
        latex=r"\left\lVert #1 \right\rVert_*",
    ),
    Atom(
        "sigma_max",
        "the largest singular value",
        (1, 1),
        shapes.of_rank(2),
        lower=lambda o, c, x: o.max(o.svd(x)[1], axis=None),
        bounds=_spectral_bounds,
        curvature=always(CONVEX),
        monotone=neither,
        vjp=lambda e, c, g: (e.mul(g, e.call("_leading", c.args[0])),),
        cvxpy=lambda cp, c, x: cp.sigma_max(x),
        regularity=Regularity.CONTINUOUS,
        norm=norms.SPECTRAL,
        decomposes=True,
        latex=r"\left\lVert #1 \right\rVert_{\mathrm{op}}",
    ),
)
