"""`hedged` where data pick entries of arrays: gradient experts alone, against a listing, and in C."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driving import Array, Run, plan_of
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.experts import expert_count, gradients
from oco.dsl.load import parse

TEXT = """
model picked
horizon T = 40
decision x[5] in box(-1, 1)
stream j in 0..4
stream y in [-1, 1]
stream a[5] ~ uniform(-1, 1)
minimize (x[j] - y) ** 2
subject to
    side: a @ x <= 0  each round, penalty 0.7
"""


def drawn(seed: int) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    rows = zip(rng.integers(0, 5, 40), rng.uniform(-1, 1, 40), rng.uniform(-1, 1, (40, 5)))
    return [{"j": np.asarray(j), "y": np.asarray(y), "a": a} for j, y, a in rows]


def test_experts_are_gradient_steps_of_many_sizes_and_prices() -> None:
    plan = plan_of(TEXT, "hedged")
    canonical = plan.choice.situation.canonical
    grid, D = gradients(canonical), 2 * math.sqrt(5)
    assert len(grid) == expert_count(canonical, 1) and (1.0, 1.0) in grid
    run, x, S = Run(plan), np.zeros((len(grid), 5)), np.zeros(len(grid))
    for d in drawn(0):
        np.testing.assert_allclose(run.value("x"), x, atol=1e-9)
        run.play(d)
        for k, (c, r) in enumerate(grid):
            slope = 2 * (x[k, d["j"]] - d["y"]) * np.eye(5)[d["j"]] + 0.7 * r * (d["a"] @ x[k] > 0) * d["a"]
            S[k] += slope @ slope
            x[k] = np.clip(x[k] - c * D / math.sqrt(2 * max(S[k], 1e-290)) * slope, -1, 1)


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_decides_as_numpy_does_and_it_is_the_default() -> None:
    plan = oco.compile(parse(TEXT), data={n: np.array([d[n] for d in drawn(1)]) for n in ("j", "y", "a")})
    assert plan.algorithm == "hedged"
    ours, theirs = (plan.learner(backend=b) for b in ("numpy", "c"))
    for d in drawn(1):
        np.testing.assert_allclose(ours.decide(), theirs.decide(), atol=1e-9)
        ours.observe(**d)
        theirs.observe(**d)
