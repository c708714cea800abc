"""Predictions that use the decision of the round before: what it was, in every kind of learner, and the theorem that still holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.backends.registry import restored

T = 40
TEXT = """\
model impact

horizon T = 40

decision x[2] in box(0, 1)

context ahead in [-1, 1]
stream price[2] in [-2, 2]

predict price = ahead + 0.4 * prev(x) - 0.1 * sum(prev(x))

minimize price @ x + 0.1 * sum_squares(x)
"""
BESIDE = TEXT.replace("stream price", "context before[2] in [0, 1]\nstream price").replace("prev(x)", "before")
"""Model whose learner is given the decision before as a context."""
LIMITED = TEXT + "\nsubject to\n    least: sum(x) >= 0.5 * price[0] + 0.2  each round, penalty 9\n"
RNG = np.random.default_rng(8)
AHEAD, NOISE = RNG.uniform(-1, 1, T), RNG.normal(0, 0.2, (T, 2))


@cache
def plan_of(text: str, algorithm: str) -> Any:
    return oco.compile(oco.parse(text), algorithm=algorithm)


def price(t: int, before: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Prices that decisions move."""
    return np.clip(AHEAD[t] + 0.4 * before - 0.1 * before.sum() + NOISE[t], -2, 2)


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT and oco.parse(model.to_oco()) == model
    m = oco.Model("impact", horizon=T)
    x, ahead = m.decision("x", 2, domain=oco.box(0, 1)), m.context("ahead", bounds=(-1, 1))
    own = m.stream("price", 2, bounds=(-2, 2))
    m.predict(own, ahead + 0.4 * oco.prev(x) - 0.1 * oco.sum(oco.prev(x)))
    m.minimize(own @ x + 0.1 * oco.sum_squares(x))
    assert m.build() == model


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_it_is_the_decision_that_a_context_would_tell(backend: str, tmp_path: Path) -> None:
    plan = plan_of(TEXT, "optimistic")
    learner, told = plan.learner(backend=backend), plan_of(BESIDE, "optimistic").learner(backend=backend)
    journaled, fleet = oco.open(plan, tmp_path / "j", backend=backend), plan.fleet(2, backend=backend)
    before = np.full(2, 0.5)
    for t in range(T):
        x = np.asarray(learner.decide(ahead=AHEAD[t]))
        np.testing.assert_allclose(x, told.decide(ahead=AHEAD[t], before=before), atol=1e-12)
        np.testing.assert_array_equal(x, journaled.decide(ahead=AHEAD[t]))
        np.testing.assert_allclose(fleet.decide(ahead=np.full(2, AHEAD[t])), [x, x], atol=1e-12)
        now = price(t, before)
        learner.observe(price=now)
        learner = restored(learner.state(), learner.compiled, learner.contract)
        told.observe(price=now)
        journaled.observe(price=now)
        fleet.observe(price=np.stack([now, now]))
        before = x
    journaled.close()


def test_runs_in_c_and_modules_decide_as_learners() -> None:
    rows = {"ahead": AHEAD, "price": np.clip(AHEAD[:, None] + NOISE, -2, 2)}
    plan = plan_of(TEXT, "optimistic")
    runs = [plan.run(rows, backend=b).decisions for b in ("numpy", "c")]
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-9)
    space: dict[str, Any] = {"__name__": "impact"}
    exec(compile(plan.source("numpy"), "impact.py", "exec"), space)
    own = space["Learner"]()
    for t in range(10):
        np.testing.assert_allclose(own.decide(ahead=AHEAD[t]), runs[0][t], atol=1e-12)
        own.observe(price=rows["price"][t])


def test_the_regret_is_bounded_by_the_errors_of_the_predictions() -> None:
    """D (sqrt(2 (P + E^2)) + E), whatever the prices, which follow the decisions here."""
    plan = plan_of(TEXT, "optimistic")
    learner, decisions, prices, errors = plan.learner(), [], [], []
    before = np.full(2, 0.5)
    for t in range(T):
        x, now = np.asarray(learner.decide(ahead=AHEAD[t])), price(t, before)
        learner.observe(price=now)
        expected = np.clip(AHEAD[t] + 0.4 * before - 0.1 * before.sum(), -2, 2)
        decisions.append(x)
        prices.append(now)
        errors.append(float(np.sum((now - expected) ** 2)))
        before = x
    X, S = np.array(decisions), np.array(prices)
    best = np.clip(-S.mean(0) / 0.2, 0, 1)
    regret = (S * X).sum() + 0.1 * (X**2).sum() - (S @ best).sum() - T * 0.1 * (best**2).sum()
    D, P, E = np.sqrt(2), sum(errors), np.sqrt(max(errors))
    assert regret <= D * (np.sqrt(2 * (P + E**2)) + E)


def test_experts_solve_the_round_as_predicted() -> None:
    plan = plan_of(LIMITED, "hedged")
    learner, before = plan.learner(), np.full(2, 0.5)
    for t in range(12):
        x = np.asarray(learner.decide(ahead=AHEAD[t]))
        expected = np.clip(AHEAD[t] + 0.4 * before - 0.1 * before.sum(), -2, 2)
        np.testing.assert_allclose(learner.values["predicted"][-1], expected, atol=1e-12)
        learner.observe(price=price(t, before))
        before = x


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_delayed_feedback_knows_the_decision_before(backend: str) -> None:
    """The decision before is known at once, whenever its feedback comes: as a learner decides that is told of it by a context."""
    late, told = (
        plan_of(text + "\nfeedback full delayed 3\n", "optimistic").learner(backend=backend) for text in (TEXT, BESIDE)
    )
    before, prices = np.full(2, 0.5), []
    for t in range(T):
        x = np.asarray(late.decide(ahead=AHEAD[t]))
        np.testing.assert_allclose(x, told.decide(ahead=AHEAD[t], before=before), atol=1e-12)
        prices.append(price(t, before))
        before = x
        if t >= 3:
            for learner in (late, told):
                learner.observe(price=prices[t - 3], round=t - 2)
