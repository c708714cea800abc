"""Margins of convex constraints on loads that rise and fall slowly: beside the rule by the mean of the last rounds, and beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from driving import plan_for
from test_c99 import needs_compiler

pytestmark = needs_compiler
T, USERS, SHARE, MOST = 600, 2, 0.05, 20.0
RADIO = f"""
model radio
horizon T = {T}
decision power[{USERS}] in box(0, {MOST})
context gain[{USERS}] in [0.5, 5]
stream need[{USERS}] in [0, 4]
minimize sum(power)
subject to
    rate: need <= 1.5 * log(1 + gain * power)  in 95% of rounds
"""


def traffic(seed: int) -> tuple[Any, Any]:
    """Gains and needs, whose errors are in proportion to a level that takes 250 rounds to rise and fall and jumps once."""
    rng, t = np.random.default_rng(seed), np.arange(T)[:, None]
    level = (
        np.array([1.0, 0.7]) * (1 + 0.7 * np.sin(2 * np.pi * (t / 250 - np.array([0.1, 0.6])))) * (1 + 0.4 * (t > 420))
    )
    return rng.uniform(0.5, 3, (T, USERS)), np.clip(level * np.exp(0.15 * rng.normal(size=(T, USERS))), 0, 4)


def of_power(need: Any, gain: Any) -> Any:
    return np.clip(np.expm1(need / 1.5) / gain, 0, MOST)


def by_last_rounds(need: Any, gain: Any, rounds: int = 6) -> Any:
    """Power for the mean of the last rounds times a factor, the least that serves 95% of all rounds."""
    means = np.array([need[max(0, k - rounds) : k].mean(axis=0) if k else np.full(USERS, 2.0) for k in range(T)])
    for factor in np.arange(1.0, 2.0, 0.01):
        power = of_power(factor * means, gain)
        if ((need > 1.5 * np.log1p(gain * power) + 1e-9).mean(axis=0) <= SHARE).all():
            break
    return power


def test_a_convex_share_is_kept_at_nearly_the_price_of_the_rule_that_is_tuned_in_hindsight() -> None:
    """In each of three draws the share is kept; after a hundred rounds the power of all is 15% above the rule's at most."""
    t, own, rule = np.arange(1, T + 1)[:, None], 0.0, 0.0
    lent = np.minimum(np.sqrt(SHARE * (T - t) / 2), SHARE * (T - t))
    for seed in range(3):
        gain, need = traffic(seed)
        trace = plan_for(RADIO).run({"gain": gain, "need": need}, backend="c")
        power = np.asarray(trace.decisions).reshape(T, USERS)
        broken = (need > 1.5 * np.log1p(gain * power) + 1e-7).cumsum(axis=0)
        assert (broken <= SHARE * t + 1 - SHARE + lent + 1e-9).all()
        own, rule = own + power[100:].sum(), rule + by_last_rounds(need, gain)[100:].sum()
    assert own < 1.15 * rule


def test_the_level_and_its_errors_are_those_of_a_loop() -> None:
    """Exponential smoothing at rate 1/4, the regression of the sizes of its errors on it, and its quantile."""
    gain, need = traffic(3)
    learner = plan_for(RADIO).learner(backend="numpy")
    level, size = np.zeros(USERS), 0.0
    means, both = np.zeros((3, USERS)), np.zeros((3, USERS))
    last, cross, square, sizes = (np.zeros(USERS) for _ in range(4))
    for k in range(40):
        learner.decide(gain=gain[k])
        learner.observe(need=need[k])
        e = need[k] - 2.0  # the constraint holds the middle of the range in its place
        slope = np.clip(np.divide(cross, square, out=np.zeros(USERS), where=square > 0), -1, 1)
        residual = e - level
        error = residual - slope * last
        steep = np.clip(np.divide(both[2], both[0], out=np.zeros(USERS), where=both[0] > 0), 0, 2)
        usual = means[2] + steep * (level - means[0])
        size = np.maximum(usual, 0.25 * means[2])
        has = float(k > 0)
        above = error - (2 + sizes) * size
        sizes = sizes + 0.05 * has * ((above > 0) - max(SHARE, 0.1))
        rate = max(0.005, 1 / (k + 1))
        away = np.array([level, e, abs(error)]) - means
        means, both = means + rate * away, (1 - rate) * (both + rate * away * away[0])
        cross, square, last = 0.995 * cross + has * residual * last, 0.995 * square + last**2, has * residual
        level = level + max(0.25, 1 / (k + 1)) * residual
        np.testing.assert_allclose(learner.value("kept_average_level_rate"), level, atol=1e-12)
        np.testing.assert_allclose(learner.value("kept_regression_level_rate")[:3], means, atol=1e-12)
        np.testing.assert_allclose(learner.value("kept_moments_level_rate")[4], sizes, atol=1e-12)
