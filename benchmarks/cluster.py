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

import oco
from oco.evaluation.engines import Ray
from oco.fleets.tables import arrays_of, table_of
from oco.plan import Plan

MODEL = """\
model tracked
horizon T = 100000
decision x[4] in box(-1, 1)
stream goal[4] in [-1, 1]
stream limit in [0, 3]
minimize sum_squares(x - goal)
subject to
    cap: sum(x) - limit <= 0    each round
using coldq with alpha = sqrt(t), eta = 0.001, gamma = 10, epsilon = 0.5
"""


def batch_of(keys: Any, round: int) -> pa.Table:
    """Data of a round."""
    rng = np.random.default_rng(round)
    goal, limit = rng.uniform(-1, 1, (len(keys), 4)), rng.uniform(0, 3, len(keys))
    return table_of(keys, round, [{"goal": goal, "limit": limit}])


def alone(plan: Plan, learners: int, rounds: int) -> list[float]:
    """Processor seconds a round of the fleet in one process."""
    fleet, keys = plan.fleet(learners, backend="c"), pa.array(np.arange(learners).astype(str))
    times = []
    for t in range(1, rounds + 1):
        arrays = arrays_of(batch_of(keys, t), {"goal": (4,), "limit": ()})
        began = time.process_time()
        fleet.decide()
        fleet.observe(**arrays)
        times.append(time.process_time() - began)
    return times


def shared(
    plan: Plan, learners: int, rounds: int, workers: int, place: str
) -> tuple[list[float], list[float], float, int]:
    """Processor seconds a round of all workers together and of the driver; seconds and bytes of a snapshot."""
    keys = [str(k) for k in range(learners)]
    with oco.ClusterFleet(
        plan, keys, engine="ray", workers=workers, shards=workers, snapshots=place, every=10**9, backend="c"
    ) as fleet:
        own, driver = [], []
        for t in range(1, rounds + 1):
            batch = batch_of(fleet.keys, t)
            before, mine = used(fleet), time.process_time()
            fleet.decide()
            fleet.observe(batch)
            own.append(used(fleet) - before)
            driver.append(time.process_time() - mine)
        began = used(fleet)
        fleet.snapshot()
        spent = used(fleet) - began
        size = sum(path.stat().st_size for path in Path(place).rglob("*.npz"))
    return own, driver, spent, size


def used(fleet: oco.ClusterFleet) -> float:
    """Processor time of all workers."""
    promises = [fleet.workers.send(worker, "processor_seconds") for worker in fleet.alive]
    return sum(fleet.workers.result(promise) for promise in promises)


def main() -> None:
    """Print the table."""
    learners = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    plan = oco.compile(oco.parse(MODEL))
    with Ray(workers=2).connected(), tempfile.TemporaryDirectory() as place:
        lines = [
            "| learners in | learner-rounds a second of a core | of the one process | driver, ns a row |",
            "| --- | --- | --- | --- |",
        ]
        results = {workers: shared(plan, learners, rounds, workers, f"{place}/{workers}") for workers in (1, 2)}
        base = float(np.median(alone(plan, learners, rounds)))
        lines.append(f"| one process | {learners / base:,.0f} | 100% | |")
        for workers, (own, driver, _, _) in results.items():
            spent, row = float(np.median(own)), float(np.median(driver)) / learners * 1e9
            actors = f"{workers} actor{'s' if workers > 1 else ''}"
            lines.append(f"| {actors} | {learners / spent:,.0f} | {base / spent:.0%} | {row:.0f} |")
        print("\n".join(lines))
        *_, spent, size = results[2]
        print(f"\nsnapshot: {size / learners:.0f} bytes a learner, {size / spent / 1e6:,.0f} MB a second of a core")


if __name__ == "__main__":
    main()
