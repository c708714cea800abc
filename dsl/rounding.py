"""Directed rounding: each function here is at most (`*_down`) or at least (`*_up`) the exact value of its operation.

Sums, products, quotients and square roots are exact where floating point is, by error-free transformations (Ogita, Rump
& Oishi 2005, algorithms 3.1 and 3.5): so 1 + [0, 10] is [1, 11] and signs are preserved. NumPy's elementary functions
are widened by `ULPS`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl import rounded_numbers as numbers
from oco.dsl.rounded_numbers import LARGEST, SAFE, SPLITTER

Array = np.ndarray[Any, Any]
EPSILON = sys.float_info.epsilon
ULPS = 4  # NumPy's vector routines are tested to at most 4 ulp


def add_down(a: Array, b: Array) -> Array:
    """Sum rounded down."""
    if not (a.ndim or b.ndim):
        return np.asarray(numbers.add_down(float(a), float(b)))
    with np.errstate(all="ignore"):
        s = a + b
        t = s - a
        error = (a - (s - t)) + (b - t)
        if not np.logical_or.reduce(error, axis=None):
            return s  # every sum is finite and exact
        low = np.where(error < 0, np.nextafter(s, -np.inf), s)
        if np.isfinite(s).all():
            return low
        overflowed = (s == np.inf) & np.isfinite(a) & np.isfinite(b)
    return np.where(np.isnan(s), -np.inf, np.where(overflowed, LARGEST, low))


def add_up(a: Array, b: Array) -> Array:
    """Sum rounded up."""
    return 0.0 - add_down(-a, -b)


def _split(a: Array) -> tuple[Array, Array]:
    c = SPLITTER * a
    high = c - (c - a)
    return high, a - high


def _safe_product_error(a: Array, b: Array, p: Array) -> Array:
    """Exact value of a * b - p where a and b are safe."""
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    error: Array = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)
    return error


def _product_error(a: Array, b: Array, p: Array) -> Array:
    """Exact value of a * b - p; nan where that is not certain."""
    error = _safe_product_error(a, b, p)
    safe = _safe(a) & _safe(b)
    return error if safe.all() else np.where((a == 0) | (b == 0), 0.0, np.where(safe, error, np.nan))


def _safe(a: Array) -> Array:
    size = np.abs(a)
    return (size < SAFE) & (size > 1 / SAFE)


def _all_exact(a: Array) -> bool:
    """True where every entry is safe or zero, so that errors of products with others such are exact."""
    size = np.abs(a)
    if not np.maximum.reduce(size, axis=None, initial=0.0) < SAFE:
        return False
    least = np.minimum.reduce(size, axis=None, initial=1.0)
    return bool(least > 1 / SAFE or (least == 0 and (size[size != 0] > 1 / SAFE).all()))


def products(a: Array, b: Array) -> tuple[Array, Array]:
    """Products rounded down and up, with 0 * inf = 0: a zero factor is an entry that is exactly zero."""
    if not (a.ndim or b.ndim):
        x, y = float(a), float(b)
        return np.asarray(numbers.mul_down(x, y)), np.asarray(0.0 - numbers.mul_down(-x, y))
    with np.errstate(all="ignore"):
        if _all_exact(a) and _all_exact(b):
            p = a * b + 0.0  # no -0.0
            error = _safe_product_error(a, b, p)
            if not np.logical_or.reduce(error, axis=None):
                return p, p
            return np.where(error >= 0, p, np.nextafter(p, -np.inf)), np.where(error <= 0, p, np.nextafter(p, np.inf))
        zero = (a == 0) | (b == 0)
        p = np.where(zero, 0.0, a * b)
        error = _product_error(a, b, p)
        kept = zero | np.isinf(a) | np.isinf(b)
        low = np.where(kept | (error >= 0), p, np.nextafter(p, -np.inf))
        high = np.where(kept | (error <= 0), p, np.nextafter(p, np.inf))
        sign = np.sign(a) * np.sign(b)
    return np.where((sign > 0) & (low < 0), 0.0, low), np.where((sign < 0) & (high > 0), 0.0, high) + 0.0


def mul_down(a: Array, b: Array) -> Array:
    """Product rounded down, with the conventions of `products`."""
    return products(a, b)[0]


def mul_up(a: Array, b: Array) -> Array:
    """Product rounded up, with the conventions of `products`."""
    return products(a, b)[1]


def quotients(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotients rounded down and up; a zero divisor represents the limit from its side (-0.0: from below), 0 / 0 is 0."""
    if not (a.ndim or b.ndim):
        x, y = float(a), float(b)
        return np.asarray(numbers.div_down(x, y)), np.asarray(0.0 - numbers.div_down(-x, y))
    with np.errstate(all="ignore"):
        q = a / b
        q = np.where(np.isnan(q), 0.0, q)
        p = q * b
        remainder = ((a - p) - _product_error(q, b, p)) * np.sign(b)
        kept = (a == 0) | (b == 0) | np.isinf(a) | np.isinf(b)
        low = np.where(kept | (remainder >= 0), q, np.nextafter(q, -np.inf))
        high = np.where(kept | (remainder <= 0), q, np.nextafter(q, np.inf))
        sign = np.sign(a) * np.sign(b)
    return np.where((sign > 0) & (low < 0), 0.0, low), np.where((sign < 0) & (high > 0), 0.0, high) + 0.0


def div_down(a: Array, b: Array) -> Array:
    """Quotient rounded down, with the conventions of `quotients`."""
    return quotients(a, b)[0]


def _sqrt_remainder(x: Array, root: Array) -> Array:
    p = root * root
    return np.where(x == 0, 0.0, (x - p) - _product_error(root, root, p))


def sqrt_down(x: Array) -> Array:
    """Square root rounded down; 0 for negative numbers."""
    with np.errstate(all="ignore"):
        x = np.maximum(x, 0.0)
        root = np.sqrt(x)
        exact = (_sqrt_remainder(x, root) >= 0) | np.isinf(x)
        return np.where(exact, root, np.maximum(np.nextafter(root, -np.inf), 0.0))


def sqrt_up(x: Array) -> Array:
    """Square root rounded up; 0 for negative numbers."""
    with np.errstate(all="ignore"):
        x = np.maximum(x, 0.0)
        root = np.sqrt(x)
        exact = (_sqrt_remainder(x, root) <= 0) | np.isinf(x)
        return np.where(exact, root, np.nextafter(root, np.inf))


def sum_down(x: Array, axis: int | None) -> Array:
    """Sum of all entries, or along one axis, rounded down."""
    rows = x.ravel() if axis is None else np.moveaxis(x, axis, -1)
    with np.errstate(all="ignore"):
        total, error, slack = _compensated_sums(rows)
        low = add_down(total, add_down(error, -slack))
    if np.isfinite(total).all() and np.isfinite(error).all():
        return low
    infinite = np.where(np.any(rows == -np.inf, axis=-1), -np.inf, np.inf)
    overflowed = ~np.isfinite(total) | ~np.isfinite(error)
    return np.where(np.any(np.isinf(rows), axis=-1), infinite, np.where(overflowed, -np.inf, low))


def _compensated_sums(rows: Array) -> tuple[Array, Array, Array]:
    """Sums along the last axis as total + error, up to slack: pairs are added without error, their errors separately."""
    length = rows.shape[-1]
    error = spread = np.zeros(rows.shape[:-1])
    while rows.shape[-1] > 1:
        if rows.shape[-1] % 2:
            rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], 1))], axis=-1)
        a, b = rows[..., ::2], rows[..., 1::2]
        rows = a + b
        t = rows - a
        lost = (a - (rows - t)) + (b - t)
        if np.logical_or.reduce(lost, axis=None):
            error, spread = error + np.add.reduce(lost, axis=-1), spread + np.add.reduce(np.abs(lost), axis=-1)
    slack = np.where(spread > 0, np.nextafter(4 * length * EPSILON * spread, np.inf), 0.0)
    return rows[..., 0], error, slack


def sum_up(x: Array, axis: int | None) -> Array:
    """Sum of all entries, or along one axis, rounded up."""
    return 0.0 - sum_down(-x, axis)


def widened(
    f: Callable[[Array], Array], x: Array, direction: float, exact: tuple[float, float] | None = None, ulps: int = ULPS
) -> Array:
    """Value f(x) moved by `ulps` units in the last place; `exact` is a point (x, f(x)) where floating point is exact."""
    with np.errstate(all="ignore"):
        y = f(x)
        moved = np.nextafter(y + math.copysign(ulps, direction) * np.spacing(np.abs(y)), direction)
        moved = np.where(np.isinf(x), y, np.where(np.isnan(moved), y, moved))
        overflowed = np.isinf(y) & ~np.isinf(x) & (np.sign(y) != np.sign(direction))
        moved = np.where(overflowed, np.sign(y) * LARGEST, moved)
    return moved if exact is None else np.where(x == exact[0], exact[1], moved)
