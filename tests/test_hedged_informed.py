"""`hedged` on what repeats and on what is known before the decision: seasons, contexts, known constraints, previous decisions."""

from __future__ import annotations

import numpy as np
import pytest
from driving import Array
from scipy.stats import norm, poisson
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.experts import AT_ONCE, FOLLOWING, gradients, solving
from oco.compiler.algorithms.predictions import STATED, places, quantiles
from oco.compiler.lowering.predicted_round import predicted_of
from oco.compiler.prover.seasons import season_of
from oco.dsl.load import parse

ROUNDS = 240
DISPATCH = f"""
model dispatch
horizon T = {ROUNDS}
context load in [2, 8]
decision p[2] in box(0, 6)
stream calls in [0, 4]
minimize [1, 3] @ p
subject to
    balance: sum(p) >= load               each round
    up:      p - prev(p) <= 4             each round
    reserve: sum(p) >= load + calls       each round, penalty 9
"""
WATER = f"""
model water
horizon T = {ROUNDS}
decision x[2] in box(0, 9)
stream need[2] in [0, 9]
stream canal in [0, 20]
minimize sum_squares(x - need)
subject to
    share: sum(x) <= canal each round, penalty 8
"""


def dispatch(rng: np.random.Generator) -> dict[str, Array]:
    load = rng.uniform(2, 7, ROUNDS)
    return {"load": load, "calls": np.clip(0.4 * load + rng.normal(0, 0.1, ROUNDS), 0, 4)}


def water(rng: np.random.Generator) -> dict[str, Array]:
    """Seasons of 6 rounds with little noise."""
    phase = np.arange(ROUNDS) % 6
    need = 2 + phase[:, None] * np.array([1.0, 0.5]) + rng.normal(0, 0.1, (ROUNDS, 2))
    return {"need": np.clip(need, 0, 9), "canal": np.clip(16 - phase + rng.normal(0, 0.2, ROUNDS), 0, 20)}


def paid(trace: oco.Trace, price: float, column: int = 0) -> float:
    """Loss and violation at its price over the last four fifths."""
    late = slice(ROUNDS // 5, None)
    return float(trace.loss[late].sum() + price * np.maximum(trace.constraints[late, column], 0).sum())


def test_a_season_is_measured_and_worth_its_memory() -> None:
    """The plan on data has the season, a stated one decides alike, and the cost is far below that of averages alone."""
    data = water(np.random.default_rng(0))
    plan = oco.compile(parse(WATER), data=data)
    assert plan.algorithm == "hedged" and plan.season == 6 and plan.settings["season"].value == 6
    assert "measured on data" in plan.settings["season"].why
    known = paid(plan.run(data), 8)
    assert known < 0.3 * paid(oco.compile(parse(WATER), "hedged", {"units": "free"}).run(data), 8)
    stated = oco.compile(parse(WATER), "hedged", {"units": "free", "season": 6}).run(data)
    assert paid(stated, 8) == pytest.approx(known, rel=0.05)


def test_a_season_stays_with_the_plan() -> None:
    """Another horizon and a learner restored from its state have the season of the data."""
    data = water(np.random.default_rng(1))
    plan = oco.compile(parse(WATER), data=data)
    assert plan.with_horizon(100).season == 6
    learner = plan.learner(backend="numpy")
    for t in range(20):
        learner.decide()
        learner.observe(need=data["need"][t], canal=data["canal"][t])
    again = oco.restore(learner.state(), backend="numpy")
    assert np.array_equal(np.asarray(again.decide()), np.asarray(learner.decide()))


@pytest.mark.parametrize(
    ("values", "season"),
    [
        (lambda t, rng: np.sin(2 * np.pi * t / 24) + rng.normal(0, 0.5, len(t)), 24),
        (lambda t, rng: (t % 7 < 5) + rng.normal(0, 0.2, len(t)), 7),
        (lambda t, rng: (t % 10 == 0) * 3.0 + 0.01 * t, 10),
        (lambda t, rng: rng.normal(0, 1, len(t)), 1),
        (lambda t, rng: np.cumsum(rng.normal(0, 1, len(t))), 1),
        (lambda t, rng: 0.1 * t, 1),
        (lambda t, rng: np.ones(len(t)), 1),
    ],
)
def test_seasons_of_known_series(values: object, season: int) -> None:
    series = values(np.arange(1500.0), np.random.default_rng(3))  # type: ignore[operator]
    assert season_of({"s": series}, ["s"]) == season
    assert season_of({"s": series}, ["other"]) == 1


def test_known_constraints_hold_and_contexts_predict() -> None:
    """Balance and ramp are met exactly; the reserve, 0.4 of the load, costs little more than what is best in hindsight."""
    data = dispatch(np.random.default_rng(2))
    plan = oco.compile(parse(DISPATCH), data=data)
    assert plan.algorithm == "hedged"
    trace = plan.run(data)
    p = np.asarray(trace.decisions)
    assert (p.sum(axis=1) >= data["load"] - 1e-8).all() and (np.diff(p, axis=0) <= 4 + 1e-8).all()
    without = oco.compile(parse(DISPATCH.replace("context load", "stream load")), "hedged").run(data)
    assert paid(trace, 9, 0) < paid(without, 9, 2)
    late = slice(ROUNDS // 5, None)
    least = (data["load"] + data["calls"])[late]
    best = float((np.minimum(least, 6) + 3 * np.maximum(least - 6, 0)).sum())
    assert paid(trace, 9, 0) < 1.15 * best


def test_stated_distributions_are_met_at_their_quantiles() -> None:
    """Streams that enter constraints alone, in one direction, stand at a quantile on the worse side; others are as predicted."""
    text = """
        model m
        horizon T = 60
        decision x[2] in box(0, 9)
        stream jobs ~ poisson(3) in 0..20
        stream spare[2] ~ normal([4, 5], 1) in [0, 9]
        stream price ~ uniform(0, 1) in [0, 1]
        minimize price * sum(x)
        subject to
            service: sum(x) >= jobs                 each round, penalty 5
            room: x <= 4 + spare                    each round, penalty 5
            other: x[0] <= 6 + price                each round, penalty 5
    """
    problem = oco.compile(parse(text), "hedged").choice.situation.canonical
    problem = problem.unscaled or problem
    table, streams = quantiles(problem), {s.name: s for s in problem.streams}
    assert table is not None and list(predicted_of(problem).streams) == ["jobs", "spare", "price"]
    for row, q in zip(table, STATED):
        assert row[0] == poisson.ppf(q, 3)
        np.testing.assert_allclose(row[1:3], norm.ppf(1 - q, [4, 5], 1), atol=0.01)
        assert np.isnan(row[3])
    assert streams["jobs"].distribution is not None


def test_a_forecast_of_a_linear_loss_is_followed_at_once() -> None:
    """Experts on forecasts of prices buy the cheaper power first, whatever the slopes of rounds before were: after crises of which steps
    of the usual reach would still be small.
    """
    text = """
        model market
        horizon T = 60
        context forecast[2] in [0, 50]
        decision p[2] in box(0, 6)
        stream price[2] in [0, 50]
        stream need in [0, 5]
        minimize price @ p
        subject to
            enough: sum(p) >= need  each round, penalty 90
    """
    plan, rng = oco.compile(parse(text), "hedged", backend="numpy"), np.random.default_rng(5)
    canonical, scales = plan.choice.situation.canonical, plan.choice.winner.scales
    (row,) = places(canonical, 1)[-1]
    first, solved = len(gradients(canonical)), solving(canonical, 1)
    own = [first + k for k, (i, _, _) in enumerate(solved) if i == row]
    assert [solved[k - first][1:] for k in own] == [(AT_ONCE, q) for q in FOLLOWING]
    learner, bought = plan.learner(), 0
    for t in range(60):
        price = rng.permutation([48.0, 50.0] if t < 30 else [2.0, 4.0])
        learner.decide(forecast=price)
        if t > 1:
            p = scales.origins[0] + scales.radius * np.asarray(learner.values["x"])[own]
            cheap, dear = p[:, price.argmin()], p[:, price.argmax()]
            assert (dear * (6 - cheap)).max() < 1e-6
            bought += int((cheap > 1).all())
        learner.observe(price=price, need=rng.uniform(1, 5))
    assert bought > 40


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_decides_with_contexts_as_numpy_does() -> None:
    data = dispatch(np.random.default_rng(4))
    plan = oco.compile(parse(DISPATCH), "hedged", {"units": "free", "season": 5})
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    for t in range(25):
        a, b = (np.asarray(x.decide(load=data["load"][t])) for x in learners)
        np.testing.assert_allclose(a, b, atol=1e-8)
        for x in learners:
            x.decide()
            x.observe(calls=data["calls"][t])
