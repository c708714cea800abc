"""Problems as people have them: seasons, sudden jumps, gaps in the data. Drawn, with rules of thumb that everyone there knows."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

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
