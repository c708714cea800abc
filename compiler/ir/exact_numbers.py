"""Numbers of formulas: fractions, and decimals of thirty digits where a number is none; both fold exactly or to the last digit."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from operator import add, mul

Number = Fraction | Decimal
DIGITS = 30
"""Digits of a decimal: a float64 has seventeen, so that what is worked out of many is rounded once."""
EXACT = Context(prec=DIGITS, traps=[], Emax=4000, Emin=-4000)
"""Arithmetic of decimals, well beyond the range of a float64; what has no value there is NaN."""
SHORT = 12
"""Characters of a decimal up to which it is the fraction that its writer meant."""
MAX_EXACT_BITS = 1000  # of the integers of a fraction: they fit a float64, and larger ones are decimals
NAN = Decimal("nan")


def exact_number(number: float | Fraction | Decimal) -> Number:
    """A short decimal as a fraction; any other number as it is, to thirty digits, NaN where it is not finite."""
    if isinstance(number, Fraction | int):
        return Fraction(number)
    if isinstance(number, float) and math.isfinite(number) and len(repr(number)) <= SHORT:
        return Fraction(repr(number))
    return finite(Decimal(number))


def finite(number: Decimal) -> Decimal:
    """Decimal of thirty digits; NaN for one that is infinite."""
    return EXACT.plus(number) if number.is_finite() else NAN


def decimal(number: Number) -> Decimal:
    """Number as a decimal."""
    if isinstance(number, Decimal):
        return number
    return EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))


def opposite(number: Number) -> Number:
    """Number with the other sign, not rounded."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def plus(a: Number, b: Number) -> Number:
    """Sum of two numbers."""
    return _folded(add, EXACT.add, a, b)


def times(a: Number, b: Number) -> Number:
    """Product of two numbers."""
    return _folded(mul, EXACT.multiply, a, b)


def _folded(
    exactly: Callable[[Fraction, Fraction], Fraction],
    rounded: Callable[[Decimal, Decimal], Decimal],
    a: Number,
    b: Number,
) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        result = exactly(a, b)
        return result if _bits(result) <= MAX_EXACT_BITS else finite(decimal(result))
    return finite(rounded(decimal(a), decimal(b)))


def _bits(number: Fraction) -> int:
    """Binary digits of the longer one of its integers."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def is_exact_power(base: Number, exponent: Number) -> bool:
    """True where a power is a fraction, or roots of integers, with few digits."""
    if not (isinstance(base, Fraction) and isinstance(exponent, Fraction)):
        return False
    return max(abs(exponent), Fraction(1)) * _bits(base) <= MAX_EXACT_BITS


def root_of(n: int, exponent: Fraction) -> tuple[Fraction, int]:
    """Fraction a and integer b with n^exponent = a b^exponent, for an exponent between 0 and 1: b is 1 for a perfect power."""
    q = exponent.denominator
    guess = round(n ** (1 / q))
    if guess**q == n:
        return Fraction(guess**exponent.numerator), 1
    k = next((k for k in range(min(math.isqrt(n), 100), 1, -1) if n % k**q == 0), 1)
    return Fraction(k**exponent.numerator), n // k**q


def written(number: Number, digits: int = DIGITS) -> str:
    """`3/4`, `0.0682`, `1.5e+40`: a decimal with so many digits and no zeros at its end."""
    if isinstance(number, Fraction):
        return str(number)
    if not number.is_finite():
        return "nan"
    rounded = Context(prec=digits).plus(number)
    if min(-(digits // 3), -5) < rounded.adjusted() < digits:
        whole, _, part = f"{rounded:f}".partition(".")
        return f"{whole}.{part.rstrip('0') or '0'}"
    front, _, exponent = f"{rounded:e}".partition("e")
    whole, _, part = front.partition(".")
    return f"{whole}.{part.rstrip('0') or '0'}e{exponent}"
