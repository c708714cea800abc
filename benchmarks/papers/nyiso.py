"""Electricity prices: NYISO's hourly zonal means, repeated for the five-minute slots of each hour."""

from __future__ import annotations

import csv
import gzip
from typing import Any

import numpy as np

from benchmarks.papers.experiment import shared

Array = np.ndarray[Any, Any]
ZONES = ("CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD VL", "LONGIL", "MHK VL", "MILLWD", "N.Y.C.", "NORTH", "WEST")
SLOTS = 12  # of five minutes in an hour


def hourly(zones: tuple[str, ...]) -> dict[str, list[float]]:
    """LBMP in $/MWh from 1 May 2017, 0 h, by zone."""
    found: dict[str, list[float]] = {z: [] for z in zones}
    with gzip.open(shared("nyiso/nyiso_rt_zonal_lbmp_hourly_2017.csv.gz"), "rt") as lines:
        for row in csv.DictReader(lines):
            if row["Name"] in found and row["Time Stamp"] >= "2017-05-01":
                found[row["Name"]].append(float(row["LBMP"]))
    return found


def five_minutes(slots: int, zones: int | tuple[str, ...]) -> Array:
    """Prices (slots, zones): each hour's mean stands for its twelve slots. A number takes so many zones, NORTH last."""
    names = tuple(z for z in ZONES if z != "NORTH")[:zones] if isinstance(zones, int) else zones
    series = hourly(names)
    return np.repeat(np.array([series[z] for z in names]).T, SLOTS, axis=0)[:slots]
