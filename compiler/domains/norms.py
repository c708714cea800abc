"""Norms that neither overflow nor underflow: the largest entry is taken out before squaring."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


Floats = np.ndarray[Any, Any]


def unit_rows(places: Floats, size: int) -> Floats:
    """The unit vectors of these places, one a row."""
    rows = np.zeros((len(places), size))
    rows[np.arange(len(places)), places] = 1.0
    return rows


def vector_norm(x: Floats) -> float:
    """|x|_2 of the flattened array."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(np.asarray(x / largest).ravel()))


def exact_sum(x: Iterable[float]) -> float:
    """The sum, rounded once; infinite where it is beyond all numbers."""
    try:
        return math.fsum(x)
    except OverflowError:
        return math.inf


def scaled_norm(t: Tracer, v: Value) -> tuple[Value, Value, Value]:
    """(u, |u|_2, scale) with v = scale u, the largest entry of |u| being 1 (u = 0 and scale = 1 where v = 0)."""
    largest = t.max(t.abs(v))
    scale = t.where(largest > 0, largest, 1.0)
    u = v / scale
    return u, t.sqrt(t.sum(u * u)), scale


def direction(t: Tracer, c: Value) -> Value:
    """c / |c|_2; the first unit vector where c = 0."""
    u, length, _ = scaled_norm(t, c)
    first = np.zeros(c.shape)
    first.flat[0] = 1.0
    unit = t.constant(first, "e_0", "the first unit vector")
    return t.where(length > 0, u / t.maximum(length, 1.0), unit)


def distinct(x: Floats) -> Floats:
    """The array with the axes along which it was only broadcast cut to one place: it has the same entries, often far fewer of them."""
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides)]
