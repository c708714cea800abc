"""Comparators of the first rounds, of data that does not fit, of functions with many kinks, and within a budget: intervals that hold."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from comparator_cases import MODELS, drawn, problem, reference

from oco.evaluation.comparators import Budget, Status, compare, compare_prefixes
from oco.evaluation.data import load_data


def test_what_takes_longer_than_the_budget_is_not_computed() -> None:
    p = problem("decision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\n", 1000)
    found = compare(p, load_data(p), "dynamic", Budget(seconds=0.0))
    assert found.status is Status.NOT_COMPUTED and found.losses is None and "0 s" in found.words


LARGE = """decision x[4] in box(-1, 1)
stream c[4] ~ uniform(-1, 1)
minimize c @ x + sum_squares(x - 0.3)
subject to
    each: c @ x <= 1.1         each round
    mean: sum(c * x) <= 0.1    on average
"""


def test_data_that_does_not_fit_gives_an_interval() -> None:
    """The parts' best decisions bound from below, their mean is a decision: the whole program's value lies between."""
    p = problem(LARGE, 3000)
    data = load_data(p, seed=1)
    whole = compare(p, data, "static")
    found = compare(p, data, "static", Budget(memory=data.nbytes // 2))
    assert whole.status is Status.CERTIFIED and found.status is Status.INTERVAL
    assert found.bound < whole.bound and whole.value < found.value
    expected = (
        8 * 4 * (1 / 3) / 4
    )  # 8 parts, 4 entries: a part gains the square of its mean of c over 4, a round's worth of variance
    assert found.gap < 2 * expected and np.all(found.excess <= 1e-5)
    assert compare(p, data, "dynamic", Budget(memory=1000)).status is Status.CERTIFIED
    late = compare(p, data, "static", Budget(seconds=0.0, memory=data.nbytes // 2))
    assert late.status is Status.NOT_COMPUTED and "GiB" in late.words


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_the_best_of_the_first_rounds_is_the_same_side_by_side_and_alone(body: str) -> None:
    p = problem(body, 40)
    data = drawn(p, 40)
    ends = np.array([1, 2, 3, 7, 19, 40])
    found = compare_prefixes(p, data, ends)
    for end, value, bound, status in zip(ends, found.value, found.bound, found.status):
        alone = compare(p, data.first(int(end)), "static")
        size = max(1.0, float(np.abs(alone.losses).sum()))
        assert value == pytest.approx(alone.value, rel=3e-6, abs=3e-6 * size)
        assert status is alone.status and bound <= value + 1e-9 * size


def test_prefixes_that_nothing_satisfies_have_the_least_violating_decision() -> None:
    p = problem(
        "decision x in box(0, 10)\nstream a in [-10, 10]\nminimize (x - 3) ** 2\nsubject to\n    above: a >= x    each round\n",
        4,
    )
    data = load_data(p, {"a": np.array([5.0, 6.0, -2.0, 1.0])})
    found = compare_prefixes(p, data, np.array([1, 2, 3, 4]))
    assert found.status == (Status.CERTIFIED,) * 2 + (Status.LEAST_VIOLATING,) * 2
    np.testing.assert_allclose(found.decision["x"], [3.0, 3.0, 0.0, 0.0], atol=1e-3)


KINKED = {
    "absolute values": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize abs(a @ x - y) + 0.1 * norm1(x)\n",
    "hinges": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize hinge(y * (a @ x)) + norm_inf(x)\n",
    "a maximum": "decision x in box(0, 9)\nstream d in [0, 9]\nminimize max([2 * (d - x), x - d])\n",
    "limits with kinks": (
        "decision x[2] in box(-3, 3)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - 3 * a) - sum(x)\n"
        "subject to\n    near: norm2(x - a) <= 1.9    each round\n    mean: maximum(x[0], a[0]) + pos(x[1]) <= 0.6    on average\n"
    ),
}


@pytest.mark.parametrize("body", KINKED.values(), ids=KINKED.keys())
def test_many_kinks_give_an_interval_around_the_value(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["oco.evaluation.comparators.compare"], "LARGEST", 10)
    p = problem(body, 60)
    data = drawn(p, 60)
    exact = reference(p, data, list(range(60)), averages=True)
    found = compare(p, data, "static")
    assert found.status in (Status.INTERVAL, Status.CERTIFIED)
    slack = 1e-6 * abs(exact)
    assert found.bound <= exact + slack and exact <= found.value + slack
    assert found.gap <= 0.02 * abs(exact) and np.all(found.excess <= 1e-6)
    ends = np.array([30, 60])
    several = compare_prefixes(p, data, ends)
    assert several.bound[1] <= exact + slack and exact <= several.value[1] + slack


def test_what_was_reached_within_the_budget_is_an_interval() -> None:
    p = problem(MODELS["logistic"], 40)
    data = drawn(p, 40)
    best, cut = compare(p, data, "static"), compare(p, data, "static", Budget(seconds=0.0))
    assert best.status is Status.CERTIFIED and cut.status is Status.INTERVAL
    assert cut.bound < best.bound and best.value < cut.value


def test_what_does_not_hold_yet_within_the_budget_is_not_called_impossible() -> None:
    p = problem(MODELS["equalities on average"], 40)
    data = drawn(p, 40)
    cut = compare(p, data, "static", Budget(seconds=0.0))
    assert cut.status is Status.NOT_COMPUTED and "budget of time" in cut.words
    assert cut.bound <= compare(p, data, "static").value
