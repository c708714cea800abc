"""Examples of what is known before a decision: they run on what ships, NumPy and C agree, and what they say holds."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import corners

import oco

Array = np.ndarray[Any, Any]
EXAMPLES = Path(__file__).parent.parent / "examples"
ROUNDS = {"charging": 744, "pacing": 200, "caching": 16}
NAMED = {"caching": "hedged"}
"""Algorithms that pilot runs choose, which take seconds."""


@cache
def plan_of(name: str) -> Any:
    model = oco.parse((EXAMPLES / f"{name}.oco").read_text(encoding="utf-8"), folder=EXAMPLES)
    return oco.compile(model.with_horizon(ROUNDS[name]), NAMED.get(name))


def data_of(name: str) -> Any:
    if name != "charging":
        return None
    with (EXAMPLES / "data" / "nyiso_2017-05.csv").open(encoding="utf-8") as file:
        return {"price": np.array([float(row["price.NYC"]) for row in csv.DictReader(file)])}


@cache
def run_of(name: str, backend: str) -> Any:
    return plan_of(name).run(data_of(name), backend=backend, seed=0)


@pytest.mark.parametrize("name", corners(ROUNDS, ("pacing",)))
def test_c_decides_as_numpy_does(name: str) -> None:
    np.testing.assert_allclose(run_of(name, "c").decisions, run_of(name, "numpy").decisions, atol=1e-9)


def test_charging_delivers_in_time_and_costs_less_than_charging_at_once() -> None:
    run, price = run_of("charging", "c"), data_of("charging")["price"]
    params = {p.name: p.data for p in plan_of("charging").model.params}
    due, at_once, cost = np.zeros(3), np.zeros(3), 0.0
    for t, x in enumerate(run.decisions):
        now = np.minimum(params["power"], at_once)
        cost += price[t] * now.sum()
        at_once = at_once - now + params["comes"][:, t % 24]
        assert (x <= due + 1e-9).all() and (due - x <= params["power"] * params["hours_left"][:, t % 24] + 1e-9).all()
        due = np.clip(due - x + params["comes"][:, t % 24], 0, 4)
    paid = float(price @ run.decisions.sum(axis=1))
    assert paid == pytest.approx(3098, abs=1) and cost == pytest.approx(4526, abs=1)
    assert plan_of("charging").algorithm == "optimistic"


def test_pacing_does_not_overspend_and_caching_moves_little() -> None:
    assert run_of("pacing", "c").constraints.sum() <= 1e-9
    keep = run_of("caching", "c").decisions
    assert np.abs(np.diff(keep, axis=0)).sum(axis=1).max() <= 0.8 + 1e-9
    np.testing.assert_allclose(keep.sum(axis=1), 3, atol=1e-9)


def test_a_heat_store_with_forecasts_pays_less_than_every_thermostat() -> None:
    with (EXAMPLES / "data" / "heat_store.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:168]
    price, demand = (np.array([float(r[n]) for r in rows]) for n in ("price", "demand"))

    def paid(heat: Any) -> float:
        """Cost of hours in which the heat made is heat(hour, stored)."""
        stored, total = 6.0, 0.0
        for t, (p, d) in enumerate(zip(price, demand, strict=True)):
            x = float(np.clip(heat(t, stored), 0, 4))
            total += p * x / 3 + 120 * max(d - 0.99 * stored - x, 0)
            stored = min(max(0.99 * stored + x - d, 0), 12)
        return total

    plan = oco.compile(oco.load(EXAMPLES / "heat_store.oco"))
    run = plan.run(EXAMPLES / "data" / "heat_store.csv", rounds=168, backend="c")
    own = run.decisions.ravel()
    assert run.loss.sum() == pytest.approx(paid(lambda t, s: own[t]), rel=1e-9)
    levels = [paid(lambda t, s, level=level: level - 0.99 * s + demand[max(t - 1, 0)]) for level in range(13)]
    assert run.loss.sum() < 0.95 * min(levels)
