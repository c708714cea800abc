"""Rates that fall with the rounds in Sinha & Vaze's potential: the promise for every number of rounds, by hand and against adversaries."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import oco
from oco.plan import Plan

TEXT = """model m
horizon T unknown
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
stream b in [0, 1]
minimize c @ x
subject to
    cap: sum(x) <= 0.5 + b each round
"""
ROUNDS = 400


FALLING = "1 / (2 * sqrt(2 * t) * (1 + log(t)))"


@cache
def plan_of(rate: str | None = FALLING) -> Plan:
    """Plan with the paper's settings beside this rate, or with its own."""
    return oco.compile(oco.parse(TEXT), "sinha-vaze", settings="paper" if rate is None else {"rate": rate})


def test_by_hand() -> None:
    """D = G = sqrt 2, so beta = 1/4 and c = 1; F = 2 is the range of the loss."""
    promise = plan_of().guarantee
    assert promise is not None and promise.theorem.endswith("with falling rates")
    for T in (1, 10, 1000, 100_000):
        t = np.arange(1, T + 1)
        rates = 1 / (2 * np.sqrt(2 * t) * (1 + np.log(t)))
        r = math.sqrt(np.sum(rates**2))
        assert r <= 0.5
        regret, violation = promise.regret(T), promise.violation(T)
        assert regret is not None and violation is not None
        assert regret == pytest.approx(4 * (math.sqrt(T) + r), rel=1e-3)
        bound = 4 / rates[-1] * math.log((1 + math.sqrt(T) + 0.25 * 2 * T) / (1 - r))
        assert violation == pytest.approx(bound, rel=1e-3)


def test_no_restart_is_as_good_in_regret() -> None:
    """Regret as promised where the number of rounds is known; violation at most (1 + log T) sqrt 2 times that."""
    anytime = plan_of().guarantee
    assert anytime is not None
    for T in (10**4, 10**6):
        known = oco.compile(oco.parse(TEXT.replace("unknown", f"= {T}")), "sinha-vaze", settings="paper").guarantee
        assert known is not None and known.theorem.endswith("Theorem 1")
        pairs = [(anytime.regret(T), known.regret(T)), (anytime.violation(T), known.violation(T))]
        (own, other), (broken, least) = [(a, b) for a, b in pairs if a is not None and b is not None]
        assert own <= other * (1 + 1e-9) and broken <= 1.01 * math.sqrt(2) * (1 + math.log(T)) * least


@pytest.mark.parametrize("rate", [FALLING, "0.3 / (t + 1)"])
@pytest.mark.parametrize("kind", ["against it", "to the edge and back"])
def test_an_adversary_does_not_break_it(rate: str, kind: str) -> None:
    """Regret to the best decision under the tightest limit so far, and violation, after every round."""
    plan = plan_of(rate)
    learner, promise, total, loss, broken, least = (
        plan.learner(backend="numpy"),
        plan.guarantee,
        np.zeros(2),
        0.0,
        0.0,
        1.0,
    )
    assert promise is not None
    regrets, violations = promise.regret_curve(ROUNDS), promise.violation_curve(ROUNDS)
    assert regrets is not None and violations is not None
    for t in range(ROUNDS):
        x = np.asarray(learner.decide())
        if kind == "against it":
            c, b = np.where(x > 0.25, 1.0, -1.0), float(x.sum() < 0.5)
        else:
            c, b = np.full(2, -1.0 if t % 60 < 40 else 1.0), float(t % 60 < 30)
        feedback = learner.observe(c=c, b=b)
        loss, broken, total = loss + float(feedback.loss), broken + max(float(x.sum()) - 0.5 - b, 0.0), total + c
        least = min(least, b)
        low = np.sort(np.minimum(total, 0.0))
        best = float(low[0] + 0.5 * low[1]) if least > 0 else 0.5 * float(low[0])
        assert loss - best <= regrets[t] + 1e-9 and broken <= violations[t] + 1e-9


def test_rates_that_grow_or_add_up_are_outside_the_theorem() -> None:
    """Settings outside the theorem are warned of with what they break."""
    for rate, words in (("0.001 * sqrt(t)", "rate must not grow"), ("1 / sqrt(t)", "sqrt(sum rate^2) must be below 1")):
        assert any(words in str(w) for w in plan_of(rate).warnings)
    assert not any("rate" in str(w) for w in plan_of().warnings)


def test_settings_that_another_theorem_forbids() -> None:
    """Rates that fall are for the theorem of falling rates, although so large ones promise less than any restart would."""
    rates = {"rate": "4000 / (sqrt(t) * (1 + log(t)))", "beta": "1 / (12000 * G * D)"}
    plan = oco.compile(oco.parse(TEXT), "sinha-vaze", settings=rates)
    assert plan.guarantee is not None and plan.guarantee.theorem.endswith("with falling rates")
    assert "OCO707" not in [w.code for w in plan.warnings]
