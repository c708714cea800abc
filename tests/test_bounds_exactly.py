"""The bounds of every atom against its value at 50 digits, with no allowance for rounding."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from atom_cases import CASES, Case, each_case

from oco.dsl.atoms import ATOMS
from oco.dsl.enclose import enclose
from oco.dsl.intervals import interval
from oco.dsl.primitives import ArrayOps

DIGITS = 50


def entrywise(f: Any) -> Any:
    return lambda x: np.frompyfunc(lambda v: f(mpmath.mpf(v)), 1, 1)(x)


class Precise(ArrayOps):
    """The primitives over arrays of mpmath numbers."""

    def __getattr__(self, name: str) -> Any:
        if name in ("exp", "log", "log1p", "sqrt"):
            return entrywise(getattr(mpmath, name))
        return (lambda x: x) if name == "to_float" else super().__getattr__(name)


def precise(case: Case, at: dict[str, np.ndarray]) -> np.ndarray:
    """The value of the call in mpmath numbers; fixed arguments are exact as they are."""
    lift = np.frompyfunc(mpmath.mpf, 1, 1)
    args = [at[f"a{i}"] if isinstance(a, tuple) else np.asarray(a) for i, a in enumerate(case.args)]
    with mpmath.workdps(DIGITS):
        return np.asarray(ATOMS[case.atom].lower(Precise(), case.call(), *(lift(a) for a in args)), dtype=object)


@each_case([c for c in CASES if c.atom not in ("nuclear_norm", "sigma_max", "repeat")])
def test_no_value_lies_outside(case: Case) -> None:
    rng = np.random.default_rng(0)
    for _ in range(6):
        one, other = case.draw(rng), case.draw(rng)
        low, high = ({n: f(one[n], other[n]) for n in one} for f in (np.minimum, np.maximum))
        bounds = enclose(case.call(), {n: interval(low[n], high[n]) for n in low})
        lo, hi = bounds.expanded()
        between = {n: np.clip(low[n] + rng.random(low[n].shape) * (high[n] - low[n]), low[n], high[n]) for n in low}
        mixed = {n: np.where(rng.random(low[n].shape) < 0.5, low[n], high[n]) for n in low}
        for at in (low, high, between, mixed):
            for below, exact, above in zip(lo.flat, precise(case, at).flat, hi.flat):
                assert mpmath.mpf(float(below)) <= exact <= mpmath.mpf(float(above))


@each_case([c for c in CASES if c.atom not in ("nuclear_norm", "sigma_max")])
def test_the_bounds_of_a_point_are_its_value_up_to_rounding(case: Case) -> None:
    at = case.draw(np.random.default_rng(1))
    bounds = enclose(case.call(), {n: interval(v, v) for n, v in at.items()})
    assert np.all(bounds.hi - bounds.lo <= 1e-13 * (1 + np.abs(bounds.hi)))
