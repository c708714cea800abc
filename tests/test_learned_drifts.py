"""Drifts of stores as predicted: against the laws that their streams were drawn from, and in a reservoir with wet and dry weeks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import oco

DAM = """model dam
horizon T = 600
decision release in box(5, 60)
stream inflow in [0, 90]
stream price in [0, 200]
state level = level - release + inflow in [0, 900] start 500
maximize price * release - 300 * pos(level - release + inflow - 800) - 300 * pos(200 - level + release - inflow)
"""


def inflows(T: int, phi: float, rng: Any) -> Any:
    """Autoregressive inflows with a mean of 32 and innovations with a deviation of 5."""
    above, result = 0.0, np.zeros(T)
    for t in range(T):
        above = phi * above + 5 * rng.normal()
        result[t] = 32 + above
    return np.clip(result, 0, 90)


@cache
def seasonal() -> Any:
    return oco.compile(oco.parse(DAM + "using hedged with season = 24\n"))


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_errors_of_the_drift_are_those_of_the_law_that_it_was_drawn_from(phi: float) -> None:
    """What is expected is off by the innovations, hardly more: the mean absolute value of a normal number, times their deviation."""
    T, rng = 600, np.random.default_rng(3)
    inflow, price = inflows(T, phi, rng), rng.uniform(40, 60, T)
    learner, usual = seasonal().learner(backend="c"), list[float]()
    for t in range(T):
        learner.decide()
        learner.observe(inflow=inflow[t], price=price[t])
        usual.append(float(learner.value("unsure")[0]))
    innovation = 5 * np.sqrt(2 / np.pi)
    assert 0.9 * innovation <= np.mean(usual[300:]) <= 1.15 * innovation
    errors = learner.value("cost_drift_errors")[:, 0, 0]
    assert errors[1] / errors[0] == pytest.approx(0, abs=0.15) if not phi else errors[1] > 0


def earned_by_rule(inflow: Any, price: Any, target: float, eager: float, follow: float) -> float:
    """What a rule earns that releases the mean inflow of a day, more above a target and where the price of a day ago was high."""
    level, total = 500.0, 0.0
    for t, (now, dear) in enumerate(zip(inflow, price, strict=True)):
        mean = inflow[max(0, t - 24) : t].mean() if t else 32.0
        swing = price[t - 24] - price[max(0, t - 168) : t].mean() if t >= 24 else 0.0
        release = np.clip(mean + eager * swing + follow * (level - target), 5, 60)
        after = level - release + now
        total += dear * release - 300 * max(after - 800, 0) - 300 * max(200 - after, 0)
        level = np.clip(after, 0, 900)
    return float(total)


def test_a_reservoir_earns_as_much_as_a_rule_that_was_tuned_afterwards() -> None:
    T, rng = 600, np.random.default_rng(5)
    wet = 10 * np.sin(2 * np.pi * np.arange(T) / 300)
    inflow = np.clip(inflows(T, 0.9, rng) + wet, 0, 90)
    price = np.clip(50 + 20 * np.sin(2 * np.pi * (np.arange(T) - 9) / 24) + 6 * rng.normal(size=T), 0, 200)
    data = {"inflow": inflow, "price": price}
    earned = -float(oco.compile(oco.parse(DAM), data=data).run(data, backend="c").loss.sum())
    grid = [(a, e, f) for a in (400, 500, 600) for e in (0, 0.6, 1.2, 2) for f in (0.05, 0.1, 0.2)]
    best = max(earned_by_rule(inflow, price, *rule) for rule in grid)
    assert earned >= 0.97 * best
