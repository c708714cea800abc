"""Predictions from contexts under delayed feedback: a context is known before its round, whatever has not come."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_delayed_everywhere import play
from test_delayed_numbers import plan_of
from thorough import thorough

import oco
from oco.dsl.evaluate import evaluate

T, DELAY = 20, 2
OPTIMISTIC = f"""\
model late
horizon T = {T}
decision x[2] in box(-1, 1)
context ahead[2] in [-1, 1]
stream a[2] in [-1, 1]
predict a = 0.5 * ahead
minimize sum_squares(x - a)
using optimistic
feedback full delayed {DELAY}
"""
HEDGED = f"""\
model late
horizon T = {T}
decision x[2] in box(0, 9)
context ahead[2] in [0, 8]
stream a[2] in [0, 9]
stream room in [4, 16]
predict a = 0.5 * ahead + 1
minimize sum(x) * (1 + t / T) - 3 * sum(minimum(x, a))
subject to
    fits: sum(x) <= room  each round, penalty 4
using hedged
feedback full delayed {DELAY}
"""
CASES = {"alone": OPTIMISTIC, "together": HEDGED}


def rounds(text: str, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    if text is OPTIMISTIC:
        return [{"ahead": z, "a": np.clip(0.5 * z + rng.normal(0, 0.2, 2), -1, 1)} for z in rng.uniform(-1, 1, (T, 2))]
    data = rng.uniform(0, 8, (T, 2))
    return [
        {"ahead": z, "a": np.clip(0.5 * z + 1 + rng.normal(0, 0.2, 2), 0, 9), "room": rng.uniform(9, 12)} for z in data
    ]


def table(data: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in data]) for name in data[0]}


def test_learners_that_learn_alone_are_those_without_delay_on_their_own_rounds() -> None:
    data, count = rounds(OPTIMISTIC, 1), DELAY + 1
    own = OPTIMISTIC.replace(f"feedback full delayed {DELAY}\n", "").replace(f"T = {T}", f"T = {-(-T // count)}")
    x = plan_of(OPTIMISTIC).run(table(data), backend="numpy").decisions
    for turn in range(count):
        learner = plan_of(own).learner(backend="numpy")
        for t in range(turn, T, count):
            np.testing.assert_allclose(learner.decide(ahead=data[t]["ahead"]), x[t], atol=1e-12)
            learner.observe(a=data[t]["a"])


def test_predictions_may_be_about_the_number_of_the_round() -> None:
    data = rounds(OPTIMISTIC, 6)
    timed = OPTIMISTIC.replace("0.5 * ahead", "0.5 * ahead * t / T")
    other = timed.replace("stream a", f"context n in [1, {T}]\nstream a").replace(" t ", " n ")
    own, given = table(data), {**table(data), "n": np.arange(1.0, T + 1)}
    for backend in ("numpy", "c"):
        x = plan_of(timed).run(own, backend=backend).decisions
        np.testing.assert_allclose(x, plan_of(other).run(given, backend=backend).decisions, atol=1e-9)


@pytest.mark.parametrize("text", [OPTIMISTIC, thorough(HEDGED)], ids=CASES)
def test_backends_modules_and_saved_states_go_on_in_any_order(text: str) -> None:
    data, plan, known = rounds(text, 2), plan_of(text), ("ahead",)
    own = play(plan.learner(backend="numpy"), data, known, DELAY, 5)
    np.testing.assert_allclose(play(plan.learner(backend="c"), data, known, DELAY, 5), own, atol=1e-9)
    module = ModuleType("late")
    sys.modules["late"] = module
    exec(compile(plan.source("numpy"), "late.py", "exec"), module.__dict__)
    assert np.array_equal(play(module.Learner(), data, known, DELAY, 5), own)
    rng, saved = np.random.default_rng(5), plan.learner(backend="numpy")
    for t, row in enumerate(data, 1):
        assert np.array_equal(saved.decide(ahead=row["ahead"]), own[t - 1])
        saved = oco.restore(json.loads(json.dumps(saved.state()))) if t % 4 == 3 else saved
        for k in rng.permutation(saved.pending):
            if k == t - DELAY or rng.random() < 0.3:
                given = {name: value for name, value in data[k - 1].items() if name not in known}
                saved.skip(round=int(k)) if k % 5 == 0 else saved.observe(round=int(k), **given)


def test_a_prediction_of_the_round_itself_is_used() -> None:
    """With the same data, what the context predicts moves the decision of its round, and of no round before."""
    data = rounds(HEDGED, 3)
    other = [dict(row) for row in data]
    other[14]["ahead"] = 8 - other[14]["ahead"]
    first, second = (plan_of(HEDGED).run(table(d), backend="c").decisions for d in (data, other))
    same = (first == second).all(axis=1)
    assert same[:14].all() and not same[14]


def test_the_decision_before_and_stores_may_be_contexts() -> None:
    """What hints say instead of `prev` and `state`: the decision of round t - 1 is known in round t, whatever has not come."""
    text = HEDGED.replace(
        "context ahead[2] in [0, 8]", "context before[2] in [0, 9]\ncontext stored in [0, 9]"
    ).replace("predict a = 0.5 * ahead + 1\n", "")
    known = "    ramp: abs(x - before) <= 0.5  each round\n    most: x[0] <= stored  each round\nusing ogd"
    learner = plan_of(text.replace("using hedged", known)).learner(backend="c")
    data, x, stored = rounds(HEDGED, 4), np.full(2, 4.5), 6.0
    for t in range(1, T + 1):
        y = np.asarray(learner.decide(before=x, stored=stored))
        assert (abs(y - x) <= 0.5 + 1e-9).all() and y[0] <= stored + 1e-9
        x, stored = y, max(stored - 0.1, 4.0)
        if t > DELAY:
            learner.observe(a=data[t - DELAY - 1]["a"], room=data[t - DELAY - 1]["room"])


def said(statistic: str, came: dict[int, np.ndarray], order: list[int], now: int) -> np.ndarray:
    """Statistic of the rounds that came, in the order in which they did, as a prediction of a round."""
    kind, *numbers = re.findall(r"[a-z]+|[0-9.]+", statistic.replace("(a", "("))
    number, middle = float(numbers[0]) if numbers else 1.0, np.zeros(2)
    if not came:
        return middle
    if kind == "mean":
        latest = {(r - 1) % int(number): r for r in order}
        return np.mean([came[r] for r in latest.values()], axis=0)
    if kind == "ewma":
        average = middle
        for k, r in enumerate(order, 1):
            average = average + max(number, 1 / k) * (came[r] - average)
        return average
    same = [r for r in order if (r - now) % number == 0] if kind == "season" else []
    return came[same[-1] if same else order[-1]]


@pytest.mark.parametrize("statistic", ["last(a)", "mean(a, 3)", "season(a, 4)", "season(a, 2)", "ewma(a, 0.3)"])
def test_statistics_are_of_the_rounds_that_came(statistic: str) -> None:
    text = OPTIMISTIC.replace("0.5 * ahead", statistic).replace("context ahead[2] in [-1, 1]\n", "")
    plan, rng = plan_of(text), np.random.default_rng(6)
    data, came, order = rng.uniform(-1, 1, (T, 2)), dict[int, np.ndarray](), list[int]()
    (_, stated), learners = plan.canonical.predictions[0], [plan.learner(backend=b) for b in ("numpy", "c")]
    for t in range(1, T + 1):
        one, other = (learner.decide() for learner in learners)
        np.testing.assert_allclose(one, other, atol=1e-12)
        own = learners[0].learners[(t - 1) % (DELAY + 1)]
        kept = {n: own.value(f) for n, f in own.compiled.program.previous}
        np.testing.assert_allclose(evaluate(stated, kept, float(t)), said(statistic, came, order, t), atol=1e-12)
        for k in rng.permutation(learners[0].pending):
            if k == t - DELAY or rng.random() < 0.3:
                for learner in learners:
                    learner.skip(round=int(k)) if k % 7 == 0 else learner.observe(round=int(k), a=data[k - 1])
                if k % 7:
                    came[int(k)] = data[k - 1]
                    order.append(int(k))
