"""Tools for sets of matrices that are given by their singular values or eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from oco.compiler.domains.chebyshev import SMALL_PRODUCT, small_top_pair
from oco.compiler.domains.combination import Combination
from oco.compiler.domains.lanczos import top_pair
from oco.compiler.domains.norms import scaled_norm
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

SMALL = 200
"""Up to this many rows or columns a full decomposition is faster than a cold start for one singular pair or eigenvector."""
WARM_SMALL = 24
"""Limit as above for a start from the last answer; in C such a start is faster from ten rows on, in NumPy from some thirty."""

RESIDUAL = Tolerance(1e-9)
"""Relative residual of a singular pair that counts as exact."""
WARM_RESIDUAL = 1e-6
"""Residual for a large matrix, sought round after round: the minimum is off by its square over the relative gap."""
FACTORED_RESIDUAL = 1e-4
"""Residual for factors on a spectrahedron, whose costs have many least eigenvalues close together:
the value is off by no more than this share of the norm, and by its square over the relative gap."""
ROUGH = 0.1
"""Residual for a norm that only has to be about right."""
GOLDEN = 0.6180339887498949
LARGE = 2500
"""Entries from which on a decomposition takes more than about a millisecond."""
LISTED = 128
"""Entries up to which a vector is written out, not worked out in every round."""


LARGEST_DECOMPOSITION = 1 << 28
"""m n min(m, n) up to which a full decomposition of an m x n matrix may be part of every round: about a fifth of a second."""


def expensive_decompositions(shape: tuple[int, ...]) -> Mapping[str, str]:
    """The operations of a set that is given by singular values or eigenvalues that take too long for every round."""
    if math.prod(shape) * min(shape) <= LARGEST_DECOMPOSITION:
        return {}
    why = f"each call would decompose a matrix of {shape[0]} x {shape[1]} in full"
    return dict.fromkeys(("project", "project_jacobian", "bregman_step"), why)


def column(t: Tracer, v: Value) -> Value:
    """A vector as a matrix of one column."""
    return t.reshape(v, (v.size, 1))


def slopes(t: Tracer, s: Value, f: Value) -> tuple[Value, Value]:
    """(f_i - f_j) / (s_i - s_j) for f = max(s - theta, 0), with the derivative where s_i = s_j; and the indicator of f > 0."""
    active = t.to_float(f > 0.0)
    both = t.outer(active, active)
    gap = column(t, s) - s
    apart = t.and_(both == 0.0, t.not_(gap == 0.0))
    return t.where(apart, (column(t, f) - f) / t.where(apart, gap, 1.0), both), active


def each_row(t: Tracer, f: Callable[[Value], Value], M: Value) -> Value:
    """f of every M[k], stacked."""
    return t.stack(*(f(M[k]) for k in range(M.shape[0])))


def top_singular_pair(
    t: Tracer, c: Value | Combination, start: Value | None = None, tolerance: float = RESIDUAL
) -> tuple[Value, Value]:
    """Unit vectors u, v with u' c v the largest singular value of c, from the guess `start` for v where there is one."""
    m, n = c.shape
    if isinstance(c, Combination):
        guess = start if start is not None else some_direction(t, n)
        u, _, v = top_pair(t, c.forward, c.backward, (m, n), guess, tolerance)
        return u, v
    if start is None and min(m, n) <= SMALL:
        u, _, vt = t.svd(scaled_norm(t, c)[0])
        return u[:, 0], vt[0]
    whole, guess = c, _guess(t, c) if start is None else start
    if m * n <= SMALL_PRODUCT:
        u, _, v = small_top_pair(t, c, guess, tolerance)
        return u, v
    u, _, v = top_pair(t, lambda x: whole @ x, lambda x: x @ whole, (m, n), guess, tolerance)
    return u, v


def bottom_eigenvector(
    t: Tracer, c: Value | Combination, start: Value | None = None, tolerance: float = RESIDUAL
) -> Value:
    """A unit eigenvector of the least eigenvalue of the symmetric part of c, an array being symmetric: the top one of bound I - c.

    Any bound above the middle of the spectrum does.
    """
    if isinstance(c, Combination):
        n = c.shape[0]

        def symmetric(x: Value) -> Value:
            return (c.forward(x) + c.backward(x)) * 0.5

        largest = top_pair(t, symmetric, symmetric, (n, n), some_direction(t, n), ROUGH)[1]
        above = (1.0 + 2.0 * ROUGH) * largest

        def reflected(x: Value) -> Value:
            return above * x - symmetric(x)

        guess = some_direction(t, n) if start is None else start
        return top_pair(t, reflected, reflected, (n, n), guess, tolerance)[2]
    scaled = scaled_norm(t, c)[0]
    if start is None and c.shape[0] <= SMALL:
        return t.eigh(scaled)[1][:, 0]
    bound = t.max(t.sum(t.abs(scaled), axis=1))
    guess = _guess(t, scaled) if start is None else start

    def shifted(x: Value) -> Value:
        return bound * x - scaled @ x

    return top_pair(t, shifted, shifted, (c.shape[0], c.shape[0]), guess, tolerance)[2]


def some_direction(t: Tracer, n: int) -> Value:
    """A vector with a part in every direction that one meets: the fractions of k^2 phi, which are spread evenly."""
    if n <= LISTED:
        numbers = (np.arange(n) ** 2 * GOLDEN % 1.0 - 0.5) * math.sqrt(12 / n)
        return t.constant(numbers, "every", "a vector with a part in every direction that one meets")
    k = t.to_float(t.iota(n))
    return (t.mod(k * k * GOLDEN, 1.0) - 0.5) * math.sqrt(12 / n)


def perturbed_start(t: Tracer, v: Value) -> Value:
    """A unit vector to start from, with a little of every direction, so that no singular vector is out of reach."""
    return v + 0.01 * some_direction(t, v.size)


def _guess(t: Tracer, c: Value) -> Value:
    """The longest row, with a little of every direction."""
    squares = t.sum(c * c, axis=1)
    i = t.argmax(squares)
    return t.gather(c, i) + 0.1 * t.sqrt(t.gather(squares, i)) * some_direction(t, c.shape[1])
