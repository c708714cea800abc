"""Prices of constraints on average in `hedged`, against the formula: the penalty, or slopes that come where these are less."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driving import Run, plan_of

from oco.compiler.algorithms.dual_prices import RESERVE, STEP

TEXT = """
model spending
horizon T = 30
decision x[2] in box(0, 1)
stream v[2] in [0, 1]
stream c[2] in [0, 2]
minimize -v @ x
subject to
    budget: c @ x <= 0.4  on average, penalty {penalty}
"""


@pytest.mark.parametrize("penalty", [0.2, 50.0])
def test_prices_follow_the_formula(penalty: float) -> None:
    run, rng = Run(plan_of(TEXT.format(penalty=penalty), "hedged")), np.random.default_rng(3)
    price, squares, used, F, G, guesses = 0.0, 0.0, 0.0, 0.0, 0.0, list[float]()
    for t in range(1, 31):
        (x,) = run.decisions
        v, c = rng.uniform(0, 1, 2), rng.uniform(0, 2, 2)
        g = c @ x - 0.4
        used, squares, F, G = used + g, squares + g * g, F + v @ v, G + c @ c
        error = g + (used + RESERVE * math.sqrt(squares / t)) / (30 - t + 1)
        guesses.append(min(penalty, math.sqrt(F / G)))
        price = min(max(price + STEP * guesses[-1] * error / math.sqrt(squares), 0.0), penalty)
        run.play({"v": v, "c": c})
        np.testing.assert_allclose(run.value("lambda"), [price], atol=1e-9)
    assert max(guesses) == penalty if penalty < 1 else max(guesses) < 3
