"""A search for sequences that break a promise: losses, constraints and starts changed greedily towards the bounds, few rounds at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from law_worlds import Array, Life, World, centre, plan_in, play, theorem_of
from test_c99 import has_compiler
from thorough import corners, thorough

from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.selection.plan import Plan

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
ROUNDS, STEPS = 24, 200
WORLDS = (
    World("segment", "linear", "free"),
    World("segment", "quadratic", "fixed"),
    World("segment", "linear", "moving"),
    World("segment", "linear", "fixed on average"),
    World("simplex", "linear", "free"),
)


@dataclass(frozen=True)
class Attempt:
    streams: Mapping[str, Array]
    start: Array

    def moved(self, rng: np.random.Generator) -> Attempt:
        """With another extreme value in a few rounds, or another start."""
        name = str(rng.choice(sorted(self.streams)))
        values = self.streams[name].copy()
        at = rng.integers(0, ROUNDS, rng.integers(1, 5))
        values[at] = rng.choice([0.0, 0.5] if name == "b" else [-1.0, 1.0], values[at].shape)
        start = rng.choice([-1.0, 0.0, 1.0], self.start.shape) if rng.random() < 0.1 else self.start
        return Attempt({**self.streams, name: values}, start)


def shares(life: Life, plan: Plan, attempt: Attempt) -> float:
    """The larger of regret and violation after all rounds, in units of what is promised."""
    assert plan.guarantee is not None
    begin = centre(plan) if plan.guarantee.from_centre or life.world.region == "simplex" else [attempt.start]
    played = play(plan, attempt.streams, 0, begin)
    measured = life.regret(plan, attempt.streams, played), life.violation(plan, played)
    bounds = plan.guarantee.regret_curve(ROUNDS), plan.guarantee.violation_curve(ROUNDS)
    return max(m / b[-1] if b[-1] > 0 else float(m > 1e-9) for m, b in zip(measured, bounds) if b is not None)


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize(
    "algorithm",
    corners([a for a in ALGORITHMS if not all(t.expected for t in a.theorems)], ALGORITHMS[1::2]),
    ids=lambda a: a.name,
)
def test_no_sequence_that_is_found_breaks_a_promise(algorithm: Algorithm, every: bool) -> None:
    """A greedy climb of the share of the promise, 200 steps in each world, or in every second one; the steps do climb."""
    plans = ((Life(algorithm.name, world), plan_in(algorithm.name, world, ROUNDS)) for world in WORLDS)
    found = [(life, plan) for life, plan in plans if plan is not None and not theorem_of(plan).expected]
    for life, plan in found if every else found[::2]:
        world, rng = life.world, np.random.default_rng(1)
        best = Attempt(world.draw("coins", rng, ROUNDS), np.zeros(world.size))
        first = value = shares(life, plan, best)
        for _ in range(STEPS):
            other = best.moved(rng)
            if (share := shares(life, plan, other)) >= value:
                best, value = other, share
        assert first < value <= 1 + 1e-9 or first == value == 0, str(life)
