"""Exponents of T with which measured regret and violation grow, beside those of the theorems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from law_worlds import BUDGET, ENDLESS, ROUNDS, WORLDS, Array, Life, lives, plan_in, play, theorem_of
from scipy.stats import t as student

from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.selection.plan import Plan

HORIZONS = tuple(2**k for k in range(8, 15))
ONE_SIDED = 0.95
"""Confidence of the lower limit of an exponent."""

# With the papers' constants these stay near their first decision, or leave the constraints alone, for longer than 2^14 rounds: a guarantee
# that is still vacuous there says nothing about exponents. Other constants of the theorem's family stand here in their place: before the
# same powers of T, and within every condition of its proof (`fitted` holds that).
SETTINGS: Mapping[str, Mapping[str, str]] = {
    # eta and gamma for a V_* that is the worst case: the point needs 4,000 of 2^14 rounds to cross the domain.
    "mirror-prox": {"eta": "2 / sqrt(T)", "gamma": "0.3 * T**(1/4)"},
    # Erratum 11: theta = 24 R D T^(1/2) keeps the multiplier near zero; so with the other oracles and their powers.
    "projection-free ocg": {"theta": "T**(1/2)"},
    "projection-free orgfw": {"theta": "T**(1/4)"},
    "projection-free ospf": {"theta": "T**(2/5)"},
    "projection-free sftrl": {"theta": "T**(1/4)"},
    # Linear losses in a box: a block must tell a drift from coins, so blocks are long and theta lets the multiplier move by less than its
    # best value in each; leaders are perturbed less, so that they find the vertex within a block.
    "projection-free orgfw in the box": {"K": "ceiling(4 * T**(1/2))", "theta": "6 * T**(1/4)"},
    "projection-free ospf in the box": {
        "K": "ceiling(2 * T**(3/5))",
        "delta": "0.1 * D * sqrt(k * K)",
        "theta": "4 * T**(2/5)",
    },
    "projection-free sftrl in the box": {
        "K": "ceiling(4 * T**(1/2))",
        "k": "ceiling(T**(1/2))",
        "delta": "0.1 * D * sqrt(K)",
        "theta": "8 * T**(1/4)",
    },
    # theta = 12 R D sqrt(d) / T^(1/2): the same. The proof asks for little more than R D sqrt(d) / (2 T^(1/2)).
    "meta-frank-wolfe": {"theta": "0.9 * domain.diameter.l1 * loss.lipschitz.l1 * sqrt(d) / sqrt(T)"},
    # Erratum 13: the guess of 1 is never doubled, and the constraint weighs 1/(2 T^(3/4)). The proofs bound beta rate above, and G and D
    # below: a large rate lets the constraint weigh as much as the loss, a large D makes the steps long, a small beta keeps the product.
    "ofw-tvc": {"G": "6", "D": "120", "rate": "4", "beta": "1 / (200000 * T**(3/4))", "guess": "1e-9"},
    "bfw-tvc": {
        "G": "6",
        "D": "200",
        "rate": "1",
        "beta": "1 / (250000 * T**(3/4))",
        "guess": "1e-12",
        "c": "3.5",
        "epsilon": "4 * domain.diameter.l2**2 / sqrt(T)",
    },
    # As in the box, with perturbations that the smaller ball within the simplex allows.
    "bfw-tvc in the simplex": {
        "G": "6",
        "D": "200",
        "rate": "1",
        "beta": "1 / (250000 * T**(3/4))",
        "guess": "1e-12",
        "c": "1",
        "epsilon": "4 * domain.diameter.l2**2 / sqrt(T)",
    },
    # The potential acts after 4 G D sqrt(T) log T: more than T here. The proof bounds beta rate: see ofw-tvc.
    "sinha-vaze": {"rate": "4", "beta": "0.02 / sqrt(T)"},
    # The potential acts as above once the rates have fallen below the weight of the loss: after 2^14 rounds. beta keeps c r < 1.
    "sinha-vaze anytime": {"rate": "2000 / (sqrt(t) * (1 + log(t)))", "beta": "1 / (6000 * G * D)"},
    # Losses are strongly convex there, and Theorem 2 has no rate.
    "sinha-vaze in the ball": {"beta": "0.02 / sqrt(T)"},
    "sinha-vaze in the segment": {"beta": "0.02 / sqrt(T)"},
    # With D_s = D the steps are AdaGrad's for the first 240 rounds; they end where S = (n / (gamma D_s))^2.
    "ons": {"D": "16 * domain.diameter.l2"},
    # rho = 1/sqrt(T) makes steps of 0.06/sqrt(T).
    "pfs": {"rho": "8 / sqrt(T)"},
}

# Worlds where the constants of a method are too large for 2^14 rounds whatever its settings. scbfw-tvc has T^(1/3) blocks, and the mean of
# m one-point estimates has the variance (d f / (2 delta))^2 / (K m), about 30/m in three dimensions: more than the domain for 20 blocks.
# bgd promises 49,750 in the box at 2^14 rounds, half of what decisions can lose: it has hardly begun to learn.
TOO_SHORT = frozenset({("scbfw-tvc", "ball"), ("bgd", "box")})


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
    rate = sympy.sympify(rate)
    rate = rate.subs({s: known[s.name] for s in rate.free_symbols})
    power = rate.replace(sympy.log, lambda _: sympy.Integer(1))
    ratio = power.subs(T, 16) / power.subs(T, 4)
    return float(sympy.log(ratio) / math.log(4)), rate / power


def measured(life: Life, plan: Plan, rounds: int, sequence: str, seeds: range) -> Mapping[str, Array]:
    """Regret and violation after all rounds, one a seed, each at least what two rounds can cost: what is less says nothing of growth."""
    assert plan.guarantee is not None and plan.horizon in (rounds, None)
    found: dict[str, list[float]] = {b.measure: [] for b in plan.guarantee.bounds}
    for seed in seeds:
        streams = life.world.draw(sequence, np.random.default_rng([seed, rounds]), rounds)
        played = play(plan, streams, seed)
        values = [life.regret(plan, streams, played), life.violation(plan, played)]
        for bound, value in zip(plan.guarantee.bounds, values):
            found[bound.measure].append(max(value, 2 * (bound.trivial or 0.0)))
    return {measure: np.array(values) for measure, values in found.items()}


def settings_of(life: Life) -> Mapping[str, str]:
    """Settings of the method in this region, else those of the method."""
    return SETTINGS.get(f"{life.method} in the {life.world.region}", SETTINGS.get(life.method, {}))


def fitted(life: Life, sequence: str, horizons: Sequence[int], seeds: range) -> Iterator[Fit]:
    """The exponents of max(measure, what two rounds can cost) / (the theorem's log factors); a line for each seed."""
    settings = (*life.settings, *settings_of(life).items())
    plans = [plan_in(life.algorithm, life.world, T, settings) for T in horizons]
    known = [p for p in plans if p is not None and p.guarantee is not None]
    assert len(known) == len(horizons), f"{life}: no theorem at some horizon"
    assert not any(w.code == "OCO707" for p in known for w in p.warnings), f"{life}: beyond the theorem's family"
    runs = [measured(life, p, T, sequence, seeds) for p, T in zip(known, horizons)]
    assert known[0].guarantee is not None
    for measure, rate in known[0].guarantee.rates.items():
        power, logs = split_rate(rate, life)
        factors = np.array([float(logs.subs(dict.fromkeys(logs.free_symbols, T))) for T in horizons])
        values = np.log(np.array([r[measure] for r in runs]) / factors[:, None])
        slopes = np.polyfit(np.log(horizons), values, 1)[0]
        spread = student.ppf(ONE_SIDED, len(seeds) - 1) * slopes.std(ddof=1) / math.sqrt(len(seeds))
        yield Fit(life, sequence, measure, power, float(slopes.mean()), float(slopes.mean() - spread))


def lives_of(algorithm: str, every: bool = False, regions: bool = True) -> list[Life]:
    """The worlds of an algorithm: each, or the first for each theorem and region; for a method of several, for each theorem and loss.
    Without `regions` the first for each theorem.
    """
    found: dict[tuple[str, ...], Life] = {}
    for life, plan in lives(algorithm, ROUNDS, variants=True, worlds=WORLDS + ENDLESS):
        key = [theorem_of(plan).name, life.method]
        if regions:
            key[1] = life.world.loss if life.settings and not every else life.world.region
        if (life.method, life.world.region) not in TOO_SHORT:
            found.setdefault((*key, *([life.world.constraint] if every else [])), life)
    return list(found.values())


def horizons_of(life: Life) -> tuple[int, ...]:
    """Powers of two up to 2^14; up to 2^12 where rounds ask for more oracle calls the longer the run is, up to 2^9 one by one.

    From 2^10 on for Newton steps: for a hundred rounds they cross the domain, which costs nothing of a logarithm.
    """
    algorithm = next(a for a in ALGORITHMS if a.name == life.algorithm)
    leaders = dict(life.settings).get("oracle") in ("ospf", "sftrl")
    grows = leaders or "T" in algorithm.cost.replace("log2(T)", "")
    if algorithm.name == "ons":
        return HORIZONS[2:]
    if life.world.constraint == BUDGET:
        return tuple(2**k for k in range(5, 10))
    return tuple(2**k for k in range(8, 13)) if grows else HORIZONS
