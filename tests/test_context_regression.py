"""Regression of data on contexts and last values, and quantiles about the best prediction, against literal references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.algorithms.context_regression import STACKED_SHRINK
from oco.compiler.algorithms.predictions import places
from oco.compiler.problem.canonical import canonical

WIND = """\
model wind
horizon T = {T}
decision sold in box(0, 100)
context forecast[2] in [-60, 160]
stream wind in [0, 100]
stream surplus in [0, 10]
stream shortage in [0, 10]
minimize surplus * pos(wind - sold) + shortage * pos(sold - wind)
"""


def rounds(T: int, seed: int) -> dict[str, Any]:
    """Wind that forgets slowly, a biased forecast that is noisy, and one that says nothing."""
    rng, ar = np.random.default_rng(seed), np.zeros(T)
    for t in range(1, T):
        ar[t] = 0.95 * ar[t - 1] + rng.normal(0, 6)
    wind = np.clip(50 + ar, 0, 100)
    forecast = np.stack([0.8 * wind + 18 + rng.normal(0, 8, T), rng.uniform(0, 100, T)], axis=1)
    return {"forecast": forecast, "wind": wind, "surplus": rng.uniform(1, 2, T), "shortage": rng.uniform(3, 6, T)}


def literal(z: Any, s: Any) -> list[float]:
    """Prediction of each round from the third on: ridge regression on the contexts, and of what it misses on that and the last value."""
    made: list[float] = []
    r = [0.0]  # of the first round nothing is said
    for t in range(1, len(s)):
        past, mean = s[:t], s[:t].mean()
        centred = z[:t] - z[:t].mean(axis=0)
        C = centred.T @ centred / t
        weights = np.linalg.solve(
            C + np.diag(np.where(np.diag(C) > 0, np.diag(C) / (t + 1), 1.0)), z[t] - z[:t].mean(axis=0)
        )
        by_contexts = float((past - mean) @ centred / t @ weights)
        u, v = np.array(r[1:]), np.array([s[k - 1] - s[:k].mean() for k in range(1, t)])
        e = np.array([s[k] - s[:k].mean() for k in range(1, t)]) - u
        X = np.stack([u, v], axis=1)
        gram = X.T @ X + STACKED_SHRINK / (t + 1) * np.diag(np.diag(X.T @ X))
        a, b = np.linalg.solve(gram + np.diag((np.diag(gram) == 0).astype(float)), X.T @ e)
        made.append(float(np.clip(mean + by_contexts * (1 + a) + b * (s[t - 1] - mean), 0, 100)))
        r.append(by_contexts)
    return made


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_predictions_are_those_of_regressions_on_contexts_and_last_values(backend: str) -> None:
    T = 60
    data = rounds(T, 1)
    plan = oco.compile(oco.parse(WIND.format(T=T)), "hedged")
    learner, (row,) = plan.learner(backend=backend), places(canonical(oco.parse(WIND.format(T=T))), 1)[4]
    made = []
    for t in range(T):
        learner.decide(forecast=data["forecast"][t])
        made.append(float(learner.values["predicted"][row, 0]))
        learner.observe(**{n: data[n][t] for n in ("wind", "surplus", "shortage")})
    np.testing.assert_allclose(made[2:], literal(data["forecast"], data["wind"])[1:], rtol=1e-6, atol=1e-6)


def test_what_is_sold_comes_near_the_best_quantile_about_the_best_linear_prediction() -> None:
    T = 1200
    data = rounds(T, 2)
    trace = oco.compile(oco.parse(WIND.format(T=T))).run(data, backend="c")
    wind, later = data["wind"], slice(T // 4, T)
    X = np.stack([np.ones(T), data["forecast"][:, 0], np.concatenate([[50.0], wind[:-1]])], axis=1)
    fitted = X @ np.linalg.lstsq(X, wind, rcond=None)[0]  # in hindsight

    def cost(sold: Any) -> float:
        lost = data["surplus"] * np.maximum(wind - sold, 0) + data["shortage"] * np.maximum(sold - wind, 0)
        return float(lost[later].sum())

    errors = wind - fitted
    best = min(cost(np.clip(fitted + np.quantile(errors, q), 0, 100)) for q in (0.2, 0.25, 0.3))
    assert trace.loss[later].sum() <= 1.05 * best
    assert trace.loss[later].sum() <= 0.85 * cost(np.clip(fitted, 0, 100))
