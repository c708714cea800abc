"""Seasons of streams: one for all of them, or their own where these are far apart."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.prover import seasons
from oco.compiler.prover.seasons import own_seasons

TEXT = """\
model catch
horizon T = 400
decision x[2] in box(0, 4)
stream yield[2] in [0, 9]
stream price in [0, 9]
minimize sum(x) + 0.2 * sum_squares(x) - 0.2 * price * (yield @ x)
feedback full delayed 0
using hedged
"""


def data(seed: int = 0, periods: tuple[int, int] = (24, 7), rounds: int = 400) -> dict[str, Any]:
    rng, t = np.random.default_rng(seed), np.arange(rounds)
    first = 4 + 3 * np.sin(2 * np.pi * (t[:, None] / periods[0] + np.array([0.0, 0.4])))
    second = 4 + 3 * np.sin(2 * np.pi * t / periods[1])
    return {
        "yield": np.clip(first + rng.normal(0, 0.3, (rounds, 2)), 0, 9),
        "price": np.clip(second + rng.normal(0, 0.3, rounds), 0, 9),
    }


@cache
def plan_of(delay: int = 0) -> Any:
    return oco.compile(oco.parse(TEXT.replace("yield", "crop").replace("delayed 0", f"delayed {delay}")), data=rounds())


def rounds(seed: int = 0, count: int = 400) -> dict[str, Any]:
    own = data(seed)
    return {"crop": own["yield"][:count], "price": own["price"][:count]}


@pytest.mark.parametrize(
    ("periods", "seasons"),
    [((24, 7), {"": 24, "price": 7}), ((6, 6), {"": 6}), ((5, 15), {"": 15, "yield": 5})],
    ids=["apart", "alike", "multiples"],
)
def test_streams_have_their_own_where_they_differ(periods: tuple[int, int], seasons: dict[str, int]) -> None:
    assert own_seasons(data(1, periods), ["yield", "price"]) == seasons


def test_noise_has_no_season_and_takes_none_from_others() -> None:
    own = data(2)
    noise = np.random.default_rng(3).random((400, 2))
    assert own_seasons({"yield": noise}, ["yield"]) == {"": 1}
    assert own_seasons({"yield": noise, "price": own["price"]}, ["yield", "price"]) == {"": 7}


@pytest.mark.parametrize("apart", [140, 166, 180])
def test_two_floods_are_no_season(apart: int) -> None:
    rng, t = np.random.default_rng(apart), np.arange(2000)
    inflow = 28 * np.exp(0.3 * rng.normal(size=2000))
    for begin in (30, 30 + apart):
        inflow[begin : begin + 30] += 30
    price = 60 + 35 * np.sin(2 * np.pi * t / 24) + 10 * rng.normal(size=2000)
    assert own_seasons({"inflow": inflow}, ["inflow"]) == {"": 1}
    assert own_seasons({"inflow": inflow, "price": price}, ["inflow", "price"]) == {"": 24}


@pytest.mark.parametrize("delay", [0, 2])
def test_profiles_are_averages_of_each_phase_of_each_stream(delay: int) -> None:
    plan, own = plan_of(delay), rounds(4, 60)
    learner = plan.learner(backend="numpy")
    for t in range(60):
        learner.decide()
        if t >= delay:
            k = t - delay
            learner.observe(crop=own["crop"][k], price=own["price"][k])
    seen, values = 60 - delay, learner.values
    for name, season in (("crop", 24), ("price", 7)):
        profile = values[f"profile_{name}"]
        wanted = [own[name][phase:seen:season].mean(axis=0) for phase in range(season)]
        np.testing.assert_allclose(profile, np.reshape(wanted, profile.shape), atol=1e-12)


def test_backends_modules_and_states_have_them() -> None:
    plan, own = plan_of(), rounds(5, 50)
    x = plan.run(own, backend="numpy").decisions
    np.testing.assert_allclose(plan.run(own, backend="c").decisions, x, atol=1e-9)
    module: dict[str, Any] = {"__name__": "catch"}
    exec(compile(plan.source("numpy"), "catch.py", "exec"), module)
    learner, written = plan.learner(backend="numpy"), module["Learner"]()
    for t in range(50):
        if t == 20:
            learner = oco.restore(json.loads(json.dumps(learner.state())))
        assert np.array_equal(learner.decide(), x[t]) and np.array_equal(written.decide(), x[t])
        for one in (learner, written):
            one.observe(crop=own["crop"][t], price=own["price"][t])
    assert dict(plan.with_horizon(500).choice.situation.own_seasons) == {"price": 7}


def test_they_earn_more_than_one_for_all() -> None:
    own = rounds(6)
    free = plan_of().run(own, backend="c").loss[80:].sum()
    for season in (24, 7):
        text = TEXT.replace("yield", "crop").replace("using hedged", f"using hedged with season = {season}")
        assert free < oco.compile(oco.parse(text), data=own).run(own, backend="c").loss[80:].sum() - 5


def test_no_more_rounds_are_looked_at_than_tell_a_season(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounds after them may hold anything."""
    monkeypatch.setattr(seasons, "MOST_ROUNDS", 200)
    values = np.sin(2 * np.pi * np.arange(5000) / 24)[:, None]
    values[200:] = np.nan
    assert seasons.season_of({"s": values}, ["s"]) == 24
