"""Random points of polyhedra by hit-and-run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.compiler.domains.norms import Floats

STEP, NUMBERS = 30, 2e-3
"""Microseconds that a step takes, and more for each number that it looks at."""


def sampling_cost(dimension: int, numbers: int) -> int:
    """About how many microseconds chains take, `numbers` those that a step looks at."""
    return int(_length(dimension) * (STEP + NUMBERS * numbers))


def _length(dimension: int) -> int:
    return 20 + 2 * dimension


def hit_and_run(
    rng: np.random.Generator,
    n: int,
    start: Floats,
    tangent: Callable[[Floats], Floats],
    slopes: Callable[[Floats], Floats],
    slacks: Callable[[Floats], Floats],
) -> Floats:
    """`n` independent chains from the interior point `start` (d,), nearly uniform after their steps; shape (n, d).

    Each step draws a direction, made parallel to the set by `tangent`, and a uniform point of the chord. `slopes` and `slacks` give, row
    by row, how fast each inequality is used up along directions and how much of it is left at points (Smith, Oper. Res. 32, 1984).
    """
    x = np.tile(start, (n, 1))
    for _ in range(_length(len(start))):
        u = tangent(rng.standard_normal(x.shape))
        rate, left = slopes(u), np.maximum(slacks(x), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            until = left / rate
        ahead = np.min(np.where(rate > 0, until, np.inf), axis=1)
        behind = np.max(np.where(rate < 0, until, -np.inf), axis=1)
        share = rng.random(n)
        with np.errstate(invalid="ignore"):  # no inequality ends a chord of length nothing, whose step is left out
            step = behind + share * (ahead - behind)
        x = x + np.where(np.isfinite(step), step, 0.0)[:, None] * u
    return x
