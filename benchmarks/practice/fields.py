"""Problems as people have them: seasons, sudden jumps, gaps in the data. Drawn, with rules of thumb that everyone there knows."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

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
AUTOSCALING = """\
model autoscaling
horizon T = 900
decision machines[3] in box(0, 60)                            # in each region
stream load[3] in [0, 60]                                     # requests, in machines that serve them
minimize sum(machines)
subject to
    serve: load - machines <= 0                               each round
"""
BLOODBANK = """\
model bloodbank
horizon T = 730
decision order[4] in box(0, 80)                               # units of each group
stream need[4] in [0, 80]
minimize 0.2 * sum(order) + sum(maximum(order - need, 0))     # what is left over expires
subject to
    stock: need - order <= 0                                  each round
"""
IRRIGATION = """\
model irrigation
horizon T = 730
decision water[3] in box(0, 10)                               # mm on each field
stream thirst[3] in [0, 15]                                   # mm that the plants take up
stream allowed   in [2, 25]                                   # mm that the water board leaves
minimize sum_squares(water - thirst)
subject to
    board: sum(water) <= allowed                              each round
"""
REGRESSION = """\
model regression
horizon T = 1500
decision weight[5] in box(-100, 100)
stream feature[5] in [-60, 60]                                # one, sine and cosine of the hour, temperature, weekend
stream load in [-50, 150]
minimize (load - feature @ weight)**2
"""
DISPATCH = """\
model dispatch
horizon T = 744
decision p[10] in box(0, 300)                                 # power bought in each zone, MW
context forecast in [500, 2000]                               # MW, of the hour
stream load      in [400, 2200]                               # MW that really come
stream price[10] in [-150, 750]                               # $/MWh
minimize price @ p
subject to
    balance: load - sum(p) <= 0                               each round
"""
CALLS = """\
model calls
horizon T = 1008
decision staff[2] in box(0, 60)                               # agents of each language, of this hour
stream calls[2] in [0, 60]                                    # in agents that answer them
stream wage     in [0.5, 2]
minimize wage * sum(staff)
subject to
    answer: calls - staff <= 0                                each round
"""


def autoscaling(seed: int) -> dict[str, Array]:
    """Daily seasons of load, hour by hour, and crowds that come at once and leave slowly."""
    rng, t = np.random.default_rng(seed), np.arange(900)
    season = 12 + 6 * np.sin(2 * np.pi * t[:, None] / 24 + np.arange(3))
    crowd = np.zeros((900, 3))
    for start in np.flatnonzero(rng.random(900) < 0.01):
        crowd[start:, rng.integers(3)] += 20 * 0.8 ** np.arange(900 - start)
    return {"load": np.clip(season * rng.lognormal(0, 0.12, (900, 3)) + crowd, 0, 60)}


def bloodbank(seed: int) -> dict[str, Array]:
    """Weekly seasons, a slow drift; one day in twenty was not written down."""
    rng, t = np.random.default_rng(seed), np.arange(730)
    week = np.array([1.1, 1.15, 1.1, 1.05, 1.0, 0.6, 0.5])[t % 7][:, None]
    level = np.array([30.0, 24.0, 10.0, 5.0]) * (1 + 0.15 * np.sin(2 * np.pi * t / 365))[:, None]
    need = np.clip(rng.poisson(level * week).astype(np.float64), 0, 80)
    need[rng.random(730) < 0.05] = np.nan
    return {"need": need}


def irrigation(seed: int) -> dict[str, Array]:
    """A season of two years of days, rain that makes thirst jump to nothing, and a drought in which less water is allowed."""
    rng, t = np.random.default_rng(seed), np.arange(730)
    sun = 5 + 3 * np.sin(2 * np.pi * t / 365)[:, None] + np.array([0.0, 0.5, 1.0])
    rain = rng.random(730) < 0.12
    thirst = np.where(rain[:, None], 0.3, sun * rng.lognormal(0, 0.1, (730, 3)))
    allowed = np.where((t > 300) & (t < 480), 8.0, 16.0) + rng.normal(0, 1.0, 730)
    return {"thirst": np.clip(thirst, 0, 15), "allowed": np.clip(allowed, 2, 25)}


def loads(seed: int) -> dict[str, Array]:
    """Daily and weekly seasons of load, and a forecast that misses it by 4%."""
    rng, t = np.random.default_rng(seed), np.arange(744)
    load = 1200 + 200 * np.sin(2 * np.pi * (t - 8) / 24) - 100 * (t // 24 % 7 >= 5) + rng.normal(0, 30, 744)
    forecast = load * (1 + rng.normal(0, 0.04, 744))
    return {"load": np.clip(load, 400, 2200), "forecast": np.clip(forecast, 500, 2000)}


def regression(seed: int) -> dict[str, Array]:
    """Load by hour, temperature and weekend, whose weights drift and jump once."""
    rng, t = np.random.default_rng(seed), np.arange(1500)
    hour = 2 * np.pi * t / 24
    warm = 15 + 8 * np.sin(2 * np.pi * t / 1000) + rng.normal(0, 3, 1500)
    feature = np.stack([np.ones(1500), np.sin(hour), np.cos(hour), warm, t % 168 >= 120], axis=1)
    weight = np.tile([50.0, 10.0, -4.0, -0.8, -6.0], (1500, 1))
    weight[:, 0] += 0.005 * t + 8 * (t > 900)
    weight[:, 3] += 0.0005 * t
    return {"feature": feature, "load": (feature * weight).sum(axis=1) + rng.normal(0, 3, 1500)}


def newsvendor(seed: int) -> dict[str, Array]:
    """Weekly seasons of demand, a slow drift, and free space with a season of its own."""
    rng, t = np.random.default_rng(seed), np.arange(700)
    season = 1 + 0.4 * np.sin(2 * np.pi * t[:, None] / 7 + np.arange(5))
    level = np.array([20.0, 30.0, 40.0, 50.0, 60.0]) * (1 + 0.2 * np.sin(2 * np.pi * t / 365))[:, None]
    demand = np.clip(level * season * rng.lognormal(0.0, 0.25, (700, 5)), 0, 200)
    room = np.clip(200 + 30 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 20, 700), 100, 400)
    return {"demand": demand, "room": room}


def charging(seed: int) -> dict[str, Array]:
    """Daily seasons of prices, of what drivers wish, and of what the grid leaves, hour by hour."""
    rng, t = np.random.default_rng(seed), np.arange(1000)
    day = 2 * np.pi * t / 24
    price = np.clip(0.4 + 0.2 * np.sin(day) + rng.normal(0, 0.05, 1000), 0, 1)
    wish = np.clip(3 + 2 * np.sin(day[:, None] + np.arange(4)) + rng.normal(0, 1, (1000, 4)), 0, 7)
    free = np.clip(10 + 5 * np.sin(day + 2) + rng.normal(0, 1.5, 1000), 0, 30)
    return {"price": price, "wish": wish, "free": free}


def bandwidth(seed: int) -> dict[str, Array]:
    """Loads, prices and the capacity of a link with seasons of their own."""
    rng, t = np.random.default_rng(seed), np.arange(1200)
    day = 2 * np.pi * t / 48
    load = np.clip(3 + 2 * np.sin(day[:, None] + np.arange(6)) + rng.normal(0, 0.8, (1200, 6)), 0, 10)
    cap = np.clip(30 + 8 * np.sin(day / 2) + rng.normal(0, 3, 1200), 0, 60)
    price = np.clip(1 + 0.5 * np.cos(day[:, None]) + rng.normal(0, 0.3, (1200, 6)), 0, 5)
    return {"load": load, "cap": cap, "price": price}


def pacing(seed: int) -> dict[str, Array]:
    """Daily seasons of traffic and of prices, hour by hour for eight weeks."""
    rng, t = np.random.default_rng(seed), np.arange(1344)
    day = 1 + 0.8 * np.sin(2 * np.pi * t[:, None] / 24 + 0.5 * np.arange(4))
    traffic = np.clip(np.array([1.0, 2.0, 3.0, 4.0]) * day * rng.lognormal(0.0, 0.3, (1344, 4)), 0, 20)
    rush = 1 + 0.3 * np.sin(2 * np.pi * (t[:, None] - 4) / 24)
    price = np.clip(np.array([0.6, 0.8, 1.0, 1.2]) * rush * rng.lognormal(0.0, 0.2, (1344, 4)), 0, 4)
    return {"traffic": traffic, "price": price}


def calls(seed: int) -> dict[str, Array]:
    """Daily seasons of calls and wages, hour by hour, and weekends with half as many calls."""
    rng, t = np.random.default_rng(seed), np.arange(1008)
    day = np.sin(2 * np.pi * t / 24)
    usual = (1.2 + day) * (1 - 0.5 * (t // 24 % 7 >= 5))
    answered = usual[:, None] * np.array([12.0, 20.0]) * rng.lognormal(0, 0.12, (1008, 2))
    return {"calls": np.clip(answered, 0, 60), "wage": np.clip(1 + 0.2 * day + rng.normal(0, 0.1, 1008), 0.5, 2)}
