"""Problems on recorded data: a year of prices, price relatives of six markets, ratings of films."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MARKETS = ("djia", "sp500", "tse", "msci", "nyse_o", "nyse_n")
ZONES = ("CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD VL", "LONGIL", "MHK VL", "MILLWD", "N.Y.C.", "WEST")
SLOT = 4
"""Hours of a slot of the year: all rules on 8,760 rounds with 100 decisions would take half of the benchmark's time."""
DAYS = 1300
"""Days of a market: those of the four short ones, and the last ones of the two that go back decades."""
USERS, FILMS = 24, 32

MARKET = """\
model market
param n = {n}
horizon T = {rounds}
decision w[n] in simplex
stream relative[n] in [0.2, 5]
minimize -log(relative @ w)
"""
SECTOR = """\
subject to
    sector: sum(relative[0:{part}] * w[0:{part}]) <= 0.3 * (relative @ w)  each round
"""
RATINGS = """\
model ratings
param users = {users}
param films = {films}
horizon T = {rounds}
decision X[users, films] in nuclear_ball(120)
stream user   in 0..users-1
stream film   in 0..films-1
stream rating in [1, 5]
stream P[users, films] ~ uniform(-1, 1)
minimize 0.5 * (X[user, film] - rating) ** 2
subject to
    side: sum(P * X) <= 0                                     each round
"""


def year(folder: Path) -> Array:
    """Prices of ten zones of NYISO in 2017, means over slots of `SLOT` hours, $/MWh, (2190, 10); a slot without an hour is NaN."""
    prices = dict[str, Array]()
    with gzip.open(folder / "nyiso" / "nyiso_rt_zonal_lbmp_hourly_2017.csv.gz", "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["Name"] in ZONES:
                hour = prices.setdefault(row["Time Stamp"], np.full(len(ZONES), np.nan))
                hour[ZONES.index(row["Name"])] = float(row["LBMP"])
    hours = np.array([prices[hour] for hour in sorted(prices)])[:8760]
    return hours.reshape(-1, SLOT, len(ZONES)).mean(axis=1)


def relatives(folder: Path, market: str) -> Array:
    """Daily price relatives of a market, a row a day, of the last `DAYS` days."""
    return np.loadtxt(folder / "portfolio" / f"{market}_relatives.csv", delimiter=",")[-DAYS:]


def market_text(values: Array, limited: bool) -> str:
    """Model of a portfolio; `limited`: after each day's moves at most 30% of the wealth is in the first third of the assets."""
    rounds, n = values.shape
    text = MARKET.format(n=n, rounds=rounds)
    return text + SECTOR.format(part=n // 3) if limited else text


def ratings(folder: Path) -> dict[str, Array]:
    """Ratings that the users who rate most gave the films that are rated most, in the order in which they came."""
    user, film, rating, time = np.loadtxt(folder / "movielens100k" / "u.data", dtype=np.int64).T
    users, films = (np.argsort(-np.bincount(v), kind="stable")[:n] for v, n in ((user, USERS), (film, FILMS)))
    kept = np.flatnonzero(np.isin(user, users) & np.isin(film, films))
    kept = kept[np.argsort(time[kept], kind="stable")]
    place = [{int(k): i for i, k in enumerate(chosen)} for chosen in (users, films)]
    own = [np.array([at[int(k)] for k in v[kept]]) for at, v in zip(place, (user, film))]
    return {"user": own[0], "film": own[1], "rating": rating[kept].astype(np.float64)}
