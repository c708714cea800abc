"""Days of weeks in predictions: the weekly prediction by its formula, in every backend, under delays, and what it gains."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from thorough import thorough

import oco
from oco.compiler.algorithms.predictions import FORGETTING
from oco.compiler.algorithms.profiles import LEVEL_RATES, day_of

TEXT = """\
model museum
horizon T = 400
decision x[2] in box(0, 40)
stream visitors[2] in [0, 40]
stream flow in [-9, 9]
minimize sum(x) - 0.1 * flow * sum(x)
subject to
    watch: visitors <= x  each round, penalty 5
using hedged with season = SEASON
"""


@cache
def plan_of(season: int, late: int = 0) -> Any:
    text = TEXT.replace("SEASON", str(season)) + (f"feedback full delayed {late}\n" if late else "")
    return oco.compile(oco.parse(text))


def data(count: int, day: int, seed: int = 0, weekly: float = 1.0, noise: float = 0.1) -> dict[str, Any]:
    """Days of so many rounds, of which two in seven have more visitors."""
    rng, t = np.random.default_rng(seed), np.arange(count)
    hour = 1.2 + np.sin(2 * np.pi * t / day)
    busy = 1 + weekly * (t // day % 7 >= 5)
    visitors = (hour * busy)[:, None] * np.array([6.0, 9.0]) * rng.lognormal(0, noise, (count, 2))
    return {"visitors": np.clip(visitors, 0, 40), "flow": np.clip(rng.normal(0, 2, count) + busy, -9, 9)}


def predicted(rows: Any, season: int, late: int = 0) -> Any:
    """Rows that predict round len(rows) + 1 + late, by the formula, from sums over all rounds."""
    day, weekly = day_of(season), np.zeros(rows.shape)
    lowest, levels = np.array([0.0, 0.0, -9.0]), np.zeros((2, 3))

    def mean(t: int, k: int, phase: int) -> Any:
        own = rows[phase % k : t : k]
        return own.mean(axis=0) if len(own) else (rows[: max(t, 1)].mean(axis=0))

    scaled = lowest >= 0
    for t in range(len(rows) + 1):
        at = t if t < len(rows) else t + late
        s = mean(t, day, at)
        r = np.where(scaled, s, 1.0)
        sums = [
            (rows[i] - mean(i, day, i), np.where(scaled, mean(i, day, i), 1.0))
            for i in range(day, t)
            if same_day(i, at, day)
        ]
        above, size = (np.sum([pair[k] for pair in sums], axis=0) if sums else np.zeros(3) for k in (0, 1))
        weekly = s + r * above / (size + 10 * r)
        if t == len(rows):
            phase = mean(t, season, at) if day == season or len(rows[at % season : t : season]) else weekly
            return np.clip([phase, *(weekly + levels)], [*lowest], [40, 40, 9])
        if t >= day:
            levels += np.array(LEVEL_RATES)[:, None] * (rows[t] - weekly - levels)
    raise AssertionError


def same_day(i: int, t: int, day: int) -> bool:
    return i // day % 7 == t // day % 7


@pytest.mark.parametrize(("season", "late"), [(14, 0), thorough(21, 0), thorough(9, 0), thorough(21, 2), (9, 2)])
def test_weekly_predictions_are_those_of_the_formula(season: int, late: int) -> None:
    plan, own = plan_of(season, late), data(90, day_of(season))
    learner = plan.learner(backend="numpy")
    rows = np.column_stack([own["visitors"], own["flow"]])
    for t in range(90):
        learner.decide()
        if t >= late:
            k = t - late
            learner.observe(visitors=own["visitors"][k], flow=own["flow"][k])
            if t % 7 == 0 or t < 30:
                made = learner.values["predicted"][len(FORGETTING) : len(FORGETTING) + 3]
                np.testing.assert_allclose(made, predicted(rows[: k + 1], season, late), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("season", [14, 9])
def test_backends_agree(season: int) -> None:
    own, plan = data(60, day_of(season)), plan_of(season)
    x = plan.run(own, backend="numpy").decisions
    np.testing.assert_allclose(plan.run(own, backend="c").decisions, x, atol=1e-9)


def test_short_seasons_and_years_have_no_days() -> None:
    assert [day_of(k) for k in (2, 7, 52, 365, 8, 10, 14, 24, 70, 168)] == [0, 0, 0, 0, 8, 10, 2, 24, 10, 24]


def test_a_week_of_hours_is_known_after_a_week_of_days() -> None:
    """From the second to the fifth week of 70 rounds weekly predictions miss by less than averages of 70 phases do."""
    own = data(350, 10, seed=4, weekly=0.4, noise=0.2)
    learner = plan_of(70).learner(backend="numpy")
    missed = np.zeros((2, 2))
    for t in range(350):
        learner.decide()
        made = learner.values["predicted"][len(FORGETTING) :, :2][:2].copy()
        made[1] -= learner.values["level"][0, :2]
        if t >= 70:
            missed += (made - own["visitors"][t]) ** 2
        learner.observe(visitors=own["visitors"][t], flow=own["flow"][t])
    assert (missed[1] < 0.9 * missed[0]).all()


def test_a_day_without_weeks_costs_little() -> None:
    """Where days are alike the weekly prediction misses by at most 5% more than the averages of the hours."""
    own = data(400, 10, seed=5, weekly=0.0)
    learner, rows = plan_of(10).learner(backend="numpy"), own["visitors"]
    missed = np.zeros(2)
    for t in range(400):
        learner.decide()
        hours = rows[t % 10 : t : 10]
        week = learner.values["predicted"][len(FORGETTING) + 1, :2] - learner.values["level"][0, :2]
        if t >= 80:
            missed += ((week - rows[t]) ** 2).sum(), ((hours.mean(axis=0) - rows[t]) ** 2).sum()
        learner.observe(visitors=own["visitors"][t], flow=own["flow"][t])
    assert missed[0] < 1.05 * missed[1]
