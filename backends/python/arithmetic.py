"""Arithmetic of single numbers with NumPy's results; its own functions take ten times as long for them.

An emitted module contains those of them that it uses.
"""

from __future__ import annotations

import math

import numpy as np


def ratio(a: float, b: float) -> float:
    """Quotient a / b; an infinity or NaN where b is zero."""
    return a / b if b else float(np.divide(a, b))


def root(x: float) -> float:
    """Square root; NaN where x is negative."""
    return math.sqrt(x) if x >= 0 else math.nan


def larger(a: float, b: float) -> float:
    """Larger of two numbers; NaN if one is."""
    return a if a >= b or a != a else b


def smaller(a: float, b: float) -> float:
    """Smaller of two numbers; NaN if one is."""
    return a if a <= b or a != a else b
