"""One model with all that is known before a decision: names, contexts, states, moves, predictions, shares of rounds and penalties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.text.formatter import format_text

PLANTS = """\
name,pmax,cost,co2
north,1500,20,0.55
south,1600,27,0.45
east,1700,34,0.35
west,1800,41,0.25
coast,2000,55,0.05
"""
TEXT = """\
model dispatch

horizon T = 8760

index plant = file("plants.csv", column = "name")
param pmax[plant] = file("plants.csv", column = "pmax")
param cost[plant] = file("plants.csv", column = "cost")
param co2[plant] = file("plants.csv", column = "co2")

context load in [3000, 8000]
context ahead in [-100, 500]
context need in [0, 7000]

decision p[plant] in box(0, pmax)
decision charge in box(-50, 50)

state stored = stored + charge in [0, 400] start 200

stream price in [-100, 500]
stream calls in [0, 50]

predict price = ahead

minimize cost @ p - price * (sum(p) - charge) + 0.1 * norm1(p - prev(p))

subject to
    balance: sum(p) - charge >= load         each round
    ramp:    abs(p - prev(p)) <= 0.2 * pmax  each round
    room:    stored + charge <= 400          each round
    clean:   co2 @ p <= 2500                 on average
    reserve: sum(p) >= 1.1 * need + calls    in 99% of rounds
    served:  calls - 4 * sum(log1p(p)) <= 0  each round, penalty 50
"""
T = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "plants.csv").write_text(PLANTS)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    (folder / "dispatch.oco").write_text(TEXT)
    return oco.load(folder / "dispatch.oco")


def data() -> dict[str, Any]:
    """Load within what plants can follow, and what only the round tells."""
    rng, t = np.random.default_rng(0), np.arange(T)
    load = 5500 + 600 * np.sin(t / 4) + rng.uniform(-100, 100, T)
    ahead = 100 + 80 * np.sin(t / 4)
    return {
        "load": load,
        "ahead": ahead,
        "need": 0.8 * load,
        "price": ahead + rng.normal(0, 10, T),
        "calls": rng.uniform(0, 50, T),
    }


@pytest.fixture(scope="module")
def plan(model: Any) -> Any:
    return oco.compile(model)


@pytest.fixture(scope="module")
def trace(plan: Any) -> Any:
    return plan.run(data(), backend="numpy")


def test_known_constraints_are_met(trace: Any) -> None:
    p, charge = trace.decisions["p"], trace.decisions["charge"]
    pmax = np.array([1500, 1600, 1700, 1800, 2000])
    assert (p.sum(axis=1) - charge >= data()["load"] - 1e-5).all()
    assert (np.abs(np.diff(p, axis=0)) <= 0.2 * pmax + 1e-5).all()
    stored = 200 + np.cumsum(charge)
    assert stored.min() >= -1e-5 and stored.max() <= 400 + 1e-5


def test_c_decides_as_numpy_does(plan: Any, trace: Any) -> None:
    c = plan.run(data(), backend="c")
    for name, own in trace.decisions.items():
        np.testing.assert_allclose(c.decisions[name], own, rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
def test_modules_are_written(plan: Any, tmp_path: Path) -> None:
    assert plan.write(tmp_path / "dispatch.py") and plan.write(tmp_path / "dispatch", backend="c")


def test_the_text_of_the_model_is_read_as_the_model(model: Any, folder: Path) -> None:
    assert oco.parse(model.to_oco(), folder=folder) == model
    assert format_text(TEXT) == TEXT
