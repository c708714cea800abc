"""The least value of a function of one number: by steps and golden sections, or in closed form where it is a + b k^p + c k^q."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from oco.compiler.ir.symbolic import Numeral, Symbol
from oco.compiler.ir.symbolic_form import power, product, quotient

FIRST_STEP = math.log(8.0)
WIDTH = 0.15
"""The search ends where log k is known to this."""
GAIN = 1e-3
"""A step, or a pass over all constants, that gains less, relatively, is the last."""
GOLDEN = (math.sqrt(5) - 1) / 2


def fit(powers: tuple[int, int], ks: tuple[float, ...], values: list[float]) -> tuple[float, float, float] | None:
    """a, b, c of a + b k^p + c k^q through the first three values, where b, c > 0 and the fourth fits too."""
    if not all(math.isfinite(v) for v in values):
        return None
    p, q = powers
    rows = np.array([[1.0, k**p, k**q] for k in ks])
    a, b, c = np.linalg.solve(rows[:3], values[:3])
    fits = abs(float(rows[3] @ (a, b, c)) - values[3]) <= 1e-7 * abs(values[3])
    return (float(a), float(b), float(c)) if fits and b > 0 and c > 0 else None


@lru_cache(maxsize=8)
def stationary(powers: tuple[int, int]) -> tuple[Callable[[float, float], float], str]:
    """Minimizer of b k^p + c k^q, p and q of opposite signs: the root of its derivative, as a function of b and c, and as text."""
    p, q = powers
    ratio = product((Numeral(Fraction(-q, p)), quotient(Symbol("c"), Symbol("b"))))
    text = str(power(ratio, Numeral(Fraction(1, p - q))))
    return lambda x, y: float((-q * y / (p * x)) ** (1 / (p - q))), text


def least(f: Callable[[float], float]) -> float:
    """Minimizer of f: steps that double while they gain, then golden sections around the best. 0 where nothing better is found."""
    _, middle = doubled(f)
    a, b = sorted((middle / 2, 2 * middle)) if middle else (-FIRST_STEP, FIRST_STEP)
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    while b - a > WIDTH:
        if f(x) <= f(y):
            b, y = y, x
            x = b - GOLDEN * (b - a)
        else:
            a, x = x, y
            y = a + GOLDEN * (b - a)
    return min((x, y, middle, 0.0), key=lambda at: (f(at), abs(at)))


def doubled(f: Callable[[float], float], step: float = FIRST_STEP) -> tuple[float, float]:
    """Least value of f on steps to both sides of 0 that double while they gain, and where it is."""
    best, middle = f(0.0), 0.0
    for sign in (1.0, -1.0):
        x = sign * step
        while (value := f(x)) < above(best, -GAIN):
            best, middle, x = value, x, 2 * x
    return best, middle


def above(value: float, share: float) -> float:
    """Value and a share of its size; where it is infinite, itself."""
    return value + share * abs(value) if math.isfinite(value) else value
