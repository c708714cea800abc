"""Nearest doubly stochastic matrix over the step IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains.assignment import cheapest_assignment
from oco.compiler.domains.spectral import column
from oco.compiler.ir.precision import Tolerance
from oco.dsl.magnitudes import HUGE

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

CONVERGED = Tolerance(1e-14)
MAX_STEPS = 300  # Newton's steps after which it ends with the point that it has: about ten are usual
FAR = 100.0
RIDGE = Tolerance(1e-11)
"""Keeps the Newton equations solvable: they have the null vector (1, -1), and more where the support falls apart."""


def nearest_doubly_stochastic(t: Tracer, v: Value) -> Value:
    """argmin |X - v|_2 over X >= 0 with rows and columns that sum to one.

    Semismooth Newton method on the dual (Li, Sun & Toh, SIAM J. Optim. 30, 2020): X = max(W, 0), W = v + a 1' + 1 b'; the state holds W,
    so that rounding stays at its scale, and `rounded` makes the sums exact at the end.
    """
    n = v.shape[0]
    centred = _centred(t, v) + 1.0 / n
    # Far points lie near the cone of a permutation: its potentials, found exactly, bring W to the scale of the set.
    far = t.max(t.abs(centred)) > FAR
    W = t.if_(far, lambda: 1.0 - cheapest_assignment(t, -centred)[1], lambda: centred)[0]

    def not_converged(W: Value, error: Value, steps: Value) -> Value:
        return t.and_(error > CONVERGED * n, steps < MAX_STEPS)

    def newton(W: Value, error: Value, steps: Value) -> tuple[Value, Value, Value]:
        X = t.maximum(W, 0.0)
        residual = _sums(t, X) - 1.0
        ridge = t.maximum(1e-3 * t.minimum(1.0, t.max(t.abs(residual))), RIDGE)
        d = _potentials(t, t.to_float(W > 0.0), ridge, -residual)
        D = column(t, d[:n]) + d[n:]
        W = W + _step_length(t, W, D, d, residual) * D
        return W, t.max(t.abs(_sums(t, t.maximum(W, 0.0)) - 1.0)), steps + 1

    W = t.while_(not_converged, newton, (W, t.lift(np.inf), t.lift(0)))[0]
    return rounded(t, t.maximum(W, 0.0))


def _step_length(t: Tracer, W: Value, D: Value, d: Value, residual: Value) -> Value:
    """From 1: double while the dual |max(W, 0)|^2 / 2 - sum a - sum b falls at half its first rate or more (it is linear along
    directions in which the support falls apart), then halve until it has decreased enough (Armijo).
    """
    start = t.sum(t.maximum(W, 0.0) ** 2) * 0.5
    rate, total = t.sum(residual * d), t.sum(d)
    noise = Tolerance(1e-14) * (start + t.max(t.abs(d)))

    def still_falling(s: Value) -> Value:
        return t.and_(t.sum(t.maximum(W + s * D, 0.0) * D) - total < 0.5 * rate, s < HUGE)

    def too_long(s: Value) -> Value:
        change = t.sum(t.maximum(W + s * D, 0.0) ** 2) * 0.5 - start - s * total
        return t.and_(change > 1e-4 * s * rate + noise, s > Tolerance(1e-12))

    (s,) = t.while_(still_falling, lambda s: (s * 2.0,), (t.lift(1.0),))
    return t.while_(too_long, lambda s: (s * 0.5,), (s,))[0]


def _centred(t: Tracer, v: Value) -> Value:
    """v without its row means and column means: the part along the affine hull."""
    n = float(v.shape[0])
    v = v - column(t, t.sum(v, axis=1) / n)
    return v - t.sum(v, axis=0) / n


def _sums(t: Tracer, X: Value) -> Value:
    """Sums of the rows, then of the columns."""
    return t.concat(t.sum(X, axis=1), t.sum(X, axis=0))


def _potentials(t: Tracer, S: Value, ridge: Value, sums: Value) -> Value:
    """(a, b) for which S * (a 1' + 1 b') has the given sums of rows and columns, with a ridge; a is eliminated."""
    n = S.shape[0]
    rows, columns = t.sum(S, axis=1) + ridge, t.sum(S, axis=0) + ridge
    shares = S / column(t, rows)
    b = t.solve(t.diag(columns) - S.T @ shares, sums[n:] - sums[:n] @ shares)
    return t.concat((sums[:n] - S @ b) / rows, b)


def _normal_matrix(t: Tracer, S: Value) -> Value:
    """[diag(S 1), S; S', diag(S' 1)]: the map from (a, b) to the sums of S * (a 1' + 1 b')."""
    return t.diag(_sums(t, S)) + t.concat(
        t.concat(t.zeros(S.shape), S, axis=1), t.concat(S.T, t.zeros(S.shape), axis=1), axis=0
    )


def rounded(t: Tracer, X: Value) -> Value:
    """A matrix near X >= 0 with sums exactly one: too large rows, then columns are scaled down, what lacks is added as an outer product.

    Altschuler, Weed & Rigollet, NeurIPS 2017, Algorithm 2.
    """
    X = X / column(t, t.maximum(t.sum(X, axis=1), 1.0))
    X = X / t.maximum(t.sum(X, axis=0), 1.0)
    rows, columns = t.maximum(1.0 - t.sum(X, axis=1), 0.0), t.maximum(1.0 - t.sum(X, axis=0), 0.0)
    lack = t.sum(rows)
    return X + t.outer(rows, columns) / t.where(lack > 0.0, lack, 1.0)


def project_face(t: Tracer, S: Value, M: Value) -> Value:
    """Each M[k] projected on the matrices that vanish where S does, with rows and columns that sum to zero."""
    n = S.shape[0]
    values, Q = t.eigh(_normal_matrix(t, S))
    regular = values > Tolerance(1e-9)
    inverse = t.where(regular, 1.0 / t.where(regular, values, 1.0), 0.0)

    def face(H: Value) -> Value:
        d = Q @ (inverse * (Q.T @ _sums(t, S * H)))
        return S * (H - column(t, d[:n]) - d[n:])

    return t.stack(*(face(M[k]) for k in range(M.shape[0])))
