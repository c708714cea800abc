"""Margins of `in P% of rounds` on loads with a daily season, beside the rule by hour of the day, and with stated predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import plan_for
from test_c99 import needs_compiler
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.margin_predictions import Margins
from oco.compiler.problem.margin_predictors import BySeason
from oco.compiler.selection.plan import compile_plan
from oco.contract import Recipe

pytestmark = needs_compiler
DAYS, CELLS, MOST = 21, 2, 120.0
T = 24 * DAYS
TOWERS = f"""
model towers
horizon T = {T}
context forecast[{CELLS}] in [0, {MOST}]
decision capacity[{CELLS}] in box(0, {MOST})
stream load[{CELLS}] in [0, {MOST}]
minimize sum(capacity)
subject to
    served: capacity >= load  in 95% of rounds
"""


def loads(seed: int) -> Any:
    """Hourly loads with a daily season and errors that last a few hours, in proportion to them."""
    rng, t = np.random.default_rng(seed), np.arange(T)
    shape = 0.3 + 0.7 * np.clip(np.sin(2 * np.pi * (t[:, None] % 24 - 6 - rng.uniform(-3, 3, CELLS)) / 24), 0, 1)
    errors, drawn = np.zeros((T, CELLS)), rng.normal(size=(T, CELLS))
    for i in range(1, T):
        errors[i] = 0.5 * errors[i - 1] + np.sqrt(0.75) * drawn[i]
    return np.clip(rng.uniform(30, 70, CELLS) * shape * np.exp(0.1 * errors), 0, MOST)


def allowed() -> Any:
    """Rounds that may be broken of the first t: 5% and one more, and what the rest of the rounds make up for."""
    t = np.arange(1, T + 1)[:, None]
    return 0.05 * t + 0.95 + np.minimum(np.sqrt(0.05 * (T - t) / 2), 0.05 * (T - t)) + 1e-9


def by_hour(load: Any, late: slice, hours: int = 24) -> Any:
    """Capacity by hour of the day: mean and deviations of its past loads, of these the fewest that serve 95% of the late rounds."""
    past = [load[t % hours : t : hours] for t in range(2 * hours, T)]
    mean, deviation = (np.array([f(p, axis=0) for p in past]) for f in (np.mean, np.std))
    first = np.full((2 * hours, CELLS), MOST)
    for z in np.arange(0.5, 6.0, 0.05):
        rule = np.concatenate([first, mean + z * deviation])
        if ((load > rule)[late].mean(axis=0) <= 0.05).all():
            break
    return rule


def capacities(text: str, load: Any, forecast: Any) -> Any:
    trace = plan_for(text).run({"load": load, "forecast": forecast}, backend="c")
    return np.asarray(trace.decisions).reshape(T, CELLS)


@pytest.mark.parametrize("seed", [0, thorough(1)])
def test_less_is_paid_than_by_hour_of_the_day(seed: int) -> None:
    load, late = loads(seed), slice(24 * 7, None)
    own = capacities(TOWERS, load, np.full((T, CELLS), 60.0))
    broken = (load > own + 1e-9).cumsum(axis=0)
    assert (broken <= allowed()).all()
    assert own[late].sum() < 1.02 * by_hour(load, late)[late].sum()


def test_stated_predictions_are_used_and_wrong_ones_cost_no_more_broken_rounds() -> None:
    load = loads(2)
    good = np.clip(load + np.random.default_rng(3).normal(0, 1.0, load.shape), 0, MOST)
    wrong = MOST - load
    stated = TOWERS.replace("minimize", "predict load = forecast\nminimize")
    late = slice(24 * 7, None)
    plain, helped, misled = (
        capacities(*case) for case in ((TOWERS, load, wrong), (stated, load, good), (stated, load, wrong))
    )
    for own in (plain, helped, misled):
        assert ((load > own + 1e-9).cumsum(axis=0) <= allowed()).all()
    assert helped[late].sum() < 0.97 * plain[late].sum()
    assert helped[late].sum() < load[late].sum() + 3.0 * load[late].size
    assert misled[late].sum() < 1.05 * plain[late].sum()


def test_the_one_context_that_fits_is_taken_for_a_forecast() -> None:
    """Nearly as if `predict load = forecast` stood there; where two contexts fit, neither is."""
    load, late = loads(2), slice(24 * 7, None)
    forecast = np.clip(load * np.exp(0.02 * np.random.default_rng(3).normal(size=load.shape)), 0, MOST)
    own = capacities(TOWERS, load, forecast)
    stated = capacities(TOWERS.replace("minimize", "predict load = forecast\nminimize"), load, forecast)
    assert own[late].sum() < 1.01 * stated[late].sum() < 1.08 * load[late].sum()
    two = TOWERS.replace("stream load", f"context capacity_before[{CELLS}] in [0, {MOST}]\nstream load")
    margin = canonical(oco.parse(two)).inequalities[0].margin
    assert margin is not None and margin.margins.stated is None


@pytest.mark.parametrize("runs", [False, thorough(True)])
def test_margins_have_the_seasons_that_are_measured_on_data(runs: bool) -> None:
    """Shifts of 20 rounds: no usual season. The plan of another horizon, and that of a saved state, have them too."""
    rng, t, late = np.random.default_rng(5), np.arange(T), slice(140, None)
    load = np.clip((60 + 40 * np.sin(2 * np.pi * t[:, None] / 20)) * rng.lognormal(0, 0.05, (T, CELLS)), 0, MOST)
    data = {"load": load, "forecast": np.full((T, CELLS), 60.0)}
    plan = oco.compile(oco.parse(TOWERS), "hedged", data=data)
    again = compile_plan(plan.model, plan.algorithm, season=Recipe.read(plan.recipe).season)
    for q, expected in ((plan, [1, 20, 140]), (plan.with_horizon(400), [1, 20]), (again, [1, 20, 140])):
        assert [p.k for p in margin_of(q).predictors if isinstance(p, BySeason)] == expected
    if not runs:
        return
    own = np.asarray(plan.run(data, backend="c").decisions).reshape(T, CELLS)
    assert ((own + 1e-9 < load).cumsum(axis=0) <= allowed()).all()
    assert own[late].sum() < 1.02 * by_hour(load, late, 20)[late].sum()


def margin_of(plan: Any) -> Margins:
    (c,) = plan.choice.situation.canonical.known
    assert c.margin is not None
    return c.margin.margins
