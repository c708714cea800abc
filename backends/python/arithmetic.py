"""Arithmetic of single numbers as NumPy has it; its own functions take ten times as long for them.

An emitted module has those of them that it uses.
"""

from __future__ import annotations

import math

import numpy as np


def ratio(a: float, b: float) -> float:
    """a / b; an infinity or NaN where b is zero."""
    return a / b if b else float(np.divide(a, b))


def root(x: float) -> float:
    """The square root; NaN where x is negative."""
    return math.sqrt(x) if x >= 0 else math.nan


def larger(a: float, b: float) -> float:
    """The larger of two; NaN if one is."""
    return a if a >= b or a != a else b


def smaller(a: float, b: float) -> float:
    """The smaller of two; NaN if one is."""
    return a if a <= b or a != a else b
