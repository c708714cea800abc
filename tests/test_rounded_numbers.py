"""Single numbers are rounded as entries of arrays are, and never to the wrong side."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from oco.dsl import rounding

SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, 1 / 3, 5e-324, -5e-324, 1e-320, 2.2e-308, 1e-140, 1e140, 1e154, 1.7e308, -1.7e308]
ENDS = [*SPECIAL, 0.1, -0.7, np.nextafter(1.0, 2.0), np.inf, -np.inf]
EXACTLY = {"add": Fraction.__add__, "mul": Fraction.__mul__, "div": Fraction.__truediv__}


def pairs() -> list[tuple[float, float]]:
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-160, 160, (2000, 2)) * rng.choice([-1.0, 1.0], (2000, 2))
    near = rng.integers(-50, 50, (2000, 2)) / rng.choice([1, 2, 3, 7, 10], (2000, 2))
    return [*product(ENDS, ENDS), *map(tuple, size.tolist()), *map(tuple, near.tolist())]


FUNCTIONS = [("add", "down"), ("add", "up"), ("mul", "down"), ("mul", "up"), ("div", "down")]


@pytest.mark.parametrize(("name", "direction"), FUNCTIONS)
def test_single_numbers_are_rounded_as_entries_are(name: str, direction: str) -> None:
    f = getattr(rounding, f"{name}_{direction}")
    for a, b in pairs():
        entry, number = f(np.array([a]), np.array([b]))[0], f(np.asarray(a), np.asarray(b))
        assert number.shape == () and number.tobytes() == entry.tobytes(), (a, b, entry, number)


@pytest.mark.parametrize(("name", "direction"), FUNCTIONS)
def test_they_are_on_their_side_and_exact_where_they_can_be(name: str, direction: str) -> None:
    f = getattr(rounding, f"{name}_{direction}")
    for a, b in pairs():
        if not np.isfinite([a, b]).all() or (name == "div" and b == 0):
            continue
        exactly, rounded = EXACTLY[name](Fraction(a), Fraction(b)), float(f(np.asarray(a), np.asarray(b)))
        if direction == "down":
            assert rounded == -np.inf or Fraction(rounded) <= exactly, (a, b)
        else:
            assert rounded == np.inf or Fraction(rounded) >= exactly, (a, b)
        if abs(a) < 1e6 and abs(b) < 1e6 and min(abs(a), abs(b)) > 1e-6 and Fraction(float(exactly)) == exactly:
            assert rounded == float(exactly), (a, b)
