"""Exponents of T with which measured regret and violation grow, beside those of the theorems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from law_worlds import Array, Life, lives, plan_in, play, theorem_of
from scipy.stats import t as student

from oco.compiler.algorithms import Algorithm
from oco.compiler.plan import Plan

HORIZONS = tuple(2**k for k in range(8, 15))
ONE_SIDED = 0.95
"""Confidence of the lower limit of an exponent."""

# With the papers' constants these stay near their first decision, or leave the constraints alone, for longer than 2^14 rounds: a guarantee
# that is still vacuous there says nothing about exponents. Other constants before the same powers of T stand here in their place.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    # eta and gamma for a V_* that is the worst case: the point needs 4,000 of 2^14 rounds to cross the domain.
    "mirror-prox": {"eta": "2 / sqrt(T)", "gamma": "0.3 * T**(1/4)"},
    # Erratum 11: theta = 24 R D T^(1/2) keeps the multiplier near zero. Also with the other oracles.
    "projection-free": {"oracle": "ocg", "theta": "T**(1/2)"},
    # theta = 12 R D sqrt(d) / T^(1/2): the same.
    "meta-frank-wolfe": {"theta": "1 / sqrt(T)"},
    # Erratum 13: the guess of 1 is never doubled, and the weight of the constraint stays 1/(2 T^(3/4)). D is the scale of the step.
    "ofw-tvc": {"guess": "0.001", "beta": "8", "D": "40"},
    "bfw-tvc": {"guess": "0.001", "beta": "4", "D": "40", "c": "1.5"},
    # beta = 1/(2 G D) lets the potential act after 4 G D sqrt(T) log T: more than T here. The authors' code has beta = 1.
    "sinha-vaze": {"beta": "2"},
    # rho = 1/sqrt(T) makes steps of 0.06/sqrt(T).
    "pfs": {"rho": "8 / sqrt(T)"},
}

# Worlds where the constants of a method are too large for 2^14 rounds whatever its settings. scbfw-tvc has T^(1/3) blocks, and the mean of
# m one-point estimates has the variance (d f / (2 delta))^2 / (K m), about 30/m in three dimensions: more than the domain for 20 blocks.
TOO_SHORT = frozenset({("scbfw-tvc", "ball")})


@dataclass(frozen=True)
class Fit:
    """The exponent of one measure: the theorem's, the least-squares slope in the mean over seeds, and its lower confidence limit."""

    life: Life
    sequence: str
    measure: str
    theorem: float
    slope: float
    lower: float

    def __str__(self) -> str:
        return f"{self.life}, {self.sequence}: {self.measure} grows as T^{self.slope:.3f}, at least T^{self.lower:.3f}"


def split_rate(rate: Any, life: Life) -> tuple[float, Any]:
    """A rate in T as the exponent of its power, and its log factors as an expression in T.

    V_* of a sequence of coins grows as T, V_g is the world's.
    """
    T = sympy.Symbol("T", positive=True)
    known = {"T": T, "d": life.world.size, "V_g": sympy.nsimplify(life.world.variation), "V_star": T, "beta": 0}
    rate = rate.subs({s: known[s.name] for s in rate.free_symbols})
    power = rate.replace(sympy.log, lambda _: sympy.Integer(1))
    ratio = power.subs(T, 16) / power.subs(T, 4)
    return float(sympy.log(ratio) / math.log(4)), rate / power


def measured(life: Life, plan: Plan, sequence: str, seeds: range) -> Mapping[str, Array]:
    """Regret and violation after all rounds, one a seed, each at least what one round can cost."""
    assert plan.guarantee is not None and plan.horizon is not None
    found: dict[str, list[float]] = {b.measure: [] for b in plan.guarantee.bounds}
    for seed in seeds:
        streams = life.world.draw(sequence, np.random.default_rng([seed, plan.horizon]), plan.horizon)
        played = play(plan, streams, seed)
        values = [life.regret(plan, streams, played), life.violation(plan, played)]
        for bound, value in zip(plan.guarantee.bounds, values):
            found[bound.measure].append(max(value, bound.trivial or 0.0))
    return {measure: np.array(values) for measure, values in found.items()}


def fitted(life: Life, sequence: str, horizons: Sequence[int], seeds: range) -> Iterator[Fit]:
    """The exponents of max(measure, what one round can cost) / (the theorem's log factors); a line for each seed."""
    settings = tuple(SETTINGS.get(life.algorithm, {}).items())
    plans = [plan_in(life.algorithm, life.world, T, settings) for T in horizons]
    known = [p for p in plans if p is not None and p.guarantee is not None]
    assert len(known) == len(horizons), f"{life}: no theorem at some horizon"
    runs = [measured(life, p, sequence, seeds) for p in known]
    assert known[0].guarantee is not None
    for measure, rate in known[0].guarantee.rates.items():
        power, logs = split_rate(rate, life)
        factors = np.array([float(logs.subs(dict.fromkeys(logs.free_symbols, T))) for T in horizons])
        values = np.log(np.array([r[measure] for r in runs]) / factors[:, None])
        slopes = np.polyfit(np.log(horizons), values, 1)[0]
        spread = student.ppf(ONE_SIDED, len(seeds) - 1) * slopes.std(ddof=1) / math.sqrt(len(seeds))
        yield Fit(life, sequence, measure, power, float(slopes.mean()), float(slopes.mean() - spread))


def lives_of(algorithm: str, every: bool = False) -> list[Life]:
    """The worlds of an algorithm: each, or the first for each theorem and region."""
    found: dict[tuple[str, ...], Life] = {}
    for life, plan in lives(algorithm, HORIZONS[0]):
        key = (theorem_of(plan).name, life.world.region, *([life.world.constraint] if every else []))
        if (algorithm, life.world.region) not in TOO_SHORT:
            found.setdefault(key, life)
    return list(found.values())


def horizons_of(algorithm: Algorithm) -> tuple[int, ...]:
    """Powers of two up to 2^14; up to 2^10 where a round asks for more oracle calls the longer the run is."""
    grows = "T" in algorithm.cost.replace("log2(T)", "")
    return tuple(2**k for k in range(6, 11)) if grows else HORIZONS
