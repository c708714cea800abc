"""Times of comparators in hindsight: `python benchmarks/comparators.py [FOLDER OF THE SHARED DATA]`.

Prints a line each for the targets: 10,000 rounds of 100 variables with a logistic loss, a year of hourly prices in ten zones with a
decision each round, and regret against the best of the rounds so far. Each problem has a process of its own, whose peak memory is told.
Seconds are those of the clock; ratios are of processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.load import load, parse
from oco.evaluation.comparators import Comparator
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data, load_data

Kind = Literal["static", "dynamic"]
Found = TypeVar("Found")
REPEATS = 7
ROOT = Path(__file__).parent.parent
LOGISTIC = """model logistic
horizon T = 10000
decision x[100] in ball(5)
stream a[100] in [-1, 1]
stream y in [-1, 1]
minimize logistic(-y * (a @ x))
"""
NORMS = """decision X[4, 5] in nuclear_ball(1)
stream M[4, 5] in [-1, 1]
minimize nuclear_norm(X - M)
"""


def report(name: str, seconds: float, found: Comparator) -> None:
    relative = abs(found.gap) / max(abs(found.value), 1e-300)
    print(f"{name:<66} {seconds:8.2f} s   {found.status.value}, relative gap {relative:.1e}")


def timed(name: str, problem: Canonical, data: Data, kind: Kind) -> None:
    """The medians of a few; for the static one the prefixes as well, as a ratio to it, both in turn."""
    if kind == "dynamic":
        seconds, _, found = _measured(lambda: compare(problem, data, kind))
        report(f"{name}, {kind}", seconds, found)
        return
    ends = np.unique(np.geomspace(1, data.rounds, 50).astype(np.int64))
    both = [
        (_measured(lambda: compare(problem, data, kind)), _measured(lambda: compare_prefixes(problem, data, ends)))
        for _ in range(REPEATS)
    ]
    alone, together = zip(*both)
    report(f"{name}, {kind}", _median([m.seconds for m in alone]), alone[0].found)
    prefixes = together[0].found
    states = ", ".join(f"{prefixes.status.count(s)} {s.value}" for s in dict.fromkeys(prefixes.status))
    label = f"{name}, best of the first t rounds, {len(ends)} t"
    ratio = _median([m.work for m in together]) / _median([m.work for m in alone])
    print(f"{label:<66} {_median([m.seconds for m in together]):8.2f} s   {ratio:.1f} times one; {states}")


class _Measured(NamedTuple, Generic[Found]):
    seconds: float
    work: float
    found: Found


def _measured(run: Callable[[], Found]) -> _Measured[Found]:
    clock, work = perf_counter(), process_time()
    found = run()
    return _Measured(perf_counter() - clock, process_time() - work, found)


def _median(times: list[float]) -> float:
    return float(np.median(times))


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


def norms() -> None:
    rng = np.random.default_rng(0)
    for rounds in (100, 2_000):
        problem = canonical(parse(f"model norms\nhorizon T = {rounds}\n{NORMS}"))
        data = load_data(problem, {"M": rng.uniform(-1, 1, (rounds, 4, 5))})
        timed(f"norms of matrices, {rounds:,} rounds", problem, data, "static")
        timed(f"norms of matrices, {rounds:,} rounds", problem, data, "dynamic")


def prices(year: Path) -> None:
    zones: dict[str, list[float]] = {}
    with gzip.open(year, "rt") as file:
        for row in csv.DictReader(file):
            zones.setdefault(row["Name"], []).append(float(row["LBMP"]))
    kept = [values for name, values in zones.items() if name not in ("NORTH", "H Q", "NPX", "O H", "PJM")]
    problem = canonical(load(ROOT / "examples" / "job_scheduling.oco"))
    data = load_data(problem, {"price": np.array(kept).T})
    timed(f"job scheduling, {data.rounds:,} hours of 2017", problem, data, "static")
    timed(f"job scheduling, {data.rounds:,} hours of 2017", problem, data, "dynamic")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "shared" / "data")
    year = folder / "nyiso" / "nyiso_rt_zonal_lbmp_hourly_2017.csv.gz"
    for case, of in ((logistic, ()), (tracking, ()), (norms, ()), (prices, (year,))):
        if of and not year.exists():
            print(f"{year} is not there: the year of prices is left out")
            continue
        process = get_context("spawn").Process(target=_alone, args=(case, of))
        process.start()
        process.join()


def _alone(case: Callable[..., None], of: tuple[Path, ...]) -> None:
    case(*of)
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    print(f"{case.__name__ + ', peak memory of the process':<66} {peak:8.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
