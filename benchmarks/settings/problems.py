"""Problems on which settings are compared: the examples, and two stochastic problems that can be satisfied; their rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.problem.canonical import StreamRange, canonical
from oco.dsl.distributions import TruncatedDistribution
from oco.dsl.model import Model
from oco.evaluation.data import Data

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = (
    "job_scheduling",
    "datacenter",
    "tracking",
    "online_qp",
    "portfolio",
    "blind_pricing",
    "matrix_completion",
    "ratings",
)
USUAL: Mapping[str, tuple[float, float]] = {
    "price": (0.0, 100.0),
    "relative": (0.96, 1.05),
    "theta": (-1.0, 1.0),
    "a": (0.0, 0.6),
    "c": (-0.5, 1.0),
    "cost": (-1.0, 0.0),
}
"""Usual form of streams without a distribution, by name."""

# Every coefficient is random, and the tightest of many rounds is rare: it alone says what a decision may be in each round.
RARE = """\
model rare
horizon T = 1000
decision x[4] in box(0, 1)
stream cost[4] in [-1, 1] iid
stream use[4]  ~ uniform(0, 1)
minimize cost @ x
subject to
    cap: use @ x <= 0.5    WHEN
"""
# Every other round is tight. The centre, where methods start, costs 0.6 or more a round too much and breaks the constraint.
EVEN = """\
model even
horizon T = 1000
param mean[4] = [0.5, 0.5, -0.5, -0.5]
decision x[4] in box(0, 1)
stream noise[4] ~ uniform(-0.5, 0.5)
stream spare    ~ bernoulli(0.5)
minimize (mean + noise) @ x
subject to
    cap: sum(x) <= 1.2 + 0.5 * spare    WHEN
"""
# What the examples have no place for: losses without constraints that are exp-concave, known in part, known at two points; a budget.
OWN: Mapping[str, str] = {
    "ons": """\
model assets
horizon T = 1000
decision x[4] in simplex
stream relative[4] in [0.5, 2]
minimize -log(relative @ x)
""",
    "optimistic": """\
model ahead
horizon T = 1000
decision x[3] in box(-1, 1)
context ahead[3] in [-1, 1]
stream gap[3] ~ uniform(-0.2, 0.2)
minimize (ahead + gap) @ x + 0.5 * sum_squares(x)
""",
    "two-point": """\
model probed
horizon T = 1000
decision x[3] in ball(1)
stream a[3] in [0, 1]
feedback two_point
minimize sum_squares(x - a)
""",
    "pacing": """\
model spend
horizon T = 1000
decision x[3] in box(0, 1)
context worth[3] in [0, 1]
context fee[3] in [0, 1]
minimize -worth @ x
subject to
    spend: fee @ x <= 0.5 * T  in total
""",
}
"""Models of methods that apply to no example, by the method."""
TRADEOFF = 10.0
"""Weight of violations in the settings for these two: with 1 it pays to violate."""
WHEN = {
    "ofw-tvc": "each round",
    "projection-free": "on average",
    "meta-frank-wolfe": "on average",
    "sinha-vaze": "each round",
}
"""The methods whose exponents are fitted, and when their theorem lets a constraint bind."""


@dataclass(frozen=True)
class Problem:
    """A problem of the tables: its model for each of its algorithms, the weight of violations, the seeds of its rounds.

    longest  the most rounds that it is a problem for; None: any number
    """

    name: str
    models: Mapping[str, Model]
    weight: float = 1.0
    seeds: Sequence[int] = (0,)
    longest: int | None = None


@cache
def example(name: str) -> Problem:
    """An example with every algorithm that there is."""
    model = oco.load(ROOT / "examples" / f"{name}.oco")
    return Problem(name, {a.name: model for a in ALGORITHMS})


def stochastic(seeds: int) -> tuple[Problem, ...]:
    """The two stochastic problems, each with the constraint as the methods' theorems have it."""
    found = []
    for text in (RARE, EVEN):
        models = {when: oco.parse(text.replace("WHEN", when)) for when in set(WHEN.values())}
        name = text.split()[1]
        found.append(Problem(name, {a: models[when] for a, when in WHEN.items()}, TRADEOFF, range(seeds)))
    return tuple(found)


def own() -> tuple[Problem, ...]:
    """Problems of the methods that apply to no example; a budget is one for the rounds of its model."""
    found = []
    for algorithm, text in OWN.items():
        model = oco.parse(text)
        longest = canonical(model).horizon if "in total" in text else None
        found.append(Problem(text.split()[1], {algorithm: model}, longest=longest))
    return tuple(found)


def rounds_of(model: Model, rounds: int, seed: int) -> Data:
    """Rounds drawn from the model's laws and, where a stream has none, from its usual range. They are drawn when they are read."""
    problem = canonical(model)
    streams = tuple(s if s.distribution is not None else replace(s, distribution=_usual(s)) for s in problem.streams)
    return Data(problem, rounds, {}, streams, seed)


def _usual(s: StreamRange) -> TruncatedDistribution:
    low, high = USUAL.get(s.name, (float(s.lower.min()), float(s.upper.max())))
    ends = np.asarray(low), np.asarray(high)
    if s.integer:
        count = int(high) + 1
        return TruncatedDistribution("categorical", {"p": np.full(count, 1 / count)}, s.shape, *ends)
    return TruncatedDistribution("uniform", {"lo": ends[0], "hi": ends[1]}, s.shape, *ends)
