"""Intervals never lose a value: against exact rational arithmetic, and against mpmath at 60 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oco.dsl import rounding as r
from oco.dsl.intervals import Interval, interval, point

mpmath.mp.dps = 60

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ORDINARY = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


def fraction(x: np.ndarray | float) -> Fraction | float:
    value = float(x)
    return Fraction(value) if math.isfinite(value) else value


@st.composite
def boxes(draw: st.DrawFn, numbers: st.SearchStrategy[float] = FLOATS) -> tuple[Interval, float]:
    """An interval with a point in it: an end, or between."""
    lo, hi = sorted((draw(numbers), draw(numbers)))
    between = min(max(draw(numbers), lo), hi)
    return interval(lo, hi), draw(st.sampled_from((lo, hi, between)))


def encloses(found: Interval, exact: Fraction | mpmath.mpf) -> None:
    lo, hi = float(found.lo), float(found.hi)
    assert lo == -math.inf or (lo < math.inf and _convert(lo, exact) <= exact)
    assert hi == math.inf or (hi > -math.inf and exact <= _convert(hi, exact))


def _convert(x: float, like: Fraction | mpmath.mpf) -> Fraction | mpmath.mpf:
    return Fraction(x) if isinstance(like, Fraction) else mpmath.mpf(x)


# ---- rounding of single operations


@given(FLOATS, FLOATS)
def test_sums_and_products_round_to_the_neighbours(a: float, b: float) -> None:
    """Down and up enclose the exact value, and are neighbours, or where underflow threatens two steps apart."""
    x, y = np.asarray(a), np.asarray(b)
    for down, up, exact in (
        (r.add_down(x, y), r.add_up(x, y), Fraction(a) + Fraction(b)),
        (r.mul_down(x, y), r.mul_up(x, y), Fraction(a) * Fraction(b)),
    ):
        encloses(Interval(down, up, ()), exact)
        assert math.nextafter(math.nextafter(float(down), math.inf), math.inf) >= float(up)


@given(FLOATS, FLOATS.filter(bool))
def test_quotients_round_outwards(a: float, b: float) -> None:
    x, y = np.asarray(a), np.asarray(b)
    encloses(Interval(*r.quotients(x, y), ()), Fraction(a) / Fraction(b))


@given(st.floats(min_value=0, allow_infinity=False))
def test_roots_round_outwards(x: float) -> None:
    down, up = r.sqrt_down(np.asarray(x)), r.sqrt_up(np.asarray(x))
    assert Fraction(float(down)) ** 2 <= Fraction(x) <= Fraction(float(up)) ** 2


@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_sums_of_arrays_round_to_the_neighbours(values: list[float]) -> None:
    x, exact = np.array(values), sum(map(Fraction, values))
    encloses(Interval(r.sum_down(x, None), r.sum_up(x, None), ()), exact)


@pytest.mark.parametrize("spread", [0, 3, 30])
def test_long_sums_are_enclosed_and_tight(spread: int) -> None:
    rng = np.random.default_rng(spread)
    x = rng.normal(size=(3, 1001)) * 10.0 ** rng.uniform(-spread, spread, size=(3, 1001))
    low, high = r.sum_down(x, 1), r.sum_up(x, 1)
    for row, lo, hi in zip(x, low, high):
        exact = sum(map(Fraction, row.tolist()))
        assert Fraction(lo) <= exact <= Fraction(hi)
        assert Fraction(hi) - Fraction(lo) <= Fraction(1e-15) * abs(exact)


@pytest.mark.parametrize(("a", "b"), [(1.0, 10.0), (4.0, 1000.0), (0.5, -3.0), (0.0, 7.0)])
def test_what_floats_hold_stays_exact(a: float, b: float) -> None:
    assert float((point(a) + point(b)).lo) == a + b == float((point(a) + point(b)).hi)
    assert float((point(a) * point(b)).lo) == a * b == float((point(a) * point(b)).hi)
    assert point(a).square().lo == a * a == point(a).square().hi


# ---- arithmetic of intervals


ARITHMETIC: dict[str, tuple[Callable[[Interval, Interval], Interval], Callable[[Fraction, Fraction], Fraction]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "max": (Interval.maximum, max),
    "min": (Interval.minimum, min),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@given(data=st.data())
def test_arithmetic_encloses(name: str, data: st.DataObject) -> None:
    ours, exact = ARITHMETIC[name]
    (a, x), (b, y) = data.draw(boxes()), data.draw(boxes())
    encloses(ours(a, b), exact(Fraction(x), Fraction(y)))


@given(boxes(), boxes())
def test_division_encloses(one: tuple[Interval, float], other: tuple[Interval, float]) -> None:
    (a, x), (b, y) = one, other
    if y != 0:
        encloses(a / b, Fraction(x) / Fraction(y))


@given(boxes(), st.integers(min_value=0, max_value=9))
def test_whole_powers_enclose(box: tuple[Interval, float], n: int) -> None:
    a, x = box
    encloses(a.whole_power(n), Fraction(x) ** n)
    if n == 2:
        encloses(a.square(), Fraction(x) ** 2)
    encloses(a.abs(), abs(Fraction(x)))


# ---- elementary functions, at 60 digits

ELEMENTARY: dict[
    str, tuple[Callable[[Interval], Interval], Callable[[mpmath.mpf], mpmath.mpf], st.SearchStrategy[float]]
] = {
    "exp": (Interval.exp, mpmath.exp, st.floats(min_value=-800, max_value=800)),
    "log": (Interval.log, mpmath.log, st.floats(min_value=5e-324, allow_infinity=False)),
    "log near 1": (Interval.log, mpmath.log, st.floats(min_value=0.9, max_value=1.1)),
    "log1p": (Interval.log1p, mpmath.log1p, st.floats(min_value=-0.9999999, max_value=1e308)),
    "logistic": (Interval.logistic, lambda x: mpmath.log1p(mpmath.exp(x)), st.floats(min_value=-800, max_value=800)),
    "sigmoid": (Interval.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), st.floats(min_value=-700, max_value=700)),
    "sqrt": (Interval.sqrt, mpmath.sqrt, st.floats(min_value=0, allow_infinity=False)),
}


@pytest.mark.parametrize("name", ELEMENTARY)
@given(data=st.data())
def test_elementary_functions_enclose(name: str, data: st.DataObject) -> None:
    ours, exact, numbers = ELEMENTARY[name]
    a, x = data.draw(boxes(numbers))
    encloses(ours(a), exact(mpmath.mpf(x)))


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_enclose_on_whole_vectors(name: str) -> None:
    """NumPy's vector code differs from its scalar code: check many entries at once."""
    ours, exact, _ = ELEMENTARY[name]
    rng = np.random.default_rng(0)
    x = rng.uniform(0.01, 30, 4099)
    found = ours(interval(x, x))
    for k in range(0, x.size, 7):
        encloses(Interval(found.lo[k], found.hi[k], ()), exact(mpmath.mpf(float(x[k]))))


@given(boxes(POSITIVE), boxes(st.floats(min_value=-40, max_value=40)))
def test_real_powers_enclose(base: tuple[Interval, float], exponent: tuple[Interval, float]) -> None:
    (a, x), (p, y) = base, exponent
    encloses(a.power(p), mpmath.power(mpmath.mpf(x), mpmath.mpf(y)))


@given(
    boxes(st.floats(min_value=-50, max_value=50)),
    st.sampled_from([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 0.5, 1.5, -0.5]),
)
def test_fixed_powers_enclose(box: tuple[Interval, float], p: float) -> None:
    a, x = box
    whole = p == int(p)
    if (p < 0 and x == 0) or (x < 0 and not whole):
        return
    encloses(a.power(point(p)), Fraction(x) ** int(p) if whole else mpmath.power(mpmath.mpf(x), p))


@pytest.mark.parametrize("p", [(1.0, 3.0), (0.5, 2.5), (-2.0, 2.0)], ids=str)
def test_powers_of_negative_numbers_with_a_whole_number_in_the_range(p: tuple[float, float]) -> None:
    bounds = interval(-5.0, 3.0).power(interval(*p))
    for whole in range(math.ceil(p[0]), math.floor(p[1]) + 1):
        for x in (-5.0, -2.0, -0.5, 3.0):
            assert bounds.contains(x**whole)


def test_powers_entry_by_entry() -> None:
    found = interval(-2.0, 3.0, (4,)).power(point(np.array([1.0, 2.0, 3.0, 100.0])))
    assert found.lo[:3].tolist() == [-2, 0, -8]
    assert found.hi[:3].tolist() == [3, 9, 27]
    assert interval(-5.0, 3.0).power(point(100.0)).contains(5.0**100)


# ---- infinities, zeros, shapes


def test_zero_times_infinity_is_zero() -> None:
    assert str(point(0.0) * interval(-np.inf, np.inf)) == "[0, 0]"
    assert (interval(0, 1) * interval(0, np.inf)).least == 0


def test_infinite_ends_and_overflow() -> None:
    assert (interval(0, np.inf) + interval(1, 2)).greatest == np.inf
    assert (interval(-np.inf, np.inf) - interval(-np.inf, np.inf)).least == -np.inf
    over = point(1e308) + point(1e308)
    assert over.least == np.finfo(float).max
    assert over.greatest == np.inf
    assert point(1000.0).exp().least == np.finfo(float).max
    assert interval(0, 1).log().least == -np.inf
    assert point(-np.inf).exp().greatest == 0


@pytest.mark.parametrize(
    ("above", "below", "lo", "hi"),
    [
        ((1, 2), (-1, 1), -np.inf, np.inf),
        ((1, 2), (0, 1), 1, np.inf),
        ((1, 2), (-1, 0), -np.inf, -1),
        ((-1, 2), (0, 1), -np.inf, np.inf),
        ((0, 0), (0, 1), 0, 0),
        ((1, np.inf), (1, np.inf), 0, np.inf),
        ((1, 1), (0, 0), -np.inf, np.inf),
    ],
)
def test_division_at_zero(above: tuple, below: tuple, lo: float, hi: float) -> None:
    found = interval(*above) / interval(*below)
    assert (found.least, found.greatest) == (lo, hi)


def test_signs_survive_rounding() -> None:
    tiny = interval(0.0, 1e-200)
    assert (tiny * tiny).nonnegative
    assert interval(0.1, 0.3).whole_power(9).positive
    assert interval(-800, -700).exp().nonnegative
    assert (interval(0, 0.1) / interval(3, 7)).nonnegative
    assert interval(1.0, 2.0).log().nonnegative


def test_whole_numbers_beyond_53_bits_are_enclosed() -> None:
    big = point(np.int64(2**53 + 1))
    assert Fraction(float(big.lo)) < 2**53 + 1 < Fraction(float(big.hi)) + 1


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_matrix_products_enclose(m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = [np.sort(rng.normal(size=(2, *shape)) * 10.0 ** rng.integers(-3, 4), axis=0) for shape in ((m, k), (k, n))]
    a, b = (interval(lo, hi) for lo, hi in ends)
    x, y = (np.where(rng.random(lo.shape) < 0.5, lo, hi) for lo, hi in ends)
    found = a @ b
    assert found.shape == (m, n)
    for i in range(m):
        for j in range(n):
            exact = sum(Fraction(x[i, h]) * Fraction(y[h, j]) for h in range(k))
            lo, hi = (end[i, j] for end in found.expanded())
            assert Fraction(lo) <= exact <= Fraction(hi)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_of_uniform_boxes_count_entries(axis: int | None) -> None:
    """A box with one bound for all entries gives what the box written out gives."""
    short, long = interval(-0.1, 0.3, (4, 5)), interval(np.full((4, 5), -0.1), np.full((4, 5), 0.3))
    for reduce in (Interval.sum, Interval.max, Interval.min):
        one, other = reduce(short, axis), reduce(long, axis)
        assert one.shape == other.shape
        assert np.allclose(one.expanded(), other.expanded(), rtol=1e-15)


def test_products_of_uniform_boxes_count_entries() -> None:
    short = interval(-1, 2, (3, 4)) @ interval(0, 5, (4,))
    long = interval(np.full((3, 4), -1.0), np.full((3, 4), 2.0)) @ interval(np.zeros(4), np.full(4, 5.0))
    assert short.shape == long.shape == (3,)
    assert np.array_equal(short.expanded(), long.expanded())


@pytest.mark.parametrize(
    ("x", "y", "shape"), [((3,), (), (3,)), ((2, 1), (3,), (2, 3)), ((2, 3), (2, 3), (2, 3))], ids=str
)
def test_shapes_broadcast(x: tuple, y: tuple, shape: tuple) -> None:
    a, b = interval(0, 1, x), interval(np.zeros(y), np.ones(y))
    for found in (a + b, a - b, a * b, a.maximum(b), a / (b + point(1.0)), a.power(b)):
        assert found.shape == shape
        assert np.broadcast_shapes(found.lo.shape, shape) == shape
