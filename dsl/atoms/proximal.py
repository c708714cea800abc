"""Closed forms of proximal points: for a function phi of each entry and a weight w, with w phi convex,

    z = argmin_z (z - v)^2 / 2 + w phi(z).

A row gives the pull w phi'(z) = v - z, over the primitives `o`: it is small where the function is nearly linear, so
that nothing is lost to cancellation. Guards keep it finite where w = 0. Every function here has the columns (o, call,
v, w) of `Atom.proximal`.
"""

from __future__ import annotations

from typing import Any

from oco.dsl.atoms.powers import fixed
from oco.dsl.expressions import Call
from oco.dsl.magnitudes import TINY

SMALL = 1e-100
"""Smallest divisor: a quotient by it may still be squared."""
CUBE_STEPS = 5
"""Newton's steps from 2 / sqrt(3), at most 16% above the root: the share of the error is 1.5 times its square, so 1e-17 after five."""


def absolute(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of |z|: clip(v, -w, w), soft thresholding."""
    return o.maximum(o.minimum(v, w), -w)


def positive_part(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of max(z, 0): clip(v, 0, w)."""
    return o.maximum(o.minimum(v, w), 0.0)


def negative_part(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of max(-z, 0)."""
    return -positive_part(o, call, -v, w)


def hinge(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of max(1 - z, 0)."""
    return -positive_part(o, call, 1.0 - v, w)


def square(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of z^2, with z = v / (1 + 2 w)."""
    return 2.0 * w * v / (1.0 + 2.0 * w)


def huber(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of the Huber function: that of the square, clipped to 2 w M."""
    limit = 1.0 if len(call.args) == 1 else fixed(call.args[1])
    if limit is None:
        return None
    most = 2.0 * limit * w
    return o.maximum(o.minimum(square(o, call, v, w), most), -most)


def logarithm(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of log(z): z (z - v) + w = 0 with w <= 0."""
    q = o.sqrt(v * v - 4.0 * w)
    return o.where(v > 0.0, 2.0 * w / o.maximum(v + q, TINY), 0.5 * (v - q))


def logarithm_of_one_more(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of log(1 + z)."""
    return logarithm(o, call, v + 1.0, w)


def exponential(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull p of exp(z): p + log(p) = v + log(w)."""
    return o.where(w > 0.0, _omega(o, v + o.log(o.maximum(w, TINY))), 0.0)


def entropy(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of -z log(z): z / k + log(z / k) = v / k - 1 - log(k) with k = -w."""
    k = o.maximum(-w, SMALL)
    return v - k * _omega(o, v / k - 1.0 - o.log(k))


def square_root(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of sqrt(z): r^3 - v r + w/2 = 0 for r = sqrt(z), with w <= 0."""
    r = _root_of_cubic(o, v, -0.5 * w)
    return v - r * r


def inverse(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of 1/z: z^3 - v z^2 - w = 0, by Cardano's formula about v/3, or for small w below zero by 1/z in its natural
    unit.
    """
    third = v / 3.0
    cube = third * third * third
    inner = w * (cube + 0.25 * w)
    m = _cube_root(o, o.maximum(cube + 0.5 * w + o.sqrt(o.maximum(inner, 0.0)), TINY))
    size = o.maximum(-v, SMALL)
    unit = o.sqrt(w / size)
    small = unit / _near_one(o, o.minimum(unit / size, 0.4))
    return v - o.where(o.and_(v < 0.0, inner <= 0.0), small, m + third * (third / m) + third)


def power(o: Any, call: Call, v: Any, w: Any) -> Any:
    """Pull of powers with exponents 2, 1/2 and -1."""
    rules = {2.0: square, 0.5: square_root, -1.0: inverse}
    exponent = fixed(call.args[1])
    return rules[exponent](o, call, v, w) if exponent in rules else None


def _cube_root(o: Any, x: Any) -> Any:
    return o.pow(x, 1.0 / 3.0)


def _root_of_cubic(o: Any, v: Any, h: Any) -> Any:
    """Positive root of r^3 - v r - h, for h >= 0."""
    third = v / 3.0
    inner = 0.25 * h * h - third * third * third
    m = _cube_root(o, o.maximum(0.5 * h + o.sqrt(o.maximum(inner, 0.0)), TINY))
    n = third / m
    alone = h / o.maximum(m * m - third + n * n, TINY)
    unit = o.sqrt(o.maximum(v, TINY))
    three = unit * _near_one(o, o.minimum(h / o.maximum(v * unit, TINY), 0.4))
    return o.where(inner < 0.0, three, alone)


def _near_one(o: Any, k: Any) -> Any:
    """Positive root of r^3 - r - k for 0 <= k <= 2/sqrt(27), which lies in [1, 2/sqrt(3)]."""
    r = 2.0 / 3.0**0.5
    for _ in range(CUBE_STEPS):
        r = (2.0 * r * r * r + k) / (3.0 * r * r - 1.0)
    return r


def _omega(o: Any, x: Any) -> Any:
    """Solution of s + log(s) = x: Wright's omega function (Lawrence, Corless & Jeffrey 2012, Algorithm 917), two of its
    steps.
    """
    low, high = o.exp(o.minimum(x, 1.0)), o.maximum(x, 1.0)
    near = o.maximum(o.minimum(x, 3.0), -1.5) - 1.0
    middle = 1.0 + near * (0.5 + near / 16.0)
    small = low * (1.0 - low * (1.0 - 1.5 * low))
    s = o.where(x < -1.5, o.maximum(small, TINY), o.where(x < 3.0, middle, high - o.log(high)))
    for _ in range(2):
        rest = x - s - o.log(s)
        grown = 2.0 * (1.0 + s) * (1.0 + s + 2.0 / 3.0 * rest)
        s = s * (1.0 + rest / (1.0 + s) * (grown - rest) / (grown - 2.0 * rest))
    return o.where(x < -36.0, low, s)
