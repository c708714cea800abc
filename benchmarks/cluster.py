"""Fleets by key on Ray beside the fleet in one process: learner-rounds a second of processor time, batches, snapshots.

    python benchmarks/cluster.py [LEARNERS] [ROUNDS]

Processor time is that of the processes which have the learners; the driver's, which divides the batches, stands beside it. Each figure is
the median of as many repetitions as ROUNDS.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import oco
from oco.evaluation.engines import Ray
from oco.fleets.parquet import REPEATED, shard_file
from oco.fleets.tables import arrays_of, table_of
from oco.plan import Plan

SMALL = """\
model tracked
horizon T = 100000
decision x[4] in box(-1, 1)
stream goal[4] in [-1, 1]
minimize sum_squares(x - goal)
subject to
    cap: sum(x) <= 1    each round
using coldq with alpha = sqrt(t), eta = 0.001, gamma = 10, epsilon = 0.5
"""
LARGE = """\
model weights
horizon T = 100000
decision x[8] in ball(1)
stream goal[8] in [-1, 1]
minimize sum_squares(x - goal)
using ons
"""
MODELS = {"coldq, 4 numbers": (SMALL, 4), "ons, 8 numbers": (LARGE, 8)}
"""Models, with the numbers of a row: a step of some 20 ns, and one of some 500 ns."""


def batch_of(keys: Any, round: int, size: int) -> pa.Table:
    """Data of a round, so many numbers for each key."""
    goal = np.random.default_rng(round).uniform(-1, 1, (len(keys), size))
    return table_of(keys, round, [{"goal": goal}])


def alone(plan: Plan, learners: int, rounds: int, size: int) -> list[float]:
    """Processor seconds a round of the fleet in one process."""
    fleet, keys = plan.fleet(learners, backend="c"), pa.array(np.arange(learners).astype(str))
    times = []
    for t in range(1, rounds + 1):
        arrays = arrays_of(batch_of(keys, t, size), {"goal": (size,)})
        began = time.process_time()
        fleet.decide()
        fleet.observe(**arrays)
        times.append(time.process_time() - began)
    return times


def shared(plan: Plan, learners: int, rounds: int, size: int, workers: int) -> tuple[list[float], list[float]]:
    """Processor seconds a round of all workers together, and of the driver."""
    keys = [str(k) for k in range(learners)]
    options: dict[str, Any] = {"engine": "ray", "workers": workers, "shards": workers, "backend": "c"}
    with oco.ClusterFleet(plan, keys, **options) as fleet:
        own, driver = [], []
        for t in range(1, rounds + 1):
            batch = batch_of(fleet.keys, t, size)
            before, mine = used(fleet), time.process_time()
            fleet.decide()
            fleet.observe(batch)
            driver.append(time.process_time() - mine)
            own.append(used(fleet) - before)
    return own, driver


def from_files(plan: Plan, learners: int, rounds: int, size: int, workers: int) -> float:
    """Processor seconds a round of all workers together that read rounds from Parquet files by shard and write what came of them."""
    keys = [str(k) for k in range(learners)]
    options: dict[str, Any] = {"engine": "ray", "workers": workers, "shards": workers, "backend": "c", "every": rounds}
    with tempfile.TemporaryDirectory() as place, oco.ClusterFleet(plan, keys, **options) as fleet:
        (parts := Path(place) / "parts").mkdir()
        for shard, rows in enumerate(fleet._ranges):
            tables = [batch_of(fleet._keys(shard), t, size) for t in range(1, rounds + 1)]
            path = shard_file(parts, shard)
            parquet.write_table(pa.concat_tables(tables), path, len(rows), use_dictionary=REPEATED)  # as `divide` does
        fleet.play(parts, Path(place) / "out", 1)  # files are opened, and code loaded
        before = used(fleet)
        fleet.play(parts, Path(place) / "out")
        return (used(fleet) - before) / (rounds - 1)


def snapshot(plan: Plan, learners: int) -> tuple[int, float]:
    """Bytes of a snapshot, and processor seconds that it takes."""
    with tempfile.TemporaryDirectory() as place:
        fleet = oco.ClusterFleet(plan, [str(k) for k in range(learners)], snapshots=place, backend="c")
        began = time.process_time()
        fleet.snapshot()
        return sum(path.stat().st_size for path in Path(place).rglob("*.npz")), time.process_time() - began


def used(fleet: oco.ClusterFleet) -> float:
    """Processor time of all workers."""
    promises = [fleet.workers.send(worker, "processor_seconds") for worker in fleet.alive]
    return sum(fleet.workers.result(promise) for promise in promises)


def main() -> None:
    """Print the table."""
    learners = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    print("| model | learners in | learner-rounds a second of a core | of the one process | driver, ns a row |")
    print("| --- | --- | --- | --- | --- |")
    with Ray(workers=2).connected():
        for title, (text, size) in MODELS.items():
            plan, count = oco.compile(oco.parse(text)), learners * 4 // size
            results = {workers: shared(plan, count, rounds, size, workers) for workers in (1, 2)}
            base = float(np.median(alone(plan, count, rounds, size)))
            print(f"| {title} | one process | {count / base:,.0f} | | |")
            for workers, (own, driver) in results.items():
                spent, row = float(np.median(own)), float(np.median(driver)) / count * 1e9
                print(
                    f"| {title} | actors: {workers} | {count / spent:,.0f} | {base / spent:.0%} | {row:.0f} |",
                    flush=True,
                )
            spent = from_files(plan, count, rounds, size, 2)
            print(f"| {title} | actors: 2, from files | {count / spent:,.0f} | {base / spent:.0%} | 0 |", flush=True)
            written, seconds = snapshot(plan, count)
            print(
                f"| {title} | snapshot | {written / count:.0f} bytes each, {written / seconds / 1e6:,.0f} MB/s | | |",
                flush=True,
            )


if __name__ == "__main__":
    main()
