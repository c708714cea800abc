"""Curvature of the losses of a round, as a certificate adds it up.

Theorem. Let f = l + n with l affine and exp(-theta n) concave on X, x in X, k = grad n(x), and P >= theta <k, x - u> for every u in X.
Then for every u in X

    f(u) >= f(x) + <grad f(x), u - x> + h <k, u - x>^2 / 2,    h = theta / (1 + 2 P / 3).

Proof. With p = theta <k, x - u>, concavity gives exp(-theta (n(u) - n(x))) <= 1 + p, so p > -1 and n(u) - n(x) >= -ln(1 + p) / theta =
(-p + p^2 c(p)) / theta with c(p) the integral of s / (1 + s p) over s in [0, 1]. That is half the mean of 1 / (1 + s p) where s has the
density 2 s, whose mean is 2 / 3: by Jensen's inequality c(p) >= 1 / (2 (1 + 2 p / 3)) >= 1 / (2 (1 + 2 P / 3)).

It is Lemma 3 of Hazan, Agarwal & Kale (Machine Learning 69, 2007) with the constant of the round in the place of the worst one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value


class Expansion(NamedTuple):
    """Lower bound constant + <slope, u> + <u, H u> / 2 of a function, and the magnitude of its quadratic terms over the domain."""

    constant: Value
    slope: Value
    H: Value
    size: Value


def exp_concave_expansion(
    t: Tracer, domain: Domain, theta: float, loss: Value, g: Value, k: Value, v: Value, bounds: Value
) -> Expansion:
    """Function with the value `loss` and the gradient g at v, of which k is that of a part n with exp(-theta n) concave over the domain.

    Over the domain <k, u> = <own, u> + offset, where `own` is the part of k that is parallel to its affine hull: with it H has the
    curvature along the domain alone, which is what bounds the steps of the search.
    """
    (own, offset), (slope, shift) = _along(t, domain, k), _along(t, domain, g)
    a, most = k @ v - offset, abs(own) @ bounds
    least = own @ domain.flat(t, domain.lmo(t, domain.shaped(t, own))) if domain.is_cheap("lmo") else -most
    h = theta / (1.0 + (2.0 / 3.0 * theta) * t.maximum(a - least, 0.0))
    weighed = h * own
    return Expansion(
        loss - (g @ v - shift) + 0.5 * h * a * a, slope - a * weighed, t.outer(weighed, own), h * most * most
    )


def _along(t: Tracer, domain: Domain, g: Value) -> tuple[Value, Value]:
    """Part of g parallel to the affine hull of the domain, and what the rest adds to <g, u> for every u of it."""
    rows, sides = domain.affine_hull()
    if not len(rows):
        return g, t.lift(0.0)
    q, r = np.linalg.qr(rows.T)
    normal = t.constant(q.T, "normal", "orthonormal rows that are constant over the domain")
    offset = t.constant(np.linalg.solve(r.T, sides), "offset", "values of these rows")
    part = normal @ g
    return g - part @ normal, part @ offset


def curved(H: Value, v: Value) -> Value:
    """H v, for a Hessian that is its diagonal (d,) or a matrix."""
    return H * v if H.ndim == 1 else H @ v
