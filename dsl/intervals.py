"""Intervals of arrays, rounded outwards: the arithmetic behind the bounds of facts.

An interval has the shape of the expression it encloses; its ends are arrays that broadcast to that shape, so a box with
one bound for a million entries takes two numbers. Ends may be infinite. Operations enclose every value of the operation
on points of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oco.dsl import rounding as r
from oco.dsl.records import dataclass
from oco.dsl.rounding import Array

Shape = tuple[int, ...]
COMPOSED = 16  # ulps by which a short composition of elementary functions is widened
FEW = 4096  # entries whose products and quotients at all ends are worked out in one array, as calls of NumPy take longer than numbers


@dataclass(frozen=True, eq=False)
class Interval:
    """Set of all arrays of `shape` with entries between `lo` and `hi`."""

    lo: Array
    hi: Array
    shape: Shape

    # ---- what is known of the entries

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nonnegative(self) -> bool:
        """True where no entry is negative."""
        return bool(np.all(self.lo >= 0))

    @property
    def nonpositive(self) -> bool:
        """True where no entry is positive."""
        return bool(np.all(self.hi <= 0))

    @property
    def positive(self) -> bool:
        """True where every entry is positive."""
        return bool(np.all(self.lo > 0))

    @property
    def is_point(self) -> bool:
        """True where there is exactly one value."""
        return bool(np.all(self.lo == self.hi))

    @property
    def bounded(self) -> bool:
        """True where all ends are finite."""
        return bool(np.all(np.isfinite(self.lo)) and np.all(np.isfinite(self.hi)))

    @property
    def least(self) -> float:
        """Smallest value of any entry."""
        return float(np.minimum.reduce(self.lo, axis=None))

    @property
    def greatest(self) -> float:
        """Largest value of any entry."""
        return float(np.maximum.reduce(self.hi, axis=None))

    @property
    def magnitude(self) -> Array:
        """Largest absolute value of each entry; broadcasts to `shape`."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    def contains(self, x: Any) -> bool:
        """True where x lies in the interval."""
        x = np.asarray(x)
        return bool(np.all(self.lo <= x) and np.all(x <= self.hi))

    def expanded(self) -> tuple[Array, Array]:
        """Both ends at full shape."""
        return np.broadcast_to(self.lo, self.shape), np.broadcast_to(self.hi, self.shape)

    def _aligned(self) -> tuple[Array, Array]:
        """Both ends with as many axes as `shape` (length 1 where they do not change), of one shape."""
        lo, hi = np.broadcast_arrays(self.lo, self.hi)
        axes = (1,) * (len(self.shape) - lo.ndim) + lo.shape
        return lo.reshape(axes), hi.reshape(axes)

    def __str__(self) -> str:
        return f"[{self.least:g}, {self.greatest:g}]"

    @property
    def _ends(self) -> tuple[Array, ...]:
        """Both ends; those of a known number."""
        return (self.lo,) if self.lo is self.hi else (self.lo, self.hi)

    # ---- arithmetic

    def __add__(self, other: Interval) -> Interval:
        shape = np.broadcast_shapes(self.shape, other.shape)
        return Interval(r.add_down(self.lo, other.lo), r.add_up(self.hi, other.hi), shape)

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo, self.shape)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        shape = np.broadcast_shapes(self.shape, other.shape)
        return Interval(*_extremes(r.products, self._ends, other._ends, shape), shape)

    def __truediv__(self, other: Interval) -> Interval:
        shape = np.broadcast_shapes(self.shape, other.shape)
        below, above = np.where(other.lo == 0, 0.0, other.lo), np.where(other.hi == 0, -0.0, other.hi)
        lo, hi = _extremes(r.quotients, self._ends, (below, above), shape)
        around = ((below < 0) & (above > 0)) | ((below == 0) & (above == 0))
        return Interval(np.where(around, -np.inf, lo), np.where(around, np.inf, hi), shape)

    def scaled(self, factor: float) -> Interval:
        """Range of factor * x."""
        return self * point(factor)

    # ---- functions of each entry

    def abs(self) -> Interval:
        """Range of |x|."""
        lo = np.maximum(0.0, np.maximum(self.lo, -self.hi))
        return Interval(lo, self.magnitude, self.shape)

    def square(self) -> Interval:
        """Range of x**2."""
        a = self.abs()
        return Interval(r.mul_down(a.lo, a.lo), r.mul_up(a.hi, a.hi), self.shape)

    def sqrt(self) -> Interval:
        """Range of sqrt(x) over the nonnegative part."""
        return Interval(r.sqrt_down(self.lo), r.sqrt_up(self.hi), self.shape)

    def exp(self) -> Interval:
        """Range of exp(x)."""
        lo = np.maximum(r.widened(np.exp, self.lo, -np.inf, (0.0, 1.0)), 0.0)
        return Interval(lo, r.widened(np.exp, self.hi, np.inf, (0.0, 1.0)), self.shape)

    def log(self) -> Interval:
        """Range of log(x) over the positive part."""
        lo, hi = np.maximum(self.lo, 0.0), np.maximum(self.hi, 0.0)
        return Interval(
            r.widened(np.log, lo, -np.inf, (1.0, 0.0)), r.widened(np.log, hi, np.inf, (1.0, 0.0)), self.shape
        )

    def log1p(self) -> Interval:
        """Range of log(1 + x) over x >= -1."""
        lo, hi = np.maximum(self.lo, -1.0), np.maximum(self.hi, -1.0)
        low, high = r.widened(np.log1p, lo, -np.inf, (0.0, 0.0)), r.widened(np.log1p, hi, np.inf, (0.0, 0.0))
        return Interval(low, high, self.shape)

    def logistic(self) -> Interval:
        """Range of log(1 + exp(x))."""
        lo = np.maximum(r.widened(_softplus, self.lo, -np.inf, ulps=COMPOSED), 0.0)
        return Interval(lo, r.widened(_softplus, self.hi, np.inf, ulps=COMPOSED), self.shape)

    def sigmoid(self) -> Interval:
        """Range of 1 / (1 + exp(-x))."""
        lo = np.clip(r.widened(_sigmoid, self.lo, -np.inf, ulps=COMPOSED), 0.0, 1.0)
        return Interval(lo, np.clip(r.widened(_sigmoid, self.hi, np.inf, ulps=COMPOSED), 0.0, 1.0), self.shape)

    def bell(self) -> Interval:
        """Range of sigmoid' = sigmoid (1 - sigmoid), which falls with |x| from 1/4 at 0."""
        size = self.abs()
        lo = np.clip(r.widened(_sigmoid_slope, size.hi, -np.inf, ulps=COMPOSED), 0.0, 0.25)
        return Interval(lo, np.clip(r.widened(_sigmoid_slope, size.lo, np.inf, ulps=COMPOSED), 0.0, 0.25), self.shape)

    def sign(self) -> Interval:
        """Range of the sign."""
        return Interval(np.sign(self.lo), np.sign(self.hi), self.shape)

    def maximum(self, other: Interval) -> Interval:
        """Range of the larger of two values, entry by entry."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        return Interval(np.maximum(self.lo, other.lo), np.maximum(self.hi, other.hi), shape)

    def minimum(self, other: Interval) -> Interval:
        """Range of the smaller of two values, entry by entry."""
        return -(-self).maximum(-other)

    def whole_power(self, n: int) -> Interval:
        """Range of x**n for a whole n >= 0, by repeated products of ends of one sign."""
        if n % 2 == 0:
            a = self.abs()
            return Interval(_product_power(a.lo, n, up=False), _product_power(a.hi, n, up=True), self.shape)
        lo, hi = self.lo, self.hi
        below = np.where(lo < 0, -_product_power(np.abs(lo), n, up=True), _product_power(np.abs(lo), n, up=False))
        above = np.where(hi < 0, -_product_power(np.abs(hi), n, up=False), _product_power(np.abs(hi), n, up=True))
        return Interval(below, above, self.shape)

    def power(self, exponent: Interval) -> Interval:
        """Range of x**p. Where p is not whole only the nonnegative part of x has a value."""
        if exponent.is_point and bool(
            np.all(np.abs(exponent.lo) < 2.0**53) and np.all(exponent.lo == np.round(exponent.lo))
        ):
            return self._whole_powers(exponent)
        result = self.maximum(point(0.0))._corner_power(exponent)
        if exponent.is_point or self.nonnegative:
            return result
        # An integer in the range of p may turn a negative x into anything of that size.
        size = self.abs()._corner_power(exponent).hi
        return Interval(np.where(self.lo < 0, -size, result.lo), np.where(self.lo < 0, size, result.hi), result.shape)

    def _whole_powers(self, exponent: Interval) -> Interval:
        """Ranges of powers whose exponents are known integers, one distinct exponent at a time."""
        shape = np.broadcast_shapes(self.shape, exponent.shape)
        result: Interval | None = None
        for p in sorted(set(exponent.lo.ravel().tolist())):  # np.unique would import numpy.ma
            raised = self.whole_power(abs(int(p)))
            one = raised if p >= 0 else point(1.0) / raised
            chosen = exponent.lo == p
            lo = one.lo if result is None else np.where(chosen, one.lo, result.lo)
            hi = one.hi if result is None else np.where(chosen, one.hi, result.hi)
            result = Interval(lo, hi, shape)
        return self.broadcast(shape) if result is None else result

    def _corner_power(self, exponent: Interval) -> Interval:
        """Range of x**p for x >= 0: monotone in each argument alone, so the extremes are at corners."""
        ends = [(a, p) for a in (self.lo, self.hi) for p in (exponent.lo, exponent.hi)]
        lo = _least([_float_power(a, p, -np.inf) for a, p in ends])
        hi = _greatest([_float_power(a, p, np.inf) for a, p in ends])
        unbounded = (self.hi > 0) & (self.lo <= 0) & (exponent.lo < 0)
        shape = np.broadcast_shapes(self.shape, exponent.shape)
        return Interval(np.maximum(lo, 0.0), np.where(unbounded, np.inf, hi), shape)

    # ---- reductions and products

    def sum(self, axis: int | None = None) -> Interval:
        """Range of the sum of all entries, or along one axis."""
        lo, hi = self._aligned()
        if axis is None:
            times = np.asarray(float(self.size // max(lo.size, 1)))
            return Interval(r.mul_down(times, r.sum_down(lo, None)), r.mul_up(times, r.sum_up(hi, None)), ())
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        times = np.asarray(float(self.shape[axis] // lo.shape[axis]))
        return Interval(r.mul_down(times, r.sum_down(lo, axis)), r.mul_up(times, r.sum_up(hi, axis)), shape)

    def max(self, axis: int | None = None) -> Interval:
        """Range of the largest entry, or along one axis."""
        lo, hi = self._aligned()
        shape = () if axis is None else self.shape[:axis] + self.shape[axis + 1 :]
        return Interval(np.max(lo, axis=axis), np.max(hi, axis=axis), shape)

    def min(self, axis: int | None = None) -> Interval:
        """Range of the smallest entry, or along one axis."""
        return -(-self).max(axis)

    def __matmul__(self, other: Interval) -> Interval:
        """Range of the matrix product of vectors and matrices: entrywise products, summed along the common axis."""
        if len(other.shape) == 1:
            return (self * other).sum(len(self.shape) - 1)
        if len(self.shape) == 1:
            return other.transpose() @ self
        uniform = all(end.shape[1] == 1 for end in self._aligned()) and all(
            end.shape[0] == 1 for end in other._aligned()
        )
        meet = self.shape[1]
        total = self.column(0) * other.row(0)
        for k in range(1, 1 if uniform else meet):
            total = total + self.column(k) * other.row(k)
        return total.scaled(meet) if uniform else total

    def column(self, k: int) -> Interval:
        """Column k of a matrix, as a matrix of one column."""
        lo, hi = self._aligned()
        k = k if lo.shape[1] > 1 else 0
        return Interval(lo[:, k : k + 1], hi[:, k : k + 1], (self.shape[0], 1))

    def row(self, k: int) -> Interval:
        """Row k of a matrix, as a matrix of one row."""
        return self.transpose().column(k).transpose()

    # ---- shapes

    def reshape(self, shape: Shape) -> Interval:
        """Entries in another shape, in C order."""
        if self.lo.size == 1 and self.hi.size == 1:
            return Interval(self.lo.reshape(()), self.hi.reshape(()), shape)
        lo, hi = self.expanded()
        return Interval(lo.reshape(shape), hi.reshape(shape), shape)

    def transpose(self) -> Interval:
        """Transpose."""
        lo, hi = self._aligned()
        return Interval(lo.T, hi.T, self.shape[::-1])

    def broadcast(self, shape: Shape) -> Interval:
        """Interval broadcast to a shape."""
        return Interval(self.lo, self.hi, shape)

    def hull(self, other: Interval) -> Interval:
        """Smallest interval that contains both."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        return Interval(np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi), shape)

    def meet(self, other: Interval) -> Interval:
        """Intersection, for two enclosures of one value."""
        return Interval(np.maximum(self.lo, other.lo), np.minimum(self.hi, other.hi), self.shape)


def interval(lo: Any, hi: Any, shape: Shape | None = None) -> Interval:
    """Interval between two numbers or arrays; its shape is theirs unless given."""
    low, high = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    return Interval(low, high, np.broadcast_shapes(low.shape, high.shape) if shape is None else shape)


def point(x: Any) -> Interval:
    """Interval of a single value. Integers beyond 2**53 are enclosed."""
    given = np.asarray(x)
    exact = given if any(given.strides) or given.size < 2 else np.asarray(given.flat[0])
    value = np.asarray(exact, dtype=np.float64)
    if exact.dtype.kind in "iu" and np.any(np.abs(value) >= 2.0**53):
        return Interval(np.nextafter(value, -np.inf), np.nextafter(value, np.inf), given.shape)
    return Interval(value, value, given.shape)


def _extremes(
    work: Callable[[Array, Array], tuple[Array, Array]], ends: Sequence[Array], others: Sequence[Array], shape: Shape
) -> tuple[Array, Array]:
    """Least and greatest of what `work` makes of each pair of ends, rounded down and up."""
    first, second = zip(*((a, b) for a in ends for b in others))
    rank = max(end.ndim for end in (*first, *second))
    if rank and math.prod(shape) <= FEW:
        down, up = work(_stacked(first, rank), _stacked(second, rank))
        return down.min(axis=0), up.max(axis=0)
    downs, ups = zip(*map(work, first, second))
    return _least(downs), _greatest(ups)


def _stacked(ends: Sequence[Array], rank: int) -> Array:
    """Ends with a first axis for their number and so many for their entries."""
    ends = _alike(ends)
    return np.array(ends).reshape(len(ends), *(1,) * (rank - ends[0].ndim), *ends[0].shape)


def _alike(values: Sequence[Array]) -> Sequence[Array]:
    """Arrays of one shape; most are already."""
    return values if len({v.shape for v in values}) == 1 else np.broadcast_arrays(*values)


def _least(values: Sequence[Array]) -> Array:
    if not any(v.ndim for v in values):
        return np.asarray(min(map(float, values)))
    return np.asarray(np.minimum.reduce(_alike(values)))


def _greatest(values: Sequence[Array]) -> Array:
    if not any(v.ndim for v in values):
        return np.asarray(max(map(float, values)))
    return np.asarray(np.maximum.reduce(_alike(values)))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _sigmoid(x: Array) -> Array:
    small: Array = np.exp(-np.abs(x))
    larger: Array = np.where(x >= 0, 1.0, small)
    return np.asarray(larger / (1.0 + small))


def _sigmoid_slope(x: Array) -> Array:
    small: Array = np.exp(-np.abs(x))
    return np.asarray(small / np.square(1.0 + small))


def _product_power(x: Array, n: int, up: bool) -> Array:
    """Power x**n for x >= 0, every product rounded one way."""
    multiply = r.mul_up if up else r.mul_down
    result = np.ones_like(x)
    for bit in bin(n)[2:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, x)
    return result


def _float_power(x: Array, p: Array, direction: float) -> Array:
    with np.errstate(all="ignore"):
        moved = r.widened(lambda base: np.power(base, p), x, direction)
        exact = (x == 0) | (x == 1) | (p == 0) | np.isinf(x)
        return np.where(exact, np.power(x, p), np.where(p == 1, x, moved))
