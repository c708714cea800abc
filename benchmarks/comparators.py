"""Times of comparators in hindsight: `python benchmarks/comparators.py [FOLDER OF THE SHARED DATA]`.

Prints a line each for the targets: 10,000 rounds of 100 variables with a logistic loss, a year of hourly prices in ten zones with a
decision each round, and regret against the best of the rounds so far.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar

import numpy as np

from oco.compiler.canonical import Canonical, canonical
from oco.dsl.load import load, parse
from oco.evaluation.comparators import Comparator
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data, load_data

Kind = Literal["static", "dynamic"]
Found = TypeVar("Found")
ROOT = Path(__file__).parent.parent
LOGISTIC = """model logistic
horizon T = 10000
decision x[100] in ball(5)
stream a[100] in [-1, 1]
stream y in [-1, 1]
minimize logistic(-y * (a @ x))
"""


def report(name: str, seconds: float, found: Comparator) -> None:
    relative = abs(found.gap) / max(abs(found.value), 1e-300)
    print(f"{name:<66} {seconds:8.2f} s   {found.status.value}, relative gap {relative:.1e}")


def timed(name: str, problem: Canonical, data: Data, kind: Kind) -> None:
    """The median of three; for the static one the prefixes as well, as a ratio to it."""
    seconds, found = _median(lambda: compare(problem, data, kind))
    report(f"{name}, {kind}", seconds, found)
    if kind == "static":
        ends = np.unique(np.geomspace(1, data.rounds, 50).astype(np.int64))
        several, prefixes = _median(lambda: compare_prefixes(problem, data, ends))
        states = ", ".join(f"{prefixes.status.count(s)} {s.value}" for s in dict.fromkeys(prefixes.status))
        label = f"{name}, best of the first t rounds, {len(ends)} t"
        print(f"{label:<66} {several:8.2f} s   {several / seconds:.1f} times one; {states}")


def _median(run: Callable[[], Found]) -> tuple[float, Found]:
    times = []
    for _ in range(3):
        began = perf_counter()
        found = run()
        times.append(perf_counter() - began)
    return sorted(times)[1], found


def logistic() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (10_000, 100))
    y = np.sign(a @ rng.normal(size=100) + 3 * rng.normal(size=10_000))
    problem = canonical(parse(LOGISTIC))
    data = load_data(problem, {"a": a, "y": y})
    timed("logistic, 10,000 rounds of 100 variables", problem, data, "static")


def tracking() -> None:
    problem = canonical(load(ROOT / "examples" / "tracking.oco"))
    data = load_data(problem)
    timed("tracking, 5,000 rounds", problem, data, "static")
    timed("tracking, 5,000 rounds", problem, data, "dynamic")


def prices(path: Path) -> None:
    zones: dict[str, list[float]] = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            zones.setdefault(row["Name"], []).append(float(row["LBMP"]))
    kept = [values for name, values in zones.items() if name not in ("NORTH", "H Q", "NPX", "O H", "PJM")]
    problem = canonical(load(ROOT / "examples" / "job_scheduling.oco"))
    data = load_data(problem, {"price": np.array(kept).T})
    timed(f"job scheduling, {data.rounds:,} hours of 2017", problem, data, "static")
    timed(f"job scheduling, {data.rounds:,} hours of 2017", problem, data, "dynamic")


def main() -> None:
    logistic()
    tracking()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "shared" / "data") / "nyiso"
    year = path / "nyiso_rt_zonal_lbmp_hourly_2017.csv.gz"
    if year.exists():
        prices(year)
    else:
        print(f"{year} is not there: the year of prices is left out")


if __name__ == "__main__":
    main()
