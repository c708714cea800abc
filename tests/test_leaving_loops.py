"""Loops that lanes leave one by one: every lane does what it would do alone."""

from __future__ import annotations

import numpy as np
import pytest
from driving import example
from test_backends_agree import rounds_of

from oco.backends.python.leaving import until_done
from oco.compiler.ir.batching import batch
from oco.compiler.ir.interpret import interpret

LANES = 5


@pytest.mark.parametrize("lanes", [1, 2, 3, 200])
def test_euclid_ends_for_each_lane_at_its_own_divisor(lanes):
    a, b = np.random.default_rng(0).integers(1, 10**6, (2, lanes))
    widths = []

    def turn(count, scale, on, x, y):
        assert x.shape == y.shape == scale.shape == on.shape == (count,)
        widths.append(count)
        x, y = np.where(on, y, 1), np.where(on, x % np.maximum(y, 1), 0)
        return on & (y > 0), x, y

    (divisors,) = until_done(turn, np.ones(lanes, bool), [np.ones(lanes)], [a, b], 1)
    assert (divisors == np.gcd(a, b)).all()
    assert lanes < 3 or widths[-1] < lanes


def test_lanes_that_take_no_turn_keep_what_they_had():
    on = np.array([True, False, True, False])

    def turn(count, on, x):
        return on & (x < 3), x + 1

    (x,) = until_done(turn, on, [], [np.zeros((2, 4))[0]], 1)
    assert x.tolist() == [4, 0, 4, 0]


@pytest.mark.parametrize(("model", "algorithm"), [("tracking", "coldq"), ("portfolio", "mirror-descent")])
def test_programs_with_masks_and_with_leaving_mean_the_same(model, algorithm):
    plan = example(model, algorithm)
    masked, leaving = (batch(plan.program, LANES, leaving=way) for way in (False, True))
    rows = list(rounds_of(plan, LANES))
    inputs = [np.stack([r[f.name] for r in rows], axis=-1) for f in plan.program.feedback]
    start = [
        np.repeat(np.asarray(plan.contract.start[f.name], float)[..., None], LANES, -1) for f in plan.program.decision
    ]
    for _ in range(2):
        state = interpret(masked, "init", start)
        found = [interpret(program, "update", [*state, *inputs]) for program in (masked, leaving)]
        for ours, theirs in zip(*found):
            assert np.array_equal(ours, theirs)
        start = [found[0][1]]
