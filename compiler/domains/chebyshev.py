"""The largest singular value of a small dense matrix from a good guess, over the step IR: few products, none of them long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oco.compiler.domains.norms import scaled_norm

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

SMALL_PRODUCT = 1 << 14
"""Entries of a matrix up to which the product with its transpose costs no more than a few steps of a Lanczos iteration."""
DEGREE = 14
DAMPED = (0.87, 0.95, 0.985)
"""A filter damps singular values up to this part of the greatest one as it is known: less of them first, where it ends sooner."""
MAX_FILTERS = 8  # filters after which singular pairs are as near as rounding lets them come


def small_top_pair(t: Tracer, c: Value, start: Value, tolerance: float) -> tuple[Value, Value, Value]:
    """(u, sigma, v) with |u| = |v| = 1, c v = sigma u and |c' u - sigma v| <= tolerance sigma, from the vector `start` (n,).

    A step of the power method; then Chebyshev polynomials of c' c, within one on its lesser eigenvalues (Saad,
    Numerical Methods for Large Eigenvalue Problems, 2011, section 7.4); where those do not converge, a full decomposition. The pair is the
    top one where the start has some part of it. A matrix that is wide is transposed, and so are the two equations.
    """
    if c.shape[0] < c.shape[1]:
        v, sigma, u = small_top_pair(t, c.T, c @ start, tolerance)
        return u, sigma, v

    def pair(v: Value) -> tuple[Value, ...]:
        u, sigma = _unit(t, c @ v)
        w = u @ c
        rest = w - sigma * v
        return v, u, sigma, t.sqrt(rest @ rest)

    def converged(sigma: Value, left: Value) -> Value:
        return t.and_(sigma > 0.0, left <= tolerance * sigma)

    def filtered() -> tuple[Value, ...]:
        def not_converged(v: Value, u: Value, s: Value, left: Value, filters: Value) -> Value:
            return t.and_(t.not_(converged(s, left)), filters < MAX_FILTERS)

        def better(v: Value, u: Value, s: Value, left: Value, filters: Value) -> tuple[Value, ...]:
            part = t.where(filters < 1, DAMPED[0], t.where(filters < 2, DAMPED[1], DAMPED[2]))
            return *pair(_damped(t, c, part * s, v)), filters + 1

        *result, _ = t.while_(not_converged, better, (v, u, sigma, left, t.lift(0)))
        return t.if_(converged(*result[2:]), lambda: tuple(result[:3]), decomposed)

    def decomposed() -> tuple[Value, ...]:
        unit, _, scale = scaled_norm(t, c)
        U, s, Vt = t.svd(unit)
        return Vt[0], U[:, 0], s[0] * scale

    v, u, sigma, left = pair(_unit(t, _unit(t, c @ start)[0] @ c)[0])
    v, u, sigma = t.if_(converged(sigma, left), lambda: (v, u, sigma), filtered)
    return u, sigma, v


def _unit(t: Tracer, x: Value) -> tuple[Value, Value]:
    """x / |x| and |x|; zero for zero."""
    length = t.sqrt(x @ x)
    return x / t.where(length > 0.0, length, 1.0), length


def _damped(t: Tracer, c: Value, bound: Value, v: Value) -> Value:
    """The Chebyshev polynomial of c' c that is within one where singular values are at most `bound`, times v, as a unit vector."""
    doubled = c * (2.0 / t.where(bound > 0.0, bound, 1.0))

    def product(x: Value) -> Value:
        return (doubled @ x) @ doubled - 2.0 * x

    _, x = t.for_(DEGREE - 1, lambda i, before, x: (x, product(x) - before), (v, 0.5 * product(v)))
    return _unit(t, x)[0]
