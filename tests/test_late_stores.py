"""Stores whose feedback comes late: what is left in them is valued for the rounds that are decided after it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import oco

DELAY, ROUNDS = 2, 480
BATTERY = f"""
model battery
horizon T = {ROUNDS}
decision charge in box(-10, 10)
stream price in [0, 100]
state level = level + charge in [0, 60] start 30
minimize price * charge
feedback full delayed {DELAY}
"""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def prices(noise: float = 0.0) -> np.ndarray:
    hours = np.arange(ROUNDS)
    return np.clip(
        50 + 30 * np.sin(2 * np.pi * hours / 24) + noise * np.random.default_rng(1).normal(size=ROUNDS), 0, 100
    )


def played(learner: Any, data: dict[str, np.ndarray], path: Path | None = None, saved_at: int = 0) -> list[Any]:
    """Decisions with feedback as late as may be; the learner that is saved in between goes on."""
    decided = []
    for t in range(1, len(next(iter(data.values()))) + 1):
        decided.append(learner.decide())
        if t > DELAY:
            learner.observe(round=t - DELAY, **{name: values[t - DELAY - 1] for name, values in data.items()})
        if t == saved_at:
            learner.save(path)
            learner = oco.restore(path)
    return decided


def test_late_prices_earn_what_a_linear_program_does() -> None:
    price, last = prices(), ROUNDS // 2
    trace = plan_of(BATTERY).run({"price": price}, backend="c")
    x, level = np.ravel(trace.decisions), np.ravel(trace.data.array("level"))
    np.testing.assert_allclose(level, 30 + np.concatenate([[0.0], np.cumsum(x)[:-1]]), atol=1e-9)
    charge = cp.Variable(ROUNDS - last)
    inside = level[last] + cp.cumsum(charge)
    best = cp.Problem(
        cp.Minimize(price[last:] @ charge),
        [charge >= -10, charge <= 10, inside >= 0, inside <= 60, inside[-1] == level[-1] + x[-1]],
    ).solve()
    assert best - 1e-3 <= price[last:] @ x[last:] <= 0.95 * best < 0


def test_backends_agree_on_late_stores_and_saved_states_go_on(tmp_path: Path) -> None:
    data = {"price": prices(8.0)[:60]}
    numpy, c = (played(plan_of(BATTERY).learner(backend=b), data) for b in ("numpy", "c"))
    np.testing.assert_allclose(c, numpy, atol=1e-9)
    assert np.array_equal(numpy, played(plan_of(BATTERY).learner(backend="numpy"), data, tmp_path / "state.json", saved_at=33))
    fleet = plan_of(BATTERY).fleet(2, backend="c")
    both = played(fleet, {"price": np.stack([data["price"], data["price"][::-1]], axis=1)})
    np.testing.assert_allclose([np.ravel(x)[0] for x in both], np.ravel(c), atol=1e-9)
