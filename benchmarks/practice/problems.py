"""Problems on which the default learner is compared with the rules of practice: real data where there are any, else seeded seasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import oco
from benchmarks.practice import fields
from oco.compiler.problem.canonical import canonical
from oco.dsl.expressions import constant
from oco.dsl.model import Model
from oco.evaluation.data import Data, load_data

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
NYISO = ROOT / "examples" / "data" / "nyiso_2017-05.csv"
MARKETS = ("djia", "sp500", "tse", "msci")
FIELDS = ("dispatch", "autoscaling", "bloodbank", "irrigation")
PROBLEMS = ("nyiso", "tracking", "newsvendor", "charging", "bandwidth", "pacing", *FIELDS, *MARKETS)

NEWSVENDOR = """\
model newsvendor
horizon T = 700
decision q[5] in box(0, 100)                                  # stock of each product
stream demand[5] in [0, 200]
stream room      in [100, 400]                                # free space of the warehouse
minimize 2 * sum(q) - 5 * sum(minimum(q, demand))
subject to
    space: sum(q) <= room                                     each round
"""
CHARGING = """\
model charging
horizon T = 1000
decision p[4] in box(0, 7)                                    # power of each vehicle, kW
stream price   in [0, 1]
stream wish[4] in [0, 7]
stream free    in [0, 30]                                     # what the grid leaves
minimize price * sum(p) + 0.3 * sum_squares(p - wish)
subject to
    grid: sum(p) <= free                                      each round
"""
BANDWIDTH = """\
model bandwidth
horizon T = 1200
decision x[6] in box(0, 10)                                   # rate of each flow
stream load[6]  in [0, 10]
stream cap      in [0, 60]
stream price[6] in [0, 5]
minimize price @ x - 4 * sum(log(1 + x))
subject to
    link:  load @ x <= 4 * cap                                each round
    least: 2 + 0.05 * cap - sum(x) <= 0                       each round
"""
PACING = """\
model pacing
horizon T = 1344
decision x[4] in box(0, 1)                                    # intensity in each channel
stream traffic[4] in [0, 20]
stream price[4]   in [0, 4]
minimize -sum(traffic * log(1 + 4 * x))
subject to
    budget: price @ x <= 0.8                                  on average
"""
MARKET = """\
model market
param n = {n}
horizon T = {rounds}
decision w[n] in simplex
stream relative[n] in [0.2, 5]
minimize -log(relative @ w)
"""
SCALING = "machines for the load of three regions, daily seasons and sudden crowds, drawn"
BLOOD = "orders of a blood bank, weekly seasons, one day in twenty missing from the records, drawn"
WATER = "irrigation of three fields, seasons, rain, a drought, drawn"


@dataclass(frozen=True)
class Problem:
    """Model with its rounds, and prices of a unit of violation in units of the loss."""

    name: str
    model: Model
    data: Data
    prices: Sequence[float]
    words: str


def priced(model: Model, price: float) -> Model:
    """Model that states this penalty of each of its constraints."""
    penalty = constant(np.asarray(price))
    return replace(model, constraints=tuple(replace(c, penalty=penalty) for c in model.constraints))


def problems(portfolios: Path | None, seed: int) -> dict[str, Callable[[], Problem]]:
    """Problems by name, made when they are called. Without a folder of price relatives there are no portfolios."""
    found: dict[str, Callable[[], Problem]] = {
        "nyiso": lambda: _nyiso(seed),
        "tracking": lambda: _tracking(seed),
        "newsvendor": lambda: _newsvendor(seed),
        "charging": lambda: _charging(seed),
        "bandwidth": lambda: _bandwidth(seed),
        "pacing": lambda: _pacing(seed),
        "dispatch": lambda: _dispatch(seed),
        "autoscaling": lambda: _given(
            "autoscaling", fields.AUTOSCALING, fields.autoscaling(seed), (3.0, 30.0, 300.0), SCALING
        ),
        "bloodbank": lambda: _given("bloodbank", fields.BLOODBANK, fields.bloodbank(seed), (3.0, 30.0, 300.0), BLOOD),
        "irrigation": lambda: _given(
            "irrigation", fields.IRRIGATION, fields.irrigation(seed), (3.0, 30.0, 300.0), WATER
        ),
    }
    for market in MARKETS if portfolios is not None else ():
        found[market] = lambda path=portfolios / f"{market}_relatives.csv", market=market: _market(market, path)  # type: ignore[misc]
    return found


def _nyiso(seed: int) -> Problem:
    model = oco.load(ROOT / "examples" / "job_scheduling.oco").with_horizon(744)
    words = (
        "`examples/job_scheduling.oco` on NYISO's hourly prices of May 2017, jobs drawn; a price is $ for a late job"
    )
    return Problem("nyiso", model, load_data(canonical(model), NYISO, seed=seed), (3e4, 1e5, 3e5), words)


def _tracking(seed: int) -> Problem:
    model = oco.load(ROOT / "examples" / "tracking.oco").with_horizon(1000)
    words = "`examples/tracking.oco`, drawn"
    return Problem(
        "tracking", model, load_data(canonical(model), None, seed=seed, rounds=1000), (1.0, 10.0, 100.0), words
    )


def _newsvendor(seed: int) -> Problem:
    """Weekly seasons of demand, a slow drift, and free space with a season of its own."""
    rng, t = np.random.default_rng(seed), np.arange(700)
    season = 1 + 0.4 * np.sin(2 * np.pi * t[:, None] / 7 + np.arange(5))
    level = np.array([20.0, 30.0, 40.0, 50.0, 60.0]) * (1 + 0.2 * np.sin(2 * np.pi * t / 365))[:, None]
    demand = np.clip(level * season * rng.lognormal(0.0, 0.25, (700, 5)), 0, 200)
    room = np.clip(200 + 30 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 20, 700), 100, 400)
    return _given(
        "newsvendor",
        NEWSVENDOR,
        {"demand": demand, "room": room},
        (1.0, 10.0, 100.0),
        "stock in a shared warehouse, weekly seasons, drawn",
    )


def _charging(seed: int) -> Problem:
    """Daily seasons of prices, of what drivers wish, and of what the grid leaves, hour by hour."""
    rng, t = np.random.default_rng(seed), np.arange(1000)
    day = 2 * np.pi * t / 24
    price = np.clip(0.4 + 0.2 * np.sin(day) + rng.normal(0, 0.05, 1000), 0, 1)
    wish = np.clip(3 + 2 * np.sin(day[:, None] + np.arange(4)) + rng.normal(0, 1, (1000, 4)), 0, 7)
    free = np.clip(10 + 5 * np.sin(day + 2) + rng.normal(0, 1.5, 1000), 0, 30)
    streams = {"price": price, "wish": wish, "free": free}
    return _given(
        "charging", CHARGING, streams, (0.3, 3.0, 30.0), "vehicles on a shared connection, daily seasons, drawn"
    )


def _bandwidth(seed: int) -> Problem:
    """Loads, prices and the capacity of a link with seasons of their own."""
    rng, t = np.random.default_rng(seed), np.arange(1200)
    day = 2 * np.pi * t / 48
    load = np.clip(3 + 2 * np.sin(day[:, None] + np.arange(6)) + rng.normal(0, 0.8, (1200, 6)), 0, 10)
    cap = np.clip(30 + 8 * np.sin(day / 2) + rng.normal(0, 3, 1200), 0, 60)
    price = np.clip(1 + 0.5 * np.cos(day[:, None]) + rng.normal(0, 0.3, (1200, 6)), 0, 5)
    streams = {"load": load, "cap": cap, "price": price}
    return _given("bandwidth", BANDWIDTH, streams, (0.3, 3.0, 30.0), "flows on a link, two constraints, seasons, drawn")


def _pacing(seed: int) -> Problem:
    """Daily seasons of traffic and of prices, hour by hour for eight weeks."""
    rng, t = np.random.default_rng(seed), np.arange(1344)
    day = 1 + 0.8 * np.sin(2 * np.pi * t[:, None] / 24 + 0.5 * np.arange(4))
    traffic = np.clip(np.array([1.0, 2.0, 3.0, 4.0]) * day * rng.lognormal(0.0, 0.3, (1344, 4)), 0, 20)
    rush = 1 + 0.3 * np.sin(2 * np.pi * (t[:, None] - 4) / 24)
    price = np.clip(np.array([0.6, 0.8, 1.0, 1.2]) * rush * rng.lognormal(0.0, 0.2, (1344, 4)), 0, 4)
    return _given(
        "pacing",
        PACING,
        {"traffic": traffic, "price": price},
        (1.0, 5.0, 25.0),
        "advertising within a budget on average, daily seasons, drawn",
    )


def _dispatch(seed: int) -> Problem:
    """Prices of NYISO's ten zones in May 2017; loads and their forecasts are drawn."""
    prices = load_data(canonical(oco.load(ROOT / "examples" / "dispatch.oco")), NYISO, seed=seed).array("price")
    words = "power for a load that is forecast, NYISO's hourly prices of May 2017, loads drawn"
    return _given("dispatch", fields.DISPATCH, {**fields.loads(seed), "price": prices}, (100.0, 300.0, 1000.0), words)


def _market(name: str, path: Path) -> Problem:
    values = np.loadtxt(path, delimiter=",")
    text = MARKET.format(n=values.shape[1], rounds=len(values))
    return _given(
        name, text, {"relative": values}, (1.0,), f"portfolio on the daily price relatives of {name}, no limit"
    )


def _given(name: str, text: str, streams: dict[str, Array], prices: Sequence[float], words: str) -> Problem:
    """Problem on these rounds; values that are missing are those of the round before."""
    model = oco.parse(text)
    return Problem(name, model, load_data(canonical(model), streams, on_missing="hold"), prices, words)
