"""Constraints in a share of the rounds whose streams multiply decisions: what is relied on is chosen by what is predicted of each part."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from thorough import corners

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.followed_streams import FORGETTING

T = 400
MIX = """\
model mix
horizon T = 400
decision share[3] in simplex()
context cost[3] in [0, 20]
stream latency[3] in [0, 10]
stream errors[3] in [0, 0.5]
minimize cost @ share
subject to
    slow:   latency @ share <= 1.2  in 90% of rounds
    failed: errors @ share <= 0.04  on average
"""
COST, LATENCY, ERRORS = np.array([9.0, 5.0, 2.0]), np.array([0.6, 1.0, 2.0]), np.array([0.01, 0.03, 0.06])
NOISE, LIMIT, BROKEN = 0.1, 1.2, 0.1


@cache
def plan_of(text: str = MIX) -> Any:
    return oco.compile(oco.parse(text))


def rounds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    latency = LATENCY + NOISE * rng.standard_normal((T, 1))
    errors = ERRORS * rng.uniform(0.5, 1.5, (T, 3))
    return {"cost": np.tile(COST, (T, 1)), "latency": np.clip(latency, 0, 10), "errors": errors}


def test_a_mix_is_nearly_the_cheapest_that_is_slow_in_the_stated_share() -> None:
    """All latencies err alike by N(0, 0.1^2), so that a mix needs a mean of 1.2 - 1.2816 * 0.1, whichever it is."""
    plan, data = plan_of(), rounds(3)
    assert "of its share nothing is promised" in "\n".join(plan.contract.guarantee)
    trace = plan.run(data, backend="c")
    slow = (trace.constraints[:, list(plan.canonical.constraint_names).index("slow")] > 0).mean()
    rows = np.stack([LATENCY, ERRORS])
    ends = np.array([LIMIT - 1.2816 * NOISE, 0.04])
    best = linprog(COST, A_ub=rows, b_ub=ends, A_eq=np.ones((1, 3)), b_eq=[1.0], bounds=(0, 1)).fun
    assert slow <= BROKEN + 1 / T
    assert 0.95 * best <= trace.loss[T // 2 :].mean() <= 1.1 * best


@pytest.mark.parametrize("backend", corners(["numpy", "c"], ["c"]))
def test_predictions_are_averages_of_the_rounds_before(backend: str) -> None:
    data, learner = rounds(4), plan_of().learner(backend=backend)
    averages = np.full((2, 3), 5.0)
    for t in range(40):
        learner.decide(cost=data["cost"][t])
        for k, average in enumerate(averages):
            np.testing.assert_allclose(learner.value(f"kept_average_{k}_of_0_slow"), average, rtol=1e-9)
        learner.observe(latency=data["latency"][t], errors=data["errors"][t])
        rates = np.maximum(FORGETTING, 1 / (t + 1))[:, None]
        averages = averages + rates * (data["latency"][t] - averages)


def test_c_decides_as_numpy_does() -> None:
    a, b = (
        plan_of().run({n: v[:40] for n, v in rounds(5).items()}, backend=backend).decisions
        for backend in ("numpy", "c")
    )
    np.testing.assert_allclose(a, b, atol=1e-8)


def test_a_stated_prediction_takes_the_place_of_the_average() -> None:
    stated = MIX.replace("minimize", "predict latency = 0.5 * last(latency) + 0.5 * mean(latency, 20)\nminimize")
    (margin,) = (c.margin for c in canonical(oco.parse(stated)).inequalities if c.margin is not None)
    assert margin.streams is not None and not margin.streams.ranges and margin.streams.stated == ("latency",)


def test_streams_that_only_add_are_not_followed() -> None:
    added = MIX.replace("latency @ share <= 1.2", "sum(latency) - 20 * share[0] <= 12")
    (margin,) = (c.margin for c in canonical(oco.parse(added)).inequalities if c.margin is not None)
    assert margin.streams is None


def test_decisions_do_not_run_after_averages_of_what_has_no_lasting_differences() -> None:
    """Of returns that are drawn alike for all assets an average says nothing: each round's mix is that of a model without the limit."""
    text = """\
model returns
horizon T = 200
decision x[4] in simplex()
stream r[4] in [0.5, 1.5]
minimize sum_squares(x) - 0.01 * (r @ x)
subject to
    lost: r @ x >= 0.999  in 80% of rounds
"""
    r = np.clip(1 + 0.02 * np.random.default_rng(8).standard_normal((200, 4)), 0.5, 1.5)
    trace = oco.compile(oco.parse(text)).run({"r": r}, backend="c")
    assert np.abs(trace.decisions[20:] - 1 / 4).max() <= 0.05


def test_streams_and_labels_whose_names_add_up_alike_have_averages_of_their_own() -> None:
    text = """\
model alike
horizon T = 20
decision x[2] in simplex()
stream a_b[2] in [0, 2]
stream a[2] in [0, 3]
minimize x[0]
subject to
    c:   a_b @ x <= 1.5  in 80% of rounds
    b_c: a @ x <= 2      in 80% of rounds
"""
    learner = oco.compile(oco.parse(text)).learner(backend="numpy")
    learner.decide()
    learner.observe(a_b=[1.0, 2.0], a=[3.0, 0.0])
    averages = [learner.value(f"kept_average_0_of_0_{label}").tolist() for label in ("c", "b_c")]
    assert averages == [[1.0, 2.0], [3.0, 0.0]]
