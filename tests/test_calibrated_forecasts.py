"""Forecasts that are off by a factor, and whose errors grow with what they forecast, in constraints in a share of the rounds."""

from __future__ import annotations

import numpy as np
import pytest
from driving import plan_for
from thorough import thorough

T = 300
SERVED = f"""\
model served
horizon T = {T}
decision x in box(0, 130)
context forecast in [0, 120]
stream load in [0, 125]
minimize x
subject to
    serve: x >= load  in 90% of rounds
"""


@pytest.mark.parametrize("factor", [0.8, thorough(1.0), 1.25])
def test_a_factor_is_learned_and_margins_grow_with_the_forecast(factor: float) -> None:
    rng, t = np.random.default_rng(6), np.arange(T)
    base = 45 + 35 * np.sin(2 * np.pi * t / 17)
    forecast = np.clip(base / factor, 0, 120)
    load = np.clip(base * rng.lognormal(0, 0.08, T), 0, 125)
    x = plan_for(SERVED).run({"load": load, "forecast": forecast}, backend="c").decisions.reshape(T)
    broken, late = load > x + 1e-9, t >= 2 * T // 3  # most of what early rounds borrowed is paid back
    left = T - 1 - t
    lent = np.minimum(np.sqrt(0.1 * left / 2), 0.1 * left)  # on credit, paid back by round T
    assert (broken.cumsum() <= 0.1 * (t + 1) + 0.9 + lent + 1e-9).all()
    by_ratio = base * np.exp(0.08 * 1.2816)  # the quantile of 90% of what is drawn
    assert x[late].sum() < 1.05 * by_ratio[late].sum() and x.sum() < 1.06 * by_ratio.sum()
