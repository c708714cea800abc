"""Budgets in total whose gains come after the decision: the prices of `pacing` on predicted losses."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import oco
from tests.test_pacing import KINDS, planned, sequence, text

T, BUDGET, PRICE, ETA = 210, 42.0, 3.0, 0.1
MODEL = text(T, BUDGET, more=f"using pacing with price = {PRICE}, eta = {ETA}, season = 7\n").replace(
    "context gain", "stream gain"
)


def played(plan: Any, data: dict[str, Any], backend: str) -> tuple[Any, float]:
    """Decisions (T, 3), and the sum of the errors of the predicted gains, from the values of the state."""
    learner, decisions, errors = plan.learner(backend=backend), [], 0.0
    for t, (fee, gain) in enumerate(zip(data["fee"], data["gain"])):
        decisions.append(np.array(learner.decide(fee=fee)))
        missed, rows = learner.values["missed"], learner.values["predicted"]
        made = rows[missed == missed.min()].mean(axis=0) if t else np.zeros(3)
        errors += float(np.linalg.norm(gain - made))
        learner.observe(gain=gain)
    return np.array(decisions), errors


@cache
def planned_for(text: str) -> Any:
    return oco.compile(oco.parse(text))


@pytest.mark.parametrize("kind", KINDS)
def test_regret_is_bounded_with_the_errors_of_the_predictions(kind: str) -> None:
    data = sequence(kind, T, 5)
    x, errors = played(planned_for(MODEL), data, "numpy")
    assert (data["fee"] * x).sum() <= BUDGET
    most = 3 * T / BUDGET
    size = max(1.0, most - 1)
    bound = PRICE**2 / (2 * ETA) + ETA * size**2 * T / 2 + PRICE * most + np.sqrt(3) * errors
    assert -(data["gain"] * x).sum() - planned(data, BUDGET / T) <= bound


def test_the_promise_counts_errors_of_predictions_at_their_worst() -> None:
    known, later = (oco.compile(oco.parse(m)) for m in (MODEL.replace("stream gain", "context gain"), MODEL))
    gap = later.guarantee.regret_curve(T)[-1] - known.guarantee.regret_curve(T)[-1]
    assert gap == pytest.approx(2 * np.sqrt(3) * np.sqrt(3) * T)


def test_gains_with_a_season_are_spent_on_where_they_are_high() -> None:
    rng, week = np.random.default_rng(3), 1 + 0.8 * np.sin(2 * np.pi * np.arange(T)[:, None] / 7 + np.arange(3))
    data = {"fee": np.full((T, 3), 0.5), "gain": np.clip(0.5 * week * rng.lognormal(0, 0.1, (T, 3)), 0, 1)}
    earned = {}
    for line in (f"pacing with price = {PRICE}, eta = {ETA}, season = 7", "ogd"):
        model = MODEL.replace(MODEL[MODEL.index("pacing with") :].strip(), line)
        earned[line.split()[0]] = float((oco.compile(oco.parse(model)).run(data).decisions * data["gain"]).sum())
    best = float(np.sort(data["gain"].ravel())[::-1][: int(BUDGET / 0.5)].sum())
    assert earned["pacing"] > 1.15 * earned["ogd"]
    assert earned["pacing"] > 0.8 * best


def test_c_decides_as_numpy_does() -> None:
    data, plan = sequence("in blocks", T, 1), planned_for(MODEL)
    (x, _), (y, _) = (played(plan, data, backend) for backend in ("numpy", "c"))
    np.testing.assert_allclose(x, y, atol=1e-9)
