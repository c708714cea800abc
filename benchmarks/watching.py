"""Evidence against stated distributions: false alarms, delays after a change of the mean, and what a year of prices refutes.

Run: python -m benchmarks.watching [--streams 10000] [--rounds 100000] [--data DIR]

--data  a folder with nyiso/nyiso_rt_zonal_lbmp_hourly_2017.csv.gz, columns Time Stamp, Name, LBMP
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gzip
import subprocess
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import oco
from oco.compiler.evidence.bets import StatedEntry, stated_entries
from oco.compiler.evidence.wealth import Evidence
from oco.compiler.problem.canonical import canonical

Array = np.ndarray[Any, Any]
ALPHA = 0.01
TOGETHER = 500
"""Streams that are simulated at once: their wealth stays in the cache."""
BLOCK = 1000
"""Rounds that are drawn at once."""
MONTH = 31 * 24
Draw = Callable[[np.random.Generator, Any, float], Array]


def _clipped(draw: Callable[[np.random.Generator, Any, float], Array], most: float) -> Draw:
    return lambda rng, size, factor: np.minimum(draw(rng, size, factor), most)


CASES: dict[str, tuple[str, Draw]] = {
    "uniform(0, 1)": ("~ uniform(0, 1)", _clipped(lambda rng, size, f: rng.random(size) * f, 1.0)),
    "poisson(2500) in [0, 3200]": (
        "~ poisson(2500) in [0, 3200]",
        _clipped(lambda rng, n, f: rng.poisson(2500 * f, n), 3200),
    ),
    "normal(5, 2) in [-15, 25]": ("~ normal(5, 2) in [-15, 25]", lambda rng, n, f: rng.normal(5 * f, 2, n)),
    "bernoulli(0.3)": ("~ bernoulli(0.3)", lambda rng, n, f: (rng.random(n) < 0.3 * f).astype(np.float64)),
    "exponential(1) in [0, 40]": (
        "~ exponential(1) in [0, 40]",
        _clipped(lambda rng, n, f: rng.exponential(f, n), 40.0),
    ),
    "[0, 1] iid mean = 0.4, beta(2, 3)": (
        "in [0, 1] iid mean = 0.4",
        _clipped(lambda rng, n, f: f * rng.beta(2, 3, n), 1.0),
    ),
}
"""Statement about a stream, and draws of it with a mean times a factor."""


def problem(stated: str, rounds: int) -> Any:
    """Canonical problem with one stream of which this is stated."""
    text = f"model m\nhorizon T = {rounds}\ndecision x in box(0, 1)\nstream s {stated}\nminimize x * s\n"
    return canonical(oco.parse(text))


def kernel(folder: Path) -> Any:
    """The recursion in C, compiled into a folder."""
    library = folder / "watching.so"
    source = Path(__file__).with_suffix(".c")
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
    play = ctypes.CDLL(str(library)).play
    play.restype = None
    return play


def false_alarms(stated: str, draw: Draw, streams: int, rounds: int, seed: int) -> int:
    """Number of streams on which the wealth reaches 1/alpha in some round; the recursion of `Evidence` over many streams at once."""
    (entry,) = stated_entries(problem(stated, rounds))
    on_mean, serial, *rest = entry.bets
    odds = np.ascontiguousarray(rest[0].odds.T) if rest else np.zeros((1, 0))
    edges = rest[0].edges if rest else np.zeros(0)
    slopes = np.concatenate([on_mean.slopes, serial.slopes])
    prior = np.concatenate([np.full(b.count, 1 / (len(entry.bets) * b.count)) for b in entry.bets])
    rng, alarms = np.random.default_rng(seed), 0
    with TemporaryDirectory() as folder:
        play = kernel(Path(folder))
        for _ in range(-(-streams // TOGETHER)):
            wealth, last = np.zeros((TOGETHER, len(prior))), np.zeros(TOGETHER)
            reached = np.zeros(TOGETHER, dtype=np.uint8)
            for start in range(0, rounds, BLOCK):
                values = np.ascontiguousarray(draw(rng, (min(BLOCK, rounds - start), TOGETHER), 1.0), dtype=np.float64)
                play(
                    *map(_pointer, (wealth, last, reached, values)),
                    *map(ctypes.c_long, (len(values), TOGETHER, start)),
                    *map(ctypes.c_double, (1 / rounds, 1 / ALPHA, on_mean.mean)),
                    *(_pointer(slopes), ctypes.c_long(on_mean.count), ctypes.c_long(serial.count)),
                    *(_pointer(edges), ctypes.c_long(len(odds)), _pointer(odds), ctypes.c_long(odds.shape[1])),
                    _pointer(prior),
                )
            alarms += int(reached.sum())
    return alarms


def _pointer(array: Array) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


def delays(stated: str, draw: Draw, factor: float, repeats: int, seed: int) -> tuple[Array, int]:
    """Rounds from a change of the mean in round 50,001 of 100,000 to the alarm, and the number of alarms before."""
    start, rng, results, early = Evidence.of(problem(stated, 100_000), ALPHA), np.random.default_rng(seed), [], 0
    for _ in range(repeats):
        alarm = start.after_rounds({"s": np.concatenate([draw(rng, 50_000, 1.0), draw(rng, 50_000, factor)])}).alarm
        if alarm is not None and alarm.round <= 50_000:
            early += 1
        else:
            results.append(np.inf if alarm is None else alarm.round - 50_000)
    return np.array(results), early


def zones(folder: Path) -> dict[str, Array]:
    """Hourly prices of the zones in 2017, in time order."""
    rows: dict[str, list[tuple[str, float]]] = defaultdict(list)
    with gzip.open(folder / "nyiso" / "nyiso_rt_zonal_lbmp_hourly_2017.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            rows[row["Name"]].append((row["Time Stamp"], float(row["LBMP"])))
    return {name: np.array([price for _, price in own]) for name, own in rows.items()}


def refuted(prices: Array, january: Array) -> list[str]:
    """Statements made of January that the prices after it refute, each watched alone, with the hour."""
    low = -1000.0 if prices.min() > -1000 else -5000.0
    mean, spread, results = january.mean(), january.std(), []
    for stated, last in (
        (f"in [{low}, 3000] iid mean = {mean:.6g}", 2),
        (f"~ normal({mean:.6g}, {spread:.6g}) in [{low}, 3000]", 3),
    ):
        for bets in stated_entries(problem(stated, len(prices)))[0].bets[0 if last == 2 else 2 : last]:
            alone = Evidence((StatedEntry("s", 0, (bets,)),), ALPHA, len(prices), 0, np.zeros(bets.count))
            alarm = alone.after_rounds({"s": prices}).alarm
            results.append("not refuted" if alarm is None else f"hour {alarm.round:,}")
    return results


def gone_over(factor: float) -> list[str]:
    """Loss and violation of drift plus penalty with an alert and without one, streams being scaled in the second half."""
    text = (
        "model m\nhorizon T = 4000\ndecision x[2] in box(0, 1)\nstream s[2] in [0, 1] iid mean = 0.5\nminimize s @ x\n"
        "subject to\n    served: s @ x >= 0.2 on average\nusing dpp\n"
    )
    plan, data = oco.compile(oco.parse(text)), np.random.default_rng(0).random((4000, 2))
    data[2000:] *= factor
    alert, results = oco.alert(plan, ALPHA), []
    for learner in (plan.learner(), alert):
        decided = [(learner.decide(), learner.observe(s=s)) for s in data]
        halves = [[f for _, f in decided[:2000]], [f for _, f in decided[2000:]]]
        results += [f"{sum(f.loss for f in h):,.0f}, {sum(max(f.constraints[0], 0) for f in h):,.0f}" for h in halves]
    return [*results, str(None if alert.alarm is None else alert.alarm.round)]


def main() -> None:
    """Print the tables of docs/watching.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--only", default="uniform(0, 1)")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    for name in filter(None, given.only.split(";")):
        found = partial(false_alarms, *CASES[name], given.streams, given.rounds)
        print(
            f"{name}: {found(0)} false alarms in {given.streams:,} streams of {given.rounds:,} rounds at alpha {ALPHA}",
            flush=True,
        )
    print("| stated | change | median delay | 90% within | alarms before |\n| --- | --- | --- | --- | --- |")
    for name, (stated, draw) in CASES.items():
        for factor in (1.2, 0.8):
            late, early = delays(stated, draw, factor, given.repeats, 1)
            print(
                f"| `{name}` | {factor - 1:+.0%} | {np.median(late):,.0f} | {np.quantile(late, 0.9):,.0f} | {early} of {given.repeats} |",
                flush=True,
            )
    for factor in (1.0, 0.5):
        print(f"scaled by {factor} from round 2,001 on: {' | '.join(gone_over(factor))}", flush=True)
    if given.data is not None:
        print(
            "| zone | January: mean, sd | the mean | independence | the distribution |\n| --- | --- | --- | --- | --- |"
        )
        for zone, prices in zones(given.data).items():
            january = prices[:MONTH]
            found = " | ".join(refuted(prices[MONTH:], january))
            print(f"| {zone} | {january.mean():.2f}, {january.std():.2f} | {found} |")


if __name__ == "__main__":
    main()
