"""Cases that are left to `make fuzz`: more of what the other cases of a test show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def thorough(*values: Any) -> Any:
    """Case of `pytest.mark.parametrize` that runs with `-m thorough` alone."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def corners(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Cases of `pytest.mark.parametrize`, in order: those that are not kept are thorough. A tuple is the values of one case."""
    return [case if case in kept else thorough(*(case if isinstance(case, tuple) else (case,))) for case in cases]


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases in order, the first of each `step` kept, the others thorough."""
    listed = list(cases)
    return corners(listed, listed[::step])


def turns(*axes: Sequence[Any]) -> list[Any]:
    """Cases of several parameters that take turns, until each value was there; the rest of their product is thorough."""
    kept = {tuple(k % len(axis) for axis in axes) for k in range(max(map(len, axes)))}
    cases = []
    for place in product(*(range(len(axis)) for axis in axes)):
        parts = [pytest.param(axis[k]) if not hasattr(axis[k], "marks") else axis[k] for axis, k in zip(axes, place)]
        marks = [mark for part in parts for mark in part.marks]
        left = [] if place in kept else [pytest.mark.thorough]
        cases.append(pytest.param(*(part.values[0] for part in parts), marks=[*marks, *left]))
    return cases
